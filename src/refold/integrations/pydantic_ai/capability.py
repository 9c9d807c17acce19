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
from refold.integrations.pydantic_ai.events import Watching
from refold.integrations.pydantic_ai.run import LEAST_ROOM, Run, recall_toolset
from refold.integrations.pydantic_ai.scopes import Place, calling, consolidated, place_of, told
from refold.integrations.pydantic_ai.sessions import (
    ConversationSessions,
    Models,
    ModelUse,
    NewEngine,
)
from refold.log import Log, Store
from refold.log.protocol import DEFAULT_TENANT
from refold.memory import Board, Branch, Consolidated, MemorySink, remembering
from refold.models import ModelSettings, Overrides
from refold.models.catalog import NONE
from refold.session import Session, Setup
from refold.session.compaction import Hook, Host
from refold.view import Profile
from refold.view.profiles import profile as named

_PATIENCE = 10.0
"""Seconds that the end of a run, cancelled or not, may take to be logged."""


class Refold(AbstractCapability[Any]):
    """The memory of an agent: it logs conversations, resumes them and keeps them within the window.

    `Agent(model, capabilities=[Refold("sqlite:///refold.db")])` is all that is needed. A run with a
    `conversation_id` that is known goes on where that conversation ended, in any process.
    """

    def __init__(  # noqa: PLR0913 - all of them have a default
        self,
        store: Store | str = "memory:",
        *,
        profile: Profile | str = "balanced",
        summarizer: Model | str | None = None,
        memory: MemorySink | None = None,
        board: Branch | None = None,
        models: Overrides = NONE,
        tenant: str = DEFAULT_TENANT,
        recall: bool = True,
        everywhere: bool = False,
        cache: bool = True,
        wait: float = 300.0,
        before: Hook | None = None,
        host: Host = dict,
        watch: Watching | None = None,
        engine: NewEngine | None = None,
    ) -> None:
        """Make the memory of one or more agents.

        Args:
            store: Where conversations are kept: an address, or a store that is open already.
            profile: How they are managed; `load_settings()` reads one from files and variables.
            summarizer: Writes the summaries; "primary" is the agent's model; else the log does.
            memory: Where summaries are kept for other conversations.
            board: The branch of a repository whose facts new conversations are told of.
            models: What is known better of models than is published: windows, prices.
            tenant: Whose conversations they are.
            recall: Whether the model is offered tools to search and read what it no longer sees.
            everywhere: Whether these tools reach the tenant's other conversations, too.
            cache: Whether prompt caching is turned on where the agent's settings do not say.
            wait: Seconds that a run waits for another one of its conversation to end.
            before: Runs before each fold and may refuse it.
            host: What your program knows of the work under way, for the summaries.
            watch: Is told what happens in which conversation, as it happens, between runs too.
            engine: Has folds made elsewhere, by workers; how they summarize is theirs to know.
        """
        self.id = "refold"
        self._known = known = {name: _known(name, models[name]) for name in models}
        chosen = named(profile) if isinstance(profile, str) else profile
        if summarizer is not None:
            name = summarizer if isinstance(summarizer, str) else summarizer.model_id
            chosen = chosen.model_copy(update={"summarizer": name})
        self._profile = chosen
        own = summarizer if isinstance(summarizer, Model) else None
        self._models = Models(chosen, known, own)
        by_a_model = chosen.summarizer or chosen.fold.writer == "model"
        self._sessions = ConversationSessions(
            store,
            tenant,
            wait=wait,
            before=before,
            host=host,
            write=_by_model(self._model_named, known) if by_a_model else None,
            remember=remembering(memory) if memory is not None else None,
            watch=watch,
            retention=chosen,
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
        """The log that the conversations are kept in."""
        return self._sessions.log

    @property
    def board(self) -> Board | None:
        """The board that new conversations are told of."""
        return self._board

    async def consolidate(self, conversation_id: str, model: Model | str) -> Consolidated:
        """Have this model read what is new in a conversation, and change the board by it.

        Raises InvalidInput where there is no board, SessionNotFound where there is no such
        conversation, NotRemembered when the model fails.
        """
        log = await self._sessions.open(conversation_id)
        return await consolidated(self._board, log, conversation_id, model, self._known)

    async def session(self, conversation_id: str, model: Model | str) -> Session:
        """A conversation's session, to steer it: compact, unfold, rewind, fork, forget.

        The runs of the conversation use the same one. It can be used until `close()`, however many
        other conversations there are. Raises SessionNotFound where there is no such conversation.
        """
        log = await self._sessions.open(conversation_id)
        await log.head(conversation_id)
        served, place = infer_model(model), Place(conversation_id)
        async with self._sessions.lease(place, lambda: self._bare_setup(served)) as session:
            session.use.model = served
            return session

    @asynccontextmanager
    async def between_runs(self, conversation_id: str, *, wait: float) -> AsyncGenerator[None]:
        """While no run of the conversation is under way, here or in another process.

        To clear or rewind it: under a run, that would take away what the run goes on from. Raises
        SessionBusy when a run does not end within `wait` seconds.
        """
        await self._sessions.open(conversation_id)
        async with self._sessions.turn(conversation_id, self._profile.name, wait=wait):
            yield

    def setup_for(self, model: Model, conversation_id: str) -> Setup:
        """How a conversation is managed for this model, as far as is known between runs.

        That is with the tools and instructions of its newest request in this process, if there was
        one.
        """
        return self._models.setup(self._use(conversation_id) or ModelUse(), model)

    def _use(self, conversation_id: str) -> ModelUse | None:
        session = self._sessions.find(Place(conversation_id))
        return session.use if session is not None else None

    def _bare_setup(self, model: Model) -> Setup:
        """How a session is opened of which no request is known."""
        return self._models.setup(ModelUse(), model)

    def _model_named(self, name: str, job: Job) -> Model:
        return self._models.named(name, job, self._use(job.session))

    async def open(self) -> None:
        """Open the store; runs do so by themselves."""
        await self._sessions.open()

    async def close(self) -> None:
        """Close the sessions, and the store if it was given by its address.

        Runs that begin meanwhile are refused. Those under way have 10 seconds to end, then their
        sessions are closed. Later runs open everything again, if the store is a file.
        """
        await self._sessions.close()

    async def __aenter__(self) -> Self:
        await self._sessions.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def get_ordering(self) -> CapabilityOrdering:
        """Outermost: others change what we send, and we log what they leave of the answer."""
        return CapabilityOrdering(position="outermost")

    def get_toolset(self) -> AbstractToolset[Any] | None:
        """The recall tools."""
        return self._tools

    def get_instructions(self) -> Any:  # noqa: ANN401 - Pydantic AI's own type has many forms
        """What the board said when the conversation began; the same in all of its requests."""
        return self._of_the_board if self._board is not None else None

    def _of_the_board(self, ctx: RunContext[Any]) -> str | None:
        run = self._runs.get((ctx.conversation_id, ctx.run_id))
        return run.told if run is not None else None

    def _may_recall(self, ctx: RunContext[Any]) -> bool:
        run = self._runs.get((ctx.conversation_id, ctx.run_id))
        return run is not None and run.misses_something and run.room >= LEAST_ROOM

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> AgentRunResult[Any]:  # noqa: ANN401 - Pydantic AI's own type needs its graph
        """Begin, and end however the run ends."""
        if not isinstance(ctx.model, Model):
            raise InvalidInput(
                "A realtime session has no requests that Refold could govern.",
                "Leave Refold out of the capabilities of realtime agents.",
            )
        conversation, name = ctx.conversation_id or "", ctx.run_id or ""
        log = await self._sessions.open(conversation)
        agent = ctx.agent.name if ctx.agent else None
        place = await place_of(log, self._sessions.key, conversation, agent, name)
        run = Run(log, self._models, place, cache=self._cache)
        if place.delegated:  # who called it holds the turn
            return await self._through(run, ctx, handler)
        async with self._sessions.turn(place.session, self._profile.name):
            return await self._through(run, ctx, handler)

    async def _through(self, run: Run, ctx: RunContext[Any], handler: Any) -> AgentRunResult[Any]:  # noqa: ANN401 - see above
        key, model = (ctx.conversation_id, ctx.run_id), cast("Model", ctx.model)
        async with self._sessions.lease(run.place, lambda: self._bare_setup(model)) as session:
            self._runs[key] = run
            try:
                await run.begin(ctx, session)
                run.told = await told(self._board, self.log, run.place)
                with calling(self._sessions.key, run.place):
                    result: AgentRunResult[Any] = await handler()
                run.succeeded()
                return result
            finally:
                del self._runs[key]
                with anyio.move_on_after(_PATIENCE, shield=True):
                    await run.end()

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Send what the view shows; the agent's own history stays as it is."""
        return await self._run(ctx).prepare(ctx, request_context)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Ask again when the answer was cut because the window was full."""
        self._run(ctx).cut_short(request_context, response)
        return response

    async def wrap_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        handler: Any,  # noqa: ANN401 - see above
    ) -> ModelResponse:
        """Log the answer as all others leave it, before anything is done about it."""
        run = self._run(ctx)
        run.asks(ctx)
        response: ModelResponse = await handler(request_context)
        await run.answered(ctx, request_context, response)
        return response

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Recover when the provider refused the request for its length."""
        self._run(ctx).refused(request_context, error)
        raise error

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:  # noqa: ANN401 - see above
        """Know the run's history, whichever way the next step ends."""
        self._run(ctx).goes_on(ctx)
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
        """Let runs that the tool starts know whom they work for."""
        run = self._run(ctx)
        with calling(self._sessions.key, run.place, run.room):
            result = await handler(args)
        run.returned(call, result)
        return result

    def _run(self, ctx: RunContext[Any]) -> Run:
        return self._runs[ctx.conversation_id, ctx.run_id]


def _by_model(resolve: Callable[[str, Job], Model], known: Overrides) -> Write:
    # What checks a summary takes a while to import, and most agents do without.
    from refold.models.summarizer import by_model  # noqa: PLC0415

    return by_model(resolve, known)


def _known(name: str, given: object) -> ModelSettings:
    """What is known better of a model; a dict will do, if its names are right."""
    try:
        return ModelSettings.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise InvalidSetting(
            f"What `models` says of {name!r} cannot be: {where}: {first['msg']}.",
            f"It may have: {', '.join(ModelSettings.model_fields)}.",
        ) from error
