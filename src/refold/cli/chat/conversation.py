"""An agent with its memory, and the session of it that a person talks with."""

import asyncio
import json
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import Any, Literal, cast

from pydantic_ai import Agent, AgentRunResultEvent
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
)
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import UsageLimits
from pydantic_core import to_json

from refold.cli.chat.endpoint import Endpoint
from refold.cli.chat.errors import CHAT, Advice, AnswerEnds, describe_error
from refold.cli.chat.status import Status
from refold.cli.chat.surface import (
    ContextEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    TurnEvent,
)
from refold.engine.protocol import CANCELLED
from refold.errors import FoldCancelled, RefoldError, SessionNotFound
from refold.exports.moments import counted
from refold.fold.events import CompactionComplete, CompactionStart, CompactionWait
from refold.integrations.pydantic_ai import Refold
from refold.log import Log, Origin, Store
from refold.log.protocol import DEFAULT_TENANT
from refold.memory import Board, Branch, Consolidated
from refold.models.accounts import Accounts
from refold.session import AnyEvent, Compacted, Filled, Receipt, Session
from refold.session.permissions import GuardedCall, UserWords
from refold.session.retention import announce
from refold.settings import Settings
from refold.stores import SqliteStore
from refold.view import ASSUMED_WINDOW, Counter, Profile, UsageInfo
from refold.view.view_input import Row

WAITING = "waiting for another terminal"
_PATIENCE = 1.0  # seconds after which a turn that has asked no model is waiting for somebody
_BUSY = 2.0  # seconds to wait for an answer that is given elsewhere, before a command is refused
_CHARS_PER_TOKEN = 4  # about, of what is not counted yet
_COUNTED_AT_ONCE = 400  # characters
_EXACT = 0.03  # how far a token count may be off and still be called exact

OnEvent = Callable[[TurnEvent], None]


def new_name() -> str:
    """A name that no other session has: the day, and some letters.

    It holds no word of the conversation: a name stays when messages are forgotten, and appears in
    lists, in logs and on command lines. Lists show the first words beside it, read from the log.
    """
    return f"{datetime.now().astimezone():%Y-%m-%d}-{token_hex(3)}"


@dataclass(frozen=True, slots=True)
class TurnEnd:
    how: Literal["answered", "interrupted", "limit", "failed"]
    text: str = ""  # the answer, or why there is none
    fix: str = ""  # what to do about it
    code: str = ""
    at_limit: bool = False  # the model stopped at a limit; `fix` says how it goes on


@dataclass(frozen=True, slots=True)
class Parts:
    store: Store
    agent: Agent[Any, Any]
    model: Model
    settings: Callable[[], Settings]  # reads them again
    model_named: Callable[[str], Model]
    model_at: Callable[[Endpoint], Model] | None = None  # the model a session is resumed with
    toolsets: Sequence[AbstractToolset[Any]] = field(default_factory=tuple)
    own: Refold | None = None  # the memory that the agent has already
    tenant: str = DEFAULT_TENANT
    origin: Origin | None = None
    branch: Branch | None = None  # whose board new sessions receive
    notify: Callable[[str], None] = lambda _: None  # shows the person a sentence
    resume: Callable[[str], str] | None = None  # a session's command, where none are typed


