"""The sessions of all tenants, opened or begun for requests, and the setups to plan for them."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from operator import eq
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from pydantic import JsonValue

from refold.engine import Engine
from refold.errors import Conflict, SessionForgotten, SessionNotFound
from refold.fold.replace import RECALL
from refold.gateway.dialects.dialect import ParsedRequest
from refold.gateway.history import SentForms
from refold.log import CODEC, Author, Log, Opened, Origin, Span, Store, Title
from refold.log.kinds import Forgotten
from refold.memory import daily_notes
from refold.models.accounts import Accounts
from refold.models.catalog import Overrides, settings_of
from refold.models.experience import Experiences, Setup, recall_names
from refold.recall.text import model_of
from refold.session import Session
from refold.session.live_view import check_format, opening_entry
from refold.session.pool import SessionKey, SessionPool
from refold.view import Profile

if TYPE_CHECKING:
    from refold.gateway.warm_summary import SentRequest

NewEngine = Callable[[Log], Engine]
"""Makes the engine of a tenant's log."""
MakeTitle = Callable[[], Title | None]
"""Says what a session is about, if that is known."""
MAX_IDLE: Final = 500
_COMPARED_INSTRUCTIONS: Final = 80
_MAX_SETUPS: Final = 256
_MAX_SETUP_CHARS: Final = 32 * 1024 * 1024
"""Characters of the tools and instructions of all cached setups."""
_OUTPUT_LIMITS: Final = ("max_completion_tokens", "max_output_tokens", "max_tokens")


class AgentIdentity(NamedTuple):
    """What tells the agent whose conversation it is from another that only reads along.

    Some agents send requests with all of a conversation's history that are not part of it: another
    agent of theirs takes notes after each turn. It has its own instructions and its own tools.
    Agents change their instructions from turn to turn, a date or a list of files in them, and they
    change their tools; but not both at once, and not the beginning of the instructions.
    """

    instructions: str
    """Their beginning."""
    tools: str
    """Their hash."""

    @classmethod
    def of(cls, instructions: str, tools: str) -> "AgentIdentity":
        """The agent with these instructions, and tools with this hash."""
        return cls(instructions[:_COMPARED_INSTRUCTIONS], tools)

    def is_like(self, other: "AgentIdentity") -> bool:
        """Whether the two may be one agent: half of the shorter instructions is the same."""
        shared = sum(takewhile(bool, map(eq, self.instructions, other.instructions)))
        shorter = min(len(self.instructions), len(other.instructions))
        return self.tools == other.tools or 2 * shared >= shorter


@dataclass(eq=False)
class GatewaySession:
    """An open session, with what the requests in it share."""

    session: Session
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the session is changed."""
    first_entry: UUID | None = None
    """The id of the log's first entry, once looked up: a restarted log has another one."""
    agent: AgentIdentity | None = None
    """The agent of the last request, as far as this process knows."""
    last: "SentRequest | None" = field(default=None, repr=False)
    """The last request that was answered, where its model may be asked for summaries."""
    origin: "SessionStart | None" = None
    """How its log began, once looked up."""
    parent: str | None = None
    """The session of the conversation that this one reads along with, or was branched from."""
    parent_agent: AgentIdentity | None = None
    """The agent of that conversation."""
    is_branch: bool = False
    """The client went back to ask something, and may never continue here: agents ask so for a
    summary of what came before their newest answer."""
    noted: set[int] = field(default_factory=set[int])
    """Entries that the client sends back in another form, and of which the log has a note."""
    by_provider: str = ""
    """Why the provider managed the context of the last request, if it did."""
    sent: SentForms = field(default_factory=SentForms, repr=False)
    """What the last request was made of, to keep what the next one adds."""
    accounts: Accounts = field(default_factory=Accounts, repr=False)
    """What was billed and what sending everything would have cost, as far as it was read."""

    # Folds are made by the tenant's engine, which outlives its sessions, and nobody watches the
    # session: there is nothing to wait for, and nothing to close.

    @property
    def busy(self) -> bool:
        return False

    async def drain(self) -> None: ...

    async def close(self) -> None: ...


