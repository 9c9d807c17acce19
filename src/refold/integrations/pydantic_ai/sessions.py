"""The sessions of an agent's conversations: leased by runs, which take turns."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_core import to_json

from refold.engine import Engine
from refold.errors import RefoldError, SessionBusy
from refold.fold.compactor import MANUAL, Remember, Write
from refold.fold.job import Job
from refold.integrations.pydantic_ai.events import SessionEvents, Watch
from refold.integrations.pydantic_ai.history import MessageCache
from refold.integrations.pydantic_ai.scopes import Place
from refold.log import Author, Log, Origin, Store, wall_clock
from refold.log.protocol import DEFAULT_TENANT, LockHandle, Locks
from refold.models import ModelSettings, Overrides
from refold.models.catalog import NO_OVERRIDES
from refold.models.experience import Experiences, Setup
from refold.models.summarizer import inferred
from refold.models.summarizer_choice import LastRequest
from refold.session import Session
from refold.session.compaction import Hook, Host
from refold.session.live_view import begin
from refold.session.pool import SessionKey, SessionPool
from refold.session.retention import announce, retain
from refold.stores import open_store
from refold.view import Profile

_LOGGER = logging.getLogger("refold")
FORMAT = "pydantic-ai"
MAX_IDLE = 64
"""How many sessions stay open between runs."""
_FIRST_PAUSE, _MAX_PAUSE = 0.005, 0.25

NewEngine = Callable[[Log], Engine]
"""Makes the engine of a log."""


class Offer(NamedTuple):
    """What a request offers the model in addition to its messages."""

    tools: tuple[str, ...] = ()
    """The tools' definitions, each as JSON."""
    instructions: str = ""


@dataclass(eq=False)
class ModelUse:
    """How one conversation uses models. Delegated work has its own, as it has its own tools."""

    model: Model | None = None
    """The model object in use: another one of the same name may have another API key."""
    offer: Offer = field(default_factory=Offer)
    """The newest request's."""
    last: LastRequest | None = None
    """The request that was answered last: a summary can be asked for on top of it."""
    setups: dict[str, tuple[object, Setup]] = field(default_factory=dict[str, tuple[object, Setup]])
    """By model: the inputs of the newest setup, and the setup."""


class Models:
    """Makes the setup of each request, and learns from how it went."""

    def __init__(
        self,
        profile: Profile,
        overrides: Overrides = NO_OVERRIDES,
        summarizer: Model | None = None,
        *,
        named: Callable[[str], Model] = inferred,
    ) -> None:
        self.profile = profile
        self._named = cache(named)  # keeps a summarizer and what it learned about its room
        self._overrides = overrides
        self.experiences = Experiences()
        self._summarizer = summarizer

    def find(self, name: str, job: Job, use: ModelUse | None) -> Model:
        """The model of that name for a fold: the summarizer, the session's own, or a new one."""
        own = self._summarizer
        if own is not None and job.trigger != MANUAL and own.model_id == name:
            return own
        primary = use.model if use is not None else None
        return primary if primary and primary.model_id == name else self._named(name)

    def setup_for_request(
        self,
        use: ModelUse,
        model: Model,
        parameters: ModelRequestParameters,
        settings: Mapping[str, Any] | None,
    ) -> Setup:
        """The setup to plan a request with, including its tools and instructions."""
        tools: Iterable[Any] = (*parameters.function_tools, *parameters.output_tools)
        schemas = ([one.name, one.description, one.parameters_json_schema] for one in tools)
        use.offer = Offer(
            tuple(to_json(schema).decode() for schema in schemas),
            "\n\n".join(part.content for part in parameters.instruction_parts or ()),
        )
        return self.setup(use, model, settings)

    def setup(
        self, use: ModelUse, model: Model, settings: Mapping[str, Any] | None = None
    ) -> Setup:
        """The setup between requests: with the tools and instructions of the newest one."""
        name = model.model_id
        experience = self.experiences.of(name)
        own = self._settings(model, settings or {})
        inputs = (own, use.offer, experience.counter, experience.window, experience.undercount)
        before, setup = use.setups.get(name, (None, None))
        if setup is None or before != inputs:
            setup = self.experiences.setup(name, self.profile, own, *use.offer)
            use.setups[name] = inputs, setup
        return setup

    def setup_by_name(self, name: str) -> Setup:
        """The setup for a model of which only the name is known; it may be empty."""
        own = self._overrides_of(name.partition(":")[2], name)
        return self.experiences.setup(name, self.profile, ModelSettings.model_validate(own))

    def _settings(self, model: Model, settings: Mapping[str, Any]) -> ModelSettings:
        own = self._overrides_of(model.model_name, model.model_id)
        window = own.get("window") or model.context_window
        output = settings.get("max_tokens") or own.get("output")
        return ModelSettings.model_validate({**own, "window": window, "output": output})

    def _overrides_of(self, *names: str) -> dict[str, Any]:
        own: dict[str, Any] = {}
        for name in names:
            if name in self._overrides:
                own |= self._overrides[name].model_dump(exclude_none=True)
        return own


