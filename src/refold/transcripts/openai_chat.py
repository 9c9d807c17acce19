"""Conversations in the format of OpenAI's chat completions.

A file holds a list of messages, an object with `messages`, or a list of records that each hold one
conversation as `traj` (tau-bench) or `messages`. Each message becomes one message here. An
assistant message that neither says nor calls anything is left out.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from refold.errors import InvalidInput
from refold.transcripts import messages as make
from refold.transcripts.builder import items
from refold.transcripts.messages import Json
from refold.transcripts.recording import RecordedMessage, Recording

_FILE = TypeAdapter[JsonValue](JsonValue)
NAME = "OpenAI chat"
_FIX = "Give a JSON list of chat messages, or of records that hold one as `traj` or `messages`."


def read_openai_chat(path: Path) -> tuple[Recording, ...]:
    """The conversations in a file."""
    return parse_openai_chat(path.read_bytes(), path.stem)


def parse_openai_chat(data: bytes, name: str) -> tuple[Recording, ...]:
    """The conversations that JSON holds."""
    try:
        value = _FILE.validate_json(data)
    except ValidationError as error:
        raise InvalidInput(f"{name} is not JSON.", _FIX) from error
    chats = tuple(_recording(label, messages) for label, messages in _conversations(value, name))
    if not chats:
        raise InvalidInput(f"{name} holds no conversation.", _FIX)
    return chats


def chats_of(value: JsonValue, name: str) -> tuple[Recording, ...]:
    """The conversations that a value holds; what is no message is left out."""
    try:
        chats = list(_conversations(value, name))
    except InvalidInput:
        return ()
    return tuple(_recording(label, messages, strict=False) for label, messages in chats)


def _conversations(value: JsonValue, name: str) -> Iterator[tuple[str, Sequence[JsonValue]]]:
    match value:
        case {"messages": list(messages)} | {"traj": list(messages)}:
            yield name, messages
        case [{"role": _}, *_]:
            yield name, value
        case list(records):
            for number, record in enumerate(records):
                match record:
                    case {"traj": list(messages)} | {"messages": list(messages)}:
                        yield f"{name}-{number}", messages
                    case _:
                        raise InvalidInput(
                            f"Record {number} of {name} is not a conversation.", _FIX
                        )
        case _:
            pass


def _recording(name: str, messages: Sequence[JsonValue], *, strict: bool = True) -> Recording:
    tools: dict[str, str] = {}
    recorded: list[RecordedMessage] = []
    skipped = Counter[str]()
    for message in messages:
        try:
            payload = _payload(message, tools)
        except InvalidInput:
            if strict:
                raise
            skipped["no chat message"] += 1
            continue
        if payload is None:
            skipped["assistant without content"] += 1
        else:
            recorded.append(RecordedMessage(payload))
    return Recording(name, tuple(recorded), dict(skipped))


def _payload(message: JsonValue, tools: dict[str, str]) -> bytes | None:
    match message:
        case {"role": "system" | "developer", "content": content}:
            return make.request([make.system_prompt(_text(content))])
        case {"role": "user", "content": content}:
            return make.request([make.user_prompt(_content(content))])
        case {"role": "tool", "tool_call_id": str(call), "content": content}:
            name = message.get("name")
            tool = name if isinstance(name, str) else tools.get(call, "unknown")
            return make.request([make.tool_return(tool, call, _text(content))])
        case {"role": "assistant"}:
            parts = _answer_parts(message)
            tools.update(
                (str(part["tool_call_id"]), str(part["tool_name"]))
                for part in parts
                if "tool_call_id" in part
            )
            return make.response(parts) if parts else None
        case _:
            raise InvalidInput(f"No chat message: {make.dump(message).decode()[:80]!r}.", _FIX)


def _answer_parts(message: Json) -> list[Json]:
    text = _text(message.get("content"))
    parts = [make.text(text)] if text else []
    for call in items(message, "tool_calls"):
        match call:
            case {"id": str(id_), "function": {"name": str(tool), "arguments": arguments}}:
                parts.append(make.tool_call(tool, id_, arguments))
            case _:
                raise InvalidInput(f"No tool call: {make.dump(call).decode()[:80]!r}.", _FIX)
    return parts


def _text(content: JsonValue) -> str:
    match content:
        case str():
            return content
        case list():
            return "\n".join(item for item in map(_item, content) if isinstance(item, str))
        case _:
            return ""


def _content(content: JsonValue) -> JsonValue:
    if not isinstance(content, list):
        return _text(content)
    blocks = [_item(block) for block in content]
    return _text(content) if all(isinstance(block, str) for block in blocks) else blocks


def _item(block: JsonValue) -> JsonValue:
    match block:
        case {"type": "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
            return text
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return {"url": url, "kind": "image-url"}
        case _:
            return make.dump(block).decode()
