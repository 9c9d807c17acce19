"""A gateway that is killed between requests by id: what the ids lead to is in its log."""

import asyncio
from contextlib import suppress

import openai
from gateway_world import served
from keeping_provider import KeepingProvider
from serve_processes import refold_serve

from refold.log import Message
from refold.stores import open_store
from refold.testing.upstream import ScriptedUpstream


async def ask_and_kill(serving, turn, before):
    """The id of an answer, and the answer's headers; the gateway is killed right after it."""
    async with openai.AsyncOpenAI(
        api_key="k", base_url=f"{serving.address}/v1", max_retries=0
    ) as client:
        raw = await client.responses.with_raw_response.create(
            model="some-model", input=f"Turn {turn}.", **before
        )
        serving.process.kill()
        await asyncio.wait_for(serving.process.wait(), 60)
        return raw.parse().id, raw.headers


async def test_ids_are_known_again_after_a_kill(tmp_path):
    provider = KeepingProvider()
    store = f"sqlite:///{tmp_path / 'refold.db'}"
    before, answers = {}, []
    async with served(ScriptedUpstream(provider)) as address:
        upstream = {"name": "up", "base_url": f"{address}/v1"}
        for turn in range(2):
            with suppress(AssertionError, ProcessLookupError):  # it did not end by itself
                async with refold_serve(tmp_path, store, [upstream]) as serving:
                    answers.append(await ask_and_kill(serving, turn, before))
            before = {"previous_response_id": answers[-1][0]}
    assert [headers["refold-managed"] for _, headers in answers] == ["yes"] * 2
    [session] = {headers["refold-session"] for _, headers in answers}
    assert len(provider.saw[-1]) == 3
    async with open_store(store) as opened:
        entries = await opened.log().read(session)
    assert sum(entry.kind == Message.KIND for entry in entries) == 4
