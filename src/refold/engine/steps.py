"""The steps of a fold: what was done once is kept in the log, and not paid for again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError

from refold.engine.locks import retry_shielded
from refold.errors import (
    ErasureUnfinished,
    FoldCancelled,
    InvalidEntry,
    InvalidInput,
    LogError,
    StoreError,
)
from refold.fold.job import Job
from refold.fold.material import needed
from refold.log import (
    CODEC,
    Appended,
    Author,
    Draft,
    Entry,
    FoldStepped,
    Log,
    Outline,
    Outlined,
    Running,
    Span,
)
from refold.log.entry import check_name, intersect, spans_of, subtract, union

# What lies beneath a fold that is being made, and whether it is still all there.


class FoldInputs(NamedTuple):
    """What a fold is made of, as it was before anybody read it."""

    spans: tuple[Span, ...] = ()
    forgotten: frozenset[int] = frozenset()
    """Which of these entries are tombstones already, where the start does not tell for them."""
    start: int | None = None
    """The entry that says that the fold was begun; None when it is not running."""
    head: int | None = None
    """The newest entry then."""
    revision: int | None = None
    """The session's revision before anything else was read of it: see `Outlined`."""


class Glance(NamedTuple):
    """How a session and one of its folds stand."""

    outlined: Outlined
    start: Entry | None
    """The entry that says that the fold was begun; None when it is not running."""

    @property
    def outline(self) -> Outline:
        return self.outlined.outline

    @property
    def head(self) -> int:
        return self.outlined.info.entries


async def glance(log: Log, session: str, fold: UUID) -> Glance:
    outlined = await log.outlined(session)
    one = running_of(outlined, fold)
    return Glance(outlined, None if one is None else await _start(log, session, one))


def running_of(outlined: Outlined, fold: UUID) -> Running | None:
    """Where the fold was begun; None when it is not running."""
    return next((one for one in outlined.outline.running if one.fold == fold), None)


async def _start(log: Log, session: str, one: Running) -> Entry:
    (start,) = await log.read(session, Span(one.seq, one.seq))
    return start


async def look_beneath(log: Log, job: Job, seen: Glance | None = None) -> FoldInputs:
    """What lies beneath the job's fold now, or as it was seen.

    A fold beneath it is forgotten as soon as anything beneath that is.
    """
    seen = seen or await glance(log, job.session, job.fold)
    spans = needed(job.spans, seen.outline)
    start = seen.start
    untold = spans if start is None else subtract(spans, start.rests_on)
    forgotten = await _forgotten_of(log, job.session, untold)
    begun = None if start is None else start.seq
    return FoldInputs(spans, forgotten, begun, seen.head, seen.outlined.revision)


async def _forgotten_of(log: Log, session: str, spans: Iterable[Span]) -> frozenset[int]:
    found = [await log.read(session, span, whole=False) for span in spans]
    return frozenset(one.seq for entries in found for one in entries if one.forgotten)


async def forgotten_since(
    log: Log, job: Job, fold_inputs: FoldInputs, revision: int | None = None
) -> bool:
    """Whether more of it is forgotten than there was; `revision` as it is now, if known.

    Nothing is, where the revision is what it was. Else the start tells, which goes when anything
    does that it rests on: a long span is not read again for each step.
    """
    if revision is not None and revision == fold_inputs.revision:
        return False
    told: tuple[Span, ...] = ()
    if fold_inputs.start is not None:
        start = await _start(log, job.session, Running(fold_inputs.start, job.fold))
        if start.forgotten:
            return True
        told = start.rests_on
    untold = subtract(fold_inputs.spans, told)
    before = frozenset(seq for seq in fold_inputs.forgotten if intersect([Span(seq, seq)], untold))
    return await _forgotten_of(log, job.session, untold) != before


FORGOTTEN_MEANWHILE = "entries it would stand for were forgotten meanwhile"
_AT_ONCE = 200

Work = Callable[[], Awaitable[JsonValue]]


class LocalSteps:
    """Steps that are done when asked for, and kept nowhere: for previews, and for tests."""

    async def step(self, name: str, work: Work) -> JsonValue:
        """What `work` gives."""
        check_name(name, "step")
        return await work()