class ConversationSession(Session):
    """A session with what its runs share. `ConversationSessions` opens it."""

    events: SessionEvents
    decode: MessageCache
    use: ModelUse
    run_start: int | None
    """Where the newest run began, unless it succeeded."""


@dataclass
class _Line:
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
        origin: Origin | None = None,
        write: Write | None = None,
        remember: Remember | None = None,
        watch: Watch | None = None,
        retention: Profile | None = None,
        author: Author | None = None,
        engine: NewEngine | None = None,
    ) -> None:
        self._watch = watch
        self._retention = retention
        self._own = isinstance(store, str)
        journal = retention.store.forget_journal if retention is not None else ""
        if isinstance(store, str):
            store = open_store(store, forget_journal=journal)
        self._store = store
        self._tenant = tenant
        self.log: Log = self._store.log(tenant)
        # Two stores that lock in the same place hold the same sessions.
        self.key: object = (self._locks().place or id(self._store), tenant)
        self._wait = wait
        self._before = before
        self._host = host
        self._origin = origin
        self._write = write
        self._remember = remember
        self._author = author
        self._new_engine = engine
        self.started: set[str] = set()
        """The sessions that this program has opened: those are not restored again."""
        self.pool: SessionPool[ConversationSession] = SessionPool(max_idle=MAX_IDLE)
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Line]] = (
            WeakKeyDictionary()
        )

    async def open(self, using: str | None = None) -> Log:
        """The log, in an open store.

        Args:
            using: The session to be used. Before the first one, expired sessions are forgotten.
        """
        await self._store.open()
        if using is not None and self._retention is not None:
            profile, self._retention = self._retention, None
            announce(self.log, profile, _LOGGER.warning)
            with suppress(RefoldError):  # the next program will do it
                await retain(self.log, profile, now=wall_clock(), keep={using})
        return self.log

    async def close(self, wait: float = 0) -> None:
        """Close the sessions and our own store.

        Running folds have `wait` seconds to end; then they are left to the next process that opens
        their sessions.
        """
        try:
            if wait:
                await self.pool.drain(wait)
        finally:
            await self.pool.close()
            if self._own:
                await self._store.close()

    def lease(
        self, place: Place, setup: Callable[[], Setup]
    ) -> AbstractAsyncContextManager[ConversationSession]:
        """The session at this place, opened with this setup unless it is open."""

        async def open_session() -> ConversationSession:
            return await self._open_session(place, setup())

        # Delegated work ends with its run: nobody returns to its scope.
        return self.pool.lease(
            SessionKey(self._tenant, *place), open_session, keep=not place.delegated
        )

    def find(self, place: Place) -> ConversationSession | None:
        """The session at this place, if it is open."""
        return self.pool.find(SessionKey(self._tenant, *place))

    async def _open_session(self, place: Place, setup: Setup) -> ConversationSession:
        events = SessionEvents(place.session, place.scope, self._watch)
        new_engine = self._new_engine
        session = await ConversationSession.open(
            self.log,
            place.session,
            setup,
            format=FORMAT,
            scope=place.scope,
            engine=new_engine and self.pool.engine(self._tenant, lambda: new_engine(self.log)),
            before=self._before,
            host=self._host,
            origin=self._origin,
            write=self._write,
            remember=self._remember,
            watch=events.add,
            author=self._author,
        )
        if session.inputs.rows and place.session not in self.started and not place.delegated:
            session.restore_turns = setup.profile.restored_turns
        self.started.add(place.session)
        session.events, session.decode = events, MessageCache()
        session.use, session.run_start = ModelUse(), None
        return session

    @asynccontextmanager
    async def turn(
        self, session: str, profile: str, *, wait: float | None = None
    ) -> AsyncGenerator[None]:
        """One run of a session at a time, in order of arrival.

        Otherwise their messages would separate each other's tool calls from their results. Raises
        SessionBusy after `wait` seconds.
        """
        limit = self._wait if wait is None else wait
        async with self._turn_in_process(session, limit):
            author = self._author or Author()
            await begin(self.log, session, FORMAT, profile, author, origin=self._origin)
            lock = await self._take_lock(session, limit)
            try:
                yield
            finally:
                lock.release()

    @asynccontextmanager
    async def _turn_in_process(self, session: str, wait: float) -> AsyncGenerator[None]:
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

    async def _take_lock(self, session: str, wait: float) -> LockHandle:
        """Take the lock against other processes, by polling."""
        locks = self._locks()
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + wait, _FIRST_PAUSE
        while (lock := await locks.take(session)) is None:
            if loop.time() > until:
                raise _busy(session, wait)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE)
        return lock

    def _locks(self) -> Locks:
        return self.log.locks("turn")


def _busy(session: str, wait: float) -> SessionBusy:
    return SessionBusy(f"Another run of session {session!r} has not ended within {wait:g} seconds.")
