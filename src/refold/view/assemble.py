"""From a plan to the messages that are sent."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from refold.log import PartRef
from refold.view.plan import Layout
from refold.view.row import Row
from refold.wire import Change, Drop, Insert, Kind, Wire


class Edited(NamedTuple):
    """A message, the changes that were made to it, and what it became."""

    payload: bytes
    changes: dict[int, Change]
    message: bytes | None


Edits = dict[int, Edited]
"""Edited messages by the seq of their entry."""


def assemble(
    wire: Wire, rows: Iterable[Row], layout: Layout, edits: Edits | None = None
) -> list[bytes]:
    """The messages of these rows, edited, with the inserts in their places.

    Stand-ins for returns come right after the response they answer; other inserts wait until the
    response and its results are complete, because nothing may come between. What systems say waits
    for the next response where the format wants it. `edits` keeps the messages that were edited, so
    that a later call need not edit them again.
    """
    page = _Page(wire, layout.changes, {} if edits is None else edits)
    gone = _Spans(layout)
    inserts = iter(layout.inserts)
    following = next(inserts, None)
    for row in rows:
        while following is not None and following.before <= row.seq:
            page.insert(following)
            following = next(inserts, None)
        if row.parts and row.seq not in gone:
            page.add(row)
    while following is not None:
        page.insert(following)
        following = next(inserts, None)
    page.end()
    return page.messages


class _Spans:
    """The runs of entries that are gone, asked for in ascending order."""

    def __init__(self, layout: Layout) -> None:
        self._spans = sorted(gone.span for gone in layout.gone)
        self._at = 0

    def __contains__(self, seq: int) -> bool:
        while self._at < len(self._spans) and self._spans[self._at].last < seq:
            self._at += 1
        return self._at < len(self._spans) and seq in self._spans[self._at]


class _Page:
    """The messages so far, and the inserts that wait for their place."""

    def __init__(self, wire: Wire, changes: Mapping[PartRef, Change], edits: Edits) -> None:
        self.messages: list[bytes] = []
        self._wire = wire
        self._changes = changes
        self._edits = edits
        self._returns: list[Insert] = []
        self._waiting: list[Insert] = []
        self._systems: list[bytes] = []
        self._asking = False

    def insert(self, insert: Insert) -> None:
        (self._returns if insert.kind == "return" else self._waiting).append(insert)

    def add(self, row: Row) -> None:
        changes = self._changed(row)
        payload = self._edited(row, changes) if changes else row.payload
        if payload is None:
            return
        if row.role == "system" and self._wire.systems_last:
            self._systems.append(payload)
            return
        speaks = row.role == "assistant"
        answers = not speaks and _shows(row, "return", changes)
        if answers and self._asking:
            self._answer(payload)
        else:
            self._flush(payload, speaks=speaks)
        if speaks:
            still = self._asking and self._wire.itemized  # the calls of one response go on
            self._asking = still or _shows(row, "call", changes)
        elif not answers:
            self._asking = False

    def end(self) -> None:
        """Put down all that waits: the model speaks next."""
        self._flush(None, speaks=True)

    def _flush(self, payload: bytes | None, *, speaks: bool) -> None:
        """Put down what waits, and then the message."""
        following: list[bytes] = []
        for kind, group in groupby(self._waiting, key=lambda one: one.kind):
            following += self._said_by_systems() if kind == "reply" else ()
            following += self._wire.make(list(group))
        following += self._said_by_systems() if speaks else ()
        if payload is not None:
            following.append(payload)
        self._waiting = []
        self._join(following)
        self.messages += following

    def _said_by_systems(self) -> list[bytes]:
        """What systems have said since the last response, in one message."""
        said, self._systems = self._systems, []
        if len(said) < 2:  # noqa: PLR2004 - then it is one already
            return said
        texts = (shape.text for one in said for shape in self._wire.describe(one).shapes)
        return self._wire.make([Insert(0, "system", "\n\n".join(texts), "")])

    def _answer(self, payload: bytes) -> None:
        following = [payload]
        self._join(following)
        self.messages += following

    def _join(self, following: list[bytes]) -> None:
        """The stand-ins before what follows, in messages of their own or within the first."""
        if not self._returns:
            return
        joined = self._wire.join(self._returns, following[0]) if following else None
        if joined is None:
            self.messages += self._wire.make(self._returns)
        else:
            following[0] = joined
        self._returns = []

    def _changed(self, row: Row) -> dict[int, Change]:
        if not self._changes:
            return {}
        return {
            part.nth: change
            for part in row.parts
            if (change := self._changes.get(part.ref)) is not None
        }

    def _edited(self, row: Row, changes: dict[int, Change]) -> bytes | None:
        known = self._edits.get(row.seq)
        if known is None or known[:2] != (row.payload, changes):
            message = self._wire.edit(row.payload, changes)
            known = self._edits[row.seq] = Edited(row.payload, changes, message)
        return known.message


def _shows(row: Row, kind: Kind, changes: Mapping[int, Change]) -> bool:
    return any(
        part.kind == kind and not isinstance(changes.get(part.nth), Drop) for part in row.parts
    )
