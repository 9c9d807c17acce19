"""The wire of Pydantic AI's messages, against the library itself."""

import asyncio
import dataclasses
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings

from refold.testing.wire import conversations
from refold.wire import Drop, Insert, PydanticAI, Replace

pytest.importorskip("pydantic_ai", reason="the library whose messages these are")

from pydantic_ai import Agent
from pydantic_ai.messages import (
    AgentInstructionSource,
    AudioUrl,
    BinaryContent,
    BinaryImage,
    CachePoint,
    CapabilityLoadDeltaPart,
    CompactionPart,
    DocumentUrl,
    FilePart,
    ImageUrl,
    InstructionBaselinePart,
    InstructionDeltaPart,
    InstructionId,
    LoadCapabilityCallPart,
    LoadCapabilityReturnPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelSettingsDeltaPart,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    SpeechPart,
    StructuredContent,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
    ToolSearchCallPart,
    ToolSearchReturnPart,
    UploadedFile,
    UserPromptPart,
    VideoUrl,
    repair_messages,
)
from pydantic_ai.models.function import FunctionModel

AT = datetime(2026, 1, 1, tzinfo=UTC)
IMAGE = BinaryImage(data=b"png", media_type="image/png")
WIRE = PydanticAI()

REQUEST = ModelRequest(
    parts=[
        ToolReturnPart("read", {"price": 1.0, "名": [1e5, None]}, "c1", timestamp=AT),
        ToolReturnPart("read", ["text", IMAGE, {"a": 1}], "c2", timestamp=AT, outcome="failed"),
        ToolReturnPart("shot", {"pictures": [IMAGE], "at": 3}, "c3", timestamp=AT),
        ToolSearchReturnPart(content={"discovered_tools": []}, tool_call_id="c4", timestamp=AT),
        LoadCapabilityReturnPart(
            content={"instructions": "use it"}, tool_call_id="c5", timestamp=AT
        ),
        SystemPromptPart("Be kind.", timestamp=AT),
        UserPromptPart("plain", timestamp=AT),
        UserPromptPart(
            [
                "listed",
                TextContent(content="text", metadata={"k": 1}),
                StructuredContent({"state": 1}, content="structured"),
                ImageUrl(url="https://example.com/a.png"),
                AudioUrl(url="https://example.com/a.mp3"),
                VideoUrl(url="https://example.com/a.mp4"),
                DocumentUrl(url="https://example.com/a.pdf"),
                BinaryContent(data=b"x", media_type="text/plain"),
                UploadedFile(file_id="f", provider_name="openai", media_type="text/plain"),
                CachePoint(),
            ],
            timestamp=AT,
        ),
        SpeechPart(speaker="user", transcript="said aloud"),
        RetryFeedbackPart("again", retry=RetryInfo("model_retry"), timestamp=AT),
        ToolAvailabilityDeltaPart(tools_added=["x"]),
        CapabilityLoadDeltaPart(loaded=["x"]),
        ModelSettingsDeltaPart(settings={}),
        InstructionDeltaPart(id=InstructionId(AgentInstructionSource()), content="new"),
        InstructionBaselinePart(instructions=[]),
        CompactionPart(content="what happened so far"),
    ],
    timestamp=AT,
    instructions="Be brief.",
    run_id="run",
    metadata={"mine": 1},
)
RESPONSE = ModelResponse(
    parts=[
        ThinkingPart("hm"),
        ThinkingPart("hm", id="reasoning_content", provider_name="deepseek"),
        ThinkingPart("signed", signature="c2ln", provider_name="anthropic"),
        ThinkingPart("kept", id="rs_1", provider_name="openai"),
        TextPart("said"),
        TextPart("signed", provider_name="google", provider_details={"thought_signature": "x"}),
        ToolCallPart("read", {"path": "a", "n": 1.0}, "c1"),
        ToolCallPart("read", '{"path": "b"}', "c2", id="fc_1"),
        ToolCallPart("shot", None, "c3"),
        ToolSearchCallPart(args={"queries": ["x"]}, tool_call_id="c4"),
        LoadCapabilityCallPart(args={"id": "x"}, tool_call_id="c5"),
        NativeToolCallPart("web_search", {"q": 1}, "n1", provider_name="anthropic"),
        NativeToolReturnPart("web_search", [{"url": "x"}], "n1", timestamp=AT),
        FilePart(IMAGE),
        SpeechPart(
            speaker="assistant",
            transcript="said",
            audio=BinaryContent(data=b"x", media_type="audio/wav"),
        ),
        CompactionPart(id="c", provider_name="openai", provider_details={"encrypted_content": "x"}),
    ],
    timestamp=AT,
    model_name="m",
    provider_details={"k": 1.0},
)
MESSAGES: list[ModelMessage] = [RESPONSE, REQUEST]
OWNED = {"tool-search", "capability-load", "compaction", "tool-availability-delta"}


