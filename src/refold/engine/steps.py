"""The steps of a fold: each result is logged, so a fold that is resumed pays for no step twice."""

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
    Outlined,
    Running,
    Span,
)
from refold.log.entry import check_name, intersect, spans_of, subtract, union

FORGOTTEN_MEANWHILE = "entries it would stand for were forgotten meanwhile"
_PAGE = 200

Work = Callable[[], Awaitable[JsonValue]]


class FoldInputs(NamedTuple):
    """What a fold is made of, as it was before anybody read it."""

    spans: tuple[Span, ...] = ()
    forgotten: frozenset[int] = frozenset()
    """Which of these entries were tombstones already, among those the start does not rest on."""
    start: int | None = None
    """The fold's start entry; None when it is not running."""
    head: int | None = None
    """The newest entry at that time."""
    revision: int | None = None
    """The session's revision before anything else was read of it: see `Outlined`."""


class FoldSnapshot(NamedTuple):
    """The state of a session and of one of its folds."""

    outlined: Outlined
    start: Entry | None
    """The fold's start entry; None when it is not running."""


async def take_snapshot(log: Log, session: str, fold: UUID) -> FoldSnapshot:
    outlined = await log.outlined(session)
    entry = find_running(outlined, fold)
    return FoldSnapshot(outlined, None if entry is None else await _read(log, session, entry.seq))


def find_running(outlined: Outlined, fold: UUID) -> Running | None:
    return next((entry for entry in outlined.outline.running if entry.fold == fold), None)


async def _read(log: Log, session: str, seq: int) -> Entry:
    (entry,) = await log.read(session, Span(seq, seq))
    return entry


async def gather_inputs(log: Log, job: Job, snapshot: FoldSnapshot | None = None) -> FoldInputs:
    """The inputs of the job's fold, now or as of the snapshot.

    An earlier fold among them is forgotten as soon as anything that it rests on is.
    """
    outlined, start = snapshot or await take_snapshot(log, job.session, job.fold)
    spans = needed(job.spans, outlined.outline)
    not_in_start = spans if start is None else subtract(spans, start.rests_on)
    forgotten = await _tombstones(log, job.session, not_in_start)
    seq = None if start is None else start.seq
    return FoldInputs(spans, forgotten, seq, outlined.info.entries, outlined.revision)


async def _tombstones(log: Log, session: str, spans: Iterable[Span]) -> frozenset[int]:
    pages = [await log.read(session, span, whole=False) for span in spans]
    return frozenset(entry.seq for page in pages for entry in page if entry.forgotten)


async def forgotten_since(
    log: Log, job: Job, inputs: FoldInputs, revision: int | None = None
) -> bool:
    """Whether more of the inputs is forgotten by now; `revision` is the current one, if known.

    Nothing is, as long as the revision is the same. Otherwise the start entry tells: it is
    forgotten with anything it rests on, so a long span is not read again for each step.
    """
    if revision is not None and revision == inputs.revision:
        return False
    rests_on: tuple[Span, ...] = ()
    if inputs.start is not None:
        start = await _read(log, job.session, inputs.start)
        if start.forgotten:
            return True
        rests_on = start.rests_on
    not_in_start = subtract(inputs.spans, rests_on)
    before = frozenset(seq for seq in inputs.forgotten if intersect([Span(seq, seq)], not_in_start))
    return await _tombstones(log, job.session, not_in_start) != before


async def forget_with_inputs(log: Log, job: Job, inputs: FoldInputs, appended: Appended) -> bool:
    """Forget an entry whose inputs were forgotten after we checked and before it was appended."""
    if not await retry_shielded(lambda: forgotten_since(log, job, inputs, appended.revision)):
        return False
    span = Span(appended.first, appended.first)
    await retry_shielded(lambda: log.forget(job.session, span))
    return True


class LocalSteps:
    """Steps that run when called and are stored nowhere: for previews, and for tests."""

    async def step(self, name: str, work: Work) -> JsonValue:
        check_name(name, "step")
        return await work()


