"""The kinds of entries that this version of Refold writes.

A kind is a frozen dataclass with the name it is stored under (`KIND`) and the version of its body
(`VERSION`). Three more facts belong to a kind, beside its fields:

- `CONTROL`: it changes what a view reads (see `refold.log.outline`);
- `SEARCHED`: people may look for its text;
- `KEPT`: the fields that stay when it is forgotten, because the log's order needs them and no
  one's words are in them.

An entry of a kind that is not here, or of a newer version, is read as `Unknown` and kept as it is.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol
from uuid import UUID

from pydantic import JsonValue

from refold.log.entry import PartRef, Span, spans_of, union


class Value(Protocol):
    """What every kind of entry has in common."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int]
    CONTROL: ClassVar[bool]
    SEARCHED: ClassVar[bool]
    KEPT: ClassVar[frozenset[str]]

    def rests_on(self) -> tuple[Span, ...]:
        """The entries this one is derived from."""
        ...


class _Kind:
    VERSION: ClassVar[int] = 1
    CONTROL: ClassVar[bool] = False
    SEARCHED: ClassVar[bool] = False
    KEPT: ClassVar[frozenset[str]] = frozenset()

    def rests_on(self) -> tuple[Span, ...]:
        return ()


def _source(seq: int) -> tuple[Span, ...]:
    return (Span(seq, seq),) if seq else ()


class Title(NamedTuple):
    """A session's title, and where its words are from."""

    text: str
    source: int = 0
    """The entry that it is made of, so that it is forgotten with it; 0: of none."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The program that recorded a session, and where it worked."""

    program: str
    """Such as `claude` or `codex`."""
    id: str = ""
    """The program's own id of the session."""
    folder: str | None = None
    """Where the session began."""
    branch: str | None = None
    """The git branch that was checked out there."""
    parent: str | None = None
    """The program's id of the session that this one was begun by, as a sub-agent or a fork."""


@dataclass(frozen=True, slots=True)
class Opened(_Kind):
    """The first entry of a session: its message format, for life, and its profile."""

    KIND: ClassVar[str] = "session"
    CONTROL: ClassVar[bool] = True
    SEARCHED: ClassVar[bool] = True
    KEPT: ClassVar[frozenset[str]] = frozenset({"format", "profile", "owner"})

    format: str
    profile: str
    title: str | None = None
    title_source: int = 0
    """The entry whose words the title is made of, a later one; 0: of none. It goes with that."""
    owner: str | None = None
    """The id of the key that began it, where it was begun through the service."""
    origin: Origin | None = None

    def rests_on(self) -> tuple[Span, ...]:
        """Of all kinds, this one alone may rest on a later entry."""
        return _source(self.title_source)


@dataclass(frozen=True, slots=True)
class Titled(_Kind):
    """A new title for the session."""

    KIND: ClassVar[str] = "title"
    CONTROL: ClassVar[bool] = True
    SEARCHED: ClassVar[bool] = True

    title: str
    source: int = 0
    """The entry whose words it is made of; 0: of none. It goes with that."""

    def rests_on(self) -> tuple[Span, ...]:
        return _source(self.source)


@dataclass(frozen=True, slots=True)
class Message(_Kind):
    """One message in the session's format, as its raw JSON."""

    KIND: ClassVar[str] = "message"
    SEARCHED: ClassVar[bool] = True

    payload: bytes


@dataclass(frozen=True, slots=True)
class Note(_Kind):
    """Something worth keeping that no model sees: a person's remark, an event of the host."""

    KIND: ClassVar[str] = "note"
    SEARCHED: ClassVar[bool] = True

    text: str
    data: JsonValue = None

    @property
    def is_internal(self) -> bool:
        """Whether it is for programs alone: people are not shown it unless they look for it."""
        return isinstance(self.data, dict) and self.data.get("internal") is True


