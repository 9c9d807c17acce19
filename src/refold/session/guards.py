"""Guards around the folds of a session.

`Guards` reports what keeps a session from folding usefully, `MemoryPressure` when a process takes
up too much memory. `Recovery` finishes or closes folds whose process died, and `RereadGuard` pins
what is read again after a fold.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

from refold.engine import Ended, Engine
from refold.errors import Conflict, RefoldError, ViewTooLarge
from refold.fold.events import CompactionHeld, Guard
from refold.fold.material import Passage
from refold.fold.summary import Read, Summary, parse
from refold.fold.trigger import Decision
from refold.fold.watchdog import (
    COUNTED,
    KEPT_IN_VIEW,
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
from refold.view.profiles import Trigger
from refold.view.view_input import Row, weight

_REPORTED_FAILURES: Final = 2  # a fold must fail so often for the same reason to be reported
_RECOVERY_WAIT: Final = 1.0
"""Seconds that opening a session waits for the recovery of its folds."""
_POLL_INTERVAL = 15.0
"""Seconds after which it is checked whether a fold that is still running has a process."""
_PIN_ATTEMPTS: Final = 3
_LABEL_TOKENS: Final = 16
"""Tokens besides its text that a quoted part costs at most."""

_Recovery: TypeAlias = "asyncio.Future[tuple[Ended, ...]]"
_Planned = TypeVar("_Planned")
_Line = tuple[object, ...]


class Guards:
    """Notices folds that would be tried forever in vain, and reports them once."""

    def __init__(self, watch: Callable[[CompactionHeld], None]) -> None:
        self._watch = watch
        self._floor_too_large = False
        self._failures: tuple[str, int] = ("", 0)

    def decided(self, decision: Decision) -> None:
        """Check whether what is always sent is too large by itself."""
        floor = next((reason for reason in decision.why if reason.what == "floor"), None)
        if floor is not None and not self._floor_too_large:
            why = f"{floor.value:,} tokens are always sent, and folds begin at {floor.mark:,}"
            self._report("floor above trigger", why)
        if decision.why or floor:
            self._floor_too_large = floor is not None

    def completed(self, summary: Summary, freed: int | None) -> bool:
        """Check a fold that freed so many tokens; whether it was of use."""
        self._failures = ("", 0)
        refused = summary.report.refused if summary.report else ""
        if refused:
            left_alone = refused.startswith(TOO_OFTEN)
            self._report("summarizer left alone" if left_alone else "not believed", refused)
        if freed is None or freed > 0:
            return True
        self._report("no progress", f"{-freed:,} tokens more than before")
        return False

    def failed(self, reason: str) -> None:
        kind = reason.partition(";")[0]  # what it cost differs each time
        before, times = self._failures
        times = times + 1 if kind == before else 1
        self._failures = kind, times
        if times == _REPORTED_FAILURES:
            self._report("repeated failure", reason)

    def unfolded(self, why: str) -> None:
        self._report("read back too often", why)

    def _report(self, guard: Guard, why: str) -> None:
        self._watch(CompactionHeld(guard, why))


class MemoryPressure:
    """Notices when this process uses too much memory: once, until it uses less again.

    A fold by itself frees little of it, so folding again at every request would not help.
    """

    def __init__(self) -> None:
        self._relieved = False

    def due(self, trigger: Trigger, inputs: ViewInput) -> bool:
        """Whether to fold for it now."""
        if not trigger.memory:
            return False
        high = own_memory() >= trigger.memory * available_memory()
        first = high and not self._relieved and len(inputs.rows) >= trigger.min_messages
        self._relieved = high and (first or self._relieved)
        return first


def own_memory() -> int:
    """The bytes of memory that this process uses; if that is unknown, its peak."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        import resource  # noqa: PLC0415 - not on every platform

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")


