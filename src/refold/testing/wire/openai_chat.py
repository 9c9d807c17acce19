"""Scripts as OpenAI chat messages."""

from collections.abc import Sequence

from pydantic import JsonValue

from refold.testing.wire.script import Answered, Asked, Call, Responded, Return, Said, Told
from refold.testing.wire.spelling import Object, as_text


class OpenAIChatSpelling:
    """Writes OpenAI chat messages."""

    def spell(self, said: Said) -> Sequence[Object]:
        """One message, and for returns one each."""
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
