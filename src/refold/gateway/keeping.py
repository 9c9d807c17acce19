"""The sessions that are open, so that each request costs what is new and no more."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from refold.engine import Engine
from refold.errors import Conflict, SessionForgotten, SessionNotFound
from refold.gateway.asker import Asker
from refold.log import Author, Log, Opened, Span, Store
from refold.models.setup import Setup
from refold.recall.records import model_of
from refold.session import Session
from refold.session.follow import check_format
from refold.view import Profile

NewEngine = Callable[[Log], Engine]
"""Makes the engine of a tenant's log."""
Title = Callable[[], str | None]
"""Says what a session is about, if that is known."""
MOST_OPEN = 500


@dataclass
class Kept:
    """A session that is open; who changes it takes its turn."""

    session: Session
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    first: UUID | None = None
    """The id of its first entry, once somebody has looked."""
    asker: Asker | None = None
    """Who asked last, as far as this process knows."""


class _Wish(NamedTuple):
    """How a session is to be opened, or begun."""

    format: str | None
    setup: Setup | None
    title: Title
    new: bool


class Keeping:
    """The sessions of all tenants in one store."""

    def __init__(
        self,
        store: Store,
        profile: Profile,
        engine: NewEngine,
        *,
        most: int = MOST_OPEN,
        author: Author | None = None,
    ) -> None:
        self._store = store
        self.profile = profile
        self._engine = engine
        self._most = most
        self._author = author or Author()
        self._engines: dict[str, Engine] = {}
        self._open: OrderedDict[tuple[str, str], Kept] = OrderedDict()
        self._opening: dict[tuple[str, str], asyncio.Lock] = {}

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    def log(self, tenant: str) -> Log:
        """A tenant's log."""
        return self._store.log(tenant)

    def engine(self, tenant: str) -> Engine:
        """What makes a tenant's folds."""
        if tenant not in self._engines:
            self._engines[tenant] = self._engine(self.log(tenant))
        return self._engines[tenant]

    @asynccontextmanager
    async def using(self, tenant: str, name: str) -> AsyncGenerator[Session]:
        """A session that is there, for who asks or steers it from outside of its conversation."""
        await self.look(tenant, name)
        async with self.kept(tenant, name) as kept, kept.turn:
            await kept.session.catch_up()
            yield kept.session

    @asynccontextmanager
    async def kept(  # noqa: PLR0913 - two are needed, the others are choices
        self,
        tenant: str,
        name: str,
        format: str | None = None,  # noqa: A002 - the glossary's word
        setup: Setup | None = None,
        *,
        title: Title = lambda: None,
        new: bool = False,
    ) -> AsyncGenerator[Kept]:
        """A session, opened or begun; it stays open while it is used, and for a while after.

        Args:
            tenant: Whose it is.
            name: Its name.
            format: Of its messages, where it may be begun.
            setup: For which model it is managed.
            title: What it is about; is asked where it is begun.
            new: Nobody has one of that name, and what is said first begins it.
        """
        kept = await self._opened(tenant, name, _Wish(format, setup, title, new))
        kept.users += 1
        try:
            yield kept
        finally:
            kept.users -= 1
            self._let_go()

    async def drop(self, tenant: str, name: str) -> None:
        """Let go of a session, if it is open: it was forgotten."""
        self._open.pop((tenant, name), None)

    async def look(self, tenant: str, name: str) -> None:
        """Let go of a session that was forgotten elsewhere, and begun anew by the same name."""
        kept = self._open.get((tenant, name))
        if kept is None:
            return
        first = await self._first(tenant, name)
        if kept.first not in (None, first):
            await self.drop(tenant, name)
        kept.first = first

    async def _first(self, tenant: str, name: str) -> UUID | None:
        with suppress(SessionNotFound, SessionForgotten):
            for entry in await self.log(tenant).read(name, Span(1, 1), whole=False):
                return entry.id
        return None

    async def close(self) -> None:
        """Close them all; folds that are under way here are given up, and the log says so."""
        self._open.clear()
        while self._engines:
            _, engine = self._engines.popitem()
            await engine.close()

    async def _opened(self, tenant: str, name: str, wish: _Wish) -> Kept:
        place = (tenant, name)
        opening = self._opening.setdefault(place, asyncio.Lock())
        try:
            async with opening:
                kept = self._open.get(place)
                if kept is None:
                    kept = Kept(await self._session(tenant, name, wish))
                    if wish.format is None:  # it may have been begun by anybody, under any name
                        kept.first = await self._first(tenant, name)
                    self._open[place] = kept
                check_format(name, kept.session.sheet.wire.name, wish.format)
                self._open.move_to_end(place)
        finally:
            if not opening.locked():
                self._opening.pop(place, None)
        return kept

    async def _session(self, tenant: str, name: str, wish: _Wish) -> Session:
        log = self.log(tenant)
        there = not wish.new and await self._is_there(log, name, wish)
        return await Session.open(
            log,
            name,
            wish.setup or await self._setup(tenant, name),
            format=wish.format,
            engine=self.engine(tenant),
            author=self._author,
            title=None if there else wish.title(),
            new=wish.new,
        )

    async def _is_there(self, log: Log, name: str, wish: _Wish) -> bool:
        """Whether it is there; one that was forgotten begins anew where its client goes on."""
        try:
            await log.info(name)
        except SessionNotFound:
            return False
        except SessionForgotten:
            if wish.format is None:
                raise
            begun = Opened(wish.format, self.profile.name, wish.title())
            with suppress(Conflict):
                await log.append(name, [self._author.draft(begun)], expected=0)
        return True

    async def _setup(self, tenant: str, name: str) -> Setup:
        """For the model that the session was for last."""
        log = self.log(tenant)
        outline = (await log.outlined(name)).outline
        model = await model_of(log, name, outline.record) if outline.record else ""
        return Setup.of(model, self.profile)

    def _let_go(self) -> None:
        """Let go of those that were not used for longest, down to as many as may be open.

        They hold nothing but memory: their engine is not theirs, and nobody watches them.
        """
        over = len(self._open) - self._most
        if over > 0:
            idle = (place for place, kept in self._open.items() if not kept.users)
            for place in [*islice(idle, over)]:
                del self._open[place]
