"""A gateway that is killed after a request by id: what the ids lead to is in its log."""

from contextlib import suppress

import httpx2
from gateway_world import RESPONSES, served, worlds
from keeping_provider import KeepingProvider
from serve_processes import refold_serve

from refold.log import Message
from refold.stores import open_store
from refold.testing.upstream import ScriptedUpstream


async def test_ids_are_known_again_after_a_kill(tmp_path):
    provider = KeepingProvider()
    store = f"sqlite:///{tmp_path / 'refold.db'}"
    body = {"model": "some-model", "input": "Where is the parcel?"}
    async with served(ScriptedUpstream(provider)) as address:
        upstream = {"name": "up", "base_url": f"{address}/v1"}
        with suppress(AssertionError, ProcessLookupError):  # it did not end by itself
            async with refold_serve(tmp_path, store, [upstream]) as serving:
                async with httpx2.AsyncClient(timeout=120) as client:
                    first = await client.post(f"{serving.address}{RESPONSES}", json=body)
                serving.process.kill()
                await serving.process.wait()
        async with open_store(store) as opened, worlds() as make:
            again = {**body, "previous_response_id": first.json()["id"]}
            second = await make(address=upstream["base_url"], store=opened).ask(RESPONSES, again)
            sessions = {answer.headers["refold-session"] for answer in (first, second)}
            entries = await opened.log().read(min(sessions))
    assert len(sessions) == 1
    assert [answer.headers["refold-managed"] for answer in (first, second)] == ["yes"] * 2
    assert len(provider.saw[-1]) == 3
    assert sum(entry.kind == Message.KIND for entry in entries) == 4