@dataclass(frozen=True, slots=True)
class FoldStarted(_Kind):
    """A fold is being made over these spans."""

    KIND: ClassVar[str] = "fold.start"
    CONTROL: ClassVar[bool] = True
    KEPT: ClassVar[frozenset[str]] = frozenset({"fold", "spans", "trigger"})

    fold: UUID
    spans: tuple[Span, ...]
    trigger: str
    focus: str | None = None
    context: JsonValue = None
    """What the host knew when it began."""


@dataclass(frozen=True, slots=True)
class FoldStepped(_Kind):
    """A step of making a fold is done, and need not be paid for again; no view reads it.

    Its result may repeat words of what is folded, so a draft of it must rest on that.
    """

    KIND: ClassVar[str] = "fold.step"
    KEPT: ClassVar[frozenset[str]] = frozenset({"fold", "spent"})

    fold: UUID
    name: str
    """What the step is called, once in its fold."""
    result: JsonValue
    spent: JsonValue = None
    """What it used and cost, if it was a model's work."""


@dataclass(frozen=True, slots=True)
class FoldCompleted(_Kind):
    """From here on the summary stands for the spans."""

    KIND: ClassVar[str] = "fold.complete"
    CONTROL: ClassVar[bool] = True
    SEARCHED: ClassVar[bool] = True
    KEPT: ClassVar[frozenset[str]] = frozenset({"fold", "spans"})

    fold: UUID
    spans: tuple[Span, ...]
    summary: JsonValue

    def rests_on(self) -> tuple[Span, ...]:
        """What it stands for, and the folds that it took its words from."""
        return union((*self.spans, *spans_of(_repeated_folds(self.summary))))


@dataclass(frozen=True, slots=True)
class FoldFailed(_Kind):
    """The fold was canceled or could not be made; nothing changed."""

    KIND: ClassVar[str] = "fold.failed"
    CONTROL: ClassVar[bool] = True
    KEPT: ClassVar[frozenset[str]] = frozenset({"fold"})

    fold: UUID
    reason: str


@dataclass(frozen=True, slots=True)
class FoldUndone(_Kind):
    """The fold no longer stands for anything; what it stood for is seen again."""

    KIND: ClassVar[str] = "fold.undo"
    CONTROL: ClassVar[bool] = True
    KEPT: ClassVar[frozenset[str]] = frozenset({"fold"})

    fold: UUID


@dataclass(frozen=True, slots=True)
class Findings(_Kind):
    """What a delegated agent found: from here on, its tool results in the spans are references.

    Only the agent of the entry's scope sees them so; only the newest findings apply.
    """

    KIND: ClassVar[str] = "findings"
    KEPT: ClassVar[frozenset[str]] = frozenset({"spans"})

    spans: tuple[Span, ...]
    summary: JsonValue

    def rests_on(self) -> tuple[Span, ...]:
        """The results, and the earlier findings that its text is based on."""
        return union((*self.spans, *spans_of(_repeated_folds(self.summary))))


@dataclass(frozen=True, slots=True)
class Rewound(_Kind):
    """The view is again as it was when `to` was the newest entry."""

    KIND: ClassVar[str] = "rewind"
    CONTROL: ClassVar[bool] = True
    KEPT: ClassVar[frozenset[str]] = frozenset({"to"})

    to: int


@dataclass(frozen=True, slots=True)
class Cleared(_Kind):
    """The view begins anew; the log keeps everything."""

    KIND: ClassVar[str] = "clear"
    CONTROL: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Forgot(_Kind):
    """Entries of this span were forgotten: whoever has the session open must read it anew."""

    KIND: ClassVar[str] = "forget"
    KEPT: ClassVar[frozenset[str]] = frozenset({"span"})

    span: Span


@dataclass(frozen=True, slots=True)
class Pinned(_Kind):
    """These parts stay in the view, folded or not."""

    KIND: ClassVar[str] = "pin"
    CONTROL: ClassVar[bool] = True
    KEPT: ClassVar[frozenset[str]] = frozenset({"parts", "watched"})

    parts: tuple[PartRef, ...]
    watched: bool = False
    """Whether the session pinned them itself, because they were read again: such pins may go by
    themselves, those of people never."""


