"""Recordings of other programs become messages that Pydantic AI takes, and sessions in a log."""

import json
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from refold.errors import Conflict, InvalidInput
from refold.lab import (
    Recording,
    Usage,
    parse_openai_chat,
    parse_pi,
    write,
)
from refold.log import Message, Opened
from refold.log.codec import CODEC
from refold.stores import MemoryStore


def pi_lines(*records):
    return [json.dumps(record).encode() for record in records]


def pi_message(role, content, **more):
    return {"type": "message", "message": {"role": role, "content": content, **more}}


def pi_call(call, name="read", **arguments):
    return {"type": "toolCall", "id": call, "name": name, "arguments": arguments}


def pi_text(text):
    return [{"type": "text", "text": text}]


def validated(recording) -> Any:
    return ModelMessagesTypeAdapter.validate_json(b"[" + b",".join(recording.payloads) + b"]")


SESSION = pi_lines(
    {"type": "session", "id": "s"},
    pi_message("user", pi_text("Fix it."), timestamp=1_700_000_000_000),
    pi_message(
        "assistant",
        [
            {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "sealed"},
            {"type": "text", "text": "Reading."},
            pi_call("c1", path="a.py"),
            pi_call("c2", path="b.py"),
        ],
        timestamp=1_700_000_001_000,
        provider="anthropic",
        model="opus",
        stopReason="toolUse",
        usage={
            "input": 5,
            "output": 7,
            "cacheRead": 11,
            "cacheWrite": 13,
            "cost": {"total": 0.5},
        },
    ),
    pi_message(
        "toolResult",
        pi_text("x = 1"),
        toolCallId="c1",
        toolName="read",
        isError=False,
        details={"diff": "secret"},
    ),
    pi_message("toolResult", pi_text("no such"), toolCallId="c2", toolName="read", isError=True),
    {"type": "compaction", "summary": "It was fixed."},
    pi_message("assistant", [], stopReason="aborted", errorMessage="stopped"),
    pi_message("assistant", [pi_call("c3", "bash")], stopReason="aborted", errorMessage="stopped"),
    {
        "type": "message",
        "timestamp": "2024-01-01T00:00:00.000Z",
        "message": {"role": "bashExecution", "command": "ls", "output": "a.py"},
    },
)


def test_pi_sessions_become_pydantic_ai_messages():
    recording = parse_pi(SESSION, "fix")
    prompt, answer, found, missing, aborted, shell = validated(recording)
    assert prompt.parts == [UserPromptPart("Fix it.", timestamp=prompt.parts[0].timestamp)]
    assert prompt.timestamp.timestamp() == 1_700_000_000
    assert isinstance(answer, ModelResponse)
    assert answer.parts[0] == ThinkingPart("Hm.", signature="sealed", provider_name="anthropic")
    assert answer.parts[2:] == [
        ToolCallPart("read", {"path": "a.py"}, "c1"),
        ToolCallPart("read", {"path": "b.py"}, "c2"),
    ]
    assert (answer.finish_reason, answer.state, answer.model_name) == (
        "tool_call",
        "complete",
        "opus",
    )
    assert (answer.usage.input_tokens, answer.usage.cache_read_tokens) == (29, 11)
    assert isinstance(found.parts[0], ToolReturnPart)
    assert (found.parts[0].content, found.parts[0].metadata) == ("x = 1", {"diff": "secret"})
    assert (found.parts[0].outcome, missing.parts[0].outcome) == ("success", "failed")
    assert isinstance(aborted, ModelResponse)
    assert (aborted.state, aborted.metadata) == ("interrupted", {"error": "stopped"})
    assert shell.parts[0].content == "$ ls\na.py"


def test_pi_recordings_know_times_usage_and_what_was_left_out():
    recording = parse_pi(SESSION, "fix")
    assert recording.messages[1].usage == Usage(29, 7, 11, 13)
    assert recording.messages[1].cost == 0.5
    assert recording.messages[1].model == "opus"
    assert [one.at for one in recording.messages[:3]] == [
        1_700_000_000_000,
        1_700_000_001_000,
        None,
    ]
    assert recording.messages[-1].at == 1_704_067_200_000
    assert recording.skipped == {"session": 1, "compaction": 1, "assistant without content": 1}


def test_pi_files_with_branches_are_read_along_the_last_one():
    def at(name, parent, text):
        return {"id": name, "parentId": parent, **pi_message("user", pi_text(text))}

    lines = pi_lines(at("1", None, "one"), at("2", "1", "dead end"), at("3", "1", "two"))
    assert [m.parts[0].content for m in validated(parse_pi(lines, "x"))] == ["one", "two"]


def test_pictures_stay():
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    lines = pi_lines(
        pi_message("user", [*pi_text("Look:"), picture]),
        pi_message("toolResult", [picture], toolCallId="c", toolName="t"),
    )
    prompt, result = validated(parse_pi(lines, "x"))
    assert prompt.parts[0].content[1].data == b"hi"
    assert result.parts[0].content[0].data == b"hi"


@pytest.mark.parametrize("lines", [[b"no json"], [b"[1]"], [], pi_lines({"type": "session"})])
def test_other_files_are_no_pi_sessions(lines):
    with pytest.raises(InvalidInput, match="pi"):
        parse_pi(lines, "x")


CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Book it."}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "book", "arguments": '{"n": 1}'}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "done"},
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": "Booked."},
]


def test_chats_become_pydantic_ai_messages():
    [recording] = parse_openai_chat(json.dumps(CHAT).encode(), "chat")
    system, prompt, call, result, answer = validated(recording)
    assert system.parts[0].part_kind == "system-prompt"
    assert prompt.parts[0].content == "Book it."
    assert call.parts == [ToolCallPart("book", '{"n": 1}', "c")]
    assert (result.parts[0].tool_name, result.parts[0].content) == ("book", "done")
    assert answer.parts[0].content == "Booked."
    assert recording.skipped == {"assistant without content": 1}


@pytest.mark.parametrize("key", ["traj", "messages"])
def test_a_file_may_hold_many_chats(key):
    data = json.dumps([{key: CHAT}, {key: CHAT[:2]}]).encode()
    assert [(r.name, len(r.messages)) for r in parse_openai_chat(data, "tau")] == [
        ("tau-0", 5),
        ("tau-1", 2),
    ]
    [alone] = parse_openai_chat(json.dumps({key: CHAT}).encode(), "one")
    assert (alone.name, len(alone.messages)) == ("one", 5)


@pytest.mark.parametrize("value", ["{", "[]", "3", '[{"x": 1}]', '[{"role": "robot"}]'])
def test_other_files_are_no_chats(value):
    with pytest.raises(InvalidInput) as caught:
        parse_openai_chat(value.encode(), "x")
    assert "traj" in caught.value.fix


async def test_a_recording_is_written_to_a_log():
    recording = parse_pi(SESSION, "fix")
    many = Recording("many", recording.messages * 100)
    store = MemoryStore()
    async with store:
        log = store.log()
        assert await write(many, log, "imported") == 601
        opened, *entries = await log.read("imported")
        assert CODEC.decode(opened) == Opened(
            format="pydantic-ai", profile="balanced", title="many"
        )
        assert tuple(CODEC.decode(e) for e in entries) == tuple(map(Message, many.payloads))
        assert [e.at for e in entries[:3]] == [1_700_000_000_000] + [1_700_000_001_000] * 2
        assert opened.at == 1_700_000_000_000
        with pytest.raises(Conflict):
            await write(many, log, "imported")
