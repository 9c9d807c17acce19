"""What the runs of one program share: the store, the sessions that are open, whose turn it is."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from refold.engine import Engine
from refold.errors import RefoldError, SessionBusy
from refold.fold.run import Remember, Write
from refold.integrations.pydantic_ai.message_bytes import Reading
from refold.integrations.pydantic_ai.places import Place
from refold.integrations.pydantic_ai.telling import Telling, Watching
from refold.log import Author, Log, Store, wall_clock
from refold.log.protocol import DEFAULT_TENANT, Held, Locks
from refold.models.setup import Setup
from refold.session import Session
from refold.session.folds import Hook, Host
from refold.session.follow import begin
from refold.session.retention import retain
from refold.session.telling import Watch
from refold.stores import open_store
from refold.view import Profile

FORMAT = "pydantic-ai"
MOST_OPEN = 64
"""How many sessions stay open between runs."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25

NewEngine = Callable[[Log], Engine]
"""Makes the engine of a log."""


@dataclass
class Opened:
    """A session that is open on one event loop, who tells of it, and what was read of it."""

    loop: asyncio.AbstractEventLoop
    session: Session
    telling: Telling
    reading: Reading = field(default_factory=Reading)
    begun: int | None = None
    """Where the newest run began, unless it came to its end."""


@dataclass
class _Line:
    """The runs of one session, waiting for their turn."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    runs: int = 0


class Keeping:
    """A store, opened when it is first needed, and the sessions in it."""

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        store: Store | str,
        tenant: str = DEFAULT_TENANT,
        *,
        wait: float,
        before: Hook | None = None,
        host: Host = dict,
        write: Write | None = None,
        remember: Remember | None = None,
        watch: Watching | None = None,
        retention: Profile | None = None,
        author: Author | None = None,
        engine: NewEngine | None = None,
    ) -> None:
        self._watch = watch
        self._retention = retention
        self._own = isinstance(store, str)
        self._store = open_store(store) if isinstance(store, str) else store
        self.log: Log = self._store.log(tenant)
        # Two that lock in the same place keep the same sessions.
        self.key: object = (self._locks().place or id(self._store), tenant)
        self._wait = wait
        self._before = before
        self._host = host
        self._write = write
        self._remember = remember
        self._author = author
        self._new_engine = engine
        self._engines: WeakKeyDictionary[asyncio.AbstractEventLoop, Engine] = WeakKeyDictionary()
        self._open: OrderedDict[Place, Opened] = OrderedDict()
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Line]] = (
            WeakKeyDictionary()
        )

    async def open(self, using: str | None = None) -> Log:
        """The log, in an open store.

        Args:
            using: The session that is to be used. Before the first, what is too old is forgotten.
        """
        await self._store.open()
        if using is not None and self._retention is not None:
            profile, self._retention = self._retention, None
            with suppress(RefoldError):  # the next program that comes along does it
                await retain(self.log, profile, now=wall_clock(), keep={using})
        return self.log

    async def close(self) -> None:
        """Close what is open; a fold that is under way is given up, and the log says so."""
        loop = asyncio.get_running_loop()
        while self._open:
            _, found = self._open.popitem()
            if found.loop is loop:
                await found.session.close()
        engine = self._engines.pop(loop, None)
        if engine is not None:
            await engine.close()
        if self._own:
            await self._store.close()

    async def opened(self, place: Place, setup: Callable[[], Setup]) -> "Opened":
        """The session at this place, as it is open; else opened for this setup."""
        loop = asyncio.get_running_loop()
        found = self._open.pop(place, None)
        if found is None or found.loop is not loop:  # what a loop began ends with it
            telling = Telling(place.session, place.scope, self._watch)
            session = await self._session(place, setup(), telling.watch)
            found = Opened(loop, session, telling)
        if not place.delegated:
            self._open[place] = found
            await self._let_go()
        return found

    async def _session(self, place: Place, setup: Setup, watch: Watch) -> Session:
        return await Session.open(
            self.log,
            place.session,
            setup,
            format=FORMAT,
            scope=place.scope,
            engine=self._engine(),
            before=self._before,
            host=self._host,
            write=self._write,
            remember=self._remember,
            watch=watch,
            author=self._author,
        )

    def _engine(self) -> Engine | None:
        """The engine of this loop, where folds are not made here."""
        if self._new_engine is None:
            return None
        loop = asyncio.get_running_loop()
        if loop not in self._engines:
            self._engines[loop] = self._new_engine(self.log)
        return self._engines[loop]

    async def _let_go(self) -> None:
        while len(self._open) > MOST_OPEN:
            _, found = self._open.popitem(last=False)
            if found.loop is asyncio.get_running_loop():
                await found.session.close()

    @asynccontextmanager
    async def turn(
        self, session: str, profile: str, *, wait: float | None = None
    ) -> AsyncGenerator[None]:
        """One run of a session at a time, in the order in which they came.

        Else their messages would stand between each other's calls and returns. Raises SessionBusy
        after `wait` seconds, as long as runs wait unless told.
        """
        limit = self._wait if wait is None else wait
        async with self._in_line(session, limit):
            await begin(self.log, session, FORMAT, profile, self._author or Author())
            held = await self._held(session, limit)
            try:
                yield
            finally:
                held.release()

    @asynccontextmanager
    async def _in_line(self, session: str, wait: float) -> AsyncGenerator[None]:
        """The turn among the runs of this program."""
        lines = self._lines.setdefault(asyncio.get_running_loop(), {})
        line = lines.setdefault(session, _Line())
        line.runs += 1
        try:
            try:
                async with asyncio.timeout(wait):
                    await line.lock.acquire()
            except TimeoutError:
                raise _busy(session, wait) from None
            try:
                yield
            finally:
                line.lock.release()
        finally:
            line.runs -= 1
            if not line.runs:
                del lines[session]

    async def _held(self, session: str, wait: float) -> Held:
        """The lock against other processes, which poll."""
        locks = self._locks()
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + wait, _FIRST_PAUSE
        while (held := await locks.take(session)) is None:
            if loop.time() > until:
                raise _busy(session, wait)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return held

    def _locks(self) -> Locks:
        return self.log.locks("turn")


def _busy(session: str, wait: float) -> SessionBusy:
    return SessionBusy(f"Another run of session {session!r} has not ended within {wait:g} seconds.")