def dumped(*messages: ModelMessage) -> list[bytes]:
    text = ModelMessagesTypeAdapter.dump_json(list(messages))
    return [json.dumps(one, ensure_ascii=False).encode() for one in json.loads(text)]


def loaded(*payloads: bytes | None) -> Any:
    return ModelMessagesTypeAdapter.validate_json(b"[" + b",".join(filter(None, payloads)) + b"]")


def kinds_of(message):
    return [getattr(part, "tool_kind", None) or part.part_kind for part in message.parts]


def test_every_kind_of_part_is_described():
    response, request = (WIRE.describe(payload) for payload in dumped(*MESSAGES))
    kinds = [*["thought"] * 4, *["text"] * 2, *["call"] * 5, *["other"] * 3, "text", "other"]
    assert [shape.kind for shape in response.shapes] == kinds
    kinds = [*["return"] * 5, "system", *["prompt"] * 3, *["other"] * 7]
    assert [shape.kind for shape in request.shapes] == kinds
    assert request.instructions == "Be brief."
    assert [shape.sealed for shape in response.shapes] == [
        *[False, False, True, True],
        *[False, True],
        *[False, False, False, True, True],
        *[True] * 5,
    ]
    prompt = request.shapes[7]
    assert prompt.text == "listed\ntext\nstructured"
    assert prompt.media == (
        *("image/png", "audio/mpeg", "video/mp4", "application/pdf"),
        *("text/plain", "text/plain"),
    )
    assert request.shapes[1].text == 'text\n{"a":1}'
    assert request.shapes[2].media == ("image/png",)
    assert "cG5n" not in request.shapes[2].text  # the picture is no text


@pytest.mark.parametrize(
    "content", ["text", "", {"price": 1.0, "名": [1e5, None]}, ["a", "b"], 7, None, {"x": "é"}]
)
def test_a_result_reads_as_the_library_shows_it(content):
    part = ToolReturnPart("read", content, "c")
    [payload] = dumped(ModelRequest(parts=[part]))
    assert WIRE.describe(payload).shapes[0].text == part.model_response_str()


@pytest.mark.parametrize("message", MESSAGES)
def test_after_an_edit_all_other_parts_are_equal(message):
    [payload] = dumped(message)
    [whole] = loaded(payload)
    shapes = WIRE.describe(payload).shapes
    for nth, shape in enumerate(shapes):
        [left] = loaded(WIRE.edit(payload, {nth: Drop("test")}))
        assert list(left.parts) == [*whole.parts[:nth], *whole.parts[nth + 1 :]]
        assert dataclasses.replace(left, parts=[]) == dataclasses.replace(whole, parts=[])
        if shape.sealed:
            continue
        text = '{"short":1}' if shape.kind == "call" else "short"
        [new] = loaded(WIRE.edit(payload, {nth: Replace(0, text, 0, "test")}))
        old, now = whole.parts[nth], new.parts[nth]
        assert [*new.parts[:nth], *new.parts[nth + 1 :]] == list(left.parts)
        if isinstance(now, ToolCallPart):
            assert now.args_as_dict() == {"short": 1}
            assert type(now.args) is type(old.args) or old.args is None
            assert dataclasses.replace(now, args=None) == dataclasses.replace(old, args=None)
        else:
            assert now.content == "short"
            assert dataclasses.replace(now, content="") == dataclasses.replace(old, content="")


