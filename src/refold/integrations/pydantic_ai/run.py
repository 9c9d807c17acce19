"""One managed run of an agent: its messages are logged, and its requests come from the log."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any, cast

from opentelemetry.trace import NoOpTracer
from pydantic_ai import FunctionToolset, RunContext, Tool
from pydantic_ai.exceptions import RetryModelRequest, UsageLimitExceeded
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset

from refold.errors import PromptTooLarge, ViewTooLarge, WindowExceeded
from refold.integrations.pydantic_ai.history import (
    History,
    adopt,
    message_of,
    payload_of,
    repeats_the_end,
)
from refold.integrations.pydantic_ai.pydantic_ai_compat import enter_history
from refold.integrations.pydantic_ai.scopes import Caller, Place, current_caller
from refold.integrations.pydantic_ai.sessions import ConversationSession, Models
from refold.log import Log
from refold.models.catalog import Usage
from refold.models.overflow import Overflow
from refold.models.overflow_errors import filled, overflow_in
from refold.models.summarizer_choice import AgentRequest
from refold.recall import Tool as RecallTool
from refold.recall import memory_tool, recall_tools
from refold.recall.tools import CHARS, MIN_CHARS, Find
from refold.session.session import TIGHTER
from refold.view import Request

LatePrompts = Callable[[str], Awaitable[Sequence[str]]]
"""Takes the prompts of a conversation that have arrived while it waited for a fold."""

MIN_ROOM = 3_000
"""Smaller requests offer no recall tools: the tools and their results would fill them."""


class Run:
    """The state of one run."""

    def __init__(
        self,
        log: Log,
        models: Models,
        place: Place,
        *,
        cache: bool,
        late_prompts: LatePrompts | None = None,
    ) -> None:
        self.place = place
        self.board_text: str | None = None
        """The board's facts from earlier conversations."""
        self._log = log
        self._models = models
        self._cache = cache
        self._late_prompts = late_prompts
        self._session: ConversationSession | None = None
        self._history: History | None = None
        self._answered: ModelResponse | None = None
        self._returned: dict[str, ToolReturnPart] = {}
        self._writes: set[asyncio.Future[object]] = set()
        self._request: Request | None = None
        self._prepared = False
        """Whether this step prepared a request; other capabilities may answer without one."""
        self._ended = False
        self._steps = 0
        """How many requests were answered."""
        self._refusals = 0
        self._refusal: Exception | None = None

    @property
    def session(self) -> ConversationSession:
        assert self._session is not None  # noqa: S101 - hooks run after the beginning
        return self._session

    @property
    def history(self) -> History:
        assert self._history is not None  # noqa: S101 - as above
        return self._history

    @property
    def room(self) -> int:
        """How many tokens a request may have."""
        return self.session.setup.budget.limit

    @property
    def offers_memory(self) -> bool:
        return self._session is not None and self.room >= MIN_ROOM

    @property
    def offers_recall(self) -> bool:
        return self.offers_memory and self.session.shows_less

    async def begin(self, ctx: RunContext[Any], session: ConversationSession) -> None:
        """Begin in a session, leased until the end; its context becomes the run's history."""
        self._session = session
        session.use.model = cast("Model", ctx.model)
        if not isinstance(ctx.tracer, NoOpTracer):  # else the agent is not instrumented
            session.trace_with(ctx.tracer)
        if ctx.messages:
            session.restore_turns = 0  # the caller provides the history
            await adopt(session, self._log, ctx.messages, session.run_start)
        else:
            enter_history(ctx, await self._past(ctx))
        if self._late_prompts is not None:
            session.late_messages = partial(self._late_messages, self._late_prompts, ctx)
        session.run_start = session.head
        self._history = History(ctx.messages, ctx.run_id)

    async def _late_messages(self, late: LatePrompts, ctx: RunContext[Any]) -> list[bytes]:
        return [
            payload_of(
                ModelRequest(
                    [UserPromptPart(prompt)],
                    run_id=ctx.run_id,
                    conversation_id=ctx.conversation_id,
                )
            )
            for prompt in await late(self.place.session)
        ]

    async def _past(self, ctx: RunContext[Any]) -> list[ModelMessage]:
        said = self.session.messages
        try:
            messages = self.session.decode(await self.session.next_messages())
        except ViewTooLarge:
            # The first request raises it again, after it has logged the user's prompt.
            messages = self.session.decode(said)
        # Unanswered tool calls are closed, but a run without a prompt may make them.
        if ctx.prompt is None and said and isinstance(message_of(said[-1]), ModelResponse):
            while messages and not isinstance(messages[-1], ModelResponse):
                messages.pop()
        return messages

    def start_step(self, ctx: RunContext[Any]) -> None:
        self.history.messages = ctx.messages
        self.history.start_step()
        self._prepared = False

    async def prepare(
        self, ctx: RunContext[Any], context: ModelRequestContext
    ) -> ModelRequestContext:
        """Log what is new, and send the session's context."""
        if self._ended:  # Pydantic AI finishes a canceled run's steps later than the run itself
            raise asyncio.CancelledError
        if 0 < self._models.profile.max_steps <= self._steps:
            raise UsageLimitExceeded(
                f"The turn ended after {self._steps} steps: agent_max_steps allows no more."
            )
        self._prepared = True
        await self._log_history(ctx)
        session = self.session
        session.use.model = context.model
        self._models.experiences.resume(session.setup)
        setup = self._models.setup_for_request(
            session.use, context.model, context.model_request_parameters, context.model_settings
        )
        if setup is not session.setup:
            await session.switch(setup)
        try:
            self._request = await session.request(forced=self._refusals > 0)
        except ViewTooLarge as error:
            if self._refusal is None:
                raise
            raise self._window_exceeded(setup.model, error) from self._refusal
        context.messages = session.decode(self._request.messages)
        settings = self._models.experiences.answer_within(
            setup.model, self._sent, context.model_settings
        )
        if self._cache and not any("cache" in name for name in settings or ()):
            settings = {**(settings or {}), "cache": True}
        context.model_settings = cast("ModelSettings", settings)
        session.events.trace_request(ctx, setup.model, self._request)
        await session.events.emit(ctx)
        return context

    async def log_answer(
        self, ctx: RunContext[Any], context: ModelRequestContext, response: ModelResponse
    ) -> None:
        if not self._prepared:  # no model was asked: the step's own messages come first
            await self._log_history(ctx)
        payload = payload_of(
            replace(
                response,
                run_id=response.run_id or ctx.run_id,
                conversation_id=response.conversation_id or ctx.conversation_id,
            )
        )
        usage = _usage(response)
        self._answered = response
        self._steps += 1
        if self._prepared:
            self._keep_last(context, response)
            await self._write(self.session.answer(payload, usage=usage))
            if usage is not None and usage.input and self._request is not None:
                self._models.experiences.answered(
                    context.model.model_id, self._sent, usage.input, self._request.plan.correction
                )
        else:
            await self._write(self.session.say(payload))
        self._refusals, self._refusal = 0, None
        await self.session.events.emit(ctx)

    def _keep_last(self, context: ModelRequestContext, response: ModelResponse) -> None:
        """Keep what was sent: a fold may ask for its summary on top of it."""
        plan = self._request.plan if self._request else None
        if plan is None or self.place.delegated:
            return
        # What the answer says is shown below the request, unless it calls tools.
        seen = plan.head if response.tool_calls else self.session.head + 1
        self.session.use.last = AgentRequest(
            context.model,
            tuple(context.messages),
            {**(context.model_settings or {})},
            context.model_request_parameters,
            response,
            seen,
            plan.unseen,
            response.usage.input_tokens or self._sent,
            monotonic(),
        )

    def retry_if_cut(self, context: ModelRequestContext, response: ModelResponse) -> None:
        """When the answer ended because the window was full, ask again with less.

        What was streamed cannot be taken back; then the next request leaves more room.
        """
        if not filled(response, self._window(context), self._max_sent):
            return
        usage = response.usage
        total = usage.input_tokens + usage.output_tokens
        overflow = Overflow(total or None, usage.input_tokens or None)
        self._models.experiences.refused(context.model.model_id, self._sent, overflow)
        if not context.streaming and self._refusals < len(TIGHTER):
            self._refusals += 1
            raise RetryModelRequest

    def retry_if_too_long(self, context: ModelRequestContext, error: Exception) -> None:
        """When the provider refused the request for its length, ask again with less."""
        overflow = overflow_in(error, window=self._window(context), sent=self._max_sent)
        if overflow is None:
            return
        self._models.experiences.refused(context.model.model_id, self._sent, overflow)
        self._refusals += 1
        self._refusal = error
        if self._refusals > len(TIGHTER):
            raise self._window_exceeded(context.model.model_id) from error
        raise RetryModelRequest from error

    def _window_exceeded(self, model: str, error: ViewTooLarge | None = None) -> WindowExceeded:
        times = "once" if self._refusals == 1 else f"{self._refusals} times"
        what = (
            f"{model} refused the request for its length {times}, "
            f"at last with {self._sent:,} tokens by our count."
        )
        if isinstance(error, PromptTooLarge):
            return WindowExceeded(f"{what} {error.what}", error.fix)
        return WindowExceeded(what)

    def add_return(self, call: ToolCallPart, result: object) -> None:
        """Note a tool's result. If the run is canceled now, no message will contain it."""
        content = result.return_value if isinstance(result, ToolReturn) else result
        self._returned[call.tool_call_id] = ToolReturnPart(
            call.tool_name, content, call.tool_call_id
        )

    async def end(self) -> None:
        """Log what came after the last request, as far as the run got."""
        if self._history is None:  # it never began
            return
        self._ended = True
        self.session.late_messages = None
        await asyncio.gather(*self._writes, return_exceptions=True)
        await self._log_messages(self._history.take())
        if self._returned:
            request = ModelRequest([*self._returned.values()], conversation_id=self.place.session)
            await self._write(self.session.say(payload_of(request)))

    @property
    def _sent(self) -> int:
        return self._request.plan.account.sent if self._request else 0

    @property
    def _max_sent(self) -> int:
        """The tokens sent, if our count was too low by as much as it may be."""
        return int(self._sent * (1 + self.session.setup.counter.spread))

    def _window(self, context: ModelRequestContext) -> int | None:
        reported = self._models.experiences.of(context.model.model_id).window
        return reported or self.session.setup.budget.window

    async def _log_history(self, ctx: RunContext[Any]) -> None:
        first = self._request is None
        self.history.messages = ctx.messages
        new = self.history.take()
        # A run without a prompt sends again what the session ends with.
        if first and new and repeats_the_end(self.session, new[0]):
            new = new[1:]
        await self._log_messages(new)

    async def _log_messages(self, new: list[ModelMessage]) -> None:
        # The answer was logged when it came; the history may hold a copy of it.
        if self._answered is not None and new and isinstance(new[0], ModelResponse):
            new = new[1:]
            self._answered = None
        if new:
            self._returned.clear()
            await self._write(self.session.say(*map(payload_of, new)))

    async def _write(self, work: Coroutine[Any, Any, object]) -> None:
        """Finish the work even if the run is canceled meanwhile."""
        task = asyncio.ensure_future(work)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        await asyncio.shield(task)


