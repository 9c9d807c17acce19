"""A deadline and a circuit breaker between requests and the store.

A store that hangs must not make requests hang. Each call on the request path gets a deadline of its
own. After repeated failure the breaker opens: calls fail at once, and one probe at a time asks
whether the store can be written again. Clients never wait for a probe.

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
"""A large append gets a second more for each of these: that it takes longer is no outage."""
_PROBE_SESSION: Final = "outages"
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
        self._abandoned: set[asyncio.Task[Any]] = set()
        self._recovery: asyncio.Event | None = None
        self.available_since = float("-inf")
        """When the breaker last closed; minus infinity if it never opened."""

    @property
    def available(self) -> bool:
        """Whether calls are let through."""
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
        """Call the store within so many seconds, unless the breaker is open."""
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
        """Call the store within so many seconds, whatever the breaker says and without telling it.

        The call runs in a task that is left behind when time is up. To await its cancellation would
        mean to wait for the store: a driver sends its server a request to cancel, and a rollback.
        """
        loop = asyncio.get_running_loop()
        task = loop.create_task(_awaited(work))
        finished: asyncio.Future[bool] = loop.create_future()
        task.add_done_callback(lambda _: _settle(finished, value=True))
        timer = loop.call_later(seconds, _settle, finished, False)  # noqa: FBT003 - as asyncio has it
        try:
            in_time = await finished
        except asyncio.CancelledError:
            self._abandon(task)
            raise
        finally:
            timer.cancel()
        if in_time:
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

    def _abandon(self, task: "asyncio.Task[Any]") -> None:
        task.cancel()
        self._abandoned.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._abandoned.discard(task)
        if not task.cancelled():
            task.exception()

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

    That a note is there says when the store was back: one for each outage and process.
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


class GuardedStore(Store):
    """A store whose logs are asked through a guard; it is opened and closed by its owner."""

    def __init__(self, store: Store, guard: StoreGuard) -> None:
        self._store = store
        self._guard = guard

    def log(self, tenant: str = DEFAULT_TENANT) -> Log:
        """The log of one tenant."""
        return GuardedLog(self._store.log(tenant), self._guard)

    async def open(self) -> None:
        """Its owner opens the store."""

    async def close(self) -> None:
        """Its owner closes the store."""


class GuardedLog(Log):
    """A log whose calls on the request path have a deadline. See `Log` for what each does."""

    def __init__(self, log: Log, guard: StoreGuard) -> None:
        self._log = log
        self._guard = guard

    @property
    def tenant(self) -> str:
        """Whose sessions these are."""
        return self._log.tenant

    def locks(self, purpose: str = "fold") -> Locks:
        """The store's own locks."""
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
        """Append, within the deadline and a little more for what is large."""
        size = sum(len(one.body) + sum(len(art.data) for art in one.attached) for one in drafts)
        return await self._guard.call_within(
            self._guard.deadline + size / _BYTES_PER_SECOND,
            "write",
            lambda: self._log.append(
                session, drafts, expected=expected, revision=revision, mark=mark
            ),
        )

    async def marked(self, keys: Sequence[bytes]) -> list[Marked]:
        """Within the deadline."""
        return await self._guard.call(self._log.marked, keys)

    async def head(self, session: str) -> int:
        """Within the deadline."""
        return await self._guard.call(self._log.head, session)

    async def info(self, session: str) -> SessionInfo:
        """Within the deadline."""
        return await self._guard.call(self._log.info, session)

    async def read(
        self, session: str, span: Span | None = None, *, whole: bool = True
    ) -> list[Entry]:
        """Within the deadline, unless the whole session is read: an export may take long."""
        if span is None:
            return await self._log.read(session, whole=whole)
        return await self._guard.call(self._log.read, session, span, whole=whole)

    async def visible(self, session: str, *, last: int | None = None) -> Visible:
        """Within the deadline."""
        return await self._guard.call(self._log.visible, session, last=last)

    async def outlined(self, session: str) -> Outlined:
        """Within the deadline."""
        return await self._guard.call(self._log.outlined, session)

    async def sessions(
        self, *, search: str | None = None, limit: int = 50, page: str | None = None
    ) -> SessionPage:
        """However long it takes."""
        return await self._log.sessions(search=search, limit=limit, page=page)

    async def fork(self, session: str, new: str, *, at: int | None = None) -> SessionInfo:
        """Within the deadline."""
        guard = self._guard
        return await guard.call_within(
            guard.deadline, "write", lambda: self._log.fork(session, new, at=at)
        )

    async def forget(self, session: str, span: Span | None = None) -> Erased:
        """However long it takes."""
        return await self._log.forget(session, span)

    async def expire(self, before: int, *, only: Collection[str] | None = None) -> list[str]:
        """However long it takes."""
        return await self._log.expire(before, only=only)

    async def artifact(self, hash: str) -> Artifact:  # noqa: A002 - the glossary's word
        """Within the deadline."""
        return await self._guard.call(self._log.artifact, hash)

    async def search(self, query: str, *, session: str | None = None, limit: int = 20) -> list[Hit]:
        """However long it takes."""
        return await self._log.search(query, session=session, limit=limit)

    async def matches(
        self, terms: Sequence[Term], *, session: str | None = None, max_matches: int = 2_000
    ) -> Matches:
        """However long it takes."""
        return await self._log.matches(terms, session=session, max_matches=max_matches)


class GuardedEngine:
    """An engine that requests ask to begin folds, without waiting for a database that hangs.

    An engine has connections of its own. Only what requests begin with is bounded: a fold itself
    may take as long as it takes. What is late does not open the breaker, for queues may be busy
    where the store is not.
    """

    def __init__(self, engine: Engine, guard: StoreGuard) -> None:
        self._engine = engine
        self._guard = guard

    async def start(self, job: Job) -> bool:
        """See `Engine.start`."""
        return await self._bounded(lambda: self._engine.start(job))

    async def wait(self, session: str, fold: UUID, timeout: float | None = None) -> Ended | None:  # noqa: ASYNC109 - part of the protocol
        """See `Engine.wait`."""
        return await self._engine.wait(session, fold, timeout)

    async def cancel(self, session: str, fold: UUID) -> Ended | None:
        """See `Engine.cancel`."""
        return await self._engine.cancel(session, fold)

    async def recover(self, session: str) -> tuple[Ended, ...]:
        """See `Engine.recover`."""
        return await self._engine.recover(session)

    async def close(self) -> None:
        """See `Engine.close`."""
        await self._engine.close()

    async def _bounded(self, work: Callable[[], Awaitable[T]]) -> T:
        if not self._guard.available:
            raise StoreUnavailable("No fold is begun while the store is unavailable.")
        return await self._guard.bounded(self._guard.deadline, work)


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def _settle(finished: "asyncio.Future[bool]", value: bool) -> None:  # noqa: FBT001 - see `call_later`
    if not finished.done():
        finished.set_result(value)
