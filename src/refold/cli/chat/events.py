"""What a turn gives to hear while it goes on."""

from dataclasses import dataclass

from refold.fold.events import FoldEvent
from refold.view import Event


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of the answer, as it comes."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of what the model thinks before it answers."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """The model calls a tool."""

    call: str
    """Its id, by which its return is known."""
    tool: str
    arguments: str
    """On one line, for people."""


@dataclass(frozen=True, slots=True)
class Returned:
    """A tool is done."""

    call: str
    tool: str
    text: str
    """What it returned, for people; it may be long."""
    seconds: float
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Happened:
    """Something happened to the view or the folds of the session."""

    event: Event | FoldEvent


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Somebody said something in this session from another terminal."""

    who: str
    """`you` or `model`."""
    text: str


Heard = Said | Thought | Called | Returned | Happened | Elsewhere
