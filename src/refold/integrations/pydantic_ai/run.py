"""One run of an agent, managed: what it says is logged, and what it sends comes from the log."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic_ai import FunctionToolset, RunContext, Tool
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
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
from refold.integrations.pydantic_ai.scopes import Caller, Place, current
from refold.integrations.pydantic_ai.sessions import ConversationSession, Models
from refold.log import Log
from refold.models.catalog import Usage
from refold.models.overflow import Overflow
from refold.models.overflow_errors import filled, overflow_in
from refold.recall import Tool as RecallTool
from refold.recall import recall_tools
from refold.recall.tools import CHARS, MIN_CHARS
from refold.session.session import TIGHTER
from refold.view import Request


class Run:
    """What one run knows, from its beginning to its end."""

    def __init__(self, log: Log, models: Models, place: Place, *, cache: bool) -> None:
        self.place = place
        self.told: str | None = None
        """What it is told of earlier conversations."""
        self._conversations_log = log
        self._models = models
        self._cache = cache
        self._session: ConversationSession | None = None
        self._history: History | None = None
        self._answered: ModelResponse | None = None
        self._returned: dict[str, ToolReturnPart] = {}
        self._writing: set[asyncio.Future[object]] = set()
        self._request: Request | None = None
        self._asked = False
        self._over = False
        self._refusals = 0
        self._refusal: Exception | None = None

    @property
    def session(self) -> ConversationSession:
        """The session, once the run has begun."""
        assert self._session is not None  # noqa: S101 - hooks run after the beginning
        return self._session

    @property
    def _own(self) -> History:
        assert self._history is not None  # noqa: S101 - as above
        return self._history

    @property
    def room(self) -> int:
        """The most tokens that a request may have."""
        return self.session.setup.budget.limit

    @property
    def misses_something(self) -> bool:
        """Whether there is something that only recall can show."""
        return self._session is not None and self._session.shows_less

    async def begin(self, ctx: RunContext[Any], session: ConversationSession) -> None:
        """Begin in a session, leased until the end; what it shows enters the run as its history."""
        self._session = session
        session.use.model = cast("Model", ctx.model)
        session.telling.begin(ctx)
        if ctx.messages:
            await adopt(session, self._conversations_log, ctx.messages, session.begun)
        else:
            enter_history(ctx, self._entering(await self._past(), ctx))
        session.begun = session.head
        self._history = History(ctx.messages, ctx.run_id)

    async def _past(self) -> Sequence[bytes]:
        """What the model would be sent so far.

        Where that is too much (pins, say), the first request refuses it, after it has logged the
        prompt: nothing that a user says may be lost.
        """
        try:
            return await self.session.shown()
        except ViewTooLarge:
            return self.session.said

    def _entering(self, shown: Sequence[bytes], ctx: RunContext[Any]) -> list[ModelMessage]:
        """The history. Calls that were never answered are closed, unless the run may make them."""
        messages = self.session.reading(shown)
        if ctx.prompt is not None:
            return messages
        if self.session.said and isinstance(message_of(self.session.said[-1]), ModelResponse):
            while messages and not isinstance(messages[-1], ModelResponse):
                messages.pop()
        return messages

    def asks(self, ctx: RunContext[Any]) -> None:
        """A request is to be made; others may answer it before a model is asked."""
        self.goes_on(ctx)
        self._own.step()
        self._asked = False

    async def prepare(
        self, ctx: RunContext[Any], asked: ModelRequestContext
    ) -> ModelRequestContext:
        """Log what is new, and send what the view shows of it all."""
        if self._over:  # Pydantic AI ends what is left of a cancelled run later than the run itself
            raise asyncio.CancelledError
        self._asked = True
        await self._say_new(ctx)
        session = self.session
        session.use.model = asked.model
        setup = self._models.setup_for_request(
            session.use, asked.model, asked.model_request_parameters, asked.model_settings
        )
        if setup is not session.setup:
            await session.switch(setup)
        try:
            self._request = await session.request(forced=self._refusals > 0)
        except ViewTooLarge as error:
            if self._refusal is None:
                raise
            raise self._exceeded(setup.model, error) from self._refusal
        asked.messages = self.session.reading(self._request.messages)
        settings = self._models.answer_within(setup.model, self._sent, asked.model_settings)
        asked.model_settings = cast("ModelSettings", _cached(settings) if self._cache else settings)
        self.session.telling.spanned(ctx, setup.model, self._request)
        await self.session.telling.tell(ctx)
        return asked

    async def answered(
        self, ctx: RunContext[Any], asked: ModelRequestContext, response: ModelResponse
    ) -> None:
        """Log the answer, and what it used."""
        if not self._asked:  # it is no model's, and follows what was to be sent
            await self._say_new(ctx)
        named = replace(
            response,
            run_id=response.run_id or ctx.run_id,
            conversation_id=response.conversation_id or ctx.conversation_id,
        )
        used = _usage(response)
        self._answered = response
        if self._asked:
            await self._surely(self.session.answer(payload_of(named), usage=used))
        else:
            await self._surely(self.session.say(payload_of(named)))
        if self._asked and used is not None and used.input and self._request is not None:
            sent = self._request.plan.account.sent
            self._models.answered(asked.model.model_id, sent, used.input)
        self._refusals, self._refusal = 0, None
        await self.session.telling.tell(ctx)

    def cut_short(self, asked: ModelRequestContext, response: ModelResponse) -> None:
        """When the answer ended because the window was full, ask again with less.

        What was streamed cannot be taken back; then the next request leaves more room.
        """
        if not filled(response, self._window(asked), self._most):
            return
        usage = response.usage
        total = usage.input_tokens + usage.output_tokens
        self._models.refused(
            asked.model.model_id, self._sent, Overflow(total or None, usage.input_tokens or None)
        )
        if not asked.streaming and self._refusals < len(TIGHTER):
            self._refusals += 1
            raise RetryModelRequest

    def refused(self, asked: ModelRequestContext, error: Exception) -> None:
        """When the provider refused the request for its length, ask again with less."""
        said = overflow_in(error, window=self._window(asked), sent=self._most)
        if said is None:
            return
        self._models.refused(asked.model.model_id, self._sent, said)
        self._refusals += 1
        self._refusal = error
        if self._refusals > len(TIGHTER):
            raise self._exceeded(asked.model.model_id) from error
        raise RetryModelRequest from error

    def _exceeded(self, model: str, error: ViewTooLarge | None = None) -> WindowExceeded:
        times = "once" if self._refusals == 1 else f"{self._refusals} times"
        what = (
            f"{model} refused the request for its length {times}, "
            f"at last with {self._sent:,} tokens by our count."
        )
        if isinstance(error, PromptTooLarge):
            return WindowExceeded(f"{what} {error.what}", error.fix)
        return WindowExceeded(what)

    def goes_on(self, ctx: RunContext[Any]) -> None:
        """A step begins; what it adds to the history is found there however it ends."""
        self._own.is_now(ctx.messages)

    def returned(self, call: ToolCallPart, result: object) -> None:
        """A tool is done. If the run is cancelled now, nobody else will say so."""
        content = result.return_value if isinstance(result, ToolReturn) else result
        self._returned[call.tool_call_id] = ToolReturnPart(
            call.tool_name, content, call.tool_call_id
        )

    def succeeded(self) -> None:
        """The run came to its end: nobody will want to do it over."""
        self.session.begun = None

    async def end(self) -> None:
        """Log what came after the last request, as far as the run got."""
        if self._history is None:  # it never began
            return
        self._over = True
        await asyncio.gather(*self._writing, return_exceptions=True)
        await self._log(self._own.take())
        if self._returned:
            found = ModelRequest([*self._returned.values()], conversation_id=self.place.session)
            await self._surely(self.session.say(payload_of(found)))

    @property
    def _sent(self) -> int:
        return self._request.plan.account.sent if self._request else 0

    @property
    def _most(self) -> int:
        """What was sent, if the count was too low by as much as it may be."""
        return int(self._sent * (1 + self.session.setup.counter.spread))

    def _window(self, asked: ModelRequestContext) -> int | None:
        named = self._models.limit_of(asked.model.model_id)
        return named or self.session.setup.budget.window

    async def _say_new(self, ctx: RunContext[Any]) -> None:
        first = self._request is None
        self._own.is_now(ctx.messages)
        new = self._own.take()
        # A run without a prompt sends again what the session ends with.
        if first and new and repeats_the_end(self.session, new[0]):
            new = new[1:]
        await self._log(new)

    async def _log(self, new: list[ModelMessage]) -> None:
        if not new:
            return
        # The answer was logged when it came; what stands for it in the history may be a copy.
        if self._answered is not None and isinstance(new[0], ModelResponse):
            new = new[1:]
            self._answered = None
        if new:
            self._returned.clear()
            await self._surely(self.session.say(*map(payload_of, new)))

    async def _surely(self, work: Coroutine[Any, Any, object]) -> None:
        """Do it, even if the run is cancelled meanwhile."""
        task = asyncio.ensure_future(work)
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        await asyncio.shield(task)


def _cached(settings: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The settings with prompt caching on, unless somebody decided about it."""
    given = settings or {}
    return given if any("cache" in name for name in given) else {**given, "cache": True}


