"""Open sessions, shared by everyone who uses them.

Opening a session reads its log, so a program keeps sessions open between uses. The pool hands them
out as leases and counts their users:

    leased ─▶ idle ─▶ evicted
      ▲        │         │
      └────────┴─────────┘  the next lease takes the same session up again

- A session with users is never closed and never evicted.
- Concurrent leases of one key open it once. Each waiter has its own way to open: one that fails or
  is canceled fails alone, and the next one tries.
- At most `max_idle` sessions without users stay open, the most recently used ones.
- An evicted session first finishes the fold that it is making, then the pool forgets it. It is not
  closed: a session at rest holds nothing but memory, so a caller that still has it may go on
  using it, and gets the same one by the next lease.
- Sessions belong to the event loop that opened them. Those of a closed loop are dropped as they
  are: nothing of them can run any more.

There is no limit on leased sessions. A lease belongs to work that has begun already: refusing it
would break that work, and waiting would deadlock a run that starts another one. Whoever admits the
work limits it (`serve.limits`, a semaphore around `agent.run`).
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock as ThreadLock
from typing import Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from refold.engine import Engine
from refold.errors import StoreClosed
from refold.log import MAIN_SCOPE

GRACE = 10.0
"""Seconds for which `close` waits until sessions in use are released."""


class SessionKey(NamedTuple):
    """What a session is leased by: a delegation has a session of its own, by its scope."""

    tenant: str
    session: str
    scope: str = MAIN_SCOPE


class PooledSession(Protocol):
    """What a pool needs of a session, or of a wrapper around one; see `Session`."""

    @property
    def busy(self) -> bool: ...
    async def drain(self) -> None: ...
    async def close(self) -> None: ...


class PoolCounts(NamedTuple):
    leased: int
    """In use, or about to be opened."""
    idle: int
    draining: int
    """Evicted, and finishing a fold."""

    @property
    def total(self) -> int:
        return sum(self)


class Closed(NamedTuple):
    sessions: int
    in_use: tuple[SessionKey, ...]
    """Sessions still in use when the wait was over; their users get errors from now on."""


S = TypeVar("S", bound=PooledSession)


@dataclass(eq=False)
class _Slot(Generic[S]):
    key: SessionKey
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    session: S | None = None
    users: int = 0
    """Everyone from asking to releasing. While there is one, the slot stays where it is found."""
    closed: bool = False


class _Shard(Generic[S]):
    """The sessions of one event loop. Only that loop's thread touches it."""

    def __init__(self) -> None:
        self.current: dict[SessionKey, _Slot[S]] = {}
        """What a lease of a key gets."""
        self.live: set[_Slot[S]] = set()
        """The current ones, and those that were discarded in use."""
        self.idle: OrderedDict[SessionKey, _Slot[S]] = OrderedDict()
        self.evicted: WeakValueDictionary[SessionKey, S] = WeakValueDictionary()
        """Those that somebody outside may still have in hand."""
        self.draining: dict[_Slot[S], asyncio.Task[None]] = {}
        self.engines: dict[str, Engine] = {}
        self.released = asyncio.Event()
        """Is set by each release, for `close`."""
        self.closing: asyncio.Task[Closed] | None = None

    def enter(self, key: SessionKey) -> _Slot[S]:
        slot = self.current.get(key)
        if slot is None:
            slot = self.current[key] = _Slot(key)
            slot.session = self.evicted.pop(key, None)
            self.live.add(slot)
        self.idle.pop(key, None)
        slot.users += 1
        return slot

    def is_current(self, slot: _Slot[S]) -> bool:
        return self.current.get(slot.key) is slot

    def remove(self, slot: _Slot[S]) -> None:
        """Hold a session no longer; the garbage collector takes it when nobody else holds it."""
        self.live.discard(slot)
        if self.is_current(slot):
            del self.current[slot.key]
            if slot.session is not None:
                self.evicted[slot.key] = slot.session


