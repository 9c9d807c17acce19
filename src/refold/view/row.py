"""One message of a sheet: described as parts, and counted."""

from typing import NamedTuple

from refold.view.budget import PER_MESSAGE
from refold.view.tokens import Counter
from refold.wire import Part, Role, Wire


class Row(NamedTuple):
    """One message of a sheet."""

    seq: int
    payload: bytes
    role: Role
    parts: tuple[Part, ...]
    tokens: int
    """Of its parts; each message costs a few more."""
    instructions: int = 0
    """Tokens of the instructions that came with it."""
    goes_on: bool = False
    """Whether it belongs to the same response as the row before it."""

    def has(self, kind: str) -> bool:
        """Whether a part of it is of this kind."""
        return any(part.kind == kind for part in self.parts)


def weight(row: Row) -> int:
    """The tokens of a message that is sent whole."""
    return row.tokens + PER_MESSAGE if row.parts else 0


def described(seq: int, payload: bytes, wire: Wire, counter: Counter) -> Row:
    """The row of a message. Raises InvalidMessage when the wire cannot read it."""
    role, shapes, instructions = wire.describe(payload)
    parts = tuple(
        Part(
            seq,
            nth,
            shape.kind,
            len(shape.text),
            counter.part(shape),
            shape.tool,
            shape.call,
            shape.sealed,
            shape.fixed,
            hash((shape.tool, shape.text, payload if shape.media else None)),
        )
        for nth, shape in enumerate(shapes)
    )
    tokens = sum(part.tokens for part in parts)
    beside = counter.text(instructions) if instructions else 0
    return Row(seq, payload, role, parts, tokens, beside)
