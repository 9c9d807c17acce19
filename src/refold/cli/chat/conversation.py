"""What a person talks with: an agent with its memory, one session of it at a time."""

import asyncio
from collections.abc import AsyncIterable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from secrets import token_hex
from time import monotonic
from typing import Any, Literal

from pydantic_ai import Agent
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import UsageLimits

from refold.cli.chat.endpoint import Endpoint
from refold.cli.chat.errors import told
from refold.cli.chat.events import Happened, Heard
from refold.cli.chat.hearing import Hearing
from refold.cli.chat.status import Status
from refold.engine.protocol import CANCELLED
from refold.errors import FoldCancelled, RefoldError, SessionNotFound
from refold.fold.events import CompactionComplete, CompactionStart
from refold.integrations.pydantic_ai import Refold
from refold.integrations.pydantic_ai.events import Happening
from refold.log import Log, Store
from refold.log.protocol import DEFAULT_TENANT
from refold.memory import Board, Branch, Consolidated
from refold.session import Compacted, Session, SessionCost, session_cost
from refold.settings import Settings
from refold.view import ASSUMED_WINDOW, Profile, UsageInfo

# Names of new sessions.


def new_name() -> str:
    """A name that no other session has: the day, and some letters.

    It holds no word of what is said: a name stays when words are forgotten, and stands in lists, in
    logs and on command lines. Lists show the first words beside it, read from the log each time.
    """
    return f"{datetime.now().astimezone():%Y-%m-%d}-{token_hex(3)}"


# One turn of an agent, heard to its end, and how it ended.

Hear = Callable[[Heard], None]
_MORE_STEPS = "Say `go on`, or allow more: /config max_steps 50."


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn ended."""

    how: Literal["answered", "interrupted", "limit", "failed"]
    text: str = ""
    """The answer, or why there is none."""
    fix: str = ""
    """What to do about it."""
    code: str = ""


async def hear_out(
    run: AbstractAsyncContextManager[AsyncIterable[object]],
    hearing: Hearing,
    hear: Hear,
    steps: int,
    model: str,
) -> TurnEnd:
    """Hear a run of the agent to its end; whatever that is, the conversation goes on."""
    try:
        async with run as events:
            async for event in events:
                if (heard := hearing.heard(event)) is not None:
                    hear(heard)
    except UsageLimitExceeded:
        return TurnEnd("limit", f"The turn ended after {steps} steps.", _MORE_STEPS, "steps")
    except Exception as error:  # noqa: BLE001 - it is told to the person
        return TurnEnd("failed", *told(error, model))
    return TurnEnd("answered", hearing.text)


_BUSY = 2.0
"""Seconds to wait for an answer that is given elsewhere, before a command is refused."""
_EXACT = 0.03
"""Of a count: how far it may be off and still be called exact."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a conversation is made of."""

    store: Store
    agent: Agent[Any, Any]
    model: Model
    settings: Callable[[], Settings]
    """Reads them anew."""
    model_named: Callable[[str], Model]
    model_at: Callable[[Endpoint], Model] | None = None
    """The model that a session is resumed with."""
    toolsets: Sequence[AbstractToolset[Any]] = field(default_factory=tuple)
    own: Refold | None = None
    """The memory that the agent has already."""
    tenant: str = DEFAULT_TENANT
    branch: Branch | None = None
    """Whose board new sessions are told of."""


