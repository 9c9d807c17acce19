"""A summarizer that is set by name is asked, wherever its model is served."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio

import pytest
from refold_commands import quick, terminal
from surfaces import chat, provider, service, texts
from terminal.provider import MODEL


@pytest.mark.req("R058", "R118")
async def test_a_chat_with_a_local_server_finds_its_summarizer_there(chat, provider):
    provider.others, provider.summary = ("small",), "They said hello ten times."
    prompts = [f"Prompt {nth}." for nth in range(12)]
    await chat.play(
        prompts, profile="co-cli", max_history_messages=10, summarization_model="local:small"
    )
    assert {one.body["model"] for one in provider.folds} == {"small"}
    assert {one.body["model"] for one in provider.asked} == {MODEL}
    assert any("They said hello ten times." in text for text in texts(provider.asked[-1]))


@pytest.mark.parametrize("lend", [False, True])
async def test_a_service_that_stops_closes_its_connections_to_summarizers(service, provider, lend):
    service.key = "pass" if lend else service.key
    async with service.running("co-cli", summarize_with_client_key=lend) as client:
        await service.talk(client, [f"Prompt {nth}." for nth in range(6)])
        client.headers["authorization"] = f"Bearer {service.client_key}"
        await service.fold(client, "s")
        assert provider.folds
    await asyncio.to_thread(provider.wait_until, lambda: provider.connections == 0, 20)