class LoggedSteps:
    """Steps whose results are entries of the log, for whoever makes the fold again.

    What a step gives is always as the log gives it back, so that a first run and a later one see
    the same. A step that raises or is cancelled leaves nothing.
    """

    def __init__(
        self,
        log: Log,
        job: Job,
        author: Author,
        fold_inputs: FoldInputs,
        *,
        reach: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._log = log
        self._job = job
        self._author = author
        self._beneath = fold_inputs
        self._reach = reach
        self._known: dict[str, Draft | Entry] | None = None
        self._reading = asyncio.Lock()
        self._names: dict[str, asyncio.Lock] = {}
        self._patient = True
        self._seen: Outlined | None = None
        """How the session stood when we last looked."""

    async def step(self, name: str, work: Work) -> JsonValue:
        """What `work` gives, or gave when it was done before.

        Raises FoldCancelled, before the work is done, when somebody has given the fold up or has
        forgotten what it would stand for: nobody should pay for it, and no model be told.
        """
        check_name(name, "step")
        async with self._names.setdefault(name, asyncio.Lock()):
            known = await self._all_known()
            if name not in known:
                known[name] = await self._done(name, work)
            return _result(known[name])  # anew, for the one before is the caller's to change

    async def _done(self, name: str, work: Work) -> Draft:
        if objection := await self._objection():
            raise objection
        self._reach("fold.stepping")
        draft = self._draft(name, await work())
        _result(draft)  # what no later run could read is not recorded
        if is_cancelled() or await self._recorded_at_once(draft):
            return draft
        if not await self._objection():
            await self._record(draft)
        return draft

    async def _recorded_at_once(self, draft: Draft) -> bool:
        """Record it without a look, where nothing can have happened since the last one."""
        seen = self._seen
        if seen is None or seen.revision is None or seen.revision != self._beneath.revision:
            return False
        try:
            done = await self._append(draft, seen)
        except (LogError, InvalidEntry):
            return False
        except StoreError:  # better paid twice than lost
            self._patient = False
            return True
        if done.revision is None:  # written, but by a call whose answer was lost
            return False
        self._reach("fold.stepped")
        return True

    async def _record(self, draft: Draft) -> None:
        try:
            done = await self._append(draft)
        except StoreError:  # better paid twice than lost
            self._patient = False
            return
        self._reach("fold.stepped")
        if await retry_shielded(
            lambda: forgotten_since(self._log, self._job, self._beneath, done.revision)
        ):
            # Forgotten after we looked and before the result was there to be forgotten too.
            await retry_shielded(
                lambda: self._log.forget(self._job.session, Span(done.first, done.first))
            )

    async def _append(self, draft: Draft, seen: Outlined | None = None) -> Appended:
        async def append() -> Appended:
            session, log = self._job.session, self._log
            if seen is None:
                return await log.append(session, [draft], expected=None)
            head, revision = seen.info.entries, seen.revision
            return await log.append(session, [draft], expected=head, revision=revision)

        return await (retry_shielded(append) if self._patient else append())

    def _draft(self, name: str, result: JsonValue) -> Draft:
        """A draft that goes with what the fold is about, and with what it was told to heed."""
        try:
            draft = self._author.draft(FoldStepped(self._job.fold, name, result))
        except PydanticSerializationError as error:
            raise InvalidInput(
                f"What step {name!r} gave is no JSON.", "Return JSON values and sound text."
            ) from error
        start = self._beneath.start
        told = () if start is None else (Span(start, start),)
        rests_on = union((*self._job.spans, *self._beneath.spans, *told))
        return draft._replace(rests_on=rests_on)

    async def _objection(self) -> FoldCancelled | None:
        job = self._job
        seen = await retry_shielded(lambda: self._log.outlined(job.session))
        self._seen = seen
        if running_of(seen, job.fold) is None:
            return FoldCancelled("The fold was given up meanwhile.")
        gone = await retry_shielded(
            lambda: forgotten_since(self._log, job, self._beneath, seen.revision)
        )
        return FoldCancelled(f"In vain: {FORGOTTEN_MEANWHILE}.") if gone else None

    async def _all_known(self) -> dict[str, Draft | Entry]:
        async with self._reading:
            if self._known is None:
                self._known = await retry_shielded(self._recorded)
            return self._known

    async def _recorded(self) -> dict[str, Draft | Entry]:
        known: dict[str, Draft | Entry] = {}
        start, head = self._beneath.start, self._beneath.head
        if start is not None and start != head:  # else nobody has written since
            one = Running(start, self._job.fold)
            async for name, entry in _steps_of(self._log, self._job.session, one):
                known.setdefault(name, entry)
        return known


async def erase_steps(log: Log, session: str, one: Running) -> None:
    """Erase what is left of the steps of a dead fold whose start was forgotten.

    A process may die after it wrote a result, and before it saw that this was to be forgotten.
    """
    start = await log.read(session, Span(one.seq, one.seq), whole=False)
    if not all(entry.forgotten for entry in start):
        return
    left = [entry.seq async for _, entry in _steps_of(log, session, one)]
    for span in spans_of(left):
        with suppress(ErasureUnfinished):  # nobody can read it, and the next who opens scrubs
            await log.forget(session, span)


def is_cancelled() -> bool:
    """Whether somebody has cancelled this task, though it goes on."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _steps_of(log: Log, session: str, one: Running) -> AsyncIterator[tuple[str, Entry]]:
    """The steps of a running fold that are not forgotten, each by its name and whole."""
    head = await log.head(session)
    for first in range(one.seq + 1, head + 1, _AT_ONCE):
        span = Span(first, min(first + _AT_ONCE - 1, head))
        for entry in await log.read(session, span, whole=False):
            if entry.kind == FoldStepped.KIND:
                for whole in await log.read(session, Span(entry.seq, entry.seq)):
                    match CODEC.decode(whole):
                        case FoldStepped(fold, name) if fold == one.fold:
                            yield name, whole
                        case _:
                            pass


def _result(step: Draft | Entry) -> JsonValue:
    match CODEC.decode(step):
        case FoldStepped(result=result):
            return result
        case _:
            raise AssertionError