class Conversation:
    """A session that a person talks with: its agent, its model, its memory."""

    def __init__(
        self, parts: Parts, name: str, on_event: OnEvent, changed: Callable[[], None]
    ) -> None:
        """Make one; nothing is written before the first turn.

        Args:
            parts: What it is made of.
            name: The session's name; the session may exist or not.
            on_event: Called with what happens to the folds, between turns too.
            changed: Called when the status has changed.
        """
        self.name = name
        self.model = parts.model
        self._parts = parts
        self._on_event = on_event
        self._changed = changed
        self._settings = parts.settings()
        self._memory = parts.own or self._new_memory()
        self.late_prompts: Callable[[], Awaitable[Sequence[str]]] | None = None
        """Takes what was typed while a turn waited for a fold."""
        self._turn: asyncio.Task[TurnEnd] | None = None
        self._compaction: asyncio.Task[Compacted] | None = None
        self._closing: asyncio.Future[None] | None = None
        self._tracker: TurnTracker | None = None
        self.folding = False
        """Whether a fold is running, whether or not a turn waits for it."""
        self._waiting_since: float | None = None
        self._accounts = Accounts()
        self._status = Status(name, parts.model.model_id)
        self._sums = asyncio.Lock()

    @property
    def memory(self) -> Refold:
        return self._memory

    @property
    def log(self) -> Log:
        return self._memory.log

    @property
    def store_file(self) -> Path | None:
        """The file in which the session is stored; None if it is not a file."""
        store = self._parts.store
        if isinstance(store, SqliteStore) and self._parts.own is None:
            return store.path.resolve()
        return None

    @property
    def board(self) -> Board | None:
        return self._memory.board

    @property
    def profile(self) -> Profile:
        return self._settings.profile

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def status(self) -> Status:
        """The status as of now; quick, in any thread."""
        since, tracker = self._waiting_since, self._tracker
        status = replace(self._status, folding=None if since is None else monotonic() - since)
        if tracker is None:
            return status
        return replace(
            status,
            filled=tracker.filled(status.filled),
            doing=tracker.doing,
            seconds=tracker.seconds,
            tokens=tracker.tokens,
        )

    @property
    def busy(self) -> bool:
        """Whether a turn, or a compaction that was requested, is running."""
        return self._turn is not None or self._compaction is not None

    @property
    def advice(self) -> Advice:
        """What can be done next, where this conversation is held."""
        resume = self._parts.resume
        return Advice(resume(self.name)) if resume else CHAT

    async def session(self) -> Session | None:
        """Its session; None before the first message."""
        try:
            return await self._memory.session(self.name, self.model)
        except SessionNotFound:
            return None

    async def unanswered(self) -> str | None:
        """The newest prompt, if its turn ended without an answer; None if it was answered."""
        session = await self.session()
        if session is None:
            return None
        await session.catch_up()
        rows = session.inputs.rows
        if not rows or _is_answer(rows[-1]):
            return None
        wire = session.inputs.wire
        for row in reversed(rows):
            shapes = wire.describe(row.payload).shapes if row.has("prompt") else ()
            if texts := [shape.text for shape in shapes if shape.kind == "prompt"]:
                return "\n\n".join(texts)
        return None

    async def turn(
        self, prompt: str | None, on_event: OnEvent, *, run_id: str | None = None
    ) -> TurnEnd:
        """Run one turn: the person's prompt, and the agent's work until it answers.

        Without a prompt, a turn that failed goes on where it ended: its prompt is sent again, and
        tools that ran already are not run again.

        It can be interrupted: everything up to then stays in the log, and the next turn works. The
        messages of the turn name its run: the one given, or one of its own.
        """
        self._turn = asyncio.ensure_future(self._run_turn(prompt, on_event, run_id))
        try:
            return await self._turn
        except asyncio.CancelledError:
            if not self._turn.cancelled() or _caller_canceled():
                raise
            return TurnEnd(
                "interrupted", "Interrupted.", "Everything up to then is in the log.", "interrupted"
            )
        finally:
            self._turn = None
            try:
                await self.look()
            finally:  # only now: the figures of the turn stay until those of the log replace them
                self._tracker = None
                self._changed()

    async def _run_turn(self, prompt: str | None, on_event: OnEvent, run_id: str | None) -> TurnEnd:
        if prompt is None:
            await self._drop_partial_answer()
        parts, model = self._parts, self.model.model_id
        tracker = self._tracker = TurnTracker(self._memory.setup_for(self.model, self.name).counter)
        self._changed()  # it may wait for another terminal long before its first event
        steps, ends = self.profile.max_steps, AnswerEnds()
        run: AbstractAsyncContextManager[AsyncIterable[object]] = parts.agent.run_stream_events(
            prompt,
            conversation_id=self.name,
            run_id=run_id,
            model=self.model,
            toolsets=parts.toolsets,
            capabilities=[ends] if parts.own else [self._memory, ends],
            usage_limits=UsageLimits(request_limit=steps or None),
        )
        try:
            async with run as events:
                async for event in events:
                    if (translated := tracker.translate(event)) is not None:
                        on_event(translated)
                        self._changed()
        except UsageLimitExceeded:
            after = f"The turn ended after {counted(steps or 0, 'step')}."
            return TurnEnd("limit", after, self.advice.more_steps(), "steps")
        except Exception as error:  # noqa: BLE001 - shown to the person; the conversation goes on
            described = describe_error(error, model, self.advice, began=tracker.answering)
            return TurnEnd("failed", *described)
        if ends.reason == "length":
            return TurnEnd("answered", tracker.text, self.advice.go_on(), at_limit=True)
        return TurnEnd("answered", tracker.text)

    async def _drop_partial_answer(self) -> None:
        """Leave the beginning of an answer, which a failure cut off, out of the next request."""
        session = await self.session()
        if session is None:
            return
        await session.catch_up()
        rows = session.inputs.rows
        if rows and rows[-1].role == "assistant" and _is_cut_off(rows[-1]):
            async with self.alone():
                await session.rewind(rows[-1].seq - 1)

    def interrupt(self) -> bool:
        """Interrupt the turn, the requested compaction or the closing; return whether one ran."""
        task = self._turn or self._compaction or self._closing
        return task is not None and task.cancel()

    async def cancel_fold(self) -> bool:
        """Cancel the running fold; whether there was one."""
        session = await self.session()
        return session is not None and await session.cancel()

    async def compact(self, focus: str | None = None) -> Compacted:
        """Fold now. Raises FoldError, and FoldCancelled also when it is interrupted."""
        session = await self.session()
        if session is None:
            raise SessionNotFound("The conversation is empty.", "Send a message first.")
        self._compaction = asyncio.ensure_future(session.compact(focus))
        try:
            return await self._compaction
        except asyncio.CancelledError:
            if _caller_canceled():
                raise
            await session.cancel()
            raise FoldCancelled("The fold was canceled.") from None
        finally:
            self._compaction = None
            await self.look()

    async def consolidate(self) -> Consolidated:
        """Read what is new in the session, for the board. Raises NotRemembered."""
        return await self._memory.consolidate(self.name, self.model)

    def model_named(self, name: str) -> Model:
        """The model of that name. Raises RefoldError with the nearest names."""
        return self._parts.model_named(name)

    async def must_fold_for(self, model: Model) -> bool:
        """Whether the context is too large for another model, so that a switch folds first."""
        session = await self.session()
        return session is not None and session.must_fold_for(
            self._memory.setup_for(model, self.name)
        )

    async def switch(self, model: Model) -> None:
        """Continue with another model; fold first if the context exceeds its window."""
        session = await self.session()
        if session is not None:  # the previous model writes the summary
            await session.switch(self._memory.setup_for(model, self.name))
        self.model = model
        await self.look()

    def model_at(self, endpoint: Endpoint) -> Model:
        """The model that answers there. Raises NoModel if it is no longer available."""
        return self._parts.model_at(endpoint) if self._parts.model_at else self.model

    async def go_to(self, name: str, model: Model | None = None) -> None:
        """Continue with another session, which may be new; with another model, if one is given."""
        self.name = name
        self.model = model or self.model
        self._accounts = Accounts()
        self.folding, self._waiting_since = False, None
        await self.look()

    async def reload(self) -> None:
        self._settings = self._parts.settings()
        if self._parts.own is None:
            await self._memory.close(wait=0)
            opened = self._memory.opened
            self._memory = self._new_memory()
            self._memory.take_over(opened)
            self._announce_retention()
        await self.look()

    def _announce_retention(self) -> None:
        if self._parts.own is None:
            announce(self.log, self.profile, self._parts.notify)

    async def open(self) -> None:
        await self._memory.open()
        self._announce_retention()

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Hold the session between runs, here and elsewhere. Raises SessionBusy during a run."""
        return self._memory.between_runs(self.name, wait=_BUSY)

    async def close(self, *, finish: bool = False) -> None:
        """Stop; a running fold is left to the next process that opens the session.

        With `finish`, only if it takes longer than a request would wait for it, or if it is
        interrupted.
        """
        try:
            if finish:
                self._closing = asyncio.ensure_future(self._memory.close())
                await self._closing
        except asyncio.CancelledError:
            if _caller_canceled():
                raise
        finally:
            await self._memory.close(wait=0)

    async def look(self) -> None:
        """Bring the status up to date with the log, which others may write, too."""
        with suppress(RefoldError):  # it is shown again when it can be read
            self._status = await self._read_status()
            self._changed()

    async def _read_status(self) -> Status:
        setup = self._memory.setup_for(self.model, self.name)
        session = await self.session()
        filled, sums = None, Receipt()
        if session is not None:
            await session.catch_up()
            setup = session.setup
            filled = session.filled
            async with self._sums:
                sums = await self._accounts.read_on(self.log, self.name)
            self.folding = session.folding
            if not session.folding:
                self._waiting_since = None
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

    def _new_memory(self) -> Refold:
        settings, parts = self._settings, self._parts
        return Refold(
            parts.store,
            profile=_in_chat(settings.profile),
            models=settings.models,
            tenant=parts.tenant,
            board=parts.branch,
            origin=parts.origin,
            late_prompts=self._take_late,
            watch=self._watch,
            permit=self._not_permitted,
            named=parts.model_named,
        )

    async def _not_permitted(self, call: GuardedCall, said: Sequence[UserWords]) -> None:  # noqa: ARG002 - as asked
        """In a chat, only /allow permits a call: say so to the person."""
        self._parts.notify(
            f"The model wants to run {call.tool}, which needs your permission. To give it: "
            f"{self.advice.command(f'/allow {call.tool}')}"
        )

    async def _take_late(self, session: str) -> Sequence[str]:
        if self.late_prompts is None or session != self.name:
            return []
        return await self.late_prompts()

    def _watch(self, session: str, happening: AnyEvent) -> None:
        if session != self.name:
            return
        canceled = False
        match happening:
            case CompactionStart():
                self.folding = True
            case CompactionWait():
                self._waiting_since = monotonic()
            case CompactionComplete():
                self.folding, self._waiting_since = False, None
                canceled = happening.error == CANCELLED
            case UsageInfo():  # the request goes out, even if it has waited in vain
                self._waiting_since = None
                if self._tracker is not None:
                    self._tracker.request(happening)
            case _:
                pass
        if self._compaction is None or not canceled:  # /compact itself reports that
            self._on_event(ContextEvent(happening))
        self._changed()


def _in_chat(profile: Profile) -> Profile:
    """The profile, with its settings for chats applied."""
    if profile.workspace.keep != "chat":
        return profile
    workspace = profile.workspace.model_copy(update={"keep": "always"})
    return profile.model_copy(update={"workspace": workspace})


def _caller_canceled() -> bool:
    """Whether the waiting task was canceled, too, and not only what it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _is_answer(row: Row) -> bool:
    return row.role == "assistant" and not row.has("call") and not _is_cut_off(row)