@cache
def available_memory() -> int:
    """The bytes of memory that this process may use: the machine's, or its container's."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # there is none, or it says `max`
            memory = min(memory, int(Path(limit).read_bytes()))
    return memory


class Recovery:
    """Finishes or closes folds whose process died, at opening and while the session is open."""

    def __init__(self, live: LiveView, engine: Engine) -> None:
        self._live = live
        self._engine = engine
        self._last_poll: tuple[UUID | None, float] = (None, 0.0)
        """The fold that was running at the last poll, and when that was."""
        self._tasks: set[_Recovery] = set()
        """Referenced here, so that none is garbage collected before it has ended."""

    async def recover(self) -> None:
        """Recover folds; what takes longer, such as a model call, goes on in the background."""
        recovery = self._start()
        await asyncio.wait({recovery}, timeout=_RECOVERY_WAIT)
        if recovery.done():
            recovery.result()

    def poll(self, running: UUID | None) -> None:
        """Recover now and then: another process may die while the session stays open."""
        now = asyncio.get_running_loop().time()
        fold, since = self._last_poll
        if running != fold:
            self._last_poll = (running, now)
        elif fold is not None and now - since >= _POLL_INTERVAL:
            self._last_poll = (fold, now)
            self._start()

    def _start(self) -> _Recovery:
        recovery = asyncio.ensure_future(self._engine.recover(self._live.name))
        recovery.add_done_callback(self._finish)
        self._tasks.add(recovery)
        return recovery

    def _finish(self, recovery: _Recovery) -> None:
        self._tasks.discard(recovery)
        if not recovery.cancelled():
            recovery.exception()  # the log says how each fold ended, or that it has not


class RereadGuard:
    """Reports what is read again after a fold, and pins it in the view.

    Everything it knows is in the log: folds remember what was read, and pins are entries. So
    another process can continue where this one was.
    """

    def __init__(self, live: LiveView, watch: Callable[[ReadAgain], None]) -> None:
        self._live = live
        self._watch = watch
        self._watchdog = Watchdog()
        self._line: _Line = ()
        self._checked = 0
        """The newest entry that the watchdog has seen."""

    async def check(self, span: Span) -> set[PartRef]:
        """Look for rereads in new messages; an error here costs a pin, and no message.

        Returns the calls that were made before with the same result, and their results.
        """
        live = self._live
        if not live.can_fold or not live.view.inputs.foldings:
            return set()
        rereads: list[Reread] = []
        with suppress(RefoldError):
            rereads = [each for each in await self._rereads() if each.read.part.seq in span]
            if rereads or live.view.inputs.outline.watched:
                await self._update_pins([each.read for each in rereads if each.same])
        for reread in rereads:
            self._watch(self._event(reread))
        same = [reread.read for reread in rereads if reread.same]
        return {part for read in same for part in (read.call, read.part)}

    async def unpin_after_fold(self) -> None:
        """After a fold, while the view changes anyway: unpin what is not needed any more."""
        inputs = self._live.view.inputs
        if inputs.outline.watched and _line(inputs) != self._line:
            with suppress(RefoldError):
                await self._rereads()
                await self._update_pins([])

    async def plan_or_unpin(self, plan: Callable[[], _Planned]) -> _Planned:
        """The result of `plan`; where it does not fit, it is tried again without our pins."""
        try:
            return plan()
        except ViewTooLarge:
            if not self._live.view.inputs.outline.watched:
                raise
        await self._append(lambda: Pins(unpin=self._live.view.inputs.outline.watched))
        return plan()

    async def _rereads(self) -> list[Reread]:
        inputs = self._live.view.inputs
        line = _line(inputs)
        if line != self._line:
            self._watchdog, self._checked = Watchdog(await self._folded_reads(inputs)), 0
            self._line = line
        rows = inputs.rows[inputs.at(self._checked + 1) :]
        rereads = self._watchdog.take(_passage(inputs, row) for row in rows)
        self._checked = max(self._checked, inputs.head)
        return [*rereads]

    async def _folded_reads(self, inputs: ViewInput) -> list[Read]:
        """What the folds remember, except what was unfolded since."""
        log, name = self._live.log, self._live.name
        reads: list[Read] = []
        for fold in inputs.foldings:
            for entry in await log.read(name, Span(fold.seq, fold.seq)):
                match CODEC.decode(entry):
                    case FoldCompleted(summary=summary):
                        reads += parse(summary).reads
                    case _:
                        pass
        return [read for read in reads if _row(inputs, read.part) is None]

    async def _update_pins(self, needed: list[Read]) -> None:
        def decide() -> Pins:
            inputs, setup = self._live.view.inputs, self._live.setup
            outline = inputs.outline
            room = int(setup.profile.watch.share * effective_limit(setup.profile, setup.budget))
            by_people = {*outline.pins} - {*outline.watched}
            cost = partial(_cost, inputs)
            new = pins(outline.watched, self._watchdog.reads, needed, cost, room)
            return new._replace(pin=tuple(part for part in new.pin if part not in by_people))

        await self._append(decide)

    async def _append(self, decide: Callable[[], Pins]) -> None:
        live = self._live
        for _ in range(_PIN_ATTEMPTS):
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

    def _event(self, reread: Reread) -> ReadAgain:
        inputs, part = self._live.view.inputs, reread.read.part
        row = _row(inputs, part)
        tokens = row.parts[part.index].tokens if row else 0
        pinned = part in inputs.outline.pins
        share = self._live.setup.profile.watch.share
        remedy = (
            KEPT_IN_VIEW
            if pinned
            else OTHER
            if not reread.same
            else TOO_LARGE
            if share
            else COUNTED
        )
        return ReadAgain(reread.tool, reread.what, reread.times, tokens, pinned, remedy)


def _line(inputs: ViewInput) -> _Line:
    outline = inputs.outline
    return tuple(fold.seq for fold in inputs.foldings), outline.line, outline.since


def _passage(inputs: ViewInput, row: Row) -> Passage:
    return Passage(row.seq, row.role, inputs.wire.describe(row.payload).shapes)


def _row(inputs: ViewInput, part: PartRef) -> Row | None:
    index = inputs.at(part.seq)
    if index < len(inputs.rows) and inputs.rows[index].seq == part.seq:
        return inputs.rows[index]
    return None


def _cost(inputs: ViewInput, parts: Iterable[PartRef]) -> int:
    """What these pins keep in the view: the whole step of each, or, where that is folded, a quote.

    A step with a pinned part is never left out, however much else it holds.
    """
    refs = {*parts}
    steps = {inputs.steps[inputs.at(ref.seq)] for ref in refs if _row(inputs, ref)}
    rows = sum(weight(inputs.rows[index]) for start in steps for index in inputs.step(start))
    quotes = (quote.text for quote in inputs.pinned if not refs.isdisjoint(quote.sources))
    quoted = sum(inputs.counter.text(text) + PER_MESSAGE for text in quotes)
    return rows + quoted + _LABEL_TOKENS * len(refs)
