"""Scripts as Anthropic messages."""

from collections.abc import Sequence

from pydantic import JsonValue

from refold.testing.wire.script import Answered, Asked, Call, Responded, Return, Said, Thought, Told
from refold.testing.wire.spelling import Object, as_text

_IMAGE: Object = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="},
}


class AnthropicMessagesSpelling:
    """Writes Anthropic messages."""

    def spell(self, said: Said) -> Sequence[Object]:
        """One message; system content is not one of them."""
        match said:
            case Told():
                return []
            case Asked():
                return [{"role": "user", "content": _asked(said)}]
            case Responded():
                return [{"role": "assistant", "content": _responded(said)}]
            case Answered(returns, words):
                content: list[JsonValue] = [_return(one) for one in returns]
                if words:
                    content.append({"type": "text", "text": words})
                return [{"role": "user", "content": content}]


def _asked(said: Asked) -> JsonValue:
    if not said.listed:
        return said.text
    mark: Object = {"cache_control": {"type": "ephemeral"}}
    content: list[JsonValue] = [{"type": "text", "text": said.text, **mark}]
    if said.media:
        content.append(_IMAGE)
    if said.foreign:
        content.append({"type": "hologram", "depth": 1.50, "data": "…"})
    return content


def _responded(said: Responded) -> JsonValue:
    if said.text and not (said.calls or said.thought or said.foreign):
        return said.text
    content: list[JsonValue] = [_thought(said.thought)] if said.thought else []
    if said.foreign:
        content.append({"type": "server_tool_use", "id": "srv_1", "name": "web", "input": {}})
        content.append({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []})
    if said.text:
        content.append({"type": "text", "text": said.text})
    content += map(_call, said.calls)
    return content


def _call(call: Call) -> Object:
    return {"type": "tool_use", "id": call.id, "name": call.tool, "input": dict(call.args)}


def _thought(thought: Thought) -> Object:
    if not thought.signed:
        return {"type": "thinking", "thinking": thought.text}
    return {"type": "thinking", "thinking": thought.text, "signature": "c2lnbmVk"}


def _return(one: Return) -> Object:
    content: JsonValue = as_text(one.content)
    if one.media:
        texts: list[JsonValue] = [{"type": "text", "text": content}] if content else []
        content = [*texts, _IMAGE]
    block: Object = {"type": "tool_result", "tool_use_id": one.call, "content": content}
    return {**block, "is_error": True} if one.error else block
