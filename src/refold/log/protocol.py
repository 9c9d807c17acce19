"""What a log can do, whatever it is stored in."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self
from uuid import UUID

from refold.errors import InvalidInput
from refold.log.artifact import Artifact
from refold.log.entry import Draft, Entry, Mark, Marked, Span
from refold.log.kinds import Origin
from refold.log.outline import Outline
from refold.log.text import Term

DEFAULT_TENANT = "default"


@dataclass(frozen=True, slots=True)
class Appended:
    """Where the drafts of one append are in the log."""

    first: int
    last: int
    repeated: bool = False
    """They were there already: an earlier call had succeeded."""
    revision: int | None = field(default=None, compare=False)
    """The session's revision when they were written (see `Outlined`); None where nobody knows."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session as a list of sessions shows it."""

    session: str
    title: str | None
    format: str
    profile: str
    created_at: int
    updated_at: int
    entries: int
    """How many entries it has; its head."""
    messages: int
    """How many of them are messages."""
    forked_from: str | None = None
    forked_at: int | None = None
    own_from: int = 1
    """Its first entry that it does not share, whether the session it was forked from is there."""
    origin: Origin | None = None
    """Where the session is from, if its opening says so."""


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Some sessions, newest first, and where the next page begins."""

    sessions: tuple[SessionInfo, ...]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Visible:
    """What a view is made of: the session, its outline, and the entries the outline needs."""

    info: SessionInfo
    outline: Outline
    entries: tuple[Entry, ...]


class Outlined(NamedTuple):
    """A session and its outline, without any entry."""

    info: SessionInfo
    outline: Outline
    revision: int | None = None
    """Nothing of the session was forgotten between two times when this was the same number. None
    where the store does not count: then nobody knows."""


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that a search found, and the session to read it in."""

    session: str
    entry: Entry
    excerpt: str


class Match(NamedTuple):
    """An entry that holds some of the terms looked for: what a ranking needs to know of it."""

    session: str
    seq: int
    at: int
    kind: str
    scope: str
    nth: int
    """How many messages the session has up to here."""
    words: int
    """How many words the entry has."""
    terms: tuple[int, ...]
    """Which of the terms it holds, by their places among those asked for."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The entries that hold any of some terms, and how common each term is."""

    matches: tuple[Match, ...]
    holding: tuple[int, ...]
    """For each term, how many entries hold it."""
    messages: int
    """How many messages were looked through, and in how many sessions."""
    sessions: int


@dataclass(frozen=True, slots=True)
class Erased:
    """What a forget removed."""

    session: str
    entries: int
    """The entries that were named, and are tombstones now or gone with their session."""
    derived: int = 0
    """The folds, request records and other entries that rested on them, in forks too."""
    to_scrub: tuple[str, ...] = ()
    """Where the store's server still has the bytes, though nobody can read them through it. It has
    noted that, and a scrub by its owner removes them (`refold store scrub`)."""


class Total(NamedTuple):
    """What requests came to on one day, with one model and one key; or all of a session's."""

    day: int
    """Days since 1970, UTC."""
    model: str
    key: str
    """The id of the key that the requests came with; empty where none was needed."""
    session: str
    """Only where totals are asked for by session; then there is no day, model or key."""
    sums: tuple[float, ...]
    """In the order of a receipt's fields."""


class Totals(NamedTuple):
    """What a tenant's requests came to in some days."""

    rows: tuple[Total, ...]
    sessions: int
    """In how many sessions something was used or paid."""
    uncounted: int
    """How many sessions are not counted yet, or must be counted again: see `Log.recount`."""


class LockHandle(Protocol):
    """A lock that is held until it is released."""

    async def attempt(self, fold: UUID) -> int:
        """Note that the fold is about to be made; how often that was noted, this time included."""
        ...

    def settle(self) -> None:
        """Drop what `attempt` noted: those folds have ended."""
        ...

    def release(self) -> None:
        """Let go; a second time changes nothing."""
        ...


class Locks(Protocol):
    """The locks of one tenant's sessions, for one purpose."""

    @property
    def place(self) -> object:
        """What those have in common that lock in the same place; None for one store in memory."""
        ...

    async def take(self, session: str) -> LockHandle | None:
        """The session's lock; None when another holds it, in this process or elsewhere."""
        ...