class LoggedSteps:
    """Steps whose results are log entries, so another process can resume the fold.

    A step's result is always what the log returns for it, so a first run and a later one see the
    same. A step that raises or is canceled leaves nothing.
    """

    def __init__(
        self,
        log: Log,
        job: Job,
        author: Author,
        inputs: FoldInputs,
        *,
        reach: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._log = log
        self._job = job
        self._author = author
        self._inputs = inputs
        self._reach = reach
        self._results: dict[str, Draft | Entry] | None = None
        self._loading = asyncio.Lock()
        self._step_locks: dict[str, asyncio.Lock] = {}
        self._retries = True
        self._last_seen: Outlined | None = None

    async def step(self, name: str, work: Work) -> JsonValue:
        """The result of `work`, from this run or from an earlier one.

        Raises FoldCancelled, before the work is done, when the fold was canceled or its inputs were
        forgotten: nobody should pay for it, and no model should see it.
        """
        check_name(name, "step")
        async with self._step_locks.setdefault(name, asyncio.Lock()):
            async with self._loading:
                if self._results is None:
                    self._results = await retry_shielded(self._load_results)
                results = self._results
            if name not in results:
                results[name] = await self._run(name, work)
            return _decode_result(results[name])  # decoded each time: callers may change it

    async def _load_results(self) -> dict[str, Draft | Entry]:
        results: dict[str, Draft | Entry] = {}
        start, head = self._inputs.start, self._inputs.head
        if start is not None and start != head:  # otherwise nothing was written since
            fold = Running(start, self._job.fold)
            async for name, entry in _logged_steps(self._log, self._job.session, fold):
                results.setdefault(name, entry)
        return results

    async def _run(self, name: str, work: Work) -> Draft:
        if objection := await self._objection():
            raise objection
        self._reach("fold.stepping")
        draft = self._draft(name, await work())
        _decode_result(draft)  # raises before a result is recorded that no later run could read
        if is_canceled() or await self._record_unchanged(draft):
            return draft
        if not await self._objection():
            await self._record(draft)
        return draft

    async def _record_unchanged(self, draft: Draft) -> bool:
        """Record it without another check, if nothing can have happened since the last one."""
        seen = self._last_seen
        if seen is None or seen.revision is None or seen.revision != self._inputs.revision:
            return False
        try:
            appended = await self._append(draft, seen)
        except (LogError, InvalidEntry):
            return False
        except StoreError:  # paying twice is better than losing the result
            self._retries = False
            return True
        if appended.revision is None:  # written, but by a call whose answer was lost
            return False
        self._reach("fold.stepped")
        return True

    async def _record(self, draft: Draft) -> None:
        try:
            appended = await self._append(draft)
        except StoreError:  # paying twice is better than losing the result
            self._retries = False
            return
        self._reach("fold.stepped")
        await forget_with_inputs(self._log, self._job, self._inputs, appended)

    async def _append(self, draft: Draft, seen: Outlined | None = None) -> Appended:
        async def append() -> Appended:
            session, log = self._job.session, self._log
            if seen is None:
                return await log.append(session, [draft], expected=None)
            head, revision = seen.info.entries, seen.revision
            return await log.append(session, [draft], expected=head, revision=revision)

        return await (retry_shielded(append) if self._retries else append())

    def _draft(self, name: str, result: JsonValue) -> Draft:
        try:
            spent = result.get("spent") if isinstance(result, dict) else None
            draft = self._author.draft(FoldStepped(self._job.fold, name, result, spent))
        except PydanticSerializationError as error:
            raise InvalidInput(
                f"What step {name!r} gave is not JSON.", "Return JSON values and sound text."
            ) from error
        start = self._inputs.start
        start_span = () if start is None else (Span(start, start),)
        # The result is forgotten with whatever it was made of, the start's instructions included.
        rests_on = union((*self._job.spans, *self._inputs.spans, *start_span))
        return draft._replace(rests_on=rests_on)

    async def _objection(self) -> FoldCancelled | None:
        seen = await retry_shielded(lambda: self._log.outlined(self._job.session))
        self._last_seen = seen
        if find_running(seen, self._job.fold) is None:
            return FoldCancelled("The fold was given up meanwhile.")
        forgotten = await retry_shielded(
            lambda: forgotten_since(self._log, self._job, self._inputs, seen.revision)
        )
        return (
            FoldCancelled(f"The fold was given up: {FORGOTTEN_MEANWHILE}.") if forgotten else None
        )


async def erase_steps(log: Log, session: str, fold: Running) -> None:
    """Erase the remaining steps of a dead fold whose start was forgotten.

    Its process may have died after it wrote a result and before it saw that the result's inputs
    were forgotten.
    """
    start = await log.read(session, Span(fold.seq, fold.seq), whole=False)
    if not all(entry.forgotten for entry in start):
        return
    remaining = [entry.seq async for _, entry in _logged_steps(log, session, fold)]
    for span in spans_of(remaining):
        with suppress(ErasureUnfinished):  # nobody can read it, and the next open scrubs it
            await log.forget(session, span)


def is_canceled() -> bool:
    """Whether this task was canceled, though it is still running."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _logged_steps(log: Log, session: str, fold: Running) -> AsyncIterator[tuple[str, Entry]]:
    head = await log.head(session)
    for first in range(fold.seq + 1, head + 1, _PAGE):
        span = Span(first, min(first + _PAGE - 1, head))
        for entry in await log.read(session, span, whole=False):
            if entry.kind == FoldStepped.KIND:
                for whole in await log.read(session, Span(entry.seq, entry.seq)):
                    match CODEC.decode(whole):
                        case FoldStepped(fold=id_, name=name) if id_ == fold.fold:
                            yield name, whole
                        case _:
                            pass


def _decode_result(step: Draft | Entry) -> JsonValue:
    match CODEC.decode(step):
        case FoldStepped(result=result):
            return result
        case _:
            raise AssertionError
