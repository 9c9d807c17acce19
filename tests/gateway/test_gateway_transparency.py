"""What reaches the upstream is what was sent, wherever no edit was needed."""

import pytest
from amounts import amount
from gateway_world import World

from refold.gateway.dialects import DIALECTS
from refold.testing.gateway import request, source
from refold.testing.upstream import Reply

COUNT = amount(few=10, quick=50, ci=150, thorough=1_000)


@pytest.mark.parametrize("path", DIALECTS)
async def test_requests_pass_as_they_came(path):
    world = World(lambda _: Reply("Well."))
    managed = 0
    try:
        for seed in range(COUNT):
            raw = request(DIALECTS[path].name, source(seed))
            headers = {"x-some-header": f"é{seed}".encode(), "anthropic-beta": "a,b"}
            answer = await world.client.post(path, content=raw, headers=headers)
            assert answer.status_code == 200, answer.text
            got = world.upstream.got.pop()
            assert got.raw == raw
            assert got.headers["anthropic-beta"] == "a,b"
            managed += answer.headers["refold-managed"] == "yes"
    finally:
        await world.aclose()
    assert managed > COUNT // 2
    assert len(await world.sessions()) > min(40, COUNT // 4)
