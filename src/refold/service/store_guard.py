"""A deadline and a circuit breaker between requests and the store.

A store that hangs must not make requests hang. Each call on the request path has a deadline. After
repeated failures the breaker opens: calls fail at once, and one probe at a time asks whether the
store can be written again. Clients never wait for a probe.

Long operations are not cut: `forget`, `expire`, `search` and `matches` pass through, and the API
and the workers use the store itself.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, ParamSpec, TypeVar
from uuid import UUID

from refold.engine import Ended, Engine
from refold.errors import (
    ErasureUnfinished,
    RefoldError,
    SessionForgotten,
    SessionNotFound,
    StoreClosed,
    StoreError,
    StoreUnavailable,
)
from refold.fold.job import Job
from refold.log import (
    DEFAULT_TENANT,
    Appended,
    Artifact,
    Draft,
    Entry,
    Erased,
    Hit,
    Locks,
    Log,
    Mark,
    Marked,
    Matches,
    Note,
    Outlined,
    SessionInfo,
    SessionPage,
    Span,
    Store,
    Total,
    Totals,
    Visible,
)
from refold.log.text import Term
from refold.service.keys import Journal, without_secrets

Kind = Literal["read", "write"]
P = ParamSpec("P")
T = TypeVar("T")
MAX_FAILURES: Final = 3
"""Failures in a row that open the breaker, of reads or of writes. A success of the same kind starts
the count again: a file that is locked or full can still be read.
"""
PROBE_PAUSE: Final = 0.5
"""Seconds between the end of a failed probe and the next one."""
_BYTES_PER_SECOND: Final = 2 << 20
"""A large append gets a second more for each of these: taking longer is no outage."""
_PROBE_SESSION: Final = "outages"
_READ_SESSION: Final = "keys"
_FRESH: Final = 1.0  # seconds
_NO_OUTAGE: Final = (StoreClosed, ErasureUnfinished)
_LOGGER: Final = logging.getLogger("refold.service")


class StoreGuard:
    """Bounds calls to the store in time, and stops asking a store that fails."""

    def __init__(
        self,
        probe: Callable[[], Awaitable[object]],
        deadline: float = 2.0,
        *,
        max_failures: int = MAX_FAILURES,
        pause: float = PROBE_PAUSE,
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        """Guard a store.

        Args:
            probe: Writes something to the store. A read would succeed on a full disk.
            deadline: Seconds that a call may take, connecting and queueing included.
            max_failures: Failures in a row that open the breaker.
            pause: Seconds between two probes.
            tick: A monotonic clock.
        """
        self.deadline = deadline
        self._probe = probe
        self._max_failures = max_failures
        self._pause = pause
        self._tick = tick
        self._failures: Counter[Kind] = Counter()
        self._open_since: float | None = None
        self._probing: asyncio.Task[None] | None = None
        self._abandoned: set[asyncio.Future[Any]] = set()
        self._recovery: asyncio.Event | None = None
        self.available_since = float("-inf")
        """When the breaker last closed; minus infinity if it never opened."""

    @property
    def available(self) -> bool:
        return self._open_since is None

    async def recovered(self) -> None:
        """Wait until calls are let through."""
        while self._recovery is not None:
            await self._recovery.wait()

    async def call(self, work: Callable[P, Awaitable[T]], *args: P.args, **more: P.kwargs) -> T:
        """Read from the store, within the deadline and unless the breaker is open.

        Raises:
            StoreUnavailable: It did not answer in time, or is not asked at the moment.
        """
        return await self.call_within(self.deadline, "read", lambda: work(*args, **more))

    async def call_within(self, seconds: float, kind: Kind, work: Callable[[], Awaitable[T]]) -> T:
        if self._open_since is not None:
            raise StoreUnavailable(
                "The store failed repeatedly and is not asked until a probe succeeds."
            )
        try:
            result = await self.bounded(seconds, work)
        except _NO_OUTAGE:
            raise
        except StoreError as error:
            self._failed(kind, error)
            raise
        except RefoldError:
            self._failures.pop(kind, None)  # the store answered: a conflict, no such session
            raise
        self._failures.pop(kind, None)
        return result

    async def bounded(self, seconds: float, work: Callable[[], Awaitable[T]]) -> T:
        """Call the store within so many seconds, bypassing the breaker.

        The call runs in a task that is abandoned when time is up. Awaiting its cancellation would
        mean waiting for the store: a driver sends its server a cancel request and a rollback.
        """
        task = asyncio.ensure_future(work())
        try:
            await asyncio.wait({task}, timeout=seconds)  # which cancels nothing by itself
        except asyncio.CancelledError:
            self._abandon(task)
            raise
        if task.done():
            return task.result()
        self._abandon(task)
        raise StoreUnavailable(f"The store did not answer within {seconds:.3g} s.")

    async def close(self) -> None:
        """Stop probing, and give abandoned calls a moment to let go of their connections."""
        if self._probing is not None:
            self._probing.cancel()
            with suppress(asyncio.CancelledError):
                await self._probing
        if self._abandoned:
            await asyncio.wait(self._abandoned, timeout=self.deadline)

    def _abandon(self, task: "asyncio.Future[Any]") -> None:
        task.cancel()
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _failed(self, kind: Kind, error: StoreError) -> None:
        self._failures[kind] += 1
        if self._failures[kind] < self._max_failures or self._open_since is not None:
            return
        self._open_since = self._tick()
        self._recovery = asyncio.Event()
        self._probing = asyncio.create_task(self._probe_until_it_answers())
        _LOGGER.error(
            "The store is unavailable: %s It is asked again every %g s; no request waits for it.",
            without_secrets(error.what),
            self._pause,
        )

    async def _probe_until_it_answers(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            try:
                await self.bounded(self.deadline, self._probe)
            except StoreClosed:
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, the store is not back
                _LOGGER.debug("The store is still unavailable: %s", without_secrets(str(error)))
            else:
                self._close_breaker()
                return

    def _close_breaker(self) -> None:
        now = self._tick()
        seconds = now - (self._open_since or now)
        recovery, self._recovery = self._recovery, None
        self._failures.clear()
        self._open_since, self.available_since = None, now
        if recovery is not None:
            recovery.set()
        _LOGGER.warning("The store answers again, after %.1f s.", seconds)


def write_probe(log: Log) -> Callable[[], Awaitable[None]]:
    """A probe that writes a note to a session of the service's own tenant.

    The notes record when the store was back: one for each outage and process.
    """
    journal = Journal(log, _PROBE_SESSION)

    async def probe() -> None:
        note = Note("The store answers again.", {"event": "store.available"})
        try:
            await journal.add([note], exactly=False)
        except (SessionNotFound, SessionForgotten):
            await journal.begin()
            await journal.add([note], exactly=False)

    return probe


class StoreReadiness:
    """Whether the store answers; asked once a second at most, however many callers there are.

    The log must be guarded: a check has its deadline.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = asyncio.Lock()
        self._checked = float("-inf")
        self._answers = False

    async def answers(self) -> bool:
        async with self._lock:
            if time.monotonic() - self._checked >= _FRESH:
                self._answers = await self._ask()
                self._checked = time.monotonic()
            return self._answers

    async def _ask(self) -> bool:
        try:
            await self._log.head(_READ_SESSION)
        except (SessionNotFound, SessionForgotten):
            return True
        except (RefoldError, OSError):
            return False
        return True


