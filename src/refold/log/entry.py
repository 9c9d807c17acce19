"""Entries, what the log is made of; spans of them, and the marks they are found by.

A `Draft` is what a writer makes; an `Entry` is a draft that the log has placed. Both carry their
body as the raw JSON it came in, so that nothing is lost and nothing is parsed that nobody reads.
`refold.log.codec` turns a body into a value and back.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from refold.errors import InvalidEntry, InvalidInput, MarkConflict
from refold.log.artifact import Artifact, Hole, lower

LONGEST_NAME = 200
"""Characters in the name of a session or a tenant."""
MAIN_SCOPE = "/"
"""The scope of the session's own work; a delegation's scope is a path below it."""
KEY_BYTES: Final = 16
"""Bytes in the key of a mark."""
_TOO_LARGE = 1 << 63
_KIND = re.compile(r"(?=.{1,64}$)[a-z][a-z0-9]*(?:[.-][a-z0-9]+)*")


def check_name(name: str, what: str = "session") -> None:
    """Refuse a name that a store, a file or a shell could not carry."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise InvalidInput(
            f"{name[:40]!r} is not a valid name for a {what}.",
            f"Use 1 to {LONGEST_NAME} printable characters, without spaces at the ends.",
        )


@dataclass(frozen=True, slots=True, order=True)
class PartRef:
    """One part of one entry: its seq, and its index among the entry's parts."""

    seq: int
    index: int

    def __post_init__(self) -> None:
        if self.seq < 1 or self.index < 0:
            raise InvalidInput(f"No part is at seq {self.seq}, index {self.index}.")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A run of entries, both ends included; seqs count from 1."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last:
            raise InvalidInput(f"No span runs from {self.first} to {self.last}.")

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __contains__(self, seq: int) -> bool:
        return self.first <= seq <= self.last


def up_to(last: int) -> tuple[Span, ...]:
    """The span from the first entry to `last`, or nothing when `last` is 0."""
    return (Span(1, last),) if last else ()


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same entries in as few spans as possible, in order."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.first <= merged[-1].last + 1:
            merged[-1] = Span(merged[-1].first, max(merged[-1].last, span.last))
        else:
            merged.append(span)
    return tuple(merged)


def intersect(left: Iterable[Span], right: Iterable[Span]) -> tuple[Span, ...]:
    others = tuple(right)
    return union(
        Span(max(a.first, b.first), min(a.last, b.last))
        for a in left
        for b in others
        if a.first <= b.last and b.first <= a.last
    )


def subtract(spans: Iterable[Span], gone: Iterable[Span]) -> tuple[Span, ...]:
    """The entries of `spans` that are not in `gone`."""
    holes = union(gone)
    pieces: list[Span] = []
    for span in union(spans):
        start = span.first
        for hole in holes:
            if hole.last < start:
                continue
            if hole.first > span.last:
                break
            if hole.first > start:
                pieces.append(Span(start, hole.first - 1))
            start = hole.last + 1
        if start <= span.last:
            pieces.append(Span(start, span.last))
    return tuple(pieces)


def seqs(spans: Iterable[Span]) -> Iterator[int]:
    for span in spans:
        yield from range(span.first, span.last + 1)


