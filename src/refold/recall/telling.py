"""Messages as text for people and models to read, whatever their format."""

from collections.abc import Iterator
from dataclasses import dataclass

from refold.errors import InvalidMessage, UnknownFormat
from refold.log import Entry, Note
from refold.log.text import text_of
from refold.view.framing import tool_name
from refold.wire import Described, Shape, Wire, wire_for

FORGOTTEN = "(forgotten)"


@dataclass(frozen=True, slots=True)
class Told:
    """One message or note as text."""

    seq: int
    at: int
    """When it was written: milliseconds since 1970, UTC."""
    scope: str
    role: str
    """Who speaks: system, user, assistant or tool; or a note."""
    text: str
    parts: tuple[str, ...] = ()
    """What it is made of: "prompt", "call read_file", and so on."""


def wire_of(form: str) -> Wire | None:
    """The wire of a format, if there is one."""
    try:
        return wire_for(form)
    except UnknownFormat:
        return None


def shapes_of(wire: Wire | None, entry: Entry) -> tuple[str, tuple[Shape, ...]]:
    """Whom a message speaks for, and its parts; one part of text where its format is unknown."""
    if wire is not None and entry.kind != Note.KIND:
        try:
            described = wire.describe(entry.body)
        except InvalidMessage:  # the log keeps what a wire cannot read
            pass
        else:
            return _speaker(described), described.shapes
    return entry.kind, (Shape("text", text_of(entry)),)


def _speaker(described: Described) -> str:
    """Whom it speaks for; some formats send what tools returned in the user's name."""
    shapes = described.shapes
    only_returns = bool(shapes) and all(shape.kind == "return" for shape in shapes)
    return "tool" if only_returns else described.role


def tell(wire: Wire | None, entry: Entry) -> Told:
    """A whole message or note as text."""
    place = entry.seq, entry.at, entry.scope
    if entry.forgotten:
        return Told(*place, entry.kind, FORGOTTEN)
    role, shapes = shapes_of(wire, entry)
    text = "\n\n".join(block for shape in shapes for block in _blocks(shape))
    return Told(*place, role, text, tuple(map(label, shapes)))


def label(shape: Shape) -> str:
    """What a part is."""
    return f"{shape.kind} {tool_name(shape.tool)}" if shape.tool else shape.kind


def _blocks(shape: Shape) -> Iterator[str]:
    if shape.kind in ("call", "return", "thought"):
        yield f"[{label(shape)}]\n{shape.text}"
    elif shape.text:
        yield shape.text
    for media in shape.media:
        yield f"[{media}]"
