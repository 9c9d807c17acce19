"""The conformance suite, whole, on every wire of ours."""

import json
from types import MappingProxyType

from refold.testing.wire import (
    AnthropicMessagesSpelling,
    OpenAIChatSpelling,
    OpenAIResponsesSpelling,
    PydanticAISpelling,
    WireConformance,
)
from refold.testing.wire.script import split
from refold.wire import (
    AnthropicMessages,
    OpenAIChat,
    OpenAIResponses,
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


class TestOpenAIResponses(WireConformance):
    wire = OpenAIResponses()
    spelling = OpenAIResponsesSpelling()
    refused = raw(
        {"kind": "request", "parts": []},
        {"type": 7},
        {"role": 7, "content": "x"},
        {"type": "message", "content": "x"},
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "developer", "content": 7},
        {"role": "assistant", "content": ["text"]},
        {"content": "x", "id": "msg_1"},
    )
    samples = raw(
        {"role": "system", "content": [{"type": "input_text", "text": "a"}, {"type": "new"}]},
        {"role": "developer", "content": [{"type": "input_text", "text": "a"}] * 2},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_image", "file_id": "f", "detail": "low"},
                {"type": "input_text", "text": "b"},
                {"type": "input_file", "file_data": "x"},
                {"type": "input_audio", "input_audio": {"data": "x", "format": "mp3"}},
            ],
        },
        {"role": "user", "content": []},
        {"role": "oracle", "content": "x"},
        {"role": "assistant", "content": "x"},
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "phase": "commentary",
            "content": [
                {"type": "output_text", "text": "a", "annotations": [], "logprobs": []},
                {"type": "refusal", "refusal": "I will not."},
                {"type": "new"},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "x"}]},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "id": "fc_1"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": {"x": 1.0}},
        {"type": "function_call", "call_id": "a", "name": "f"},
        {"type": "function_call", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": ""},
        {"type": "function_call_output", "call_id": "a"},
        {"type": "function_call_output", "call_id": "a", "output": {"odd": True}},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "new"}]},
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": "x"},
                {"type": "input_text", "text": "b"},
            ],
        },
        {"type": "custom_tool_call", "call_id": "a", "name": "c", "input": "plain"},
        {"type": "custom_tool_call", "call_id": "a", "name": "c"},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "x"},
        {"type": "computer_call", "call_id": "a", "id": "cu_1", "action": {"type": "click"}},
        {"type": "computer_call_output", "call_id": "a", "output": {"image_url": "x"}},
        {"type": "local_shell_call", "call_id": "a", "id": "l", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "a", "output": "{}"},
        {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "a", "output": []},
        {
            "type": "shell_call_output",
            "call_id": "a",
            "output": [
                {"stdout": "a", "stderr": "b", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "c", "outcome": {"type": "timeout"}},
            ],
        },
        {"type": "apply_patch_call", "call_id": "a", "operation": {"type": "delete_file"}},
        {"type": "apply_patch_call_output", "call_id": "a", "status": "completed"},
        {"type": "tool_search_call", "call_id": "a", "arguments": {"query": "x"}},
        {"type": "tool_search_call", "call_id": None, "arguments": {}},
        {"type": "tool_search_output", "call_id": "a", "tools": [{"type": "function"}]},
        {"type": "tool_search_output", "tools": []},
        {"type": "mcp_approval_request", "id": "m", "name": "n", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True},
        {"type": "mcp_list_tools", "id": "m", "server_label": "s", "tools": []},
        {"type": "mcp_call", "id": "m", "name": "n", "arguments": "{}", "output": "x"},
        {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "x"}},
        {"type": "file_search_call", "id": "f", "queries": [], "results": None},
        {"type": "code_interpreter_call", "id": "c", "code": "1", "outputs": []},
        {"type": "image_generation_call", "id": "i", "result": "iVBORw0=", "status": "x"},
        {"type": "item_reference", "id": "msg_1"},
        {"id": "msg_1"},
        {"type": "compaction", "encrypted_content": "gAAA"},
        {"type": "additional_tools", "role": "developer", "tools": []},
        {"type": "program", "id": "p", "call_id": "p", "code": "x"},
        {"type": "hologram", "depth": 1.5},
    )
    faults = MappingProxyType(
        {
            "reasoning at the end": raw(USER, {"type": "reasoning", "summary": []}),
            "reasoning that led nowhere": raw(USER, {"type": "reasoning", "summary": []}, USER),
            "the developer between": raw(
                USER,
                {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
                {"role": "developer", "content": "x"},
                {"type": "function_call_output", "call_id": "a", "output": "x"},
            ),
            "an output of another sort": raw(
                USER,
                {"type": "custom_tool_call", "call_id": "a", "name": "f", "input": ""},
                {"type": "function_call_output", "call_id": "a", "output": "x"},
            ),
            "half of it answered": raw(
                USER,
                {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
                {"type": "shell_call", "call_id": "b", "action": {}},
                {"type": "function_call_output", "call_id": "a", "output": "x"},
                USER,
            ),
        }
    )
