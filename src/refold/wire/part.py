"""Parts, and the edits that a plan makes to them.

A part is the smallest thing a policy decides about. A wire describes each native message as parts
and applies the edits; between the two, nobody needs to know the format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, Protocol

from refold.log import PartRef

Kind = Literal["system", "prompt", "text", "thought", "call", "return", "other"]
"""What a part is: system content, what the user asks, what the model says, thinks or calls, what a
tool returned, or something that only its provider understands."""

Role = Literal["system", "user", "assistant", "tool"]
"""Who a message speaks for."""

InsertKind = Literal["prompt", "reply", "return", "system", "state"]
"""What an inserted message is: words in the user's place, the model's, or a tool's; or a message of
the format itself, as JSON, with what a framework notes between requests."""


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
    apart: bool = False
    """It is fixed by itself: the parts next to it may leave the view without it."""


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
    apart: bool = False
    """See `Shape`."""

    @property
    def ref(self) -> PartRef:
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


# What a wire can do: describe a message format, edit it, and judge what its provider allows.


class Problem(NamedTuple):
    """Why a provider would refuse these messages."""

    at: int
    """The position of the message among those sent."""
    what: str


class Wire(Protocol):
    """One message format. Payloads are the raw JSON of one message each."""

    name: ClassVar[str]
    """The format's name, as a session's first entry has it."""
    version: ClassVar[int]
    """Raised when the same edits give other bytes: request records name it."""
    unique_calls: ClassVar[bool]
    """Whether the provider refuses two calls with one id anywhere in a conversation."""
    itemized: ClassVar[bool]
    """Whether a response is several messages: the model's in a row are one, and a thought goes with
    what comes after it, both or none."""
    systems_last: ClassVar[bool]
    """Whether what systems say in a conversation must be one message, right before a response."""

    def describe(self, payload: bytes) -> Described:
        """The message as parts. What it does not know is a sealed part of kind "other".

        Raises InvalidMessage when the payload is no message of this format.
        """
        ...

    def edit(self, payload: bytes, changes: Mapping[int, Change]) -> bytes | None:
        """The message with the parts at these indexes changed, all else byte for byte as it was.

        None when nothing of it is left.
        """
        ...

    def make(self, inserts: Sequence[Insert]) -> list[bytes]:
        """The inserts, which stand side by side and are of one kind, as messages of their own.

        An itemized format has none for a return that it cannot say in words; its call goes then.
        """
        ...

    def join(self, returns: Sequence[Insert], payload: bytes) -> bytes | None:
        """The message with the returns put in front of its content.

        None where the format wants them in messages of their own.
        """
        ...

    def problems(self, messages: Sequence[bytes]) -> list[Problem]:
        """What the provider would refuse. It reads the messages anew and trusts no plan."""
        ...
