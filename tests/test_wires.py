"""The conformance suite, whole, on every wire of ours."""

import json
from types import MappingProxyType

from refold.testing.wire import (
    AnthropicMessagesSpelling,
    OpenAIChatSpelling,
    PydanticAISpelling,
    WireConformance,
)
from refold.testing.wire.faults import split
from refold.wire import (
    AnthropicMessages,
    OpenAIChat,
    PydanticAI,
)

USER = {"role": "user", "content": "Go."}


def raw(*messages: object) -> list[bytes]:
    return [json.dumps(message, ensure_ascii=False).encode() for message in messages]


class TestPydanticAI(WireConformance):
    wire = PydanticAI()
    spelling = PydanticAISpelling()
    forgiven = frozenset({split})
    refused = raw(
        {"role": "user", "content": "of another format"},
        {"kind": "request"},
        {"kind": "request", "parts": {}},
        {"kind": "request", "parts": ["text"]},
        {"kind": "event", "parts": []},
    )
    samples = raw(
        {"kind": "request", "parts": [{"part_kind": "retry-feedback", "content": [{"loc": []}]}]},
        {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "x", "args": None}]},
        {
            "parts": [
                {"part_kind": "file", "content": {"kind": "binary", "media_type": "image/png"}},
                {"part_kind": "text", "content": "signed", "provider_details": {"sig": "x"}},
                {"part_kind": "text", "content": "open"},
            ],
            "kind": "response",
        },
    )
    faults = MappingProxyType(
        {
            "other instructions between": raw(
                {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_call_id": "c"}]},
                {"kind": "request", "parts": [], "instructions": "One."},
                {
                    "kind": "request",
                    "parts": [{"part_kind": "tool-return", "tool_call_id": "c"}],
                    "instructions": "Two.",
                },
            ),
            "a prompt before the return": raw(
                {
                    "kind": "response",
                    "parts": [{"part_kind": "tool-call", "tool_name": "t", "tool_call_id": "c"}],
                },
                {
                    "kind": "request",
                    "parts": [
                        {"part_kind": "user-prompt", "content": "first"},
                        {"part_kind": "tool-return", "content": "x", "tool_call_id": "c"},
                    ],
                },
            ),
        }
    )


class TestOpenAIChat(WireConformance):
    wire = OpenAIChat()
    spelling = OpenAIChatSpelling()
    refused = raw(
        {"kind": "request", "parts": []},
        {"role": 7},
        {"role": "user"},
        {"role": "user", "content": 7},
        {"role": "user", "content": ["text"]},
        {"role": "assistant", "tool_calls": {}},
        {"role": "assistant", "tool_calls": ["x"]},
    )
    samples = raw(
        {
            "role": "system",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
        {"role": "system", "content": [{"type": "new"}, {"type": "text", "text": "a"}]},
        {"role": "user", "content": [{"type": "input_audio"}, {"type": "file", "file": {}}]},
        {"role": "assistant", "content": None, "refusal": "I will not."},
        {"role": "assistant", "content": "", "tool_calls": [{"type": "mcp", "id": "c"}]},
        {"role": "assistant", "content": ""},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}],
            "audio": {"id": "audio_1"},
        },
        {"role": "assistant", "content": [{"type": "thinking", "thinking": []}, {"type": "new"}]},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "b", "type": "custom", "custom": {"name": "c", "input": "plain"}},
                {"id": "c", "type": "function", "function": {"name": "g", "arguments": {"x": 1}}},
                {"id": "d", "type": "function", "function": {"name": "h"}},
            ],
        },
        {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "function", "name": "old", "content": "result"},
        {"role": "tool", "tool_call_id": "a", "content": None},
        {"role": "tool", "tool_call_id": "a"},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "image_url"}]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "new", "x": 1}]},
        {
            "role": "tool",
            "tool_call_id": "a",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image_url"},
                {"type": "text", "text": "b"},
            ],
        },
        {"role": "oracle", "words": ["unknown"]},
    )
    faults = MappingProxyType(
        {
            "nothing said": raw(USER, {"role": "assistant", "content": None}),
            "only a thought": raw(USER, {"role": "assistant", "reasoning": "hm", "content": None}),
            "no content": raw({"role": "user", "content": []}),
            "no calls": raw(USER, {"role": "assistant", "content": "x", "tool_calls": []}),
            "the system between": raw(
                USER,
                {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "system", "content": "x"},
                {"role": "function", "name": "f", "content": "x"},
            ),
        }
    )


class TestAnthropicMessages(WireConformance):
    wire = AnthropicMessages()
    spelling = AnthropicMessagesSpelling()
    refused = raw(
        {"role": "tool", "content": "x"},
        {"role": "developer", "content": "x"},
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": ["text"]},
    )
    samples = raw(
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                {"type": "thinking", "thinking": "free"},
                {"type": "mcp_tool_use", "id": "m", "name": "n", "input": {}},
                {"type": "mcp_tool_result", "tool_use_id": "m", "content": []},
                {"type": "container_upload", "file_id": "f"},
                {"type": "text", "text": "said", "citations": None},
                {"type": "tool_use", "id": "t", "name": "n", "input": {"x": 1.0}, "caller": {}},
            ],
        },
        {"role": "assistant", "content": [{"type": "compaction", "content": "a summary"}]},
        {"role": "system", "content": [{"type": "text", "text": "from now on"}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t"},
                {"type": "tool_result", "tool_use_id": "u", "content": [], "is_error": True},
                {"type": "tool_result", "tool_use_id": "v", "content": [{"type": "new"}]},
                {
                    "type": "tool_result",
                    "tool_use_id": "w",
                    "content": [
                        {"type": "image", "source": {"type": "file", "file_id": "f"}},
                        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
                        {"type": "search_result", "source": "s", "title": "t", "content": []},
                        {"type": "text", "text": "b"},
                    ],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "x",
                    "content": [{"type": "search_result", "title": "t"}, {"type": "image"}],
                },
                {"type": "image", "source": {"type": "url", "url": "x"}, "cache_control": {}},
                {"type": "document", "source": {"type": "text", "data": "words"}},
                {"type": "document", "source": {"type": "content", "content": "words"}},
                {"type": "document", "source": {"media_type": "application/pdf"}, "title": "t"},
            ],
        },
    )
    faults = MappingProxyType(
        {
            "the model begins": raw({"role": "assistant", "content": "Hello."}),
            "no words": raw({"role": "user", "content": ""}),
            "no words in a block": raw(
                {"role": "user", "content": [{"type": "text", "text": " \n"}]}
            ),
            "nothing": raw({"role": "user", "content": []}),
            "words before the return": raw(
                USER,
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "input": {}}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "wait"},
                        {"type": "tool_result", "tool_use_id": "t"},
                    ],
                },
            ),
            "an id again": raw(
                *[
                    USER,
                    {
                        "role": "assistant",
                        "content": [{"type": "tool_use", "id": "t", "input": {}}],
                    },
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]},
                ]
                * 2
            ),
            "the user calls": raw({"role": "user", "content": [{"type": "tool_use", "input": {}}]}),
            "the system first": raw({"role": "system", "content": "x"}),
            "the system after the model": raw(
                USER, {"role": "assistant", "content": "x"}, {"role": "system", "content": "x"}
            ),
            "the user after the system": raw(USER, {"role": "system", "content": "x"}, USER),
        }
    )