def _usage(response: ModelResponse) -> Usage | None:
    usage = response.usage
    if not usage.has_values():
        return None
    return Usage(
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens
    )


def memory_toolset(find: Find, offered: Callable[[RunContext[Any]], bool]) -> AbstractToolset[Any]:
    """The tool that searches long-term memory, in all runs; `offered` says when."""
    tool = memory_tool(find)

    async def call(**arguments: Any) -> str:  # noqa: ANN401 - whatever the model sent
        return await tool.run(arguments)

    adapted = Tool[Any].from_schema(call, tool.name, tool.description, tool.schema)
    toolset: FunctionToolset[Any] = FunctionToolset([adapted], id="refold-memory")
    return toolset.filtered(lambda ctx, _: offered(ctx))


def recall_toolset(
    log: Log, offered: Callable[[RunContext[Any]], bool], *, everywhere: bool
) -> AbstractToolset[Any]:
    """The recall tools of all runs; `offered` says when."""

    def tools_for(caller: Caller) -> tuple[RecallTool, ...]:
        session, scope = caller.place
        chars = max(MIN_CHARS, min(CHARS, caller.room))  # about a quarter of it in tokens
        return recall_tools(log, session, scope=scope, chars=chars, everywhere=everywhere)

    def adapt(tool: RecallTool) -> Tool[Any]:
        async def call(**arguments: Any) -> str:  # noqa: ANN401 - whatever the model sent
            caller = current_caller()
            assert caller is not None  # noqa: S101 - it is called as a tool of a managed run
            own = next(other for other in tools_for(caller) if other.name == tool.name)
            return await own.run(arguments)

        return Tool[Any].from_schema(call, tool.name, tool.description, tool.schema)

    tools = [adapt(tool) for tool in tools_for(Caller(None, Place("any"), 0))]
    toolset: FunctionToolset[Any] = FunctionToolset(tools, id="refold-recall")
    return toolset.filtered(lambda ctx, _: offered(ctx))
