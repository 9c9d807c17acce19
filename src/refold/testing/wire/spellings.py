"""Scripts as native messages of the formats that come with Refold, and strategies for them."""

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
    Told,
    as_text,
    faulty,
    payloads,
    scripts,
)

_HOLOGRAM: Final[Object] = {"type": "hologram", "depth": 1.50, "data": "…"}
"""A kind of content that no wire knows."""
_PNG = "iVBORw0="
_CHAT_IMAGE: Object = {
    "type": "image_url",
    "image_url": {"url": f"data:image/png;base64,{_PNG}"},
}
_ANTHROPIC_IMAGE: Object = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": _PNG},
}
_RESPONSES_IMAGE: Object = {
    "type": "input_image",
    "image_url": f"data:image/png;base64,{_PNG}",
}
_PYDANTIC_IMAGE: Object = {
    "data": _PNG,
    "media_type": "image/png",
    "vendor_metadata": None,
    "kind": "binary",
    "identifier": "1c2f3a",
}
_TIMESTAMP = "2026-01-01T00:00:00Z"


def _user_content(prompt: Asked, text: Object, image: Object) -> JsonValue:
    if not prompt.listed:
        return prompt.text
    content: list[JsonValue] = [{**text, "text": prompt.text}]
    if prompt.media:
        content.append(image)
    if prompt.foreign:
        content.append(_HOLOGRAM)
    return content


class OpenAIChatSpelling:
    """Writes OpenAI chat messages: one for each return."""

    def spell(self, said: Said) -> Sequence[Object]:
        match said:
            case Told(text):
                return [{"role": "developer", "content": text}]
            case Asked():
                content = _user_content(said, {"type": "text"}, _CHAT_IMAGE)
                return [{"role": "user", "content": content}]
            case Responded():
                return [self._response(said)]
            case Answered(returns, words):
                added: list[Object] = [{"role": "user", "content": words}] if words else []
                return [*map(self._return, returns), *added]

    def _response(self, said: Responded) -> Object:
        message: Object = {"role": "assistant", "content": said.text}
        if said.thought and said.thought.signed:
            details: JsonValue = [{"type": "reasoning.encrypted", "data": "c2VhbGVk"}]
            message |= {"reasoning": said.thought.text, "reasoning_details": details}
        elif said.thought:
            message["reasoning_content"] = said.thought.text
        if said.calls:
            message["tool_calls"] = [self._call(call) for call in said.calls]
        if said.foreign:
            message |= {"audio": {"id": "audio_1"}, "x_trace": [1.0, 1e5]}
        return message

    def _call(self, call: Call) -> Object:
        function: Object = {"name": call.tool, "arguments": as_text(call.args)}
        return {"id": call.id, "type": "function", "function": function}

    def _return(self, result: Return) -> Object:
        text = as_text(result.content)
        content: JsonValue = [{"type": "text", "text": text}] if result.media else text
        return {"role": "tool", "tool_call_id": result.call, "content": content}


class AnthropicMessagesSpelling:
    """Writes Anthropic messages; system content is not one of them."""

    def spell(self, said: Said) -> Sequence[Object]:
        match said:
            case Told():
                return []
            case Asked():
                mark: Object = {"type": "ephemeral"}
                text: Object = {"type": "text", "text": "", "cache_control": mark}
                return [{"role": "user", "content": _user_content(said, text, _ANTHROPIC_IMAGE)}]
            case Responded():
                return [{"role": "assistant", "content": self._response(said)}]
            case Answered(returns, words):
                content: list[JsonValue] = [self._return(result) for result in returns]
                if words:
                    content.append({"type": "text", "text": words})
                return [{"role": "user", "content": content}]

    def _response(self, said: Responded) -> JsonValue:
        if said.text and not (said.calls or said.thought or said.foreign):
            return said.text
        content: list[JsonValue] = []
        if said.thought:
            signature: Object = {"signature": "c2lnbmVk"} if said.thought.signed else {}
            content.append({"type": "thinking", "thinking": said.thought.text, **signature})
        if said.foreign:
            search: Object = {"type": "server_tool_use", "id": "srv_1", "name": "web", "input": {}}
            result: Object = {"type": "web_search_tool_result", "tool_use_id": "srv_1"}
            content += [search, {**result, "content": []}]
        if said.text:
            content.append({"type": "text", "text": said.text})
        for call in said.calls:
            use: Object = {"type": "tool_use", "id": call.id, "name": call.tool}
            content.append({**use, "input": dict(call.args)})
        return content

    def _return(self, result: Return) -> Object:
        content: JsonValue = as_text(result.content)
        if result.media:
            texts: list[JsonValue] = [{"type": "text", "text": content}] if content else []
            content = [*texts, _ANTHROPIC_IMAGE]
        block: Object = {"type": "tool_result", "tool_use_id": result.call, "content": content}
        return {**block, "is_error": True} if result.error else block


