"""What co-cli's functions promise of any history."""

import asyncio
import copy
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from shown import changed

from refold.testing.wire import conversations
from refold.view.profiles import CO_CLI, COWAGENT
from refold.wire import PydanticAI

pytest.importorskip("pydantic_ai", reason="the library whose messages these are")

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel

from refold.integrations.co_cli import (
    _find_first_run_end,
    _patch_dangling_tool_calls,
    restore_history,
    summarize_messages,
    truncate_history_window,
    truncate_tool_returns,
)
from refold.integrations.co_cli.history import payload_of

WIRE = PydanticAI()


def loaded(payloads) -> list[Any]:
    # The library refuses kinds of parts that it does not know.
    known = [one for one in payloads if b"hologram" not in one]
    return ModelMessagesTypeAdapter.validate_json(b"[" + b",".join(known) + b"]")


histories = conversations("pydantic-ai", max_moves=16).map(loaded)


def problems(messages):
    return WIRE.problems([payload_of(message) for message in messages])


def parts(messages, kind: Any) -> list[Any]:
    found = (part for message in messages for part in message.parts)
    return [part for part in found if isinstance(part, kind)]


def same(one, two):
    return [id(message) for message in one] == [id(message) for message in two]


@pytest.mark.req("R012", "R013", "R016", "R017")
@given(histories, st.integers(0, 300))
def test_trimming_keeps_all_but_long_results(messages, limit):
    before = copy.deepcopy(messages)
    profile = changed(CO_CLI, trim={"max_chars": limit})
    found: Any = truncate_tool_returns(messages, profile=profile)
    assert messages == before
    assert problems(found) == []
    assert len(found) == len(messages)
    assert same(found[-2:], messages[-2:])
    for was, now in zip(messages, found, strict=True):
        for old, new in zip(was.parts, now.parts, strict=True):
            if old is not new:
                assert isinstance(old, ToolReturnPart)
                assert len(old.model_response_str()) > limit > 0
                assert (new.tool_name, new.tool_call_id) == (old.tool_name, old.tool_call_id)
                assert "chars total]" in json.dumps(new.content, default=str)
    assert same(truncate_tool_returns(found, profile=profile), found)


@pytest.mark.req("R023", "R024", "R027", "R049", "R052")
@given(histories, st.integers(0, 14), st.booleans())
def test_a_window_of_a_legal_history_is_legal(messages, limit, fails):
    before = copy.deepcopy(messages)
    found = windowed(messages, limit, fails=fails)
    assert messages == before
    assert problems(found) == []
    if not limit or len(messages) <= limit:
        assert same(found, messages)
        return
    assert len(found) <= len(messages)
    latest = parts(messages, UserPromptPart)[-1]
    assert [part for part in parts(found, UserPromptPart) if not marks(part)][-1] is latest
    assert same(found[-4:], messages[-4:])
    assert parts(found, SystemPromptPart) == parts(messages, SystemPromptPart)
    if same(found, messages):
        event("nothing to drop")
        return
    [marker] = [part for part in parts(found, UserPromptPart) if marks(part)]
    assert marker.content == told(len(messages) - len(found) + 1, fails=fails)
    if len(found) <= limit:
        event("shortened")
        assert same(windowed(found, limit), found)


@settings(max_examples=40)
@pytest.mark.req("R024", "R052")
@given(histories, st.integers(5, 12), st.booleans())
def test_windows_at_every_request_lose_no_task(messages, limit, fails):
    """As an agent does it: what one window returns is the history of the next request."""
    history: list[Any] = []
    for at, message in enumerate(messages):
        if message.kind == "response" and history:
            history = windowed(history, limit, fails=fails)
            assert problems(history) == []
            asked = parts(messages[:at], UserPromptPart)
            kept = [part for part in parts(history, UserPromptPart) if not marks(part)]
            assert kept[-1:] == asked[-1:]
            # One that was left while the first run went on stays with it, as the head does.
            head = _find_first_run_end(history) + 1
            for half in (history[:head], history[head:]):
                assert sum(map(marks, parts(half, UserPromptPart))) <= 1
        history.append(message)


def windowed(messages, limit, *, fails=False):
    def model(read, _info):
        if fails:
            raise RuntimeError("The model is down.")
        assert problems(read) == []
        return ModelResponse(parts=[TextPart("SUMMARY")])

    profile = changed(CO_CLI, window={"max_messages": limit})
    ctx = cast("Any", SimpleNamespace(model=FunctionModel(model)))
    return asyncio.run(truncate_history_window(ctx, messages, profile=profile))


def marks(part):
    return str(part.content).startswith(("[Summary of", "[Earlier conversation"))


def told(count, *, fails):
    if fails:
        budget = f"{count} messages removed to stay within context budget"
        return f"[Earlier conversation trimmed — {budget}]"
    return f"[Summary of {count} earlier messages]\nSUMMARY"


@pytest.mark.req("R048")
@given(histories, st.integers(0, 40))
def test_a_history_that_was_cut_off_anywhere_is_made_legal(messages, end):
    messages = messages[:end]
    before = copy.deepcopy(messages)
    found = _patch_dangling_tool_calls(messages, "Interrupted by user.")
    assert messages == before
    assert problems(found) == []
    assert same(found[: len(messages)], messages)
    assert len(found) <= len(messages) + 1
    assert same(_patch_dangling_tool_calls(found, "Other."), found)


@pytest.mark.req("R048")
@given(conversations("pydantic-ai", max_moves=8, legal=False).map(loaded))
def test_any_history_is_made_legal(messages):
    before = copy.deepcopy(messages)
    found = _patch_dangling_tool_calls(messages, "Interrupted by user.")
    assert messages == before
    assert problems(found) == []
    assert parts(found, UserPromptPart)[:1] == parts(messages, UserPromptPart)[:1]


@settings(max_examples=60)
@pytest.mark.req("R055")
@given(histories, st.integers(0, 20), st.integers(1, 20))
def test_any_span_is_legal_for_the_summarizer(messages, start, size):
    read: list[Any] = []

    def model(messages, _info):
        read.extend(messages)
        return ModelResponse(parts=[TextPart("SUMMARY")])

    span = messages[start : start + size]
    before = copy.deepcopy(span)
    if any(part for part in parts(span, (UserPromptPart, TextPart))):
        assert asyncio.run(summarize_messages(span, FunctionModel(model))) == "SUMMARY"
        assert problems(read) == []
        assert read[0].kind == "request"
        assert parts(read, SystemPromptPart) == []
    assert span == before


@pytest.mark.req("R099")
@given(histories, st.integers(0, 60))
def test_what_is_restored_is_text_alone(messages, turns):
    before = copy.deepcopy(messages)
    found = restore_history(messages, profile=changed(COWAGENT, window={"max_turns": turns}))
    assert messages == before
    assert problems(found) == []
    kinds = {part.part_kind for message in found for part in message.parts}
    assert kinds <= {"user-prompt", "text", "system-prompt"}
    assert all(isinstance(part.content, str) for part in parts(found, object))
    replies = [message for message in found if message.kind == "response"]
    assert len(replies) <= max(3, turns // 6)
