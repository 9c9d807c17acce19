"""Agents behind Pydantic AI's adapters for web front ends: AG-UI and the Vercel AI SDK.

The front ends keep the list of messages that their SDKs would make of the event stream, and send
all of it each time (`front_ends.py`).
"""

# ruff: noqa: F811, F401 - fixtures are imported
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

import json

import pytest
from agent_memories import path
from agents import (
    Scripted,
    agent_with,
    call,
    check_rebuilt,
    folds,
    last,
    logged,
    looks_up,
    small,
    with_look_up,
)
from front_ends import AGUI, Vercel
from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai.ui.ag_ui import AGUIAdapter
from pydantic_ai.ui.vercel_ai import VercelAIAdapter

from refold import Refold
from refold.integrations.pydantic_ai.history import _ui_message_id

THREAD = "thread-1"
TURNS = 10
WINDOW = 3_000


@pytest.fixture(params=["memory", "sqlite"])
async def memory(request, path):
    address = "memory:" if request.param == "memory" else path
    async with Refold(address, profile=small()) as made:
        yield made


@pytest.fixture(params=[AGUI, Vercel])
def kind(request):
    return request.param


def browser(kind, memory, reply=looks_up, window=200_000, size=10):
    model = Scripted(reply, window)
    return kind(with_look_up(agent_with(memory, model), size)), model


async def prompts(memory):
    return [one for one in await logged(memory, THREAD) if one.startswith(("look up", "edited"))]


async def test_ten_turns_with_a_server_tool_and_folds(kind, memory):
    page, model = browser(kind, memory, window=WINDOW, size=150)
    for nth in range(TURNS):
        assert await page.say(f"look up {nth}") == f"answer {2 * nth + 2}"
    assert await folds(memory, THREAD)
    assert await logged(memory, THREAD) == [
        word
        for nth in range(TURNS)
        for word in (
            *(f"look up {nth}", "look_up()"),
            *(f"{nth}: " + "word " * 150, f"answer {2 * nth + 2}"),
        )
    ]
    assert await check_rebuilt(memory, THREAD) == len(model.sent) == 2 * TURNS


async def test_the_model_is_sent_each_message_once(kind, memory):
    page, model = browser(kind, memory)
    for nth in range(TURNS):
        await page.say(f"look up {nth}")
    assert model.texts[-1] == (await logged(memory, THREAD))[:-1]


async def test_times_that_a_front_end_echoes_change_nothing(memory):
    model = Scripted(looks_up)
    page = Vercel(with_look_up(agent_with(memory, model)), echo_times=True)
    for nth in range(TURNS):
        await page.say(f"look up {nth}")
    assert await prompts(memory) == [f"look up {nth}" for nth in range(TURNS)]


async def test_ten_turns_with_a_tool_of_the_front_end(kind, memory):
    """Its call ends a run, and its result begins the next, beside a tool of the server."""

    def reply(scripted, messages):
        if last(messages).startswith("look up"):
            nth = len(scripted.sent)
            return [call("look_up", f"s{nth}", name="x"), call("ask_person", f"f{nth}", q="why?")]
        return f"answer {len(scripted.sent)}"

    model = Scripted(reply)
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    # AG-UI's requests say which tools the browser has; to Vercel's, the server must know.
    tool = ToolDefinition(name="ask_person", parameters_json_schema=schema)
    toolsets = [ExternalToolset([tool])] if kind is Vercel else []
    given = {"output_type": [str, DeferredToolRequests], "toolsets": toolsets}
    page = kind(with_look_up(agent_with(memory, model, **given)))
    page.tools = [{"name": "ask_person", "description": "Ask.", "parameters": schema}]
    for nth in range(TURNS):
        await page.say(f"look up {nth}")
        [pending] = page.pending
        page.result(pending, f"because {nth}")
        assert await page.submit() == f"answer {2 * nth + 2}"
    texts = await logged(memory, THREAD)
    assert [one for one in texts if one.startswith("because")] == [
        f"because {nth}" for nth in range(TURNS)
    ]
    assert len(texts) == 6 * TURNS
    assert model.texts[-1] == texts[:-1]


async def test_a_front_end_that_sends_its_newest_turns_only(kind, memory):
    page, model = browser(kind, memory)
    for nth in range(TURNS):
        await page.say(f"look up {nth}")
        if nth > 1:
            page.truncate(2)
    assert await prompts(memory) == [f"look up {nth}" for nth in range(TURNS)]
    assert model.texts[-1] == (await logged(memory, THREAD))[:-1]


@pytest.mark.parametrize("turns", [2, 6])
async def test_a_page_that_is_loaded_again_goes_on_in_its_thread(kind, memory, turns):
    page, model = browser(kind, memory)
    for nth in range(turns):
        await page.say(f"look up {nth}")
    page.reload()
    await page.say("look up more")
    await page.say("look up even more")
    assert model.texts[-1] == (await logged(memory, THREAD))[:-1]
    assert len(await prompts(memory)) == turns + 2


async def test_ids_that_begin_anew_with_each_page_are_no_edits(kind, memory):
    page, model = browser(kind, memory)
    page.count_ids()
    await page.say("look up 0")
    await page.say("look up 1")
    page.reload()
    page.count_ids()
    await page.say("look up 2")
    assert model.texts[-1] == (await logged(memory, THREAD))[:-1]
    await page.say("look up 3")
    assert await prompts(memory) == [f"look up {nth}" for nth in range(4)]