class SessionStart(NamedTuple):
    """How a session's log began."""

    first_entry: UUID
    owner: str | None
    """The id of the key that began it, if one did."""


class Opening(NamedTuple):
    """How a session is to be opened, or begun."""

    format: str | None = None
    """Of its messages, where it may be begun."""
    setup: Setup | None = None
    """For which model it is managed; None: the one that it was for last."""
    title: MakeTitle = lambda: None
    """What it is about, if it is begun now."""
    new: bool = False
    """No session has that name, and the first message begins it."""
    owner: str | None = None
    """The id of the key that begins it, if it is begun now."""
    parent: str | None = None
    """The session whose agent began it as a sub-agent's, if it is begun now."""


_MUST_EXIST: Final = Opening()


class GatewaySessions:
    """The sessions of all tenants in one store."""

    def __init__(  # noqa: PLR0913 - the last three have a default
        self,
        store: Store,
        profile: Profile,
        engine: NewEngine,
        *,
        max_idle: int = MAX_IDLE,
        author: Author | None = None,
        origin: Origin | None = None,
    ) -> None:
        """`origin` is kept with new sessions, where one program begins them all."""
        self._store = store
        self.profile = profile
        self._new_engine = engine
        self._author = author or Author()
        self._origin = origin
        self.pool: SessionPool[GatewaySession] = SessionPool(max_idle=max_idle)

    def log(self, tenant: str) -> Log:
        return self._store.log(tenant)

    def engine(self, tenant: str) -> Engine:
        """What makes a tenant's folds."""
        return self.pool.engine(tenant, lambda: self._new_engine(self.log(tenant)))

    @asynccontextmanager
    async def using(self, tenant: str, name: str) -> AsyncGenerator[Session]:
        """An existing session, to read or control it from outside of its conversation."""
        await self.drop_restarted(tenant, name)
        async with self.lease(tenant, name) as leased, leased.turn:
            await leased.session.catch_up()
            yield leased.session

    @asynccontextmanager
    async def lease(
        self, tenant: str, name: str, opening: Opening = _MUST_EXIST
    ) -> AsyncGenerator[GatewaySession]:
        """A session, opened or begun; it stays open while it is used, and for a while after.

        Raises InvalidInput if it holds messages of another format.
        """
        key = SessionKey(tenant, name)
        async with self.pool.lease(key, lambda: self._open(key, opening)) as leased:
            check_format(key.session, leased.session.inputs.wire.name, opening.format)
            yield leased

    async def drop(self, tenant: str, name: str) -> None:
        """Open a session again when it is needed next: it was forgotten."""
        self.pool.discard(SessionKey(tenant, name))

    async def drop_restarted(self, tenant: str, name: str) -> None:
        """Drop a session whose log was forgotten elsewhere, and begun again by the same name."""
        key = SessionKey(tenant, name)
        opened = self.pool.find(key)
        if opened is None:
            return
        first = await self._first_entry(key)
        if opened.first_entry not in (None, first):
            # Only this one: another request may have opened the new log meanwhile.
            self.pool.discard(key, opened)
        opened.first_entry = first

    async def close(self) -> None:
        """Close all sessions; running folds are given up, and the log records it."""
        await self.pool.close()

    async def _open(self, key: SessionKey, opening: Opening) -> GatewaySession:
        log = self.log(key.tenant)
        exists = not opening.new and await self._exists(log, key.session, opening)
        setup = opening.setup or await self._setup(log, key.session)

        def host() -> dict[str, JsonValue]:
            """How the client shows its model recall's tools, if it has them."""
            names = [*(opened.session.setup if opened else setup).recall]
            if not names and opened is not None:  # Codex defines tools in messages for some models
                rows = opened.session.inputs.rows
                fixed = (row.payload for row in rows if any(part.fixed for part in row.parts))
                names = [name for payload in fixed for name in recall_names(payload.decode())]
            return {RECALL: list[JsonValue](names)} if names else {}

        opened: GatewaySession | None = None
        session = await Session.open(
            log,
            key.session,
            setup,
            format=opening.format,
            engine=self.engine(key.tenant),
            host=host,
            remember=daily_notes(self.profile, key.tenant),
            author=self._author,
            title=None if exists else opening.title(),
            owner=opening.owner,
            origin=self._origin_of(opening),
            new=opening.new,
        )
        opened = GatewaySession(session)
        if opening.format is None:  # it may have been begun by anybody, under any name
            opened.first_entry = await self._first_entry(key)
        return opened

    async def origin(self, tenant: str, name: str) -> SessionStart | None:
        """How a session's log began; None if there is none."""
        with suppress(SessionNotFound, SessionForgotten):
            for entry in await self.log(tenant).read(name, Span(1, 1), whole=False):
                match CODEC.decode(entry):
                    case Opened(owner=owner):
                        return SessionStart(entry.id, owner)
                    case Forgotten(kept={"owner": str(owner)}):
                        return SessionStart(entry.id, owner)
                    case _:
                        return SessionStart(entry.id, None)
        return None

    def _origin_of(self, opening: Opening) -> Origin | None:
        if opening.parent is None:
            return self._origin
        return replace(self._origin or Origin(""), parent=opening.parent)

    async def _first_entry(self, key: SessionKey) -> UUID | None:
        origin = await self.origin(key.tenant, key.session)
        return origin.first_entry if origin else None

    async def _exists(self, log: Log, name: str, opening: Opening) -> bool:
        """Whether it exists; one that was forgotten begins again if its client continues it."""
        try:
            await log.info(name)
        except SessionNotFound:
            return False
        except SessionForgotten:
            if opening.format is None:
                raise
            first = opening_entry(
                opening.format,
                self.profile.name,
                opening.title(),
                opening.owner,
                self._origin_of(opening),
            )
            with suppress(Conflict):
                await log.append(name, [self._author.draft(first)], expected=0)
        return True

    async def _setup(self, log: Log, name: str) -> Setup:
        outline = (await log.outlined(name)).outline
        model = await model_of(log, name, outline.record) if outline.record else ""
        return Setup.of(model, self.profile)