@dataclass(frozen=True, slots=True)
class Unpinned(_Kind):
    """These parts are pinned no longer."""

    KIND: ClassVar[str] = "unpin"
    CONTROL: ClassVar[bool] = True
    KEPT: ClassVar[frozenset[str]] = frozenset({"parts"})

    parts: tuple[PartRef, ...]


@dataclass(frozen=True, slots=True)
class Requested(_Kind):
    """A request record: what was sent to a model, rebuildable from the entries it was made of."""

    KIND: ClassVar[str] = "request"
    CONTROL: ClassVar[bool] = True
    KEPT: ClassVar[frozenset[str]] = frozenset({"model", "limit", "digest", "usage"})

    spans: tuple[Span, ...]
    """The entries whose text was sent."""
    plan: JsonValue
    """The applied plan: whole, or its difference to the record before."""
    model: str
    digest: str
    limit: int | None = None
    usage: JsonValue = None
    chain: tuple[int, ...] = ()
    """The records this one is a difference to, oldest (a whole one) first."""

    def rests_on(self) -> tuple[Span, ...]:
        """What was sent, and the records it is a difference to."""
        return union((*self.spans, *spans_of(self.chain)))


@dataclass(frozen=True, slots=True)
class Used(_Kind):
    """What a request came to use and cost, as its provider told when it answered."""

    KIND: ClassVar[str] = "usage"
    KEPT: ClassVar[frozenset[str]] = frozenset(
        {"request", "usage", "cost", "unmanaged", "basis", "key"}
    )

    request: int
    """The request record."""
    usage: JsonValue = None
    cost: float | None = None
    """Dollars; None where a price is unknown."""
    unmanaged: JsonValue = None
    """The same of a request that had sent everything."""
    basis: JsonValue = None
    """What a receipt needs to compare it with such a request: counts and prices."""
    key: str | None = None
    """The id of the key that the request came with, where it came through the service."""


@dataclass(frozen=True, slots=True)
class Saved(_Kind):
    """What a host keeps of its own beside the messages; no view and no search reads it."""

    KIND: ClassVar[str] = "save"
    KEPT: ClassVar[frozenset[str]] = frozenset({"host", "state"})

    host: str
    """Whose it is."""
    state: JsonValue
    """What holds no one's words: ids, counts, marks."""
    pending: JsonValue = None
    """What repeats words of these entries, and goes when one of them is forgotten."""
    spans: tuple[Span, ...] = ()

    def rests_on(self) -> tuple[Span, ...]:
        return self.spans


@dataclass(frozen=True, slots=True)
class Unknown:
    """An entry of a kind or version this Refold does not know, as it is."""

    kind: str
    version: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is left of a forgotten entry: its kind and the fields that may be kept."""

    kind: str
    kept: dict[str, JsonValue]

    @property
    def state(self) -> str:
        """What to tell people of it: a forgotten request record cannot be rebuilt any more."""
        return "unrebuildable" if self.kind == Requested.KIND else "forgotten"


KINDS: tuple[type[Value], ...] = (
    Opened,
    Titled,
    Message,
    Note,
    FoldStarted,
    FoldStepped,
    FoldCompleted,
    FoldFailed,
    FoldUndone,
    Findings,
    Rewound,
    Cleared,
    Forgot,
    Pinned,
    Unpinned,
    Requested,
    Used,
    Saved,
)


def _repeated_folds(summary: JsonValue) -> list[int]:
    """The entries of earlier folds that a summary repeats: those it absorbed or continues."""
    if not isinstance(summary, dict):
        return []
    over = summary.get("over")
    named = [*(over if isinstance(over, list) else ()), summary.get("continues")]
    return [seq for seq in named if isinstance(seq, int) and seq > 0]
