"""co-cli's functions over Pydantic AI's own messages, to the letter."""

import copy
from types import SimpleNamespace
from typing import Any, cast

import pytest
from project_paths import DOCS
from shown import changed

from refold.settings import load_settings
from refold.view.profiles import CO_CLI, COWAGENT

pytest.importorskip("pydantic_ai", reason="the library whose messages these are")

from co_cli_world import (
    FAILING,
    IMAGE,
    Messages,
    Summarizer,
    asked,
    called,
    chat,
    contents,
    context,
    fresh,  # noqa: F401 - for every test
    legal,
    returned,
    said,
    work,
)
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolReturnPart,
    UserPromptPart,
)

from refold.integrations import co_cli
from refold.integrations.co_cli import (
    CommandContext,
    _patch_dangling_tool_calls,
    configured,
    restore_history,
    run_command,
    truncate_history_window,
    truncate_tool_returns,
)

GUIDE = DOCS / "pydantic-ai" / "co-cli.md"


# Interrupts.


@pytest.mark.req("R048")
def test_each_dangling_call_gets_a_return_in_one_request():
    messages = [asked("Look."), called("a", "b", text="I look.")]
    found = _patch_dangling_tool_calls(messages, "Interrupted by user.")
    assert found[:2] == messages
    [patched] = found[2:]
    assert isinstance(patched, ModelRequest)
    assert [
        (part.part_kind, part.tool_name, part.tool_call_id, part.content)
        for part in cast("Any", patched.parts)
    ] == [("tool-return", "read", one, "Interrupted by user.") for one in ("a", "b")]
    assert {part.outcome for part in returns_of([patched])} == {"interrupted"}
    assert _patch_dangling_tool_calls(found, "Other.") == found
    assert contents(_patch_dangling_tool_calls(messages))[-1] == "Interrupted by user."


@pytest.mark.req("R048")
def test_calls_that_were_answered_are_not_answered_again():
    messages = [asked("Look."), called("a", "b"), returned("b", content="found")]
    found = _patch_dangling_tool_calls(messages, "No.")
    assert legal(found)
    answers = {part.tool_call_id: part.content for part in returns_of(found)}
    assert answers == {"a": "No.", "b": "found"}
    for whole in ([], chat(3), [asked("Go."), *work(4)]):
        assert _patch_dangling_tool_calls(whole, "No.") == whole


@pytest.mark.req("R048")
def test_a_return_that_came_after_its_call_was_closed_is_told_as_text():
    messages = [asked("Look."), called("a"), asked("Never mind."), returned("a", content="late")]
    found = _patch_dangling_tool_calls(messages, "No.")
    assert legal(found)
    assert [part.content for part in returns_of(found)] == ["No."]
    assert contents(found)[-1] == "[Late result of read (a)]\nlate"


def returns_of(messages) -> list[Any]:
    parts = (part for message in messages for part in message.parts)
    return [part for part in parts if isinstance(part, ToolReturnPart)]


# Commands.


@pytest.mark.req("R005", "R107")
async def test_clear_is_an_empty_history():
    assert await run_command("/clear", context(chat(4))) == []
    assert co_cli._cmd_clear(context(chat(4))) == []


@pytest.mark.req("R005", "R108")
async def test_history_shows_turns_and_messages_and_changes_nothing():
    shown: list[str] = []
    messages = [asked("Look."), *work(4), said("Done."), *chat(2)]
    before = copy.deepcopy(messages)
    assert await run_command(" /history ", context(messages, shown=shown)) is None
    assert shown == ["4 turns, 8 messages; 2 turns begun by the user"]
    assert messages == before


@pytest.mark.req("R005", "R067", "R109", "R054")
async def test_compact_is_two_messages():
    summarizer = Summarizer()
    messages = [asked("Look."), *work(4), said("Done.")]
    found = await run_command("/compact", context(messages, summarizer))
    assert found is not None
    assert [message.kind for message in found] == ["request", "response"]
    assert contents(found) == [
        "[Compacted conversation summary]\nSUMMARY",
        "Understood. I have the conversation context.",
    ]
    assert [type(part) for message in found for part in message.parts] == [UserPromptPart, TextPart]
    assert summarizer.asked[0][1].function_tools == []


@pytest.mark.req("R058")
async def test_compact_asks_the_primary_model_whatever_is_set(monkeypatch):
    monkeypatch.setenv("CO_CLI_SUMMARIZATION_MODEL", "test:cheap")
    configured.cache_clear()
    summarizer = Summarizer()
    assert await run_command("/compact", context(chat(4), summarizer))
    assert len(summarizer.asked) == 1


async def test_compact_keeps_the_system_prompt():
    first = ModelRequest(parts=[SystemPromptPart("Be kind."), UserPromptPart("Hi.")])
    found = await run_command("/compact", context([first, said("Hi.")]))
    assert found is not None
    assert (len(found), contents(found)[0]) == (2, "Be kind.")


