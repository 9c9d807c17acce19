"""Scripts as OpenAI chat messages."""

from collections.abc import Iterator, Sequence
from typing import Final

from hypothesis import strategies as st
from pydantic import JsonValue

from refold.errors import UnknownFormat
from refold.testing.wire.script import (
    Answered,
    Asked,
    Call,
    Object,
    Responded,
    Return,
    Said,
    Spelling,
    Thought,
    Told,
    as_text,
    faulty,
    payloads,
    scripts,
)


class OpenAIChatSpelling:
    def spell(self, said: Said) -> Sequence[Object]:
        match said:
            case Told(text):
                return [{"role": "developer", "content": text}]
            case Asked():
                return [{"role": "user", "content": _asked(said)}]
            case Responded():
                return [_responded(said)]
            case Answered(returns, words):
                added: list[Object] = [{"role": "user", "content": words}] if words else []
                return [*map(_return, returns), *added]


def _asked(said: Asked) -> JsonValue:
    if not said.listed:
        return said.text
    content: list[JsonValue] = [{"type": "text", "text": said.text}]
    if said.media:
        image: Object = {"url": "data:image/png;base64,iVBORw0="}
        content.append({"type": "image_url", "image_url": image})
    if said.foreign:
        content.append({"type": "hologram", "depth": 1.50, "data": "…"})
    return content


def _responded(said: Responded) -> Object:
    message: Object = {"role": "assistant", "content": said.text}
    if said.thought and said.thought.signed:
        details: JsonValue = [{"type": "reasoning.encrypted", "data": "c2VhbGVk"}]
        message |= {"reasoning": said.thought.text, "reasoning_details": details}
    elif said.thought:
        message["reasoning_content"] = said.thought.text
    if said.calls:
        message["tool_calls"] = [_call(call) for call in said.calls]
    if said.foreign:
        message |= {"audio": {"id": "audio_1"}, "x_trace": [1.0, 1e5]}
    return message


def _call(call: Call) -> Object:
    function: Object = {"name": call.tool, "arguments": as_text(call.args)}
    return {"id": call.id, "type": "function", "function": function}


def _return(one: Return) -> Object:
    text = as_text(one.content)
    content: JsonValue = [{"type": "text", "text": text}] if one.media else text
    return {"role": "tool", "tool_call_id": one.call, "content": content}


# Scripts as Anthropic messages.

_IMAGE: Object = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="},
}


class AnthropicMessagesSpelling:
    def spell(self, said: Said) -> Sequence[Object]:
        match said:
            case Told():
                return []
            case Asked():
                return [{"role": "user", "content": _asked_anthropic_messages(said)}]
            case Responded():
                return [{"role": "assistant", "content": _responded_anthropic_messages(said)}]
            case Answered(returns, words):
                content: list[JsonValue] = [_return_anthropic_messages(one) for one in returns]
                if words:
                    content.append({"type": "text", "text": words})
                return [{"role": "user", "content": content}]


def _asked_anthropic_messages(said: Asked) -> JsonValue:
    if not said.listed:
        return said.text
    mark: Object = {"cache_control": {"type": "ephemeral"}}
    content: list[JsonValue] = [{"type": "text", "text": said.text, **mark}]
    if said.media:
        content.append(_IMAGE)
    if said.foreign:
        content.append({"type": "hologram", "depth": 1.50, "data": "…"})
    return content


def _responded_anthropic_messages(said: Responded) -> JsonValue:
    if said.text and not (said.calls or said.thought or said.foreign):
        return said.text
    content: list[JsonValue] = [_thought(said.thought)] if said.thought else []
    if said.foreign:
        content.append({"type": "server_tool_use", "id": "srv_1", "name": "web", "input": {}})
        content.append({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []})
    if said.text:
        content.append({"type": "text", "text": said.text})
    content += map(_call_anthropic_messages, said.calls)
    return content


