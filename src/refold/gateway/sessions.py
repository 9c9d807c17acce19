"""The sessions of all tenants, opened or begun for the requests that come in."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from refold.engine import Engine
from refold.errors import Conflict, SessionForgotten, SessionNotFound
from refold.gateway.asker import Asker
from refold.log import CODEC, Author, Log, Opened, Span, Store, Title
from refold.log.kinds import Forgotten
from refold.models.setup import Setup
from refold.recall.records import model_of
from refold.session import Session
from refold.session.follow import check_format, opened
from refold.session.pool import SessionKey, SessionPool
from refold.view import Profile

NewEngine = Callable[[Log], Engine]
"""Makes the engine of a tenant's log."""
MakeTitle = Callable[[], Title | None]
"""Says what a session is about, if that is known."""
MAX_IDLE = 500


@dataclass(eq=False)
class GatewaySession:
    """An open session, with what the requests in it share."""

    session: Session
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Is held by whoever changes the session."""
    first_entry: UUID | None = None
    """The id of the log's first entry, once it was looked up: a restarted log has another one."""
    asker: Asker | None = None
    """Who asked last, as far as this process knows."""
    origin: "Origin | None" = None
    """How its log began, once it was looked up."""
    beside: str | None = None
    """The session beside whose conversation this one asks, if it is another agent's."""
    beside_asker: Asker | None = None
    """Whose conversation that is."""
    branched: bool = False
    """The client went back to ask something, and may never go on here: agents ask so for a summary
    of what came before their newest answer."""
    noted: set[int] = field(default_factory=set[int])
    """The entries of which the log says that their client sends them back in another form."""

    @property
    def busy(self) -> bool:
        """Never: folds are made by the tenant's engine, which outlives its sessions."""
        return False

    async def drain(self) -> None:
        """There is nothing to wait for."""

    async def close(self) -> None:
        """There is nothing to close: nobody watches the session, and the engine is not its own."""


class Origin(NamedTuple):
    """How a session's log began."""

    first_entry: UUID
    owner: str | None
    """The id of the key that began it, if one did."""


class Opening(NamedTuple):
    """How a session is to be opened, or begun."""

    format: str | None = None
    """Of its messages, where it may be begun."""
    setup: Setup | None = None
    """For which model it is managed; the one that it was for last, without one."""
    title: MakeTitle = lambda: None
    """What it is about; is asked where it is begun."""
    new: bool = False
    """Nobody has one of that name, and what is said first begins it."""
    owner: str | None = None
    """The id of the key that begins it, where it is begun now."""


_THERE = Opening()
"""It must be there already."""


class GatewaySessions:
    """The sessions of all tenants in one store."""

    def __init__(
        self,
        store: Store,
        profile: Profile,
        engine: NewEngine,
        *,
        max_idle: int = MAX_IDLE,
        author: Author | None = None,
    ) -> None:
        self._store = store
        self.profile = profile
        self._new_engine = engine
        self._author = author or Author()
        self.pool: SessionPool[GatewaySession] = SessionPool(max_idle=max_idle)

    def log(self, tenant: str) -> Log:
        """A tenant's log."""
        return self._store.log(tenant)

    def engine(self, tenant: str) -> Engine:
        """What makes a tenant's folds."""
        return self.pool.engine(tenant, lambda: self._new_engine(self.log(tenant)))

    @asynccontextmanager
    async def using(self, tenant: str, name: str) -> AsyncGenerator[Session]:
        """A session that is there, to ask or steer it from outside of its conversation."""
        await self.drop_restarted(tenant, name)
        async with self.lease(tenant, name) as leased, leased.turn:
            await leased.session.catch_up()
            yield leased.session

    def lease(
        self, tenant: str, name: str, opening: Opening = _THERE
    ) -> AbstractAsyncContextManager[GatewaySession]:
        """A session, opened or begun; it stays open while it is used, and for a while after.

        Raises InvalidInput where it holds messages of another format.
        """
        return self._lease(SessionKey(tenant, name), opening)

    @asynccontextmanager
    async def _lease(self, key: SessionKey, opening: Opening) -> AsyncGenerator[GatewaySession]:
        async with self.pool.lease(key, lambda: self._open(key, opening)) as leased:
            check_format(key.session, leased.session.sheet.wire.name, opening.format)
            yield leased

    async def drop(self, tenant: str, name: str) -> None:
        """Open a session anew when it is needed next: it was forgotten."""
        self.pool.discard(SessionKey(tenant, name))

    async def drop_restarted(self, tenant: str, name: str) -> None:
        """Drop a session whose log was forgotten elsewhere, and begun again by the same name."""
        key = SessionKey(tenant, name)
        open_one = self.pool.find(key)
        if open_one is None:
            return
        first = await self._first_entry(key)
        if open_one.first_entry not in (None, first):
            # Only this one: another request may have opened the new log meanwhile.
            self.pool.discard(key, open_one)
        open_one.first_entry = first

    async def close(self) -> None:
        """Close them all; folds that are under way here are given up, and the log says so."""
        await self.pool.close()

    async def _open(self, key: SessionKey, opening: Opening) -> GatewaySession:
        log = self.log(key.tenant)
        there = not opening.new and await self._is_there(log, key.session, opening)
        session = await Session.open(
            log,
            key.session,
            opening.setup or await self._setup(log, key.session),
            format=opening.format,
            engine=self.engine(key.tenant),
            author=self._author,
            title=None if there else opening.title(),
            owner=opening.owner,
            new=opening.new,
        )
        made = GatewaySession(session)
        if opening.format is None:  # it may have been begun by anybody, under any name
            made.first_entry = await self._first_entry(key)
        return made

    async def origin(self, tenant: str, name: str) -> Origin | None:
        """How a session's log began; None if there is none."""
        with suppress(SessionNotFound, SessionForgotten):
            for entry in await self.log(tenant).read(name, Span(1, 1), whole=False):
                match CODEC.decode(entry):
                    case Opened(owner=owner):
                        return Origin(entry.id, owner)
                    case Forgotten(kept={"owner": str(owner)}):
                        return Origin(entry.id, owner)
                    case _:
                        return Origin(entry.id, None)
        return None

    async def _first_entry(self, key: SessionKey) -> UUID | None:
        origin = await self.origin(key.tenant, key.session)
        return origin.first_entry if origin else None

    async def _is_there(self, log: Log, name: str, opening: Opening) -> bool:
        """Whether it is there; one that was forgotten begins anew where its client goes on."""
        try:
            await log.info(name)
        except SessionNotFound:
            return False
        except SessionForgotten:
            if opening.format is None:
                raise
            begun = opened(opening.format, self.profile.name, opening.title(), opening.owner)
            with suppress(Conflict):
                await log.append(name, [self._author.draft(begun)], expected=0)
        return True

    async def _setup(self, log: Log, name: str) -> Setup:
        """For the model that the session was for last."""
        outline = (await log.outlined(name)).outline
        model = await model_of(log, name, outline.record) if outline.record else ""
        return Setup.of(model, self.profile)
