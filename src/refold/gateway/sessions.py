"""The sessions of all tenants, opened or begun for the requests that come in."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from operator import eq
from typing import Final, NamedTuple
from uuid import UUID

from refold.engine import Engine
from refold.errors import Conflict, SessionForgotten, SessionNotFound
from refold.gateway.dialects.dialect import ParsedRequest
from refold.log import CODEC, Author, Log, Opened, Span, Store, Title
from refold.log.kinds import Forgotten
from refold.models.catalog import ModelSettings, Overrides
from refold.models.experience import Experiences, Setup
from refold.recall.text import model_of
from refold.session import Session
from refold.session.live_view import check_format, opening_entry
from refold.session.pool import SessionKey, SessionPool
from refold.view import Profile

# Who asks: the agent whose conversation it is, or another that only reads along.
#
# Some agents ask beside their conversation, with all of its past: another agent of theirs takes
# notes
# after each turn. It has its own instructions and its own tools. Agents change their instructions
# from turn to turn, a date or a list of files in them, and they change their tools; but not both at
# once, and not the words that the instructions begin with.

_BEGINNING: Final = 80


class AgentIdentity(NamedTuple):
    """By what one who asks is known."""

    instructions: str
    """Their beginning."""
    tools: str
    """Their hash."""

    @classmethod
    def of(cls, instructions: str, tools: str) -> "AgentIdentity":
        """Who has these instructions, and tools with this hash."""
        return cls(instructions[:_BEGINNING], tools)

    def is_like(self, other: "AgentIdentity") -> bool:
        """Whether the two may be the same."""
        return self.tools == other.tools or _begin_alike(self.instructions, other.instructions)


def _begin_alike(one: str, other: str) -> bool:
    """Whether half of the shorter beginning is the same; nothing is like anything."""
    shared = sum(takewhile(bool, map(eq, one, other)))
    return 2 * shared >= min(len(one), len(other))


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
    agent: AgentIdentity | None = None
    """Who asked last, as far as this process knows."""
    origin: "Origin | None" = None
    """How its log began, once it was looked up."""
    beside: str | None = None
    """The session beside whose conversation this one asks, if it is another agent's."""
    beside_asker: AgentIdentity | None = None
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
            check_format(key.session, leased.session.inputs.wire.name, opening.format)
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
            begun = opening_entry(opening.format, self.profile.name, opening.title(), opening.owner)
            with suppress(Conflict):
                await log.append(name, [self._author.draft(begun)], expected=0)
        return True

    async def _setup(self, log: Log, name: str) -> Setup:
        """For the model that the session was for last."""
        outline = (await log.outlined(name)).outline
        model = await model_of(log, name, outline.record) if outline.record else ""
        return Setup.of(model, self.profile)


# For which model, with which tools and instructions, requests are planned.

_MOST: Final = 256
_MOST_WEIGHT: Final = 32 * 1024 * 1024
"""Characters of the tools and instructions of all setups that are kept."""
_OUTPUT: Final = ("max_completion_tokens", "max_output_tokens", "max_tokens")

_Seen = tuple[str, str, tuple[str, ...], str, int | None, float, int | None, float, int | None]
"""What a setup was made of."""


class Setups:
    """Makes them, and keeps those that were asked for last: tools are seldom others."""

    def __init__(self, profile: Profile, models: Overrides) -> None:
        self._profile = profile
        self._models = models
        self._kept: OrderedDict[_Seen, Setup] = OrderedDict()
        self._weight = 0

    def of(self, parsed_request: ParsedRequest, tenant: str, experiences: Experiences) -> Setup:
        """The setup of a tenant's request, with what the tenant's answers have taught."""
        known, output = experiences.of(parsed_request.model), _output(parsed_request)
        facts = (
            tenant,
            parsed_request.model,
            parsed_request.tools,
            parsed_request.instructions,
            output,
        )
        seen = (*facts, known.factor, known.window, known.undercount, known.refused)
        setup = self._kept.pop(seen, None)
        if setup is None:
            own = self._models.get(parsed_request.model, ModelSettings())
            own = own.model_copy(update={"output": output or own.output})
            setup = experiences.setup(
                parsed_request.model,
                self._profile,
                own,
                parsed_request.tools,
                parsed_request.instructions,
            )
            self._weight += _weight(parsed_request.tools, parsed_request.instructions)
        self._kept[seen] = setup
        self._let_go()
        return setup

    def _let_go(self) -> None:
        while len(self._kept) > 1 and (len(self._kept) > _MOST or self._weight > _MOST_WEIGHT):
            (_, _, tools, instructions, *_), _ = self._kept.popitem(last=False)
            self._weight -= _weight(tools, instructions)


def _output(parsed_request: ParsedRequest) -> int | None:
    """How long the answer may be, where the client says so."""
    given = next(
        (parsed_request.body[name] for name in _OUTPUT if parsed_request.body.get(name)), None
    )
    return given if isinstance(given, int) and given > 0 else None


def _weight(tools: tuple[str, ...], instructions: str) -> int:
    return sum(map(len, tools)) + len(instructions)