class OpenAIResponsesSpelling:
    """Writes OpenAI response items: one for each thought, text, call and return."""

    def spell(self, said: Said) -> Sequence[Object]:
        match said:
            case Told(text):
                content: list[JsonValue] = [{"type": "input_text", "text": text}]
                return [{"type": "message", "role": "developer", "content": content}]
            case Asked():
                prompt = _user_content(said, {"type": "input_text"}, _RESPONSES_IMAGE)
                return [{"role": "user", "content": prompt}]
            case Responded():
                return list(self._response(said))
            case Answered(returns, words):
                added: list[Object] = [{"role": "user", "content": words}] if words else []
                return [*map(self._return, returns), *added]

    def _response(self, said: Responded) -> Iterator[Object]:
        if said.thought:
            summary: list[JsonValue] = [{"type": "summary_text", "text": said.thought.text}]
            if said.thought.signed:
                own: Object = {"type": "reasoning", "id": "rs_1", "summary": summary}
                yield {**own, "encrypted_content": "c2Vh" * 40}
            else:
                yield {"type": "reasoning", "summary": summary}
        if said.foreign:
            yield {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
            yield {**_HOLOGRAM, "type": "hologram_call"}
        if said.text is not None:
            text: Object = {"type": "output_text", "text": said.text, "annotations": []}
            message: Object = {"type": "message", "role": "assistant", "status": "completed"}
            yield {"id": "msg_1", **message, "content": [text]}
        for call in said.calls:
            named: Object = {"call_id": call.id, "name": call.tool}
            if call.tool == "write_file":
                yield {"type": "custom_tool_call", **named, "input": as_text(call.args)}
            else:
                yield {"type": "function_call", **named, "arguments": as_text(call.args)}

    def _return(self, result: Return) -> Object:
        output: JsonValue = as_text(result.content)
        if result.media:
            output = [{"type": "input_text", "text": output}, _RESPONSES_IMAGE]
        kind = "custom_tool_call" if result.tool == "write_file" else "function_call"
        return {"type": f"{kind}_output", "call_id": result.call, "output": output}


class PydanticAISpelling:
    """Writes messages of Pydantic AI."""

    def spell(self, said: Said) -> Sequence[Object]:
        match said:
            case Told(text):
                part: Object = {"content": text, "timestamp": _TIMESTAMP}
                return [self._request({**part, "part_kind": "system-prompt"})]
            case Asked(text, listed, media, foreign):
                cache_point: Object = {"kind": "cache-point", "ttl": "5m"}
                items: JsonValue = [text, _PYDANTIC_IMAGE if media else cache_point]
                foreign_parts: list[Object] = [{"part_kind": "hologram", "depth": 1.50}]
                prompt = self._prompt(items if listed else text)
                return [self._request(prompt, *(foreign_parts if foreign else []))]
            case Responded():
                return [self._response(said)]
            case Answered(returns, words):
                prompts = [self._prompt(words)] if words else []
                return [self._request(*map(self._return, returns), *prompts)]

    def _request(self, *parts: JsonValue) -> Object:
        return {"parts": list(parts), "instructions": "Be kind.", "kind": "request", "run_id": "r1"}

    def _prompt(self, content: JsonValue) -> Object:
        return {"content": content, "timestamp": _TIMESTAMP, "part_kind": "user-prompt"}

    def _response(self, said: Responded) -> Object:
        parts: list[JsonValue] = []
        if said.thought:
            thought: Object = {"content": said.thought.text, "part_kind": "thinking"}
            signature: Object = {"signature": "c2lnbmVk", "provider_name": "anthropic"}
            parts.append({**thought, **(signature if said.thought.signed else {})})
        if said.foreign:
            builtin: Object = {"tool_name": "web_search", "tool_call_id": "srv_1"}
            parts.append({**builtin, "args": "{}", "part_kind": "builtin-tool-call"})
            parts.append({**builtin, "content": "found", "part_kind": "builtin-tool-return"})
        if said.text:
            parts.append({"content": said.text, "id": None, "part_kind": "text"})
        for nth, call in enumerate(said.calls):
            args: JsonValue = as_text(call.args) if nth else dict(call.args)
            named: Object = {"tool_name": call.tool, "args": args, "tool_call_id": call.id}
            parts.append({**named, "part_kind": "tool-call"})
        message: Object = {"parts": parts, "usage": {"input_tokens": 12}, "kind": "response"}
        return {**message, "timestamp": _TIMESTAMP}

    def _return(self, result: Return) -> Object:
        text: JsonValue = [as_text(result.content), _PYDANTIC_IMAGE]
        content = text if result.media else result.content
        named: Object = {"tool_name": result.tool, "content": content, "tool_call_id": result.call}
        outcome = "failed" if result.error else "success"
        return {**named, "timestamp": _TIMESTAMP, "outcome": outcome, "part_kind": "tool-return"}


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
    max_moves: int = 24,
) -> st.SearchStrategy[list[bytes]]:
    """Conversations of up to `max_moves` prompts or steps of the tool loop, as payloads.

    A provider accepts legal ones. The others have calls without returns, returns without calls,
    returns that come late or twice, or start in the middle.
    """
    try:
        spelling = SPELLINGS[format]
    except KeyError:
        raise UnknownFormat(f"No spelling writes {format!r}: {', '.join(SPELLINGS)}.") from None
    said = scripts(max_moves=max_moves)
    return payloads(said if legal else faulty(said), spelling)


def messages(format: str) -> st.SearchStrategy[bytes]:  # noqa: A002 - as above
    """Single messages of a format, out of such conversations."""
    return conversations(format, max_moves=4).flatmap(st.sampled_from)
