"""What happens on every surface where no summary can be had: requests are cut, and nothing is lost.

What the model was sent decides, and what the program was told.
"""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import json

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from refold_commands import quick, terminal
from surfaces import (
    capability,
    chat,
    conversation,
    passing_service,
    provider,
    service,
    surface,
    texts,
)
from terminal.chunks import counted, prompt_of
from terminal.pieces import Call, Gate, Refuse
from terminal.provider import MODEL

from refold import Refold
from refold.log import Requested
from refold.recall.text import rebuilt
from refold.stores import open_store
from refold.view.profiles import STATIC_MARKER
from refold.wire import Shape, wire_for

WINDOW = 8_000
MARKED = STATIC_MARKER.partition("{")[0]
FAILS = [Refuse(500, "{}")]


def prompts(count: int, words: int = 150) -> list[str]:
    return [f"Prompt {nth}: {'and so on, ' * words}".strip() for nth in range(1, count + 1)]


def said(asked) -> list[str]:
    return [text for text in texts(asked) if text.startswith("Prompt ")]


def marked(asked) -> bool:
    return any(text.startswith(MARKED) for text in texts(asked))


async def logged(surface) -> str:
    async with open_store(surface.store) as store:
        log = store.log("default")
        visible = await log.visible("s")
        return b"\n".join(entry.body for entry in visible.entries).decode()


async def planned(surface) -> list[list[Shape]]:
    """The parts of each request as the log records it: frameworks repair what they are given."""
    async with open_store(surface.store) as store:
        log = store.log("default")
        wire = wire_for((await log.info("s")).format)
        seqs = [entry.seq for entry in await log.read("s") if entry.kind == Requested.KIND]
        requests = [await rebuilt(log, "s", seq) for seq in seqs]
    return [[part for one in sent for part in wire.describe(one).shapes] for sent in requests]


@pytest.mark.req("R052", "R075", "R076", "R077", "R103", "R135")
@pytest.mark.parametrize("profile", ["copilot", "balanced"])
async def test_requests_are_cut_below_the_limit_and_the_log_has_everything(
    surface, provider, profile
):
    provider.summary = FAILS
    settings = {"window": WINDOW, "instructions": "Be kind."}
    if profile == "balanced":  # which would make a summary of the log itself
        settings |= {"fold__breadcrumb": False, "reserve": 0}
    await surface.play(prompts(30), profile=profile, **settings)
    assert [said(asked)[-1] for asked in provider.asked] == prompts(30)
    shares = [counted(prompt_of(asked)) / WINDOW for asked in provider.asked]
    assert 0.7 < max(shares) < 1
    cut = [asked for asked in provider.asked if marked(asked)]
    assert len(cut) >= 5
    for asked in cut:
        # Older replies go before older prompts, and what the agent is told always stays.
        replies = [one for one in conversation(asked) if one["role"] == "assistant"]
        assert len(replies) < len(said(asked))
        assert any(one["role"] in ("system", "developer") for one in asked.messages)
    everything = await logged(surface)
    assert all(f"Prompt {nth}: and so on" in everything for nth in range(1, 31))
    if profile == "copilot":  # which decides anew for each request: with room, all is sent again
        await surface.play(["Prompt 31: and now?"], profile=profile, window=200_000)
        assert said(provider.asked[-1]) == [*prompts(30), "Prompt 31: and now?"]


@pytest.mark.req("R050", "R051")
async def test_no_result_is_sent_without_its_call(surface, provider):
    provider.summary = FAILS
    surface.write("a.txt", "A line of the file.\n" * 60)
    told = [one for nth in range(8) for one in ("read a.txt", *prompts(2))]
    await surface.play(told, profile="copilot", window=WINDOW)
    assert any(marked(asked) for asked in provider.asked)
    for asked in provider.asked:
        calls = {call["id"] for one in asked.messages for call in one.get("tool_calls") or ()}
        results = {one["tool_call_id"] for one in asked.messages if one["role"] == "tool"}
        assert results == calls
    requests = await planned(surface)
    assert len(requests) == len(provider.asked)
    for parts in requests:
        calls, results = (
            {part.call for part in parts if part.kind == kind} for kind in ("call", "return")
        )
        assert results == calls


@pytest.mark.req("R078", "R084", "R127", "R128", "R132")
async def test_usage_is_always_reported_truncation_only_when_something_went(capability, provider):
    provider.summary = FAILS
    await capability.play(prompts(30), profile="copilot", window=WINDOW)
    named = [event["type"] for event in capability.events]
    assert named.count("session.usage_info") >= len(provider.asked) == 30
    cut = sum(marked(asked) for asked in provider.asked)
    assert 0 < named.count("session.truncation") <= cut
    ended = [one for one in capability.events if one["type"] == "session.compaction_complete"]
    assert ended
    assert not any(one["success"] for one in ended)