class SetupCache:
    """Makes the setups that requests are planned for, and keeps the last: tools seldom change."""

    def __init__(self, profile: Profile, models: Overrides) -> None:
        self._profile = profile
        self._models = models
        self._setups: OrderedDict[tuple[object, ...], tuple[Setup, int]] = OrderedDict()
        self._chars = 0

    def get(self, parsed_request: ParsedRequest, tenant: str, experiences: Experiences) -> Setup:
        """The setup of a tenant's request, with what the tenant's answers have taught."""
        model, tools = parsed_request.model, parsed_request.tools
        instructions, output = parsed_request.instructions, _output_limit(parsed_request)
        learned = experiences.of(model)
        key = (
            *(tenant, model, tools, instructions, output),
            *(learned.factor, learned.window, learned.undercount, learned.refused),
        )
        setup, chars = self._setups.pop(key, (None, 0))
        if setup is None:
            settings = settings_of(model, self._models)
            settings = settings.model_copy(update={"output": output or settings.output})
            setup = experiences.setup(model, self._profile, settings, tools, instructions)
            chars = sum(map(len, tools)) + len(instructions)
            self._chars += chars
        self._setups[key] = setup, chars
        while len(self._setups) > 1 and (
            len(self._setups) > _MAX_SETUPS or self._chars > _MAX_SETUP_CHARS
        ):
            _, (_, dropped) = self._setups.popitem(last=False)
            self._chars -= dropped
        return setup


def _output_limit(parsed_request: ParsedRequest) -> int | None:
    """How long the answer may be, if the client limits it."""
    fields = (parsed_request.body.get(name) for name in _OUTPUT_LIMITS)
    limit = next(filter(None, fields), None)
    return limit if isinstance(limit, int) and limit > 0 else None