class SessionPool(Generic[S]):
    """The open sessions of a program, by key and event loop.

    `max_idle` is how many sessions without users stay open on each event loop.
    """

    def __init__(self, *, max_idle: int) -> None:
        self.max_idle = max_idle
        self._shards: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shard[S]] = WeakKeyDictionary()
        self._shards_guard = ThreadLock()

    @property
    def counts(self) -> PoolCounts:
        """How many sessions are open, on all event loops; any thread may ask."""
        with self._shards_guard:
            shards = [*self._shards.values()]
        # Copies: each loop's thread goes on changing its own.
        leased = sum(slot.users > 0 for shard in shards for slot in [*shard.live])
        idle = sum(len(shard.idle) for shard in shards)
        draining = sum(slot.users == 0 for shard in shards for slot in [*shard.draining])
        return PoolCounts(leased, idle, draining)

    def in_use(self, tenant: str) -> set[str]:
        """The sessions of a tenant that somebody uses on this event loop."""
        live = self._shard().live
        return {slot.key.session for slot in live if slot.users and slot.key.tenant == tenant}

    @asynccontextmanager
    async def lease(
        self, key: SessionKey, open_session: Callable[[], Awaitable[S]], *, keep: bool = True
    ) -> AsyncGenerator[S]:
        """The session of a key, which stays open meanwhile.

        Raises what `open_session` raises, and StoreClosed while the pool is being closed.

        Args:
            key: Whose session, which one, and for whom.
            open_session: Opens it, if it is not open.
            keep: Whether it stays open when nobody uses it any more.
        """
        shard = self._shard()
        slot, session = await self._acquire(shard, key, open_session)
        try:
            yield session
        finally:
            self._release(shard, slot, keep=keep)

    def find(self, key: SessionKey) -> S | None:
        """The session that a lease of this key would get without opening one."""
        shard = self._shard()
        slot = shard.current.get(key)
        return slot.session if slot is not None else shard.evicted.get(key)

    def discard(self, key: SessionKey, session: S | None = None) -> None:
        """Reopen the key at its next lease: its log was forgotten, or begun again.

        Those who use it now keep it until they release it.

        Args:
            key: Whose session it is.
            session: Only if it is this one: others may have opened another meanwhile.
        """
        if session is not None and self.find(key) is not session:
            return
        shard = self._shard()
        shard.evicted.pop(key, None)
        shard.idle.pop(key, None)
        slot = shard.current.pop(key, None)
        if slot is not None and not slot.users:
            self._let_go(shard, slot)

    def engine(self, tenant: str, new_engine: Callable[[], Engine]) -> Engine:
        """The engine that a tenant's sessions share on this event loop; `close` closes it."""
        engines = self._shard().engines
        if tenant not in engines:
            engines[tenant] = new_engine()
        return engines[tenant]

    async def drain(self, limit: float) -> None:
        """Wait until no session of this event loop makes a fold, `limit` seconds at most."""
        shard = self._shards.get(asyncio.get_running_loop())
        sessions = [slot.session for slot in shard.live] if shard is not None else []
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                busy = (session.drain() for session in sessions if session and session.busy)
                await asyncio.gather(*busy, return_exceptions=True)

    async def close(self, grace: float = GRACE) -> Closed:
        """Close the sessions and engines of this event loop.

        From now on leases are refused. Sessions in use are waited for, `grace` seconds at most, and
        then closed under their users. Afterwards the pool is empty, and can be used again. Another
        event loop closes its own sessions.
        """
        loop = asyncio.get_running_loop()
        self._drop_dead()
        shard = self._shards.get(loop)
        if shard is None:
            return Closed(0, ())
        if shard.closing is None:
            shard.closing = loop.create_task(self._close(shard, grace))
        # Shielded: a caller that is canceled while closing must not leave half of them open.
        return await asyncio.shield(shard.closing)

    async def _acquire(
        self, shard: _Shard[S], key: SessionKey, open_session: Callable[[], Awaitable[S]]
    ) -> tuple[_Slot[S], S]:
        while True:
            if shard.closing is not None:
                raise _closing()
            slot = shard.enter(key)
            try:
                # Held while it is opened: a waiter whose predecessor failed opens it itself.
                async with slot.opening:
                    if shard.is_current(slot) and not slot.closed:
                        if slot.session is None:
                            slot.session = await self._open(slot, open_session)
                        return slot, slot.session
            except BaseException:
                self._release(shard, slot, keep=True)
                raise
            # It was discarded or closed while this one waited: look again.
            self._release(shard, slot, keep=True)

    @staticmethod
    async def _open(slot: _Slot[S], open_session: Callable[[], Awaitable[S]]) -> S:
        session = await open_session()
        if slot.closed:  # `close` waited for it in vain
            await session.close()
            raise _closing()
        return session

    def _release(self, shard: _Shard[S], slot: _Slot[S], *, keep: bool) -> None:
        slot.users -= 1
        shard.released.set()
        if slot.users or slot.closed:
            return
        if slot.session is None:
            shard.remove(slot)
        elif keep and shard.is_current(slot):
            shard.idle[slot.key] = slot
            while len(shard.idle) > self.max_idle:
                _, oldest = shard.idle.popitem(last=False)
                self._let_go(shard, oldest)
        else:
            self._let_go(shard, slot)

    def _let_go(self, shard: _Shard[S], slot: _Slot[S]) -> None:
        """Hold a session no longer that has no users; if it makes a fold, after that."""
        if slot in shard.draining:
            return
        if slot.session is None or not slot.session.busy:
            shard.remove(slot)
            return
        task = asyncio.get_running_loop().create_task(self._drain(shard, slot, slot.session))
        shard.draining[slot] = task

    @staticmethod
    async def _drain(shard: _Shard[S], slot: _Slot[S], session: S) -> None:
        try:
            with suppress(Exception):  # the log says how the fold ended, or the next open
                await session.drain()
        finally:
            del shard.draining[slot]
            # It may have been leased meanwhile, and may be idle again since.
            if not slot.users and not slot.closed and shard.idle.get(slot.key) is not slot:
                shard.remove(slot)

    async def _close(self, shard: _Shard[S], grace: float) -> Closed:
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while any(slot.users for slot in shard.live):
                    shard.released.clear()
                    await shard.released.wait()
        slots = [*shard.live]
        sessions = [slot.session for slot in slots if slot.session is not None]
        sessions += shard.evicted.values()
        in_use = tuple(slot.key for slot in slots if slot.users)
        for slot in slots:
            slot.closed = True
        draining = [*shard.draining.values()]
        for task in draining:
            task.cancel()
        await asyncio.gather(*draining, return_exceptions=True)
        results = await asyncio.gather(
            *(session.close() for session in sessions), return_exceptions=True
        )
        results += await asyncio.gather(
            *(engine.close() for engine in shard.engines.values()), return_exceptions=True
        )
        with self._shards_guard:
            self._shards.pop(asyncio.get_running_loop(), None)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return Closed(len(sessions), in_use)

    def _shard(self) -> _Shard[S]:
        loop = asyncio.get_running_loop()
        shard = self._shards.get(loop)
        if shard is None:
            self._drop_dead()
            with self._shards_guard:
                shard = self._shards[loop] = _Shard()
        return shard

    def _drop_dead(self) -> None:
        with self._shards_guard:
            for loop in [*self._shards]:
                if loop.is_closed():
                    del self._shards[loop]


def _closing() -> StoreClosed:
    return StoreClosed(
        "The sessions of this store are being closed, so none is opened.",
        "Start it again after `close()` has returned.",
    )