def _is_cut_off(row: Row) -> bool:
    return json.loads(row.payload).get("state") == "interrupted"


class TurnTracker:
    """Translates the events of one agent run; knows which calls are open and since when."""

    def __init__(self, counter: Counter) -> None:
        self._open: dict[str, tuple[str, float]] = {}  # call id -> tool, start
        self._since = monotonic()
        self._counter = counter
        self._uncounted = ""
        self._written = 0  # tokens by the model, counted so far
        self._read = 0  # tokens of results since the newest request
        self._before_request = 0  # tokens that the model had written when it was made
        self._usage: UsageInfo | None = None
        self.requested = False  # whether a model was asked
        self._sending = ""  # what the model sends: thinking, writing; empty until something came
        self.text = ""  # the answer so far: everything since the last tool call

    @property
    def doing(self) -> str:
        """The running tools, or what the model does, or that it is another's turn."""
        if not self.requested and monotonic() - self._since > _PATIENCE:
            return WAITING
        return ", ".join(tool for tool, _ in self._open.values()) or self._sending or "thinking"

    @property
    def answering(self) -> bool:
        """Whether the model is in the middle of an answer."""
        return bool(self._sending)

    @property
    def seconds(self) -> float:
        return monotonic() - self._since

    @property
    def tokens(self) -> int:
        """What the model has written in this turn, about."""
        return self._written + len(self._uncounted) // _CHARS_PER_TOKEN

    def filled(self, before: Filled | None) -> Filled | None:
        """The window as of now: the newest request, and everything since."""
        usage, new = self._usage, self.tokens - self._before_request + self._read
        if usage is not None:
            folds = min(before.folds, usage.conversation_tokens) if before else 0
            conversation = usage.conversation_tokens + new
            return Filled(usage.system_tokens, usage.tool_definitions_tokens, conversation, folds)
        return before and before._replace(conversation=before.conversation + new)

    def request(self, usage: UsageInfo) -> None:
        self.requested, self._sending = True, ""
        self._usage, self._before_request, self._read = usage, self.tokens, 0

    def _write(self, text: str, doing: str = "writing") -> None:
        self._sending = doing
        # Counted in long pieces: a tokenizer sees more tokens in the pieces of a stream than in
        # their sum.
        self._uncounted += text
        if len(self._uncounted) >= _COUNTED_AT_ONCE:
            self._written += self._counter.text(self._uncounted)
            self._uncounted = ""

    def translate(self, event: object) -> TurnEvent | None:  # noqa: PLR0911 - one case a kind
        """The event as the chat shows it; None if there is nothing to show."""
        self.requested = True
        match event:
            case PartStartEvent(part=TextPart(content=text)) if text:
                return self._text(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                return self._text(text)
            case PartStartEvent(part=ThinkingPart(content=text)):
                return self._thinking(text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
                return self._thinking(text)
            case PartStartEvent(part=ToolCallPart(args=str(text))):
                return self._write(text)
            case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str(text))):
                return self._write(text)
            case FunctionToolCallEvent(part=call):
                self._open[call.tool_call_id] = call.tool_name, monotonic()
                self.text = self._sending = ""
                return ToolCall(call.tool_call_id, call.tool_name, call_arguments(call.args))
            case FunctionToolResultEvent(part=result):
                return self._result(result)
            case AgentRunResultEvent():
                return self._output(cast("AgentRunResultEvent[object]", event).result.output)
            case _:
                return None

    def _text(self, text: str) -> TextDelta:
        self.text += text
        self._write(text)
        return TextDelta(text)

    def _thinking(self, text: str) -> ThinkingDelta:
        self._write(text, "thinking")
        return ThinkingDelta(text)

    def _result(self, result: ToolReturnPart | object) -> ToolResult:
        call = str(getattr(result, "tool_call_id", ""))
        now = monotonic()
        tool, start = self._open.pop(call, ("", now))
        if isinstance(result, ToolReturnPart):
            failed, text = result.outcome != "success", result.model_response_str()
            self._read += len(text) // _CHARS_PER_TOKEN
            return ToolResult(call, tool, text, now - start, failed)
        return ToolResult(call, tool, str(getattr(result, "content", "")), now - start, failed=True)

    def _output(self, output: object) -> TextDelta | None:
        """The agent's output, unless the model has streamed it already."""
        if output is None or (isinstance(output, str) and (not output or self.text.strip())):
            return None
        if isinstance(output, str):
            return self._text(output)
        value = to_json(output, indent=2, bytes_mode="base64", fallback=str).decode()
        with suppress(ValueError):
            if json.loads(self.text) == json.loads(value):
                return None
        gap = "\n\n" if self.text.strip() else ""
        return self._text(f"{gap}```json\n{value}\n```")


def call_arguments(arguments: object) -> str:
    """`path=src/app.py lines=20`; JSON for anything more complex."""
    given: Any = arguments
    if isinstance(arguments, str):
        with suppress(ValueError):
            given = json.loads(arguments)
    if not isinstance(given, dict):
        return "" if given in (None, "") else str(given)
    return " ".join(f"{name}={_value(value)}" for name, value in given.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any JSON


def _value(value: object) -> str:
    if isinstance(value, str) and value and " " not in value and value.isprintable():
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
