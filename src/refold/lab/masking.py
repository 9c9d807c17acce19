"""Tool returns, masked: a short line stands where the answer was."""

from pydantic import JsonValue, TypeAdapter

from refold.lab import messages as make
from refold.lab.reading import Reader

MASK = "[An old tool result was cleared]"

_MESSAGE = TypeAdapter(dict[str, JsonValue])


def mask(payload: bytes, reader: Reader) -> bytes:
    """The message with its tool returns masked; as it is when that would not make it smaller."""
    message = _MESSAGE.validate_json(payload)
    match message:
        case {"parts": list(parts)}:
            message["parts"] = [_masked(part) for part in parts]
            masked = make.dump(message)
            return masked if reader.tokens(masked) < reader.tokens(payload) else payload
        case _:
            return payload


def _masked(part: JsonValue) -> JsonValue:
    match part:
        case {"part_kind": "tool-return"}:
            return part | {"content": MASK}
        case _:
            return part
