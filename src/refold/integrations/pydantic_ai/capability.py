"""Refold as a capability of a Pydantic AI agent."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self, cast

import anyio
from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext, infer_model
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset

from refold.errors import InvalidInput, InvalidSetting
from refold.fold.compactor import Write
from refold.fold.job import Job
from refold.integrations.pydantic_ai.events import Watch
from refold.integrations.pydantic_ai.run import Run, recall_toolset
from refold.integrations.pydantic_ai.scopes import Place, active_caller, place_of
from refold.integrations.pydantic_ai.sessions import (
    ConversationSessions,
    Models,
    ModelUse,
    NewEngine,
)
from refold.log import Log, Store
from refold.log.protocol import DEFAULT_TENANT
from refold.memory import Board, Branch, Consolidated, MemorySink, consolidate, remembering
from refold.models import ModelSettings, Overrides
from refold.models.catalog import NO_OVERRIDES
from refold.session import Session, Setup
from refold.session.compaction import Hook, Host
from refold.view import Profile
from refold.view.profiles import profile as profile_named

_END_TIMEOUT = 10.0
"""Seconds to log the end of a run, canceled or not."""


class Refold(AbstractCapability[Any]):
    """The memory of an agent: it logs conversations, resumes them and keeps them within the window.

    `Agent(model, capabilities=[Refold("sqlite:///refold.db")])` is all you need. A run with the
    `conversation_id` of an earlier run continues that conversation, in any process.
    """

    def __init__(  # noqa: PLR0913 - all of them have a default
        self,
        store: Store | str = "memory:",
        *,
        profile: Profile | str = "balanced",
        summarizer: Model | str | None = None,
        memory: MemorySink | None = None,
        board: Branch | None = None,
        models: Overrides = NO_OVERRIDES,
        tenant: str = DEFAULT_TENANT,
        recall: bool = True,
        everywhere: bool = False,
        cache: bool = True,
        wait: float = 300.0,
        before: Hook | None = None,
        host: Host = dict,
        watch: Watch | None = None,
        engine: NewEngine | None = None,
    ) -> None:
        """Make the memory of one or more agents.

        Args:
            store: Where conversations are stored: an address, or a store that is open already.
            profile: How they are managed; `load_settings()` reads one from files and variables.
            summarizer: Writes the summaries; "primary" is the agent's model. By default, code does.
            memory: Where summaries are stored for other conversations.
            board: The branch of a repository whose facts are shown to new conversations.
            models: Corrections to the published windows and prices of models.
            tenant: Whose conversations they are.
            recall: Whether the model gets tools to search and read what it no longer sees.
            everywhere: Whether these tools also reach the tenant's other conversations.
            cache: Whether to turn on prompt caching unless the agent's settings mention it.
            wait: Seconds that a run waits for another run of its conversation to end.
            before: Runs before each fold and may refuse it.
            host: What your program knows about the current work, for the summaries.
            watch: Called with each event of any conversation, between runs too.
            engine: Makes the engine that runs folds elsewhere; its workers choose the summarizer.
        """
        self.id = "refold"
        self._overrides = overrides = {name: _validate(name, models[name]) for name in models}
        if isinstance(profile, str):
            profile = profile_named(profile)
        if summarizer is not None:
            name = summarizer if isinstance(summarizer, str) else summarizer.model_id
            profile = profile.model_copy(update={"summarizer": name})
        self._profile = profile
        self._models = Models(
            profile, overrides, summarizer if isinstance(summarizer, Model) else None
        )
        by_model = profile.summarizer or profile.fold.writer == "model"
        self._sessions = ConversationSessions(
            store,
            tenant,
            wait=wait,
            before=before,
            host=host,
            write=_write_by_model(self._find_model, overrides) if by_model else None,
            remember=remembering(memory) if memory is not None else None,
            watch=watch,
            retention=profile,
            engine=engine,
        )
        self._board = Board(self.log, board) if board is not None else None
        self._cache = cache
        self._runs: dict[tuple[str | None, str | None], Run] = {}
        self._tools = (
            recall_toolset(self.log, self._may_recall, everywhere=everywhere) if recall else None
        )

    @property
    def log(self) -> Log:
        """The log that the conversations are stored in."""
        return self._sessions.log

    @property
    def board(self) -> Board | None:
        """The board whose facts are shown to new conversations."""
        return self._board

    async def consolidate(self, conversation_id: str, model: Model | str) -> Consolidated:
        """Have this model read what is new in a conversation, and update the board.

        Raises InvalidInput without a board, SessionNotFound without such a conversation,
        NotRemembered when the model fails.
        """
        log = await self._sessions.open(conversation_id)
        if self._board is None:
            raise InvalidInput(
                "There is no board to put anything on.",
                "Give one: Refold(board=branch_of(Path.cwd())).",
            )
        from refold.models.summarizer import RemAgent  # noqa: PLC0415 - slow to import

        agent = RemAgent(infer_model(model), self._overrides)
        return await consolidate(log, conversation_id, self._board, agent)

    async def session(self, conversation_id: str, model: Model | str) -> Session:
        """A conversation's session, to control it: compact, unfold, rewind, fork, forget.

        The runs of the conversation use the same one. You can use it until `close()`, however many
        other conversations there are. Raises SessionNotFound without such a conversation.
        """
        log = await self._sessions.open(conversation_id)
        await log.head(conversation_id)
        model, place = infer_model(model), Place(conversation_id)
        async with self._sessions.lease(place, lambda: self._bare_setup(model)) as session:
            session.use.model = model
            return session

    @asynccontextmanager
    async def between_runs(self, conversation_id: str, *, wait: float) -> AsyncGenerator[None]:
        """Hold off the conversation's runs, here and in other processes.

        Use it to clear or rewind a conversation, which would otherwise remove what a run continues
        from. Raises SessionBusy when a run does not end within `wait` seconds.
        """
        await self._sessions.open(conversation_id)
        async with self._sessions.turn(conversation_id, self._profile.name, wait=wait):
            yield

    def setup_for(self, model: Model, conversation_id: str) -> Setup:
        """How a conversation is managed for this model between runs.

        It includes the tools and instructions of the conversation's newest request in this process.
        """
        return self._models.setup(self._use(conversation_id) or ModelUse(), model)

    def _use(self, conversation_id: str) -> ModelUse | None:
        session = self._sessions.find(Place(conversation_id))
        return session.use if session is not None else None

    def _bare_setup(self, model: Model) -> Setup:
        return self._models.setup(ModelUse(), model)

    def _find_model(self, name: str, job: Job) -> Model:
        return self._models.find(name, job, self._use(job.session))

    async def open(self) -> None:
        """Open the store; runs do so on demand."""
        await self._sessions.open()

    async def close(self) -> None:
        """Close the sessions, and the store if it was given by its address.

        Runs that start meanwhile are refused. Active runs have 10 seconds to end, then their
        sessions are closed. Later runs open everything again, if the store is a file.
        """
        await self._sessions.close()

    async def __aenter__(self) -> Self:
        await self._sessions.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def get_ordering(self) -> CapabilityOrdering:
        # Outermost: others change what we send, and we log what they leave of the answer.
        return CapabilityOrdering(position="outermost")

    def get_toolset(self) -> AbstractToolset[Any] | None:
        return self._tools

    def get_instructions(self) -> Any:  # noqa: ANN401 - Pydantic AI's own type has many forms
        # The board as it was when the conversation began: the same in all of its requests.
        return self._board_text if self._board is not None else None

    def _board_text(self, ctx: RunContext[Any]) -> str | None:
        run = self._runs.get((ctx.conversation_id, ctx.run_id))
        return run.board_text if run is not None else None

    def _may_recall(self, ctx: RunContext[Any]) -> bool:
        run = self._runs.get((ctx.conversation_id, ctx.run_id))
        return run is not None and run.offers_recall

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> AgentRunResult[Any]:  # noqa: ANN401 - Pydantic AI's own type needs its graph
        if not isinstance(ctx.model, Model):
            raise InvalidInput(
                "A realtime session has no requests that Refold could manage.",
                "Leave Refold out of the capabilities of realtime agents.",
            )
        conversation, name = ctx.conversation_id or "", ctx.run_id or ""
        log = await self._sessions.open(conversation)
        agent = ctx.agent.name if ctx.agent else None
        place = await place_of(log, self._sessions.key, conversation, agent, name)
        run = Run(log, self._models, place, cache=self._cache)
        if place.delegated:  # its caller holds the turn
            return await self._execute(run, ctx, handler)
        async with self._sessions.turn(place.session, self._profile.name):
            return await self._execute(run, ctx, handler)

    async def _execute(self, run: Run, ctx: RunContext[Any], handler: Any) -> AgentRunResult[Any]:  # noqa: ANN401 - see above
        key, model = (ctx.conversation_id, ctx.run_id), cast("Model", ctx.model)
        async with self._sessions.lease(run.place, lambda: self._bare_setup(model)) as session:
            self._runs[key] = run
            try:
                await run.begin(ctx, session)
                if self._board is not None and not run.place.delegated:
                    created = (await self.log.info(run.place.session)).created_at
                    run.board_text = (await self._board.state(before=created)).text or None
                with active_caller(self._sessions.key, run.place):
                    result: AgentRunResult[Any] = await handler()
                session.run_start = None  # nobody will repeat a run that succeeded
                return result
            finally:
                del self._runs[key]
                with anyio.move_on_after(_END_TIMEOUT, shield=True):
                    await run.end()

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        return await self._run(ctx).prepare(ctx, request_context)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        self._run(ctx).retry_if_cut(request_context, response)
        return response

    async def wrap_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        handler: Any,  # noqa: ANN401 - see above
    ) -> ModelResponse:
        # The answer is logged as all other capabilities leave it, before any tool runs.
        run = self._run(ctx)
        run.start_step(ctx)
        response: ModelResponse = await handler(request_context)
        await run.log_answer(ctx, request_context, response)
        return response

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        self._run(ctx).retry_if_too_long(request_context, error)
        raise error

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:  # noqa: ANN401 - see above
        # However the next step ends, what it adds to the history is found there.
        self._run(ctx).history.messages = ctx.messages
        return node

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,  # noqa: ARG002 - part of the hook
        args: dict[str, Any],
        handler: Any,  # noqa: ANN401 - see above
    ) -> Any:  # noqa: ANN401 - whatever the tool returns
        run = self._run(ctx)
        with active_caller(self._sessions.key, run.place, run.room):
            result = await handler(args)
        run.add_return(call, result)
        return result

    def _run(self, ctx: RunContext[Any]) -> Run:
        return self._runs[ctx.conversation_id, ctx.run_id]


def _write_by_model(resolve: Callable[[str, Job], Model], overrides: Overrides) -> Write:
    # The checks of summaries are slow to import, and most agents need none.
    from refold.models.summarizer import by_model  # noqa: PLC0415

    return by_model(resolve, overrides)


def _validate(name: str, override: object) -> ModelSettings:
    try:
        return ModelSettings.model_validate(override)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise InvalidSetting(
            f"What `models` says of {name!r} cannot be: {where}: {first['msg']}.",
            f"It may have: {', '.join(ModelSettings.model_fields)}.",
        ) from error
