"""What reaches the upstream is what was sent, wherever no edit was needed."""

import json

import pytest
from amounts import amount, seeds
from gateway_world import World

from refold.gateway.dialects import DIALECTS
from refold.testing.gateway import request, source
from refold.testing.upstream import Reply

COUNT = amount(few=10, quick=50, ci=150, nightly=1_000, thorough=5_000)
SEEDS = seeds(COUNT)


@pytest.mark.parametrize("path", DIALECTS)
async def test_requests_pass_as_they_came(path):
    world = World(lambda _: Reply("Well."))
    managed = 0
    try:
        for seed in SEEDS:
            raw = request(DIALECTS[path].name, source(seed))
            headers = {"x-some-header": f"é{seed}".encode(), "anthropic-beta": "a,b"}
            answer = await world.client.post(path, content=raw, headers=headers)
            assert answer.status_code == 200, answer.text
            got = world.upstream.got.pop()
            assert got.raw == raw, seed
            assert got.headers["anthropic-beta"] == "a,b"
            managed += answer.headers["refold-managed"] == "yes"
    finally:
        await world.aclose()
    assert managed > COUNT // 2
    assert len(await world.sessions()) > min(40, COUNT // 4)


@pytest.mark.parametrize("answer", [" ", "Yes."])
async def test_what_opens_without_words_gets_into_no_other_session(answer):
    """A blank prompt identifies nothing, and neither does what was answered to it."""
    first = [{"role": "assistant", "content": answer}, {"role": "user", "content": "Where?"}]
    blank = [{"role": "user", "content": "\t"}, *first]
    again = [
        *blank,
        {"role": "assistant", "content": "Well."},
        {"role": "user", "content": "Go on."},
    ]
    world = World(lambda _: Reply("Well."))
    try:
        for messages in (first, blank, again, first):
            raw = json.dumps({"model": "m", "max_tokens": 5, "messages": messages}).encode()
            reply = await world.client.post("/v1/messages", content=raw)
            assert reply.status_code == 200, reply.text
            assert world.upstream.got.pop().raw == raw
        assert len(await world.sessions()) == 2
    finally:
        await world.aclose()
