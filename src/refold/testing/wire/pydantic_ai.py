"""Scripts as messages of Pydantic AI."""

from collections.abc import Sequence

from pydantic import JsonValue

from refold.testing.wire.script import Answered, Asked, Responded, Return, Said, Thought, Told
from refold.testing.wire.spelling import Object, as_text

_AT = "2026-01-01T00:00:00Z"
_IMAGE: Object = {
    "data": "iVBORw0=",
    "media_type": "image/png",
    "vendor_metadata": None,
    "kind": "binary",
    "identifier": "1c2f3a",
}


class PydanticAISpelling:
    """Writes messages of Pydantic AI."""

    def spell(self, said: Said) -> Sequence[Object]:
        """One message."""
        match said:
            case Told(text):
                return [_request({"content": text, "timestamp": _AT, "part_kind": "system-prompt"})]
            case Asked():
                foreign: list[Object] = [{"part_kind": "hologram", "depth": 1.50}]
                return [_request(_prompt(_asked(said)), *(foreign if said.foreign else []))]
            case Responded():
                return [_response(said)]
            case Answered(returns, words):
                return [_request(*map(_return, returns), *([_prompt(words)] if words else []))]


def _request(*parts: JsonValue) -> Object:
    return {"parts": list(parts), "instructions": "Be kind.", "kind": "request", "run_id": "r1"}


def _prompt(content: JsonValue) -> Object:
    return {"content": content, "timestamp": _AT, "part_kind": "user-prompt"}


def _asked(said: Asked) -> JsonValue:
    if not said.listed:
        return said.text
    return [said.text, _IMAGE] if said.media else [said.text, {"kind": "cache-point", "ttl": "5m"}]


def _response(said: Responded) -> Object:
    parts: list[JsonValue] = [_thought(said.thought)] if said.thought else []
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


def _thought(thought: Thought) -> Object:
    part: Object = {"content": thought.text, "part_kind": "thinking"}
    if thought.signed:
        return {**part, "signature": "c2lnbmVk", "provider_name": "anthropic"}
    return part


def _return(one: Return) -> Object:
    content: JsonValue = [as_text(one.content), _IMAGE] if one.media else one.content
    named: Object = {"tool_name": one.tool, "content": content, "tool_call_id": one.call}
    outcome = "failed" if one.error else "success"
    return {**named, "timestamp": _AT, "outcome": outcome, "part_kind": "tool-return"}