def test_a_clipped_text_keeps_the_pictures_beside_it():
    [payload] = dumped(REQUEST)
    change = Replace(3, "[…]", 1, "test")
    [old, new] = loaded(payload, WIRE.edit(payload, {1: change, 7: change}))
    assert list(new.parts[1].content) == ["tex[…]}", IMAGE]
    prompt = list(new.parts[7].content)
    assert prompt == ["lis[…]d", *list(old.parts[7].content)[3:]]


def test_another_text_is_no_longer_that_of_a_structured_value():
    part = UserPromptPart([StructuredContent({"state": 1}, content="structured"), IMAGE])
    [payload] = dumped(ModelRequest(parts=[part]))
    [new] = loaded(WIRE.edit(payload, {0: Replace(6, "", 0, "test")}))
    assert list(new.parts[0].content) == ["struct", IMAGE]


def test_what_a_provider_or_the_framework_keeps_is_sealed_and_fixed():
    for message, payload in zip(MESSAGES, dumped(*MESSAGES), strict=True):
        shapes = WIRE.describe(payload).shapes
        for kind, shape in zip(kinds_of(message), shapes, strict=True):
            owned = kind in OWNED or "delta" in kind or "baseline" in kind
            assert (shape.sealed and shape.fixed) == owned, kind
            assert shape.fixed == (owned or kind == "system-prompt"), kind


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (
            {"part_kind": "retry-prompt", "content": "no", "tool_name": "t", "tool_call_id": "c"},
            "return",
        ),
        ({"part_kind": "retry-prompt", "content": [{"type": "missing", "loc": ["a"]}]}, "other"),
    ],
)
def test_old_retries_are_read(part, kind):
    payload = json.dumps({"kind": "request", "parts": [part]}).encode()
    assert WIRE.describe(payload).shapes[0].kind == kind
    [new] = loaded(WIRE.edit(payload, {0: Replace(0, "short", 0, "test")}))
    assert new.parts[0].content == "short"


def test_inserts_are_messages_of_the_library():
    prompt, reply = Insert(1, "prompt", "[Summary]", "t"), Insert(1, "reply", "Understood.", "t")
    answer = Insert(1, "return", "Interrupted by user.", "t", "read", "c1")
    [asked, said, returned] = loaded(
        *WIRE.make([prompt]), *WIRE.make([reply]), *WIRE.make([answer])
    )
    assert isinstance(asked, ModelRequest)
    assert isinstance(asked.parts[0], UserPromptPart)
    assert asked.parts[0].content == "[Summary]"
    assert isinstance(said, ModelResponse)
    assert said.text == "Understood."
    assert isinstance(returned.parts[0], ToolReturnPart)
    assert (returned.parts[0].tool_name, returned.parts[0].tool_call_id) == ("read", "c1")


def _known(payloads: list[bytes]) -> list[bytes]:
    """The library refuses kinds of parts that it does not know."""
    return [one for one in payloads if b"hologram" not in one]


def _parts(messages: list[ModelMessage]) -> int:
    return sum(len(message.parts) for message in messages)


@settings(max_examples=30)
@given(conversations("pydantic-ai", max_moves=8))
def test_the_library_sends_our_conversations_as_they_are(payloads):
    messages = loaded(*_known(payloads))
    sent: list[ModelMessage] = []

    def model(messages, _info):
        sent.extend(messages)
        return ModelResponse(parts=[TextPart("ok")])

    # Not run_sync: it makes an event loop and leaves it to whichever test comes later.
    asyncio.run(Agent(FunctionModel(model)).run("Next?", message_history=messages))
    assert _parts(sent) == _parts(messages) + 1  # nothing had to be added or dropped


@given(conversations("pydantic-ai", max_moves=8, legal=False))
def test_what_the_library_would_repair_is_a_problem(payloads):
    payloads = _known(payloads)
    messages = loaded(*payloads)
    if _parts(repair_messages(messages)) != _parts(messages):
        assert WIRE.problems(payloads)