def _usage(response: ModelResponse) -> Usage | None:
    told = response.usage
    if not told.has_values():
        return None
    return Usage(
        told.input_tokens, told.output_tokens, told.cache_read_tokens, told.cache_write_tokens
    )


# The recall tools as Pydantic AI's, offered when there is something to recall.

LEAST_ROOM = 3_000
"""Tokens of a request below which the tools, and what they bring, would fill it."""


def recall_toolset(
    log: Log, wanted: Callable[[RunContext[Any]], bool], *, everywhere: bool
) -> AbstractToolset[Any]:
    """The tools of all runs. While everything is in view they would only cost room."""

    def of(caller: Caller) -> tuple[RecallTool, ...]:
        session, scope = caller.place
        chars = max(MIN_CHARS, min(CHARS, caller.room))  # about a quarter of it in tokens
        return recall_tools(log, session, scope=scope, chars=chars, everywhere=everywhere)

    offered = [_offered(tool, of) for tool in of(Caller(None, Place("any"), 0))]
    toolset: FunctionToolset[Any] = FunctionToolset(offered, id="refold-recall")
    return toolset.filtered(lambda ctx, _: wanted(ctx))


def _offered(tool: RecallTool, of: Callable[[Caller], tuple[RecallTool, ...]]) -> Tool[Any]:
    async def call(**arguments: Any) -> str:  # noqa: ANN401 - whatever the model gave
        caller = current()
        assert caller is not None  # noqa: S101 - it is called as a tool of a managed run
        own = next(one for one in of(caller) if one.name == tool.name)
        return await own.run(arguments)

    return Tool[Any].from_schema(call, tool.name, tool.description, tool.schema)
