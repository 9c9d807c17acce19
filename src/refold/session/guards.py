"""Guards: what keeps a session from folding in vain is said once, with what to do about it."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TypeAlias, TypeVar
from uuid import UUID

from refold.engine import Ended, Engine
from refold.errors import Conflict, RefoldError, ViewTooLarge
from refold.fold.events import CompactionHeld, Guard
from refold.fold.material import Passage
from refold.fold.summary import Read, Summary, parse
from refold.fold.trigger import Decision
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
from refold.fold.write.by_model import TOO_OFTEN
from refold.log import CODEC, FoldCompleted, PartRef, Pinned, Span, Unpinned, Value
from refold.session.live_view import LiveView
from refold.view import ViewInput
from refold.view.budget import PER_MESSAGE, effective_limit
from refold.view.view_input import Row, weight

_REPEATED = 2  # times that a fold fails alike before that is said


class Guards:
    """Notices what would go on for ever, and tells those who watch."""

    def __init__(self, watch: Callable[[CompactionHeld], None]) -> None:
        self._watch = watch
        self._floor = False
        self._failed: tuple[str, int] = ("", 0)

    def decided(self, decision: Decision) -> None:
        """A decision was made: is what is always sent too large by itself?"""
        floor = next((one for one in decision.why if one.what == "floor"), None)
        if floor is not None and not self._floor:
            why = f"{floor.value:,} tokens are always sent, and folds begin at {floor.mark:,}"
            self._tell("floor above trigger", why)
        if decision.why or floor:
            self._floor = floor is not None

    def completed(self, summary: Summary, freed: int | None) -> bool:
        """A fold stands; `freed` is by how many tokens. Whether that was of use."""
        self._failed = ("", 0)
        refused = summary.report.refused if summary.report else ""
        if refused:
            left_alone = refused.startswith(TOO_OFTEN)
            self._tell("summarizer left alone" if left_alone else "not believed", refused)
        if freed is None or freed > 0:
            return True
        self._tell("no progress", f"{-freed:,} tokens more than before")
        return False

    def failed(self, reason: str) -> None:
        """A fold was not made."""
        kind = reason.partition(";")[0]  # what it cost differs each time
        before, times = self._failed
        times = times + 1 if kind == before else 1
        self._failed = kind, times
        if times == _REPEATED:
            self._tell("repeated failure", reason)

    def _tell(self, guard: Guard, why: str) -> None:
        self._watch(CompactionHeld(guard, why))


# Folds whose process died: finished or closed when a session is opened, and while it is open.

_PATIENCE = 1.0
"""Seconds that who opens a session waits for it."""
_LOOK = 15.0
"""Seconds after which it is looked whether a fold that is still under way has a process."""
_Recovery: TypeAlias = "asyncio.Future[tuple[Ended, ...]]"


class Recovering:
    """Has the folds of one session brought to an end that nobody makes any more."""

    def __init__(self, live: LiveView, engine: Engine) -> None:
        self._following = live
        self._engine = engine
        self._seen: tuple[UUID | None, float] = (None, 0.0)
        """The fold that was under way at the last look, and when that was."""
        self._under_way: set[_Recovery] = set()
        """So that none is collected as garbage before it has ended."""

    async def recover(self) -> None:
        """Have them finished or closed; who opens a session waits for no model.

        What takes longer goes on while the session is used.
        """
        recovery = self._begun()
        await asyncio.wait({recovery}, timeout=_PATIENCE)
        if recovery.done():
            recovery.result()

    def look(self, running: UUID | None) -> None:
        """Now and then, for a fold of another process may lose it while the session stays open."""
        now = asyncio.get_running_loop().time()
        fold, since = self._seen
        if running != fold:
            self._seen = (running, now)
        elif fold is not None and now - since >= _LOOK:
            self._seen = (fold, now)
            self._begun()

    def _begun(self) -> _Recovery:
        recovery = asyncio.ensure_future(self._engine.recover(self._following.name))
        recovery.add_done_callback(self._let_go)
        self._under_way.add(recovery)
        return recovery

    def _let_go(self, recovery: _Recovery) -> None:
        self._under_way.discard(recovery)
        if not recovery.cancelled():
            recovery.exception()  # the log says how each fold ended, or that it has not


# The watchdog in a session: what is read again after a fold is told, and kept in the view.
#
# Everything it knows is in the log: folds remember what was read, and pins are entries. So another
# process goes on where this one was.

_TRIES = 3
_LABELS = 16
"""Tokens beside its text that a part costs at most when it is quoted."""

Asked = TypeVar("Asked")
_Line = tuple[object, ...]


class RereadGuard:
    """Looks at what is said to one session after a fold."""

    def __init__(self, live: LiveView, watch: Callable[[ReadAgain], None]) -> None:
        self._following = live
        self._watch = watch
        self._dog = Watchdog()
        self._line: _Line = ()
        self._known = 0

    async def said(self, span: Span) -> None:
        """Look at what was said just now; what goes wrong here costs a pin, and no message."""
        live = self._following
        if not live.folding or not live.view.inputs.foldings:
            return
        found: list[Reread] = []
        with suppress(RefoldError):
            found = await self._found(span)
            if found or live.view.inputs.outline.watched:
                await self._settle([one.read for one in found if one.same])
        for one in found:
            self._watch(self._event(one))

    async def looked(self) -> None:
        """After a fold, while the view changes anyway: let go of what is not needed any more."""
        inputs = self._following.view.inputs
        if inputs.outline.watched and _line(inputs) != self._line:
            with suppress(RefoldError):
                await self._found(None)
                await self._settle([])

    async def fitting(self, ask: Callable[[], Asked]) -> Asked:
        """What `ask` makes of the view; pins of the watchdog give way where they are in the way."""
        try:
            return ask()
        except ViewTooLarge:
            if not self._following.view.inputs.outline.watched:
                raise
        await self._append(lambda: Pins(unpin=self._following.view.inputs.outline.watched))
        return ask()

    async def _found(self, span: Span | None) -> list[Reread]:
        inputs = self._following.view.inputs
        line = _line(inputs)
        if line != self._line:
            self._dog, self._known = Watchdog(await self._folded(inputs)), 0
            self._line = line
        rows = inputs.rows[inputs.at(self._known + 1) :]
        found = self._dog.take(_passage(inputs, row) for row in rows)
        self._known = max(self._known, inputs.head)
        return [one for one in found if span is not None and one.read.part.seq in span]

    async def _folded(self, inputs: ViewInput) -> list[Read]:
        """What the folds remember, but for what is seen again since one was opened."""
        found: list[Read] = []
        for fold in inputs.foldings:
            for entry in await self._following.log.read(
                self._following.name, Span(fold.seq, fold.seq)
            ):
                match CODEC.decode(entry):
                    case FoldCompleted(summary=summary):
                        found += parse(summary).reads
                    case _:
                        pass
        return [one for one in found if _row(inputs, one.part) is None]

    async def _settle(self, wanted: list[Read]) -> None:
        await self._append(lambda: self._settled(wanted))

    def _settled(self, wanted: list[Read]) -> Pins:
        inputs, setup = self._following.view.inputs, self._following.setup
        outline = inputs.outline
        room = int(setup.profile.watch.share * effective_limit(setup.profile, setup.budget))
        people = {*outline.pins} - {*outline.watched}
        found = pins(outline.watched, self._dog.reads, wanted, partial(_cost, inputs), room)
        return found._replace(pin=tuple(one for one in found.pin if one not in people))

    async def _append(self, decide: Callable[[], Pins]) -> None:
        """Append what is decided; nobody else may have pinned something in between."""
        live = self._following
        for _ in range(_TRIES):
            pin, unpin = decide()
            values: list[Value] = [Unpinned(unpin)] if unpin else []
            values += [Pinned(pin, watched=True)] if pin else []
            if not values:
                return
            try:
                await live.append(*values, expected=live.head)
            except Conflict:
                await live.catch_up()
            else:
                return

    def _event(self, found: Reread) -> ReadAgain:
        inputs = self._following.view.inputs
        part = found.read.part
        row = _row(inputs, part)
        tokens = row.parts[part.index].tokens if row else 0
        pinned = part in inputs.outline.pins
        share = self._following.setup.profile.watch.share
        remedy = KEPT if pinned else OTHER if not found.same else TOO_LARGE if share else COUNTED
        return ReadAgain(found.tool, found.what, found.times, tokens, pinned, remedy)


def _line(inputs: ViewInput) -> _Line:
    """What changes when what was read before must be looked at anew."""
    outline = inputs.outline
    return tuple(fold.seq for fold in inputs.foldings), outline.line, outline.since


def _passage(inputs: ViewInput, row: Row) -> Passage:
    return Passage(row.seq, row.role, inputs.wire.describe(row.payload).shapes)


def _row(inputs: ViewInput, part: PartRef) -> Row | None:
    at = inputs.at(part.seq)
    if at < len(inputs.rows) and inputs.rows[at].seq == part.seq:
        return inputs.rows[at]
    return None


def _cost(inputs: ViewInput, parts: Iterable[PartRef]) -> int:
    """What these pins keep in the view: the whole step of each, or, where that is folded, a quote.

    A step of which a part is pinned is never left out, however much else it holds.
    """
    wanted = {*parts}
    steps = {inputs.steps[inputs.at(one.seq)] for one in wanted if _row(inputs, one)}
    rows = sum(weight(inputs.rows[at]) for start in steps for at in inputs.step(start))
    quotes = [one for one in inputs.pinned if not wanted.isdisjoint(one.sources)]
    told = sum(inputs.counter.text(one.text) + PER_MESSAGE for one in quotes)
    return rows + told + _LABELS * len(wanted)
