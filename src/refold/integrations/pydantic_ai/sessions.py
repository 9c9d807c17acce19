"""The sessions of an agent's conversations: leased by runs, which take turns."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_core import to_json

from refold.engine import Engine
from refold.errors import RefoldError, SessionBusy
from refold.fold.compactor import MANUAL, Remember, Write
from refold.fold.job import Job
from refold.integrations.pydantic_ai.events import Telling, Watching
from refold.integrations.pydantic_ai.history import Reading
from refold.integrations.pydantic_ai.scopes import Place
from refold.log import Author, Log, Store, wall_clock
from refold.log.protocol import DEFAULT_TENANT, Held, Locks
from refold.models import ModelSettings, Overrides
from refold.models.catalog import NONE
from refold.models.experience import Experiences, Setup
from refold.models.overflow import Overflow
from refold.models.summarizer import inferred
from refold.session import Session
from refold.session.compaction import Hook, Host
from refold.session.live_view import begin
from refold.session.pool import SessionKey, SessionPool
from refold.session.retention import retain
from refold.stores import open_store
from refold.view import Profile

# What is known of the models that serve: their windows, what they refused, how they count.


class Offer(NamedTuple):
    """What a request offers the model beside its messages."""

    tools: tuple[str, ...] = ()
    """Their definitions, each as JSON."""
    instructions: str = ""


@dataclass(eq=False)
class ModelUse:
    """How one conversation uses models. A delegation has its own, as it has its own tools."""

    model: Model | None = None
    """The one that serves it: others may have the same name, and other keys."""
    offer: Offer = field(default_factory=Offer)
    """Of its newest request."""
    setups: dict[str, tuple[object, Setup]] = field(default_factory=dict[str, tuple[object, Setup]])
    """By model: what the newest setup was made of, and the setup."""


class Models:
    """Makes the setup of each request, and learns from how it went."""

    def __init__(
        self, profile: Profile, overrides: Overrides = NONE, summarizer: Model | None = None
    ) -> None:
        self._profile = profile
        self._overrides = overrides
        self._experiences = Experiences()
        self._summarizer = summarizer

    def named(self, name: str, job: Job, use: ModelUse | None) -> Model:
        """The model of that name for a fold: the summarizer, the session's own, or a new one."""
        own = self._summarizer
        if own is not None and job.trigger != MANUAL and own.model_id == name:
            return own
        primary = use.model if use is not None else None
        return primary if primary and primary.model_id == name else inferred(name)

    def setup_for_request(
        self,
        use: ModelUse,
        model: Model,
        parameters: ModelRequestParameters,
        settings: Mapping[str, Any] | None,
    ) -> Setup:
        """For which model, with which tools and instructions, a request is to be planned."""
        use.offer = Offer(_tools(parameters), _instructions(parameters))
        return self.setup(use, model, settings)

    def setup(
        self, use: ModelUse, model: Model, settings: Mapping[str, Any] | None = None
    ) -> Setup:
        """The same between requests: with the tools and instructions of the newest one."""
        name = model.model_id
        known = self._experiences.of(name)
        own = self._settings(model, settings or {})
        made_of = (own, use.offer, known.counter, known.window, known.undercount)
        before, setup = use.setups.get(name, (None, None))
        if setup is None or before != made_of:
            setup = self._experiences.setup(name, self._profile, own, *use.offer)
            use.setups[name] = made_of, setup
        return setup

    def answered(self, name: str, counted: int, reported: int) -> None:
        """A request of so many tokens, by our count and by the model's."""
        self._experiences.answered(name, counted, reported)

    def refused(self, name: str, counted: int, said: Overflow) -> None:
        """A request of so many tokens, by our count, was refused."""
        self._experiences.refused(name, counted, said)

    def answer_within(
        self, name: str, sent: int, settings: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        """The settings, asking for no longer answer than the window that was named has room for."""
        return self._experiences.answer_within(name, sent, settings)

    def limit_of(self, name: str) -> int | None:
        """The smallest limit that a model named, if it ever did."""
        return self._experiences.of(name).window

    def _settings(self, model: Model, settings: Mapping[str, Any]) -> ModelSettings:
        name = model.model_id
        found = [self._overrides[key] for key in (model.model_name, name) if key in self._overrides]
        own: dict[str, Any] = {}
        for one in found:
            own |= one.model_dump(exclude_none=True)
        window = own.get("window") or model.context_window
        output = settings.get("max_tokens") or own.get("output")
        return ModelSettings.model_validate({**own, "window": window, "output": output})


def _tools(parameters: ModelRequestParameters) -> tuple[str, ...]:
    offered: Iterable[Any] = (*parameters.function_tools, *parameters.output_tools)
    return tuple(
        to_json([one.name, one.description, one.parameters_json_schema]).decode() for one in offered
    )


def _instructions(parameters: ModelRequestParameters) -> str:
    return "\n\n".join(part.content for part in parameters.instruction_parts or ())


FORMAT = "pydantic-ai"
MAX_IDLE = 64
"""How many sessions stay open between runs."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25

NewEngine = Callable[[Log], Engine]
"""Makes the engine of a log."""


class ConversationSession(Session):
    """A session with what its runs share. `ConversationSessions` opens it."""

    telling: Telling
    reading: Reading
    use: ModelUse
    begun: int | None
    """Where the newest run began, unless it came to its end."""


@dataclass
class _Line:
    """The runs of one session, waiting for their turn."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    runs: int = 0


class ConversationSessions:
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
        self._tenant = tenant
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
        self.pool: SessionPool[ConversationSession] = SessionPool(max_idle=MAX_IDLE)
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
        await self.pool.close()
        if self._own:
            await self._store.close()

    def lease(
        self, place: Place, setup: Callable[[], Setup]
    ) -> AbstractAsyncContextManager[ConversationSession]:
        """The session at this place, opened for this setup if it is not open."""

        async def open_session() -> ConversationSession:
            return await self._open_session(place, setup())

        # A delegation is over with its run: nobody comes back to its scope.
        return self.pool.lease(self._key_of(place), open_session, keep=not place.delegated)

    def find(self, place: Place) -> ConversationSession | None:
        """The session at this place, if it is open."""
        return self.pool.find(self._key_of(place))

    def _key_of(self, place: Place) -> SessionKey:
        return SessionKey(self._tenant, place.session, place.scope)

    async def _open_session(self, place: Place, setup: Setup) -> ConversationSession:
        telling = Telling(place.session, place.scope, self._watch)
        session = await ConversationSession.open(
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
            watch=telling.watch,
            author=self._author,
        )
        session.telling, session.reading = telling, Reading()
        session.use, session.begun = ModelUse(), None
        return session

    def _engine(self) -> Engine | None:
        """The engine of this event loop, where folds are not made here."""
        new_engine = self._new_engine
        if new_engine is None:
            return None
        return self.pool.engine(self._tenant, lambda: new_engine(self.log))

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
