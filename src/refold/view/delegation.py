"""Whose work a reader sees: its own, its callers' and, as text, that of those it called."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from refold.log import PartRef
from refold.view.framing import on_one_line, plain, tool_name
from refold.view.rendering import render_tool_result
from refold.wire import Shape, Wire
from refold.wire.splice import written

Sight = Literal["native", "text", "none"]


class Quote(NamedTuple):
    """Delegated work as the delegating reader sees it: a text, told where it happened."""

    seq: int
    text: str
    sources: tuple[PartRef, ...]


def seen(scope: str, reader: str) -> Sight:
    """How a reader sees an entry of a scope.

    Its own work and what stands above it as it is; what it delegated as text; the rest, which is
    the work of unrelated delegations, not at all.
    """
    if scope == reader or _above(scope, reader):
        return "native"
    return "text" if _above(reader, scope) else "none"


def _above(scope: str, other: str) -> bool:
    return other.startswith(scope if scope.endswith("/") else f"{scope}/")


class Delegation:
    """Tells the messages of delegations as text; calls wait for their result."""

    def __init__(self, wire: Wire, reader: str) -> None:
        self._wire = wire
        self._reader = reader
        self._calls: dict[tuple[str, str | None], tuple[Shape, PartRef]] = {}

    def quotes(self, seq: int, scope: str, payload: bytes) -> Iterator[Quote]:
        """What one message of a delegation adds."""
        for nth, shape in enumerate(self._wire.describe(payload).shapes):
            ref = PartRef(seq, nth)
            match shape.kind:
                case "call":
                    self._calls[scope, shape.call] = shape, ref
                case "return":
                    call, source = self._calls.pop((scope, shape.call), (None, None))
                    tool = shape.tool or (call.tool if call else None) or ""
                    given = _json(call.text if call else "")
                    text = render_tool_result(tool and tool_name(tool), given, _json(shape.text))
                    sources = (source, ref) if source else (ref,)
                    yield Quote(seq, f"[{on_one_line(scope)}]\n{plain(text)}", sources)
                case "prompt" | "text" if shape.text:
                    yield Quote(seq, f"[{on_one_line(scope)}]\n{plain(shape.text)}", (ref,))
                case _:
                    pass


def _json(text: str) -> JsonValue:
    """The value that a text is written of; a word or number that would read otherwise is a text."""
    try:
        value: JsonValue = from_json(text)
    except ValueError:
        return text
    return value if isinstance(value, dict | list) or written(value) == text else text