@pytest.mark.req("R109", "R136")
async def test_compact_returns_none_on_nothing_and_on_failure():
    shown: list[str] = []
    assert await run_command("/compact", context([], shown=shown)) is None
    for words in (FAILING, ""):
        failing = context(chat(4), Summarizer(words), shown)
        assert await run_command("/compact", failing) is None
    assert await run_command("/compact", CommandContext(chat(4), Agent(), shown.append)) is None
    assert len(shown) == 4
    assert "The model is down." in shown[1]


async def test_an_unknown_command_names_those_there_are():
    shown: list[str] = []
    assert await run_command("/undo", context(chat(2), shown=shown)) is None
    assert shown == ["There is no command /undo. Use one of /clear, /compact, /history."]


# Names.


@pytest.mark.req("R143")
@pytest.mark.parametrize(
    "name",
    [
        *("truncate_tool_returns", "truncate_history_window", "summarize_messages", "run_turn"),
        *("_find_first_run_end", "_static_marker", "_content_length"),
        *("_patch_dangling_tool_calls", "_cmd_clear", "_cmd_history", "_cmd_compact"),
    ],
)
def test_the_functions_have_the_names_of_the_seed(name):
    assert callable(getattr(co_cli, name))
    assert name in co_cli.__all__


@pytest.mark.req("R142")
def test_what_the_seed_registered_by_is_gone():
    """Which is why both are capabilities; the guide says how."""
    agent = cast("Any", Agent)
    with pytest.raises(TypeError, match="history_processors"):
        agent(history_processors=[truncate_tool_returns, truncate_history_window])


@pytest.mark.req("R028")
def test_the_guide_says_why_messages_are_counted():
    if not GUIDE.exists():
        pytest.skip("the documentation is not here")
    assert "They count messages rather than tokens: counting tokens would need a tokenizer" in (
        GUIDE.read_text(encoding="utf-8")
    )


# Settings.


@pytest.mark.req("R116", "R117", "R118")
def test_the_defaults_are_the_seeds():
    settings = load_settings("co-cli")
    names = ("tool_output_trim_chars", "max_history_messages", "summarization_model")
    assert [settings.value(name) for name in names] == [2000, 40, ""]
    assert configured() == CO_CLI


@pytest.mark.req("R116", "R117", "R118", "R014", "R023")
async def test_the_environment_sets_what_the_functions_follow(monkeypatch):
    monkeypatch.setenv("CO_CLI_TOOL_OUTPUT_TRIM_CHARS", "10")
    monkeypatch.setenv("CO_CLI_MAX_HISTORY_MESSAGES", "8")
    monkeypatch.setenv("CO_CLI_SUMMARIZATION_MODEL", "test")
    messages = [asked("Look."), called("c"), returned("c", content="x" * 11), *chat(6, first=4)]
    trimmed_to = "x" * 10 + "\n[…truncated, 11 chars total]"
    assert trimmed_to in contents(truncate_tool_returns(messages))
    found = await truncate_history_window(cast("Any", SimpleNamespace(model=None)), messages)
    [summary] = [one for one in contents(found) if "earlier messages" in str(one)]
    assert summary == "[Summary of 1 earlier messages]\nsuccess (no tool calls)"
    monkeypatch.setenv("CO_CLI_TOOL_OUTPUT_TRIM_CHARS", "0")
    assert truncate_tool_returns(messages) is not messages  # read once
    configured.cache_clear()
    assert truncate_tool_returns(messages) is messages


# Restoring.


@pytest.mark.req("R099")
@pytest.mark.parametrize(("turns", "kept"), [(0, 3), (6, 3), (20, 3), (24, 4), (30, 5), (35, 5)])
def test_the_last_turns_are_restored_as_text(turns, kept):
    messages: Messages = []
    for n in range(8):
        thinks = ModelResponse(parts=[ThinkingPart("Hm."), TextPart(f"reply {n}")])
        messages += [
            asked(f"prompt {n}"),
            called(f"c{n}", text="I look."),
            returned(f"c{n}"),
            thinks,
        ]
    profile = changed(COWAGENT, window={"max_turns": turns})
    found = restore_history(messages, profile=profile)
    wanted = [[f"prompt {n}", f"reply {n}"] for n in range(8 - kept, 8)]
    assert contents(found) == [text for turn in wanted for text in turn]
    assert {part.part_kind for message in found for part in message.parts} == {
        "user-prompt",
        "text",
    }
    assert len(found) == 2 * kept


@pytest.mark.req("R099")
def test_only_text_is_restored_and_the_system_prompt():
    first = ModelRequest(parts=[SystemPromptPart("Be kind."), UserPromptPart("Hi.")])
    pictured = ModelRequest(parts=[UserPromptPart(["What is", IMAGE, "this?"])])
    silent = ModelRequest(parts=[UserPromptPart([IMAGE])])
    messages = [first, said("Hi."), silent, said("A cat."), pictured, called("c")]
    before = copy.deepcopy(messages)
    found = restore_history(messages)
    assert contents(found) == ["Be kind.", "Hi.", "Hi.", "What is\nthis?"]
    assert legal(found)
    assert messages == before
    assert restore_history([]) == []


@pytest.mark.req("R099")
def test_a_replay_restores_everything():
    messages = [*chat(12), asked("Go."), called("a")]
    found = restore_history(messages, "replay")
    assert found[:-1] == messages
    assert legal(found)