def spans_of(numbers: Iterable[int]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for number in sorted(numbers):
        if spans and number <= spans[-1].last + 1:
            spans[-1] = Span(spans[-1].first, number)
        else:
            spans.append(Span(number, number))
    return tuple(spans)


def take_last(spans: Iterable[Span], count: int) -> tuple[Span, ...]:
    taken: list[Span] = []
    for span in sorted(spans, reverse=True):
        if count <= 0:
            break
        first = max(span.first, span.last - count + 1)
        taken.append(Span(first, span.last))
        count -= span.last - first + 1
    return tuple(reversed(taken))


class Draft(NamedTuple):
    """An entry not yet appended: it has an id and a time, but no seq."""

    id: UUID
    """Made by the writer (uuid7), so that the same append can be repeated safely."""
    at: int
    """Milliseconds since 1970, UTC, by the writer's clock. Only seq orders."""
    kind: str
    version: int
    """The version of the kind's body."""
    body: bytes
    """Raw JSON."""
    scope: str = MAIN_SCOPE
    rests_on: tuple[Span, ...] = ()
    """The entries this one was derived from: when one of them is forgotten, so is this."""
    attached: tuple[Artifact, ...] = ()
    """Artifacts to store together with the entry."""
    forgotten: bool = False
    """A tombstone, as an import brings it."""


class Entry(NamedTuple):
    """One record of a session's log.

    A named tuple, like a draft, because a long view holds thousands and each must cost little.
    """

    seq: int
    """Its position, from 1 without gaps."""
    id: UUID
    at: int
    kind: str
    version: int
    body: bytes
    scope: str = MAIN_SCOPE
    rests_on: tuple[Span, ...] = ()
    holes: tuple[Hole, ...] = ()
    """What was lifted out of the body; none when the entry was read whole."""
    attached: tuple[str, ...] = ()
    """The hashes of the artifacts stored with it."""
    forgotten: bool = False
    """A tombstone: the body holds only what may be kept."""

    @property
    def time(self) -> datetime:
        """When it was written, by its writer's clock."""
        return datetime.fromtimestamp(self.at / 1000, UTC)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Every hash the entry refers to, once for each reference."""
        return (*(hole.hash for hole in self.holes), *self.attached)


def placed(
    draft: Draft, seq: int, body: bytes | None = None, holes: tuple[Hole, ...] = ()
) -> Entry:
    """The entry that a draft becomes at a position; with `body`, what was left of its own."""
    return Entry(
        seq,
        draft.id,
        draft.at,
        draft.kind,
        draft.version,
        draft.body if body is None else body,
        draft.scope,
        draft.rests_on,
        holes,
        tuple(artifact.hash for artifact in draft.attached) if draft.attached else (),
        draft.forgotten,
    )


def restore(entry: Entry, fetch: Callable[[str], bytes]) -> Entry:
    """The entry with what was lifted out of its body put back."""
    if not entry.holes:
        return entry
    return entry._replace(body=lower(entry.body, entry.holes, fetch), holes=())


def check_draft(draft: Draft) -> None:
    """Refuse a draft that no later reader could make sense of."""
    _check_names(draft.kind, draft.scope)
    if not (1 <= draft.version < _TOO_LARGE and 0 <= draft.at < _TOO_LARGE):
        raise InvalidEntry(f"Version {draft.version} at time {draft.at} cannot be.")


@lru_cache(256)
def _check_names(kind: str, scope: str) -> None:
    if not _KIND.fullmatch(kind):
        raise InvalidEntry(f"{kind!r} is not a kind of entry.", "Use lower-case words and dots.")
    if not scope.startswith(MAIN_SCOPE) or any("\ud800" <= c <= "\udfff" for c in scope):
        raise InvalidEntry(f"Scope {scope!r} is not a path.", "Start it with '/'.")


def check_json(body: bytes) -> None:
    """Refuse a body that is not JSON while its writer can still fix it."""
    try:
        json.loads(body.decode(), parse_constant=reject_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidEntry(
            f"The body is not JSON: {error}.", "Pass the message as UTF-8 encoded JSON."
        ) from error


def reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


class Mark(NamedTuple):
    """A key put on an entry when it is appended, by which the entry is found again."""

    key: bytes
    """16 bytes."""
    nth: int
    """On which of the drafts it is put; 0 is the first."""
    after: int | None
    """On which entry the session's newest mark must be; 0 where it has none. Else nothing is
    appended: MarkConflict. None: wherever it is."""


class Marked(NamedTuple):
    """An entry with a mark, and how the marks of its session stand."""

    key: bytes
    session: str
    seq: int
    tip: int
    """The session's newest marked entry."""
    before: int
    """The newest marked entry before `tip`; 0 if there is none."""


def check_mark(mark: Mark, drafts: Sequence[Draft]) -> None:
    """Refuse a mark that no store could keep, or that is on none of the drafts."""
    if len(mark.key) != KEY_BYTES:
        raise InvalidInput(
            f"The key of a mark has {len(mark.key)} bytes.", f"Give one of {KEY_BYTES} bytes."
        )
    if not 0 <= mark.nth < len(drafts):
        raise InvalidInput(
            f"There is no draft {mark.nth} to put the mark on.",
            f"Count from 0: there are {len(drafts)} drafts.",
        )
    if mark.after is not None and mark.after < 0:
        raise InvalidInput(f"No entry is {mark.after}.", "Say 0 where no entry has a mark yet.")


def check_newest(session: str, mark: Mark, newest: int) -> None:
    """Refuse to put the mark where the newest is on another entry than it says (0: on none)."""
    if mark.after is not None and mark.after != newest:
        raise MarkConflict(session, expected=mark.after, found=newest)


def valid_keys(keys: Sequence[bytes]) -> list[bytes]:
    """Each key once, without those that no mark can have."""
    return [key for key in dict.fromkeys(keys) if len(key) == KEY_BYTES]