class GuardedStore(Store):
    """A store whose logs are asked through a guard."""

    def __init__(self, store: Store, guard: StoreGuard) -> None:
        self._store = store
        self._guard = guard

    def log(self, tenant: str = DEFAULT_TENANT) -> Log:
        return GuardedLog(self._store.log(tenant), self._guard)

    async def open(self) -> None:
        """Does nothing: its owner opens the store."""

    async def close(self) -> None:
        """Does nothing: its owner closes the store."""


class GuardedLog(Log):
    """A log whose calls on the request path have a deadline; the others take as long as they do."""

    def __init__(self, log: Log, guard: StoreGuard) -> None:
        self._log = log
        self._guard = guard

    @property
    def tenant(self) -> str:
        return self._log.tenant

    def locks(self, purpose: str = "fold") -> Locks:
        return self._log.locks(purpose)

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        expected: int | None,
        revision: int | None = None,
        mark: Mark | None = None,
    ) -> Appended:
        """Append, within the deadline plus some time for large drafts."""
        size = sum(
            len(draft.body) + sum(len(artifact.data) for artifact in draft.attached)
            for draft in drafts
        )
        return await self._guard.call_within(
            self._guard.deadline + size / _BYTES_PER_SECOND,
            "write",
            lambda: self._log.append(
                session, drafts, expected=expected, revision=revision, mark=mark
            ),
        )

    async def marked(self, keys: Sequence[bytes]) -> list[Marked]:
        return await self._guard.call(self._log.marked, keys)

    async def head(self, session: str) -> int:
        return await self._guard.call(self._log.head, session)

    async def info(self, session: str) -> SessionInfo:
        return await self._guard.call(self._log.info, session)

    async def read(
        self, session: str, span: Span | None = None, *, whole: bool = True
    ) -> list[Entry]:
        """Within the deadline, unless the whole session is read: an export may take long."""
        if span is None:
            return await self._log.read(session, whole=whole)
        return await self._guard.call(self._log.read, session, span, whole=whole)

    async def visible(self, session: str, *, last: int | None = None) -> Visible:
        return await self._guard.call(self._log.visible, session, last=last)

    async def outlined(self, session: str) -> Outlined:
        return await self._guard.call(self._log.outlined, session)

    async def sessions(
        self, *, search: str | None = None, limit: int = 50, page: str | None = None
    ) -> SessionPage:
        return await self._log.sessions(search=search, limit=limit, page=page)

    async def fork(self, session: str, new: str, *, at: int | None = None) -> SessionInfo:
        guard = self._guard
        return await guard.call_within(
            guard.deadline, "write", lambda: self._log.fork(session, new, at=at)
        )

    async def forget(self, session: str, span: Span | None = None) -> Erased:
        return await self._log.forget(session, span)

    async def expire(self, before: int, *, only: Collection[str] | None = None) -> list[str]:
        return await self._log.expire(before, only=only)

    async def artifact(self, hash: str) -> Artifact:  # noqa: A002 - the glossary's word
        return await self._guard.call(self._log.artifact, hash)

    async def search(self, query: str, *, session: str | None = None, limit: int = 20) -> list[Hit]:
        return await self._log.search(query, session=session, limit=limit)

    async def matches(
        self, terms: Sequence[Term], *, session: str | None = None, max_matches: int = 2_000
    ) -> Matches:
        return await self._log.matches(terms, session=session, max_matches=max_matches)

    async def totals(self, first: int, last: int) -> Totals:
        return await self._log.totals(first, last)

    async def dearest(
        self, first: int, last: int, *, limit: int = 20, every: bool = False
    ) -> list[Total]:
        return await self._log.dearest(first, last, limit=limit, every=every)

    async def recount(self, limit: int = 20, *, anew: bool = False) -> int:
        return await self._log.recount(limit, anew=anew)


class GuardedEngine:
    """An engine whose folds start without waiting for a database that hangs.

    An engine has its own connections. Only starting is bounded: a fold takes as long as it takes. A
    late start does not open the breaker, because queues may be busy when the store is not.
    """

    def __init__(self, engine: Engine, guard: StoreGuard) -> None:
        self._engine = engine
        self._guard = guard

    async def start(self, job: Job) -> bool:
        if not self._guard.available:
            raise StoreUnavailable("No fold is started while the store is unavailable.")
        return await self._guard.bounded(self._guard.deadline, lambda: self._engine.start(job))

    async def wait(self, session: str, fold: UUID, timeout: float | None = None) -> Ended | None:  # noqa: ASYNC109 - part of the protocol
        return await self._engine.wait(session, fold, timeout)

    async def cancel(self, session: str, fold: UUID) -> Ended | None:
        return await self._engine.cancel(session, fold)

    async def recover(self, session: str) -> tuple[Ended, ...]:
        return await self._engine.recover(session)

    async def close(self) -> None:
        await self._engine.close()
