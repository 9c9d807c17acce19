"""Parts, and the edits that a plan makes to them.

A part is the smallest thing a policy decides about. A wire describes each native message as parts
and applies the edits; between the two, nobody needs to know the format.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from refold.log import PartRef

Kind = Literal["system", "prompt", "text", "thought", "call", "return", "other"]
"""What a part is: system content, what the user asks, what the model says, thinks or calls, what a
tool returned, or something that only its provider understands."""

Role = Literal["system", "user", "assistant", "tool"]
"""Who a message speaks for."""

InsertKind = Literal["prompt", "reply", "return", "system"]
"""What an inserted message is: words in the user's place, the model's, or a tool's."""


class Shape(NamedTuple):
    """What a wire says of one part."""

    kind: Kind
    text: str
    """What a model reads of it; for a call, its arguments as JSON."""
    tool: str | None = None
    call: str | None = None
    """The id that a call and its return share."""
    sealed: bool = False
    """Signed, or owned by a provider: it goes out byte for byte, or with its message not at all."""
    fixed: bool = False
    """It stays in every view: without it the rest would mean something else."""
    media: tuple[str, ...] = ()
    """The media types of what it carries besides text."""
    opaque: int = 0
    """Characters that only its provider can read: they are no text, and count all the same."""


class Described(NamedTuple):
    """One native message as parts."""

    role: Role
    shapes: tuple[Shape, ...]
    instructions: str | None = None
    """Instructions that travel with the message; only the newest are sent."""


class Part(NamedTuple):
    """A part as policies see it: measured, without its text."""

    seq: int
    nth: int
    """Its index among the parts of its message."""
    kind: Kind
    chars: int
    tokens: int
    tool: str | None = None
    call: str | None = None
    sealed: bool = False
    fixed: bool = False
    content: int = 0
    """A fingerprint of tool and text, to see what is said twice."""

    @property
    def ref(self) -> PartRef:
        """Its name."""
        return PartRef(self.seq, self.nth)


@dataclass(frozen=True, slots=True)
class Keep:
    """The part goes out as it is."""

    reason: str


@dataclass(frozen=True, slots=True)
class Drop:
    """The part does not go out."""

    reason: str
    sources: tuple[PartRef, ...] = ()
    """Where it is told instead."""


@dataclass(frozen=True, slots=True)
class Replace:
    """The part's text becomes its first `head` characters, `text`, and its last `tail`.

    The arguments of a call become `text` alone, which is JSON.
    """

    head: int
    text: str
    tail: int
    reason: str
    sources: tuple[PartRef, ...] = ()

    def applied(self, text: str) -> str:
        """The new text."""
        return text[: self.head] + self.text + (text[-self.tail :] if self.tail else "")


@dataclass(frozen=True, slots=True)
class Insert:
    """A message that is not in the log, in front of entry `before`."""

    before: int
    kind: InsertKind
    text: str
    reason: str
    tool: str | None = None
    call: str | None = None
    sources: tuple[PartRef, ...] = field(default=())
    """The parts whose text it quotes or stands for."""


Edit = Keep | Drop | Replace | Insert
Change = Drop | Replace
"""What can happen to a part that is in the log, other than being kept."""
