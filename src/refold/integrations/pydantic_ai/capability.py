"""Refold as a capability of a Pydantic AI agent."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self, cast

import anyio
from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext, infer_model
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset

from refold.errors import InvalidInput, InvalidSetting
from refold.fold.compactor import Write
from refold.fold.job import Job
from refold.integrations.pydantic_ai.events import Watch
from refold.integrations.pydantic_ai.run import LatePrompts, Run, memory_toolset, recall_toolset
from refold.integrations.pydantic_ai.scopes import Place, active_caller, place_of
from refold.integrations.pydantic_ai.sessions import (
    ConversationSession,
    ConversationSessions,
    Models,
    ModelUse,
    NewEngine,
)
from refold.log import MAIN_SCOPE, Log, Origin, Store
from refold.log.protocol import DEFAULT_TENANT
from refold.memory import (
    Board,
    Branch,
    Consolidated,
    DailyFiles,
    MemorySink,
    consolidate,
    daily_files,
    remembering,
    search_memory,
)
from refold.models import ModelSettings, Overrides
from refold.models.catalog import NO_OVERRIDES
from refold.models.summarizer import inferred
from refold.models.summarizer_choice import LastRequest
from refold.session import Receipt, Session, Setup, receipt_of
from refold.session.compaction import Hook, Host
from refold.session.explain import last_model
from refold.session.permissions import GuardedCall, Permit, find_permission, permitted, refusal
from refold.settings import load_settings
from refold.view import Profile

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
        profile: Profile | str | None = None,
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
        origin: Origin | None = None,
        late_prompts: LatePrompts | None = None,
        watch: Watch | None = None,
        permit: Permit | None = None,
        engine: NewEngine | None = None,
        named: Callable[[str], Model] = inferred,
    ) -> None:
        """Make the memory of one or more agents.

        Args:
            store: Where conversations are stored: an address, or a store that is open already.
            profile: How they are managed; settings apply on top of a name, not of a `Profile`.
            summarizer: Writes the summaries; "primary" is the agent's model, "" means code alone.
            memory: Where summaries are stored for other conversations; see `memory.daily`.
            board: The branch of a repository whose facts are shown to new conversations.
            models: Corrections to the published windows and prices of models.
            tenant: Whose conversations they are.
            recall: Whether the model gets tools to search and read what it no longer sees.
            everywhere: Whether these tools also reach the tenant's other conversations.
            cache: Whether to turn on prompt caching unless the agent's settings mention it.
            wait: Seconds that a run waits for another run of its conversation to end.
            before: Runs before each fold and may refuse it.
            host: What your program knows about the current work, for the summaries.
            origin: The name of your program and where it works, kept with new conversations.
            late_prompts: Given a conversation's id, returns prompts that came during a fold.
            watch: Called with each event of any conversation, between runs too.
            permit: Finds the user's message that permits a call of a tool that needs permission.
            engine: Makes the engine that runs folds elsewhere; its workers choose the summarizer.
            named: Makes the model of a name, for a summarizer that is set by name.
        """
        self.id = "refold"
        overrides = {name: _validate(name, models[name]) for name in models}
        if not isinstance(profile, Profile):
            settings = load_settings(profile)
            profile, overrides = settings.profile, {**settings.models, **overrides}
        self._overrides = overrides
        if summarizer is not None:
            name = summarizer if isinstance(summarizer, str) else summarizer.model_id
            profile = profile.model_copy(update={"summarizer": name})
        self._profile = profile
        self._models = Models(
            profile, overrides, summarizer if isinstance(summarizer, Model) else None, named=named
        )
        daily = memory if isinstance(memory, DailyFiles) else daily_files(profile.memory, tenant)
        by_model = profile.summarizer or profile.fold.writer == "model"
        self._sessions = ConversationSessions(
            store,
            tenant,
            wait=wait,
            before=before,
            host=host,
            origin=origin,
            write=self._by_model() if by_model else None,
            remember=remembering(sink) if (sink := memory or daily) is not None else None,
            watch=watch,
            retention=profile,
            engine=engine,
        )
        self._board = Board(self.log, board) if board is not None else None
        self._cache = cache
        self._permit = permit
        self._opening: dict[str, ModelUse] = {}
        self._late_prompts = late_prompts
        self._runs: dict[tuple[str | None, str | None], Run] = {}
        toolsets: list[AbstractToolset[Any]] = []
        if recall:
            toolsets += [recall_toolset(self.log, self._may_recall, everywhere=everywhere)]
        if profile.memory.search and (daily or self._board):
            find = partial(search_memory, daily=daily, board=self._board)
            toolsets += [memory_toolset(find, self._may_search_memory)]
        self._tools = CombinedToolset(toolsets) if len(toolsets) > 1 else next(iter(toolsets), None)

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

    async def session(self, conversation_id: str, model: Model | str | None = None) -> Session:
        """A conversation's session, to control it: compact, unfold, rewind, fork, forget.

        The runs of the conversation use the same one. You can use it until `close()`, however many
        other conversations there are. Without a model, no key is needed: only a summary by a model
        asks one. Raises SessionNotFound without such a conversation.

        Args:
            conversation_id: The conversation.
            model: Whose next request is planned; by default, the one that answered last.
        """
        log = await self._sessions.open(conversation_id)
        await log.head(conversation_id)
        place = Place(conversation_id)
        if model is None:
            by_name = partial(self._models.setup_by_name, await last_model(log, conversation_id))
            async with self._sessions.lease(place, by_name) as session:
                return session
        model = infer_model(model)
        async with self._lease(place, model) as session:
            session.use.model = model
            return session

    async def usage(self, conversation_id: str) -> Receipt:
        """What a conversation used and cost, next to what sending everything would have cost.

        It needs no model. Raises SessionNotFound without such a conversation.
        """
        log = await self._sessions.open(conversation_id)
        return await receipt_of(log, conversation_id)

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

    def _use(self, conversation_id: str, scope: str = MAIN_SCOPE) -> ModelUse | None:
        session = self._sessions.find(Place(conversation_id, scope))
        return session.use if session is not None else None

    def _bare_setup(self, model: Model) -> Setup:
        return self._models.setup(ModelUse(), model)

    @asynccontextmanager
    async def _lease(self, place: Place, model: Model) -> AsyncGenerator[ConversationSession]:
        # During opening, this model finishes a fold that another process left behind.
        opening = self._opening[place.session] = ModelUse(model)
        try:
            async with self._sessions.lease(place, lambda: self._bare_setup(model)) as session:
                yield session
        finally:
            if self._opening.get(place.session) is opening:
                del self._opening[place.session]

    def _by_model(self) -> Write:
        # The checks of summaries are slow to import, and not every agent needs them.
        from refold.models.summarizer import by_model  # noqa: PLC0415

        return by_model(self._find_model, self._overrides, self._find_last)

    def _find_model(self, name: str, job: Job) -> Model:
        use = self._use(job.session, job.scope)
        if use is None or use.model is None:
            use = self._opening.get(job.session)
        return self._models.find(name, job, use)

    def _find_last(self, job: Job) -> LastRequest | None:
        use = self._use(job.session, job.scope)
        return use.last if use is not None else None

    @property
    def opened(self) -> frozenset[str]:
        """The conversations that were opened so far."""
        return frozenset(self._sessions.started)

    def take_over(self, opened: frozenset[str]) -> None:
        """Continue these conversations of this program: none of them is restored again."""
        self._sessions.started |= opened

    async def open(self) -> None:
        """Open the store; runs do so on demand."""
        await self._sessions.open()

    async def close(self, *, wait: float | None = None) -> None:
        """Close the sessions, and the store if it was given by its address.

        Runs that start meanwhile are refused. Active runs have 10 seconds to end, then their
        sessions are closed. Later runs open everything again, if the store is a file.

        Summaries that are being written have `wait` seconds to end, by default as long as a request
        would wait, in a profile that trims first and summarizes afterwards. Then the next process
        that opens the conversation finishes them.
        """
        fold = self._profile.fold
        if wait is None:
            wait = fold.wait if fold.apply == "next turn" else 0
        await self._sessions.close(wait)

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

    def _may_search_memory(self, ctx: RunContext[Any]) -> bool:
        run = self._runs.get((ctx.conversation_id, ctx.run_id))
        return run is not None and run.offers_memory

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
        late_prompts = None if place.delegated else self._late_prompts
        run = Run(log, self._models, place, cache=self._cache, late_prompts=late_prompts)
        if place.delegated:  # its caller holds the turn
            return await self._execute(run, ctx, handler)
        async with self._sessions.turn(place.session, self._profile.name):
            return await self._execute(run, ctx, handler)

    async def _execute(self, run: Run, ctx: RunContext[Any], handler: Any) -> AgentRunResult[Any]:  # noqa: ANN401 - see above
        key, model = (ctx.conversation_id, ctx.run_id), cast("Model", ctx.model)
        async with self._lease(run.place, model) as session:
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
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Any,  # noqa: ANN401 - see above
    ) -> Any:  # noqa: ANN401 - whatever the tool returns
        run = self._run(ctx)
        if needs_permission(tool_def) and (refused := await self._refused(run, call)):
            run.add_return(call, refused)
            return refused
        with active_caller(self._sessions.key, run.place, run.room):
            result = await handler(args)
        run.add_return(call, result)
        return result

    async def _refused(self, run: Run, call: ToolCallPart) -> str:
        """Why a call is not made for want of permission; empty if the log has one."""
        asked = GuardedCall(call.tool_name, call.args_as_json_str())
        entry = await find_permission(self.log, run.place.session, asked, self._permit)
        if not entry:
            return refusal(asked)
        await run.session.note(permitted(asked, entry))
        return ""

    def _run(self, ctx: RunContext[Any]) -> Run:
        return self._runs[ctx.conversation_id, ctx.run_id]


def needs_permission(tool: ToolDefinition) -> bool:
    """Whether a tool is marked so: `metadata={"needs_permission": True}`, or destructive in MCP."""
    metadata: Mapping[str, Any] = tool.metadata or {}
    annotations = cast("Mapping[str, object]", metadata.get("annotations") or {})
    destructive = annotations.get("destructiveHint") is True
    return bool(metadata.get("needs_permission", destructive))


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