@pytest.mark.req("R073")
@pytest.mark.parametrize(("window", "limit"), [(None, 128_000), (20_000, 20_000)])
async def test_the_limit_is_the_models_window_or_128000(capability, window, limit):
    await capability.play(["Hello."], profile="copilot", window=window)
    [usage] = [one for one in capability.events if one["type"] == "session.usage_info"]
    assert usage["tokenLimit"] == limit


async def check_unused(surface, provider, summary):
    """Play a conversation with summaries that are not used: a marker stands in their place."""
    provider.summary = summary
    await surface.play(prompts(16, 3), profile="co-cli", max_history_messages=10)
    # A service that passes on its clients' keys has no model to ask.
    assert bool(provider.folds) == (getattr(surface, "key", "") != "pass")
    assert max(len(conversation(asked)) for asked in provider.asked) <= 10
    assert marked(provider.asked[-1])
    assert not any("[Summary of" in text for asked in provider.asked for text in texts(asked))


@pytest.mark.req("R062")
async def test_a_summary_that_says_nothing_is_not_used(surface, provider):
    await check_unused(surface, provider, "")


@pytest.mark.req("R145")
async def test_a_summary_that_says_too_much_is_not_used(surface, provider):
    await check_unused(surface, provider, "Much too long. " * 3_000)


@pytest.mark.req("R109", "R136")
@pytest.mark.parametrize("played", ["chat", "service"])
async def test_a_compact_that_fails_leaves_the_history(request, provider, played):
    surface = request.getfixturevalue(played)
    provider.summary = FAILS
    await surface.play([*prompts(6), "/compact", "Prompt 7: well?"], profile="co-cli")
    assert provider.folds
    assert said(provider.asked[-1]) == [*prompts(6), "Prompt 7: well?"]


@pytest.mark.req("R098", "R102")
@pytest.mark.parametrize("played", ["chat", "capability", "service"])
async def test_a_program_that_starts_again_shows_the_same_summary(request, provider, played):
    surface = request.getfixturevalue(played)
    provider.summary = "What was said before: `a.py`"
    await surface.play(prompts(6, 30), profile="co-cli", max_history_messages=10)
    before = [text for text in texts(provider.asked[-1]) if text.startswith("[Summary of")]
    await surface.play(["Prompt 7: well?"], profile="co-cli", max_history_messages=10)
    assert len(before) == 1
    assert before[0] in texts(provider.asked[-1])
    assert len(provider.folds) == 1


@pytest.mark.req("R015")
async def test_a_result_that_is_a_mapping_is_measured_as_json(capability, provider):
    provider.otherwise = lambda asked: (
        [Call("look_up", {})] if asked.prompt == "look" and len(asked.messages) == 1 else "Yes."
    )
    async with (
        AsyncOpenAI(api_key="none", base_url=provider.url, max_retries=0) as client,
        Refold(capability.store, profile="co-cli") as memory,
    ):
        model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
        agent = Agent(model, capabilities=[memory])

        @agent.tool_plain
        def look_up() -> dict[str, str]:
            return {"text": "x" * 1_995}

        for prompt in ("look", "And now?"):
            await agent.run(prompt, conversation_id="s")
    [result] = [one for one in provider.asked[-1].messages if one["role"] == "tool"]
    whole = json.dumps({"text": "x" * 1_995}, separators=(",", ":"))
    assert result["content"] == f"{whole[:2_000]}\n[…truncated, {len(whole)} chars total]"


@pytest.mark.req("R026")
async def test_without_a_text_response_nothing_is_pinned(service, provider):
    provider.summary = "What was said before: `a.py`"
    messages = []
    for nth in range(8):
        function = {"name": "read_file", "arguments": "{}"}
        call = {"id": f"c{nth}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": f"Prompt {nth}: {'and so on, ' * 20}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{nth}", "content": "What it returned."},
        ]
    service.settle({"max_history_messages": 10}, None)
    async with service.running("co-cli") as client:
        await service.ask(client, [*messages, {"role": "user", "content": "And now?"}], "s")
    sent = conversation(provider.asked[-1])
    assert len(sent) <= 10
    assert sent[0]["content"].startswith("[Summary of")


@pytest.mark.req("R083")
async def test_the_summary_of_a_fold_that_was_canceled_is_thrown_away(service, provider):
    provider.summary = [Gate("held"), "What was said before: `a.py`"]
    async with service.running("copilot") as client:
        history = await service.talk(client, prompts(6))
        begun = await client.post("/api/v1/sessions/s/folds", json={"wait": False})
        assert begun.status_code < 300, begun.text
        await asyncio.to_thread(provider.wait_for_gate, "held")
        fold = begun.json()["fold"]
        canceled = await client.post(f"/api/v1/sessions/s/folds/{fold}/cancel")
        assert canceled.json()["cancelled"]
        await asyncio.to_thread(provider.wait_until, lambda: provider.folds[-1].left)
        provider.release("held")
        await service.talk(client, ["Prompt 7: well?"], before=history)
    assert said(provider.asked[-1]) == [*prompts(6), "Prompt 7: well?"]