def _call_anthropic_messages(call: Call) -> Object:
    return {"type": "tool_use", "id": call.id, "name": call.tool, "input": dict(call.args)}


def _thought(thought: Thought) -> Object:
    if not thought.signed:
        return {"type": "thinking", "thinking": thought.text}
    return {"type": "thinking", "thinking": thought.text, "signature": "c2lnbmVk"}


def _return_anthropic_messages(one: Return) -> Object:
    content: JsonValue = as_text(one.content)
    if one.media:
        texts: list[JsonValue] = [{"type": "text", "text": content}] if content else []
        content = [*texts, _IMAGE]
    block: Object = {"type": "tool_result", "tool_use_id": one.call, "content": content}
    return {**block, "is_error": True} if one.error else block


# Scripts as OpenAI response items.

_IMAGE_OPENAI_RESPONSES: Object = {
    "type": "input_image",
    "image_url": "data:image/png;base64,iVBORw0=",
}


class OpenAIResponsesSpelling:
    def spell(self, said: Said) -> Sequence[Object]:
        match said:
            case Told(text):
                content: list[JsonValue] = [{"type": "input_text", "text": text}]
                return [{"type": "message", "role": "developer", "content": content}]
            case Asked():
                return [{"role": "user", "content": _asked_openai_responses(said)}]
            case Responded():
                return list(_responded_openai_responses(said))
            case Answered(returns, words):
                added: list[Object] = [{"role": "user", "content": words}] if words else []
                return [*map(_return_openai_responses, returns), *added]


def _asked_openai_responses(said: Asked) -> JsonValue:
    if not said.listed:
        return said.text
    content: list[JsonValue] = [{"type": "input_text", "text": said.text}]
    if said.media:
        content.append(_IMAGE_OPENAI_RESPONSES)
    if said.foreign:
        content.append({"type": "hologram", "depth": 1.50, "data": "…"})
    return content


