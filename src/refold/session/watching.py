"""The watchdog in a session: what is read again after a fold is told, and kept in the view.

Everything it knows is in the log: folds remember what was read, and pins are entries. So another
process goes on where this one was.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from refold.errors import Conflict, RefoldError, ViewTooLarge
from refold.fold.material import Passage
from refold.fold.summary import Read, parse
from refold.fold.watchdog import (
    COUNTED,
    KEPT,
    OTHER,
    TOO_LARGE,
    Pins,
    ReadAgain,
    Reread,
    Watchdog,
    pins,
)
from refold.log import CODEC, FoldCompleted, PartRef, Pinned, Span, Unpinned, Value
from refold.session.follow import Following
from refold.view import Sheet
from refold.view.budget import PER_MESSAGE
from refold.view.row import Row, weight
from refold.view.thresholds import effective_limit

_TRIES = 3
_LABELS = 16
"""Tokens beside its text that a part costs at most when it is quoted."""

Asked = TypeVar("Asked")
_Line = tuple[object, ...]


class Watching:
    """Looks at what is said to one session after a fold."""

    def __init__(self, following: Following, watch: Callable[[ReadAgain], None]) -> None:
        self._following = following
        self._watch = watch
        self._dog = Watchdog()
        self._line: _Line = ()
        self._known = 0

    async def said(self, span: Span) -> None:
        """Look at what was said just now; what goes wrong here costs a pin, and no message."""
        following = self._following
        if not following.folding or not following.view.sheet.foldings:
            return
        found: list[Reread] = []
        with suppress(RefoldError):
            found = await self._found(span)
            if found or following.view.sheet.outline.watched:
                await self._settle([one.read for one in found if one.same])
        for one in found:
            self._watch(self._event(one))

    async def looked(self) -> None:
        """After a fold, while the view changes anyway: let go of what is not needed any more."""
        sheet = self._following.view.sheet
        if sheet.outline.watched and _line(sheet) != self._line:
            with suppress(RefoldError):
                await self._found(None)
                await self._settle([])

    async def fitting(self, ask: Callable[[], Asked]) -> Asked:
        """What `ask` makes of the view; pins of the watchdog give way where they are in the way."""
        try:
            return ask()
        except ViewTooLarge:
            if not self._following.view.sheet.outline.watched:
                raise
        await self._append(lambda: Pins(unpin=self._following.view.sheet.outline.watched))
        return ask()

    async def _found(self, span: Span | None) -> list[Reread]:
        sheet = self._following.view.sheet
        line = _line(sheet)
        if line != self._line:
            self._dog, self._known = Watchdog(await self._folded(sheet)), 0
            self._line = line
        rows = sheet.rows[sheet.at(self._known + 1) :]
        found = self._dog.take(_passage(sheet, row) for row in rows)
        self._known = max(self._known, sheet.head)
        return [one for one in found if span is not None and one.read.part.seq in span]

    async def _folded(self, sheet: Sheet) -> list[Read]:
        """What the folds remember, but for what is seen again since one was opened."""
        found: list[Read] = []
        for fold in sheet.foldings:
            for entry in await self._following.log.read(
                self._following.name, Span(fold.seq, fold.seq)
            ):
                match CODEC.decode(entry):
                    case FoldCompleted(summary=summary):
                        found += parse(summary).reads
                    case _:
                        pass
        return [one for one in found if _row(sheet, one.part) is None]

    async def _settle(self, wanted: list[Read]) -> None:
        await self._append(lambda: self._settled(wanted))

    def _settled(self, wanted: list[Read]) -> Pins:
        sheet, setup = self._following.view.sheet, self._following.setup
        outline = sheet.outline
        room = int(setup.profile.watch.share * effective_limit(setup.profile, setup.budget))
        people = {*outline.pins} - {*outline.watched}
        found = pins(outline.watched, self._dog.reads, wanted, partial(_cost, sheet), room)
        return found._replace(pin=tuple(one for one in found.pin if one not in people))

    async def _append(self, decide: Callable[[], Pins]) -> None:
        """Append what is decided; nobody else may have pinned something in between."""
        following = self._following
        for _ in range(_TRIES):
            pin, unpin = decide()
            values: list[Value] = [Unpinned(unpin)] if unpin else []
            values += [Pinned(pin, watched=True)] if pin else []
            if not values:
                return
            try:
                await following.append(*values, expected=following.head)
            except Conflict:
                await following.catch_up()
            else:
                return

    def _event(self, found: Reread) -> ReadAgain:
        sheet = self._following.view.sheet
        part = found.read.part
        row = _row(sheet, part)
        tokens = row.parts[part.index].tokens if row else 0
        pinned = part in sheet.outline.pins
        share = self._following.setup.profile.watch.share
        remedy = KEPT if pinned else OTHER if not found.same else TOO_LARGE if share else COUNTED
        return ReadAgain(found.tool, found.what, found.times, tokens, pinned, remedy)


def _line(sheet: Sheet) -> _Line:
    """What changes when what was read before must be looked at anew."""
    outline = sheet.outline
    return tuple(fold.seq for fold in sheet.foldings), outline.line, outline.since


def _passage(sheet: Sheet, row: Row) -> Passage:
    return Passage(row.seq, row.role, sheet.wire.describe(row.payload).shapes)


def _row(sheet: Sheet, part: PartRef) -> Row | None:
    at = sheet.at(part.seq)
    if at < len(sheet.rows) and sheet.rows[at].seq == part.seq:
        return sheet.rows[at]
    return None


def _cost(sheet: Sheet, parts: Iterable[PartRef]) -> int:
    """What these pins keep in the view: the whole step of each, or, where that is folded, a quote.

    A step of which a part is pinned is never left out, however much else it holds.
    """
    wanted = {*parts}
    steps = {sheet.steps[sheet.at(one.seq)] for one in wanted if _row(sheet, one)}
    rows = sum(weight(sheet.rows[at]) for start in steps for at in sheet.step(start))
    quotes = [one for one in sheet.pinned if not wanted.isdisjoint(one.sources)]
    told = sum(sheet.counter.text(one.text) + PER_MESSAGE for one in quotes)
    return rows + told + _LABELS * len(wanted)