async def test_a_greeting_that_only_the_browser_has_does_not_hinder_it(kind, memory):
    page, model = browser(kind, memory)
    await page.say("look up 0")
    page.reload()
    page.messages.append(
        {"id": "hello", "role": "assistant", "content": "Hello!"}
        if kind is AGUI
        else {"id": "hello", "role": "assistant", "parts": [{"type": "text", "text": "Hello!"}]}
    )
    await page.say("look up 1")
    assert "look up 0" in model.texts[-1]
    await page.say("look up 2")
    assert await prompts(memory) == ["look up 0", "look up 1", "look up 2"]


@pytest.mark.parametrize(
    ("nth", "window"), [(0, 200_000), (5, 200_000), (0, WINDOW), (1, WINDOW), (8, WINDOW)]
)
async def test_an_edited_prompt_takes_the_place_of_what_followed(kind, memory, nth, window):
    page, model = browser(kind, memory, window=window, size=150)
    for turn in range(9):
        await page.say(f"look up {turn}")
    before = await logged(memory, THREAD)
    await page.edit(nth, "look up edited")
    sent = model.texts[-1]
    assert sent[-3] == "look up edited"
    assert not any(f"look up {later}" in sent for later in range(nth, 9))
    await page.say("look up last")
    after = await logged(memory, THREAD)
    assert after[: len(before)] == before  # the log keeps what was said before the edit
    assert after[len(before)] == "look up edited"
    assert len(after) == len(before) + 8
    assert await check_rebuilt(memory, THREAD) == len(model.sent)


async def test_an_edit_of_a_stretch_that_is_folded(kind, memory):
    """The browser sends nothing that the context still shows: the log is read to find it."""
    page, model = browser(kind, memory, window=WINDOW, size=150)
    for turn in range(9):
        await page.say(f"look up {turn}")
    shown = page._prompts()
    page.messages = page.messages[shown[3] : shown[4]]
    await page.say("look up instead")
    assert "look up instead" in model.texts[-1]
    assert "look up 4" not in " ".join(model.texts[-1])
    assert "look up 8" not in " ".join(model.texts[-1])


async def test_an_edit_by_a_front_end_that_gives_it_a_new_id(kind, memory):
    page, model = browser(kind, memory)
    for turn in range(4):
        await page.say(f"look up {turn}")
    del page.messages[page._prompts()[2] :]
    await page.say("look up instead")
    assert [one for one in model.texts[-1] if one.startswith("look up")] == [
        *("look up 0", "look up 1", "look up instead")
    ]


@pytest.mark.parametrize("turns", [1, 5])
async def test_an_answer_is_made_again(kind, memory, turns):
    page, model = browser(kind, memory)
    for turn in range(turns):
        await page.say(f"look up {turn}")
    assert await page.regenerate() == f"answer {2 * turns + 2}"
    sent = model.texts[-1]
    assert [one for one in sent if one.startswith("look up")] == [
        f"look up {turn}" for turn in range(turns)
    ]
    assert f"answer {2 * turns}" not in sent
    await page.say("and now?")
    assert model.texts[-1][-2:] == [f"answer {2 * turns + 2}", "and now?"]
    assert (await prompts(memory)).count(f"look up {turns - 1}") == 1


async def test_the_same_prompt_each_time_is_a_new_one_each_time(kind, memory):
    page, model = browser(kind, memory, reply=lambda *_: "done")
    for _ in range(TURNS):
        await page.say("continue")
    assert model.texts[-1] == ["continue", "done"] * (TURNS - 1) + ["continue"]
    await page.edit(TURNS // 2, "continue")
    assert model.texts[-1] == ["continue", "done"] * (TURNS // 2) + ["continue"]


async def test_thinking_and_texts_in_pieces_need_not_come_back(kind, memory):
    def reply(scripted, _):
        nth = len(scripted.sent)
        return ModelResponse([ThinkingPart("hm"), TextPart(f"part {nth}, "), TextPart("then more")])

    page, _ = browser(kind, memory, reply=reply)
    for nth in range(4):
        assert await page.say(f"go {nth}")
    assert len([one for one in await logged(memory, THREAD) if one.startswith("go")]) == 4


async def test_two_browsers_on_one_thread(kind, memory):
    """The one that has seen less takes the conversation back to what it shows."""
    first, model = browser(kind, memory)
    await first.say("look up 0")
    second = kind(first.agent)
    second.messages = list(first.messages)
    await first.say("look up 1")
    await second.say("look up 2")
    sent = model.texts[-1]
    assert "look up 1" not in sent
    assert "look up 2" in sent
    assert await prompts(memory) == ["look up 0", "look up 1", "look up 2"]


async def test_a_history_of_another_conversation_is_refused(kind, memory):
    page, _ = browser(kind, memory)
    await page.say("look up 0")
    other = kind(page.agent, thread="another")
    await other.say("what?")
    await other.say("look up 9")
    page.messages = other.messages
    before = await logged(memory, THREAD)
    with pytest.raises(AssertionError, match="holds something"):
        await page.say("hello?")
    assert await logged(memory, THREAD) == before


@pytest.mark.parametrize("adapter", [AGUIAdapter, VercelAIAdapter])
def test_adapters_still_keep_the_ids_of_front_ends_where_we_look(adapter):
    """That is a private name of Pydantic AI's: if it moves, edits are no longer known by id."""
    page = (AGUI if adapter is AGUIAdapter else Vercel)(None)
    sent = {"id": THREAD, "trigger": "submit-message", "messages": [page.prompt("hello")]}
    sent |= {"threadId": THREAD, "runId": "r", "tools": [], "state": {}, "context": []}
    run_input = adapter.build_run_input(json.dumps({**sent, "forwardedProps": {}}).encode())
    [message] = adapter.load_messages(run_input.messages)
    assert _ui_message_id(message) == sent["messages"][0]["id"]