def _responded_openai_responses(said: Responded) -> Iterator[Object]:
    if said.thought:
        yield _thought_openai_responses(said.thought)
    if said.foreign:
        yield {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
        yield {"type": "hologram_call", "depth": 1.50, "data": "…"}
    if said.text is not None:
        text: Object = {"type": "output_text", "text": said.text, "annotations": []}
        message: Object = {"type": "message", "role": "assistant", "status": "completed"}
        yield {"id": "msg_1", **message, "content": [text]}
    yield from map(_call_openai_responses, said.calls)


def _thought_openai_responses(thought: Thought) -> Object:
    summary: list[JsonValue] = [{"type": "summary_text", "text": thought.text}]
    if not thought.signed:
        return {"type": "reasoning", "summary": summary}
    return {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "c2Vh" * 40}


def _call_openai_responses(call: Call) -> Object:
    named: Object = {"call_id": call.id, "name": call.tool}
    if call.tool == "write_file":
        return {"type": "custom_tool_call", **named, "input": as_text(call.args)}
    return {"type": "function_call", **named, "arguments": as_text(call.args)}


def _return_openai_responses(one: Return) -> Object:
    output: JsonValue = as_text(one.content)
    if one.media:
        output = [{"type": "input_text", "text": output}, _IMAGE_OPENAI_RESPONSES]
    sort = "custom_tool_call" if one.tool == "write_file" else "function_call"
    return {"type": f"{sort}_output", "call_id": one.call, "output": output}


# Scripts as messages of Pydantic AI.

_AT = "2026-01-01T00:00:00Z"
_IMAGE_PYDANTIC_AI: Object = {
    "data": "iVBORw0=",
    "media_type": "image/png",
    "vendor_metadata": None,
    "kind": "binary",
    "identifier": "1c2f3a",
}


class PydanticAISpelling:
    def spell(self, said: Said) -> Sequence[Object]:
        match said:
            case Told(text):
                return [_request({"content": text, "timestamp": _AT, "part_kind": "system-prompt"})]
            case Asked():
                foreign: list[Object] = [{"part_kind": "hologram", "depth": 1.50}]
                return [
                    _request(_prompt(_asked_pydantic_ai(said)), *(foreign if said.foreign else []))
                ]
            case Responded():
                return [_response(said)]
            case Answered(returns, words):
                return [
                    _request(
                        *map(_return_pydantic_ai, returns), *([_prompt(words)] if words else [])
                    )
                ]


def _request(*parts: JsonValue) -> Object:
    return {"parts": list(parts), "instructions": "Be kind.", "kind": "request", "run_id": "r1"}


def _prompt(content: JsonValue) -> Object:
    return {"content": content, "timestamp": _AT, "part_kind": "user-prompt"}


def _asked_pydantic_ai(said: Asked) -> JsonValue:
    if not said.listed:
        return said.text
    return (
        [said.text, _IMAGE_PYDANTIC_AI]
        if said.media
        else [said.text, {"kind": "cache-point", "ttl": "5m"}]
    )


def _response(said: Responded) -> Object:
    parts: list[JsonValue] = [_thought_pydantic_ai(said.thought)] if said.thought else []
    if said.foreign:
        builtin: Object = {"tool_name": "web_search", "tool_call_id": "srv_1"}
        parts.append({**builtin, "args": "{}", "part_kind": "builtin-tool-call"})
        parts.append({**builtin, "content": "found", "part_kind": "builtin-tool-return"})
    if said.text:
        parts.append({"content": said.text, "id": None, "part_kind": "text"})
    for at, call in enumerate(said.calls):
        args: JsonValue = as_text(call.args) if at else dict(call.args)
        named: Object = {"tool_name": call.tool, "args": args, "tool_call_id": call.id}
        parts.append({**named, "part_kind": "tool-call"})
    return {"parts": parts, "usage": {"input_tokens": 12}, "kind": "response", "timestamp": _AT}


def _thought_pydantic_ai(thought: Thought) -> Object:
    part: Object = {"content": thought.text, "part_kind": "thinking"}
    if thought.signed:
        return {**part, "signature": "c2lnbmVk", "provider_name": "anthropic"}
    return part


def _return_pydantic_ai(one: Return) -> Object:
    content: JsonValue = [as_text(one.content), _IMAGE_PYDANTIC_AI] if one.media else one.content
    named: Object = {"tool_name": one.tool, "content": content, "tool_call_id": one.call}
    outcome = "failed" if one.error else "success"
    return {**named, "timestamp": _AT, "outcome": outcome, "part_kind": "tool-return"}


# Conversations as payloads of the formats that come with Refold.

SPELLINGS: Final[dict[str, Spelling]] = {
    "pydantic-ai": PydanticAISpelling(),
    "openai-chat": OpenAIChatSpelling(),
    "openai-responses": OpenAIResponsesSpelling(),
    "anthropic-messages": AnthropicMessagesSpelling(),
}
"""How scripts are written, by the name of the format."""


def conversations(
    format: str,  # noqa: A002 - the word for it everywhere else
    *,
    legal: bool = True,
    most: int = 24,
) -> st.SearchStrategy[list[bytes]]:
    """Conversations of up to `most` moves, each a prompt or a step of the tool loop, as payloads.

    Legal ones are what a provider takes. The others have calls without their return, returns
    without their call, returns that come late or twice, or begin in the middle.
    """
    try:
        spelling = SPELLINGS[format]
    except KeyError:
        raise UnknownFormat(f"No spelling writes {format!r}: {', '.join(SPELLINGS)}.") from None
    said = scripts(most=most)
    return payloads(said if legal else faulty(said), spelling)


def messages(format: str) -> st.SearchStrategy[bytes]:  # noqa: A002 - as above
    """Single messages of a format, out of such conversations."""
    return conversations(format, most=4).flatmap(st.sampled_from)
