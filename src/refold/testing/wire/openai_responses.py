"""Scripts as OpenAI response items."""

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from refold.testing.wire.script import Answered, Asked, Call, Responded, Return, Said, Thought, Told
from refold.testing.wire.spelling import Object, as_text

_IMAGE: Object = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0="}


class OpenAIResponsesSpelling:
    """Writes OpenAI response items."""

    def spell(self, said: Said) -> Sequence[Object]:
        """One item for each thing that is thought, said, called or returned."""
        match said:
            case Told(text):
                content: list[JsonValue] = [{"type": "input_text", "text": text}]
                return [{"type": "message", "role": "developer", "content": content}]
            case Asked():
                return [{"role": "user", "content": _asked(said)}]
            case Responded():
                return list(_responded(said))
            case Answered(returns, words):
                added: list[Object] = [{"role": "user", "content": words}] if words else []
                return [*map(_return, returns), *added]


def _asked(said: Asked) -> JsonValue:
    if not said.listed:
        return said.text
    content: list[JsonValue] = [{"type": "input_text", "text": said.text}]
    if said.media:
        content.append(_IMAGE)
    if said.foreign:
        content.append({"type": "hologram", "depth": 1.50, "data": "…"})
    return content


def _responded(said: Responded) -> Iterator[Object]:
    if said.thought:
        yield _thought(said.thought)
    if said.foreign:
        yield {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
        yield {"type": "hologram_call", "depth": 1.50, "data": "…"}
    if said.text is not None:
        text: Object = {"type": "output_text", "text": said.text, "annotations": []}
        message: Object = {"type": "message", "role": "assistant", "status": "completed"}
        yield {"id": "msg_1", **message, "content": [text]}
    yield from map(_call, said.calls)


def _thought(thought: Thought) -> Object:
    summary: list[JsonValue] = [{"type": "summary_text", "text": thought.text}]
    if not thought.signed:
        return {"type": "reasoning", "summary": summary}
    return {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "c2Vh" * 40}


def _call(call: Call) -> Object:
    named: Object = {"call_id": call.id, "name": call.tool}
    if call.tool == "write_file":
        return {"type": "custom_tool_call", **named, "input": as_text(call.args)}
    return {"type": "function_call", **named, "arguments": as_text(call.args)}


def _return(one: Return) -> Object:
    output: JsonValue = as_text(one.content)
    if one.media:
        output = [{"type": "input_text", "text": output}, _IMAGE]
    sort = "custom_tool_call" if one.tool == "write_file" else "function_call"
    return {"type": f"{sort}_output", "call_id": one.call, "output": output}