class Conversation:
    """A session that a person talks with: its agent, its model, its memory."""

    def __init__(self, parts: Parts, name: str, hear: Hear, changed: Callable[[], None]) -> None:
        """Make one; nothing is written before the first turn.

        Args:
            parts: What it is made of.
            name: The session's name, there already or not.
            hear: Is told what happens to the folds, between turns too.
            changed: Is told when the status has changed.
        """
        self.name = name
        self.model = parts.model
        self._parts = parts
        self._hear = hear
        self._changed = changed
        self._settings = parts.settings()
        self._memory = parts.own or self._made()
        self._turn: asyncio.Task[TurnEnd] | None = None
        self._asked: asyncio.Task[Compacted] | None = None
        self._hearing: Hearing | None = None
        self._folding: float | None = None
        self._spent: SessionCost | None = None
        self._status = Status(name, parts.model.model_id)
        self._sums = asyncio.Lock()

    @property
    def memory(self) -> Refold:
        """The memory of its agent."""
        return self._memory

    @property
    def log(self) -> Log:
        """Where it is kept."""
        return self._memory.log

    @property
    def board(self) -> Board | None:
        """What later sessions are told."""
        return self._memory.board

    @property
    def profile(self) -> Profile:
        """By which it is managed."""
        return self._settings.profile

    @property
    def settings(self) -> Settings:
        """Those that apply."""
        return self._settings

    @property
    def status(self) -> Status:
        """What there is to say about it now; quick, in any thread."""
        now, begun, hearing = self._status, self._folding, self._hearing
        folding = None if begun is None else monotonic() - begun
        doing = hearing.doing if hearing is not None else ""
        return now.now(folding=folding, doing=doing)

    @property
    def busy(self) -> bool:
        """Whether a turn, or a fold that was asked for, is under way."""
        return self._turn is not None or self._asked is not None

    async def session(self) -> Session | None:
        """Its session, to steer it; None before anything was said."""
        try:
            return await self._memory.session(self.name, self.model)
        except SessionNotFound:
            return None

    async def turn(self, prompt: str, hear: Hear, *, run_id: str | None = None) -> TurnEnd:
        """One turn: what the person says, and the agent's work until it answers.

        It can be interrupted; what was said and done by then stays, and the next turn works. The
        messages of the turn name its run: the one given, or one of its own.
        """
        self._turn = asyncio.ensure_future(self._ran(prompt, hear, run_id))
        try:
            return await self._turn
        except asyncio.CancelledError:
            if not self._turn.cancelled() or _cancelled():
                raise
            return TurnEnd("interrupted")
        finally:
            self._turn = self._hearing = None
            await self.look()

    def interrupt(self) -> bool:
        """Break off what is under way: a turn, or a fold that was asked for; was there any?"""
        task = self._turn or self._asked
        return task is not None and task.cancel()

    async def cancel_fold(self) -> bool:
        """Give up the fold that is under way; whether there was one."""
        session = await self.session()
        return session is not None and await session.cancel()

    async def compact(self, focus: str | None = None) -> Compacted:
        """Fold now. Raises an error of the fold; FoldCancelled also when it is interrupted."""
        session = await self.session()
        if session is None:
            raise SessionNotFound("Nothing was said yet.", "Say something first.")
        self._asked = asyncio.ensure_future(session.compact(focus))
        try:
            return await self._asked
        except asyncio.CancelledError:
            if _cancelled():
                raise
            await session.cancel()
            raise FoldCancelled("The fold was cancelled.") from None
        finally:
            self._asked = None
            await self.look()

    async def consolidate(self) -> Consolidated:
        """Read what is new in the session, for the board. Raises NotRemembered."""
        return await self._memory.consolidate(self.name, self.model)

    def model_named(self, name: str) -> Model:
        """Another model. Raises an error that names those that are known."""
        return self._parts.model_named(name)

    async def must_fold_for(self, model: Model) -> bool:
        """Whether the view is too large for another model, so that a switch folds first."""
        session = await self.session()
        return session is not None and session.must_fold_for(
            self._memory.setup_for(model, self.name)
        )

    async def switch(self, model: Model) -> None:
        """Go on with another model; when its window is too small for the view, fold first."""
        session = await self.session()
        if session is not None:  # folded by who answered until now
            await session.switch(self._memory.setup_for(model, self.name))
        self.model = model
        await self.look()

    def model_at(self, endpoint: Endpoint) -> Model:
        """The model that answers there. Raises NoModel where it cannot be had any more."""
        if self._parts.model_at is None:
            return self.model
        return self._parts.model_at(endpoint)

    async def go_to(self, name: str, model: Model | None = None) -> None:
        """Go on with another session, there already or not; with another model, if one is given."""
        self.name = name
        self.model = model or self.model
        self._spent = None
        self._folding = None
        await self.look()

    async def reload(self) -> None:
        """Go on by the settings that apply now."""
        self._settings = self._parts.settings()
        if self._parts.own is None:
            await self._memory.close()
            self._memory = self._made()
        await self.look()

    async def open(self) -> None:
        """Open its store."""
        await self._memory.open()

    def alone(self) -> AbstractAsyncContextManager[None]:
        """While nobody answers in it, here or elsewhere. Raises SessionBusy when somebody does."""
        return self._memory.between_runs(self.name, wait=_BUSY)

    async def close(self) -> None:
        """Stop; a fold that is under way is given up, and the log says so."""
        await self._memory.close()

    async def look(self) -> None:
        """Bring the status up to date with the log, which others may write, too."""
        with suppress(RefoldError):  # it is shown again when it can be read
            self._status = await self._looked()
            self._changed()

    async def _looked(self) -> Status:
        setup = self._memory.setup_for(self.model, self.name)
        session = await self.session()
        filled = None
        if session is not None:
            await session.catch_up()
            setup = session.setup
            filled = session.filled
            async with self._sums:
                self._spent = await session_cost(
                    self.log, self.name, self._spent, self._settings.models
                )
            if not session.folding:
                self._folding = None
            elif self._folding is None:
                self._folding = monotonic()
        sums = self._spent or SessionCost()
        return Status(
            self.name,
            self.model.model_id,
            window=setup.budget.window,
            assumed=ASSUMED_WINDOW,
            filled=filled,
            exact=setup.counter.spread <= _EXACT,
            cost=sums.cost if sums.requests or setup.prices.input is not None else None,
            saved=sums.saved,
        )

    async def _ran(self, prompt: str, hear: Hear, run_id: str | None) -> TurnEnd:
        parts, hearing = self._parts, Hearing()
        self._hearing = hearing
        self._changed()  # it may wait for another terminal long before anything is heard
        steps = self.profile.max_steps
        run = parts.agent.run_stream_events(
            prompt,
            conversation_id=self.name,
            run_id=run_id,
            model=self.model,
            toolsets=parts.toolsets,
            capabilities=[] if parts.own else [self._memory],
            usage_limits=UsageLimits(request_limit=steps or None),
        )

        def told(heard: Heard) -> None:
            hear(heard)
            self._changed()

        return await hear_out(run, hearing, told, steps, self.model.model_id)

    def _made(self) -> Refold:
        settings, parts = self._settings, self._parts
        return Refold(
            parts.store,
            profile=settings.profile,
            models=settings.models,
            tenant=parts.tenant,
            board=parts.branch,
            watch=self._watch,
        )

    def _watch(self, session: str, happening: Happening) -> None:
        if session != self.name:
            return
        match happening:
            case CompactionStart():
                self._folding = monotonic()
            case CompactionComplete():
                self._folding = None
            case UsageInfo() if self._hearing is not None:
                self._hearing.asked = True
            case _:
                pass
        if self._asked is None or not _given_up(happening):  # who asked for it says so
            self._hear(Happened(happening))
        self._changed()


def _given_up(happening: Happening) -> bool:
    return isinstance(happening, CompactionComplete) and happening.error == CANCELLED


def _cancelled() -> bool:
    """Whether who waits for it was cancelled, too."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
