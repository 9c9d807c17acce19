"""What there is to say about one request: each message of the session, and what became of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from refold.log import PartRef
from refold.view.budget import ASSUMED_WINDOW, Account, Budget
from refold.view.reasons import SENTENCES, Gone
from refold.wire import InsertKind, Kind, Role

Edit = Literal["keep", "replace", "drop"]
FORGOTTEN = "forgotten"
WORDS = 160
"""Columns of a part's beginning that are kept to be shown."""


class Disposition(NamedTuple):
    """What happens, and why."""

    edit: Edit
    reason: str

    @property
    def sentence(self) -> str:
        """The reason, for people."""
        return sentence(self.reason)


class Told(NamedTuple):
    """One part, and what becomes of it."""

    ref: PartRef
    kind: Kind
    tool: str | None
    disposition: Disposition
    before: int
    """Its tokens; the first part of a message carries what the message itself costs."""
    after: int
    """The tokens that are sent of it."""
    words: str
    """How it begins, on one line."""
    sources: tuple[PartRef, ...] = ()
    """Where it is said instead."""


class Line(NamedTuple):
    """One message of the log, and what becomes of it."""

    seq: int
    role: Role | None
    """None when nobody can read it."""
    scope: str
    parts: tuple[Told, ...] = ()
    reason: str = ""
    """Why none of it is sent; empty if some is."""
    opens: bool = False
    """Whether a turn begins with it."""
    step: int | None = None
    """The entry that its step begins with; None if it is not on the line, or not the reader's."""

    @property
    def before(self) -> int:
        """Its tokens."""
        return sum(part.before for part in self.parts)

    @property
    def after(self) -> int:
        """The tokens that are sent of it."""
        return sum(part.after for part in self.parts)

    @property
    def dispositions(self) -> tuple[Disposition, ...]:
        """What happens to its parts, each once."""
        found = {part.disposition for part in self.parts}
        return tuple(sorted(found or {Disposition("drop", self.reason)}))


class Inserted(NamedTuple):
    """A message that is sent and not in the log."""

    before: int
    """The entry it stands in front of."""
    kind: InsertKind
    reason: str
    tokens: int
    words: str
    sources: tuple[PartRef, ...] = ()


class Total(NamedTuple):
    """All parts that have one disposition."""

    disposition: Disposition
    parts: int
    messages: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Run:
    """Messages that follow one another and share one fate."""

    lines: tuple[Line, ...]

    @property
    def totals(self) -> tuple[Total, ...]:
        """Their parts by disposition."""
        return totals(self.lines)


_ADDED: Final = {
    "fitted": "says that something was left out so that the request fits",
    "window": "says that something is outside the fixed limits",
}
"""Of inserts, where the reason's own sentence speaks of what they stand for."""


def sentence(reason: str, *, added: bool = False) -> str:
    """A reason, for people; `added` if it is that of an insert."""
    known: dict[str, str] = {**SENTENCES, FORGOTTEN: "erased for good", **(_ADDED if added else {})}
    return known.get(reason, reason)


def totals(lines: Iterable[Line]) -> tuple[Total, ...]:
    """The parts of these messages by disposition, the most tokens first."""
    found: dict[Disposition, Total] = {}
    for line in lines:
        for disposition in line.dispositions:
            parts = [part for part in line.parts if part.disposition == disposition]
            old = found.get(disposition, Total(disposition, 0, 0, 0, 0))
            found[disposition] = Total(
                disposition,
                old.parts + len(parts),
                old.messages + 1,
                old.before + sum(part.before for part in parts),
                old.after + sum(part.after for part in parts),
            )
    return tuple(sorted(found.values(), key=lambda one: (-one.before, one.disposition)))


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that is known of one request."""

    session: str | None
    title: str | None
    format: str
    scope: str
    head: int
    profile: str
    model: str | None
    counter: str
    """What counted the tokens."""
    spread: float
    """How far the truth may lie above a count, as a share of it."""
    budget: Budget
    account: Account
    rewrites: int
    cause: str
    """Why what had been sent before is changed; empty when it is only added to."""
    lines: tuple[Line, ...]
    """One for each message up to the head, as far as they were read."""
    inserts: tuple[Inserted, ...]
    unlisted: tuple[Gone, ...]
    """Entries that are not shown and were not read: some may be messages."""

    @property
    def window(self) -> int:
        """The model's window, or the one that is assumed."""
        return ASSUMED_WINDOW if self.budget.window is None else self.budget.window

    @property
    def totals(self) -> tuple[Total, ...]:
        """All parts by disposition."""
        return totals(self.lines)

    @property
    def sent(self) -> int:
        """How many messages of the log are sent, whole or in part."""
        return sum(not line.reason for line in self.lines)