class Log(Protocol):
    """The sessions of one tenant."""

    @property
    def tenant(self) -> str:
        """Whose sessions these are."""
        ...

    def locks(self, purpose: str = "fold") -> Locks:
        """The locks that hold between all who share this log; each purpose has its own."""
        ...

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        expected: int | None,
        revision: int | None = None,
        mark: Mark | None = None,
    ) -> Appended:
        """Append the drafts after entry `expected`, all or none, durably.

        The first append of a session begins with an `Opened` entry at `expected=0`. With
        `expected=None` the drafts go wherever the head is. Appending the same drafts again returns
        where they are, whatever has happened since. Rewinding, clearing, pinning and folding are
        entries too. With `revision` they are appended only while the session has it (see
        `Outlined`), so nothing is written of what was forgotten since.

        With `mark` one of them gets a key, by which `marked` finds it. They are appended only while
        the session's newest mark is where `mark.after` says. Those that are there already get none.

        Raises Conflict when the head is elsewhere, MarkConflict when the newest mark is (appending
        at another head changes nothing then), IdReused when an id came with other content,
        InvalidEntry when the revision is another.
        """
        ...

    async def marked(self, keys: Sequence[bytes]) -> list[Marked]:
        """The entries with any of these keys, of all sessions, those marked last first.

        A fork begins without marks: those of the entries it shares are its source's. Where entries
        are forgotten, their marks are gone.
        """
        ...

    async def head(self, session: str) -> int:
        """The seq of the newest entry."""
        ...

    async def info(self, session: str) -> SessionInfo:
        """What a list of sessions says of this one."""
        ...

    async def read(
        self, session: str, span: Span | None = None, *, whole: bool = True
    ) -> list[Entry]:
        """The entries of the span that exist, in order; all of them without a span.

        With `whole=False` large bodies stay in their artifacts, and the entries say where.
        """
        ...

    async def visible(self, session: str, *, last: int | None = None) -> Visible:
        """What a view of the session is made of, read without reading the rest.

        `last` bounds how many of the newest unfolded entries are read.
        """
        ...

    async def outlined(self, session: str) -> Outlined:
        """How the session stands: the least that tells which folds stand, and which are made."""
        ...

    async def sessions(
        self, *, search: str | None = None, limit: int = 50, page: str | None = None
    ) -> SessionPage:
        """The sessions, last used first.

        With `search`, those that hold its words in their title or entries, and those whose name
        begins with it. `page` is what the page before gave as `next`.
        """
        ...

    async def fork(self, session: str, new: str, *, at: int | None = None) -> SessionInfo:
        """Make the session `new` from the first `at` entries (all of them) of this one.

        Nothing is copied. Forking the same to the same name again changes nothing.
        """
        ...

    async def forget(self, session: str, span: Span | None = None) -> Erased:
        """Erase entries for good: of the span, wherever forks share them, or of the whole session.

        Entries of a span become tombstones that keep their place. What rested on them (folds,
        request records) goes too. Forgetting a session erases what was written in it, also in its
        forks; what it shares from the session it was forked from stays there.
        When the call returns, nobody can read or find the text, nor a title that names it as its
        source. What is left of it on disk depends on the store, and is in `to_scrub`: an SQLite
        file no longer contains it, PostgreSQL needs a scrub.
        """
        ...

    async def expire(self, before: int, *, only: Collection[str] | None = None) -> list[str]:
        """Forget the sessions not used since `before` (milliseconds since 1970); their names.

        With `only`, no others than these. What their living forks read stays, for them.
        """
        ...

    async def artifact(self, hash: str) -> Artifact:  # noqa: A002 - the glossary's word
        """The artifact stored under a hash."""
        ...

    async def search(self, query: str, *, session: str | None = None, limit: int = 20) -> list[Hit]:
        """The entries that hold every term of the query, newest first.

        What was appended before the call is found.
        """
        ...

    async def matches(
        self, terms: Sequence[Term], *, session: str | None = None, max_matches: int = 2_000
    ) -> Matches:
        """The entries that hold any of the terms, to be ranked by the caller.

        Each entry comes once, in the oldest session that reads it. When there are more than
        `max_matches`, those with the rarest terms come, and of equals the newest. What was appended
        before the call is found.
        """
        ...

    async def totals(self, first: int, last: int) -> Totals:
        """What the requests of these days came to, by day, model and key, the first day first.

        Appends keep the totals, so this reads no session. What a fork shares counts once; what was
        forgotten with its session is not counted.
        """
        ...

    async def dearest(
        self, first: int, last: int, *, limit: int = 20, every: bool = False
    ) -> list[Total]:
        """The sessions that cost more in these days than with their whole history, most first.

        With `every`, all that cost something, by what was billed.
        """
        ...

    async def recount(self, limit: int = 20, *, anew: bool = False) -> int:
        """Count up to `limit` sessions that are not counted yet; how many there are left.

        With `anew`, all sessions are to be counted again. Every append keeps the totals, but not
        what an older version of Refold has written, nor what a fork begins with, nor what a forget
        has changed.
        """
        ...


class Store(Protocol):
    """Holds the logs of any number of tenants."""

    def log(self, tenant: str = DEFAULT_TENANT) -> Log:
        """The log of one tenant."""
        ...

    async def open(self) -> None:
        """Open the store, making or migrating it when needed."""
        ...

    async def close(self) -> None:
        """Close it; what was acknowledged is durable without this."""
        ...

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


END = (2**63 - 1, 2**63 - 1)
"""After every session there can be."""


def page_after(updated_at: int, key: int) -> str:
    """The page that begins after this session."""
    return f"{updated_at}.{key}"


def parse_page(page: str | None) -> tuple[int, int]:
    """The last use and the key of the session that a page begins after."""
    if page is None:
        return END
    updated_at, _, key = page.partition(".")
    try:
        return int(updated_at), int(key)
    except ValueError as error:
        raise InvalidInput(
            f"{page!r} is not a page of a list.", "Pass what `next` said."
        ) from error


class State(NamedTuple):
    """What a store keeps of a session besides its entries."""

    head: int
    messages: int
    format: str
    profile: str
    created_at: int
    updated_at: int
    outline: Outline
    not_before: int = 0
    """When a session of the same name was forgotten: no draft made before that may come back."""

    def info(self, session: str, own_from: int, forked_from: str | None) -> SessionInfo:
        """The state as a list of sessions shows it."""
        return SessionInfo(
            session=session,
            title=self.outline.title,
            format=self.format,
            profile=self.profile,
            created_at=self.created_at,
            updated_at=self.updated_at,
            entries=self.head,
            messages=self.messages,
            forked_from=forked_from,
            forked_at=None if forked_from is None else own_from - 1,
            own_from=own_from,
            origin=self.outline.origin,
        )

    def fork(self, at: int, messages: int, outline: Outline, now: int, not_before: int) -> "State":
        """The state of a new fork of the session at one of its entries."""
        return State(at, messages, self.format, self.profile, now, now, outline, not_before)
