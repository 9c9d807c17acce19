"""The gateway: any client's requests, managed where they can be, passed on where not."""

import asyncio
from collections import OrderedDict
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    MutableMapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Protocol, cast

import httpx2
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from refold.errors import (
    ReferenceUnknown,
    RefoldError,
    StoreError,
    StoreUnavailable,
    UpstreamUnreachable,
)
from refold.gateway.dialects import DIALECTS
from refold.gateway.dialects.dialect import (
    BOUNDS,
    COMPACTS,
    NO_STATE,
    Bounds,
    Dialect,
    ParsedRequest,
    Unreadable,
)
from refold.gateway.hidden_recall import HiddenRecall
from refold.gateway.history import check_steps
from refold.gateway.incoming import IncomingRequest, chain_of, conversation_of, owner_of
from refold.gateway.large_requests import (
    LargeRequests,
    LoggedAnswer,
    ThreadOffload,
    UnloggedAnswer,
    partial_body,
)
from refold.gateway.managed_request import SESSION, GatewayContext, ManagedRequest, Summaries
from refold.gateway.outcome import Outcome, upstream_failure
from refold.gateway.provider_state import CompactionReader, compaction_note, conversation_in
from refold.gateway.recent_answers import Share
from refold.gateway.session_resolver import SessionResolver
from refold.gateway.sessions import GatewaySessions, SessionStart, SetupCache
from refold.gateway.unmanaged import OutagePolicy, Reason, UnmanagedTurns, not_managed
from refold.gateway.upstream import (
    ProxiedRequest,
    ProxiedStream,
    Target,
    Upstream,
    Upstreams,
    UsageReader,
    target_of,
    with_headers,
)
from refold.log import Author
from refold.models.catalog import NO_OVERRIDES, Overrides, Usage, cost_of, facts_of
from refold.models.experience import Experiences, Setup
from refold.wire.splice import bounded_json

_MAX_TENANTS: Final = 1_000
_MAX_MODEL_NAME: Final = 200
_MESSAGES: Final = "/v1/messages"
_COMPACTING: Final = frozenset({"/v1/responses/compact"})
TARGET: Final = "refold.target"
"""Where the scope of a request has its target."""
_MAX_WAITING: Final = 1_000
"""Notes that wait for the store to be back."""
_UNKNOWN: Final = "This gateway has no answer with the id that the request continues from."
_UNREADABLE: Final = "This gateway cannot read what the request continues from, if it does."
_METHODS: Final = ["GET", "POST", "DELETE", "PUT", "PATCH"]


class Unmanaged(NamedTuple):
    """Why a request is passed on unmanaged."""

    reason: Reason
    detail: str = ""


class _Compaction(NamedTuple):
    """A compaction that a client asks its provider for."""

    session: str
    """Of what."""
    owner: bytes
    dialect: Dialect


class Caller(Protocol):
    @property
    def tenant(self) -> str: ...

    @property
    def key(self) -> str:
        """The id of the key."""
        ...

    @property
    def stale(self) -> bool:
        """Whether the key was checked against what was known before the store failed."""
        ...


Charge = Callable[[Any, Usage, float | None], None]
"""Called with the caller, an answer's usage, and its cost in dollars, if that is known."""
MayUse = Callable[[Any, SessionStart], Awaitable[bool]]
"""Whether a caller may continue a session with this origin."""
Refuse = Callable[[Exception, Dialect | None, Outcome], Response]
"""Makes an error response in the shape of the dialect's provider, and notes the failure."""


class Gateway:
    def __init__(  # noqa: PLR0913 - two are choices
        self,
        sessions: GatewaySessions,
        upstreams: Upstreams,
        *,
        caller_of: Callable[[Request], Awaitable[Caller]],
        refuse: Refuse,
        charge: Charge = lambda _caller, _used, _cost: None,
        models: Overrides = NO_OVERRIDES,
        outages: OutagePolicy | None = None,
        large: LargeRequests | None = None,
        may_use: MayUse | None = None,
        share: Share | None = None,
        bounds: Bounds = BOUNDS,
        summaries: Summaries = Summaries(),  # noqa: B008 - it is frozen
        recall: bool = False,
        receipts: bool = False,
    ) -> None:
        """Make one.

        Args:
            sessions: The sessions.
            upstreams: Where the models are.
            caller_of: The caller of a request; may refuse.
            refuse: Makes error responses.
            charge: Called with the usage of answers.
            models: The settings of models.
            outages: What to do while the store is unavailable; else requests are refused.
            large: Answers large requests elsewhere; else they are answered here.
            may_use: Whether a caller may continue a session that it names; else any may.
            share: Called with what identifies an answer, for another process.
            bounds: How much a managed request may hold; others are passed on as they come.
            summaries: Who writes the summaries of folds.
            recall: Whether models get recall's tools, and the gateway answers their calls.
            receipts: Whether answers say what their session has saved so far.
        """
        self._recall = recall
        self._summaries = summaries
        self._receipts = receipts
        self._bounds = bounds
        self.sessions = sessions
        self._upstreams = upstreams
        self._caller_of = caller_of
        self._refuse = refuse
        self._charge = charge
        self._models = models
        self._setups = SetupCache(sessions.profile, models)
        self._offload = ThreadOffload()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()
        self._waiting = 0
        self._resolver = SessionResolver(sessions, share=share)
        self._large = large
        self._may_use = may_use
        self._outages = outages or OutagePolicy()
        self.unmanaged = UnmanagedTurns(
            self._outages, lambda tenant, keys: sessions.log(tenant).marked(keys)
        )
        self._contexts: OrderedDict[str, GatewayContext] = OrderedDict()

    def take_answer(self, shared: Sequence[Any]) -> None:
        """Add an answer that another process of the service gave and shares."""
        self._resolver.recent.take(shared)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What the raw paths of requests to the gateway begin with."""
        return self._upstreams.prefixes

    async def ask(self, request: Request) -> Response:
        """Answer a request in one of the formats."""
        return await self._respond(request, DIALECTS[_target(request).path], self._ask)

    async def pass_on(self, request: Request) -> Response:
        """Pass any other request on as it is."""
        path = _target(request).path
        dialects = (
            dialect for prefix, dialect in DIALECTS.items() if path.startswith(f"{prefix}/")
        )
        return await self._respond(request, next(dialects, None), self._pass_on)

    async def log_answer(self, answer: UnloggedAnswer) -> LoggedAnswer:
        """Log the answer to a request that another process has asked."""
        return await self._resolver.log_answer(answer)

    async def close(self) -> None:
        """Wait for running writes, and close the sessions."""
        self._closing.set()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self.unmanaged.close()
        self._offload.close()
        await self.sessions.close()

    async def _respond(
        self,
        request: Request,
        dialect: Dialect | None,
        respond: Callable[[Request, Caller, Any, bytes], Awaitable[Response]],
    ) -> Response:
        try:
            caller = await self._caller_of(request)
            raw = await self._small_body(request, caller)
            if isinstance(raw, Response):
                return raw
            return await respond(request, caller, dialect, raw)
        except httpx2.TransportError as error:
            outcome = Outcome.of(request.scope)
            outcome.fail_upstream(error)
            what = upstream_failure(error).what
            refusal = UpstreamUnreachable(f"The model's server {what}.")
            return self._refuse(refusal, dialect, outcome)
        except RefoldError as error:
            return self._refuse(error, dialect, Outcome.of(request.scope))

    async def _ask(
        self, request: Request, caller: Caller, dialect: Dialect, raw: bytes
    ) -> Response:
        proxied = _proxied(request, caller, raw)
        try:
            parsed_request = await self._offload(len(raw), dialect.read, raw, self._bounds)
        except Unreadable as error:
            why = Unmanaged("unreadable-body", str(error) or "no JSON object")
            return await self._pass(caller, proxied, "", dialect, why)
        model = parsed_request.model
        odd_name = len(model) > _MAX_MODEL_NAME or not model.isprintable()
        if parsed_request.unmanaged == COMPACTS:
            return await self._pass_compaction(caller, dialect, proxied)
        if detail := parsed_request.unmanaged or ("no model is so named" if odd_name else ""):
            reason = "over-bounds" if parsed_request.over_bounds else "unsupported-request"
            why = Unmanaged(reason, detail)
            return await self._pass(caller, proxied, model, dialect, why)
        return await self._manage(request, caller, dialect, parsed_request, proxied)

    async def _pass_on(
        self, request: Request, caller: Caller, dialect: Dialect | None, raw: bytes
    ) -> Response:
        proxied = _proxied(request, caller, raw)
        if dialect is not None and proxied.method == "POST" and proxied.path in _COMPACTING:
            return await self._pass_compaction(caller, dialect, proxied)
        model = await self._offload(len(raw), _model_in, proxied)
        why = Unmanaged("not-a-conversation")
        return await self._pass(caller, proxied, model, dialect, why)

    async def _pass_compaction(
        self, caller: Caller, dialect: Dialect, proxied: ProxiedRequest
    ) -> Response:
        """Pass a request for a compaction by the provider on, and note that in its session."""
        model = await self._offload(len(proxied.body), _model_in, proxied)
        compaction = None
        try:
            parsed_request = await self._offload(
                len(proxied.body), conversation_in, dialect, proxied.body, self._bounds
            )
            if parsed_request is not None:
                compaction = await self._compaction(caller, dialect, parsed_request)
        except StoreError:
            if not self._outages.fail_open:
                raise
        why = Unmanaged("provider-compaction")
        return await self._pass(caller, proxied, model, dialect, why, compaction=compaction)

    async def _compaction(
        self, caller: Caller, dialect: Dialect, parsed_request: ParsedRequest
    ) -> "_Compaction | None":
        owner, tenant = owner_of(dialect, parsed_request.identity, caller.key), caller.tenant
        continued = await self._resolver.provider.continued(tenant, owner, dialect, parsed_request)
        parsed_request = continued.parsed_request
        chain = chain_of(dialect, parsed_request, caller.key, continued.root)
        setup = self._setup(parsed_request, tenant)
        incoming = IncomingRequest(tenant, dialect, parsed_request, chain, setup, key=caller.key)
        session = continued.session or await self._resolver.session_of(incoming)
        return _Compaction(session, owner, dialect) if session else None

    async def _note_compaction(
        self, tenant: str, compaction: "_Compaction", reader: CompactionReader
    ) -> None:
        note = compaction_note(compaction.owner, compaction.dialect, reader.payloads())
        if note is not None:
            drafts = [Author().draft(note)]
            await self.sessions.log(tenant).append(compaction.session, drafts, expected=None)

    async def _small_body(self, request: Request, caller: Caller) -> bytes | Response:
        """The body, or another process's response to a request that is too large for this one."""
        if self._large is None:
            return await request.body()
        body = await partial_body(request)
        if body.is_large:
            return await self._large.answer(request, caller, body)
        if body.is_growing:
            self._large.warm_up(caller.tenant)
        return body.begun

    async def _manage(
        self,
        request: Request,
        caller: Caller,
        dialect: Dialect,
        parsed_request: ParsedRequest,
        proxied: ProxiedRequest,
    ) -> Response:
        proxied.outcome.model = parsed_request.model
        recall = None
        if self._recall and parsed_request.reference is None:
            recall = HiddenRecall(dialect, self.sessions.log(caller.tenant))
            offered = await self._offload(len(parsed_request.raw), recall.offer, parsed_request)
            recall, parsed_request = (recall, offered) if offered else (None, parsed_request)
        upstream = self._upstreams.choose(parsed_request.model, dialect.name, proxied.prefix)
        charge = partial(self._charge, caller)
        context = self._context_of(caller.tenant)
        try:
            if caller.stale:
                raise StoreUnavailable("The store did not answer when the key was checked.")
            incoming = await self._incoming(request, caller, dialect, parsed_request)
            incoming = replace(incoming, recall=recall)
            if incoming.root and not incoming.parsed_request.held:
                await self._check_names(caller, dialect, proxied, upstream)
            return await ManagedRequest(context, incoming, proxied, upstream, charge).answer()
        except StoreError:
            if not self._outages.fail_open:
                raise
        why = Unmanaged("store-unavailable")
        model = parsed_request.model
        response = await self._pass(caller, proxied, model, dialect, why)
        if response.status_code == HTTPStatus.OK:
            size, key = len(parsed_request.raw), caller.key
            chain = await self._offload(size, chain_of, dialect, parsed_request, key)
            self.unmanaged.passed(caller.tenant, chain)
        return response

    async def _incoming(
        self, request: Request, caller: Caller, dialect: Dialect, parsed_request: ParsedRequest
    ) -> IncomingRequest:
        """The request, with what the log has of what it continues from."""
        owner, key = owner_of(dialect, parsed_request.identity, caller.key), caller.key
        setup, named = self._setup(parsed_request, caller.tenant), request.headers.get(SESSION)
        continued = await self._resolver.provider.continued(
            caller.tenant, owner, dialect, parsed_request
        )
        reference, parsed_request = parsed_request.reference, continued.parsed_request
        size = sum(map(len, parsed_request.messages[: parsed_request.held]))
        size += len(parsed_request.raw)
        if limit := self.sessions.profile.max_steps:
            await self._offload(size, check_steps, dialect, parsed_request, limit)
        root = continued.root
        chain = await self._offload(size, chain_of, dialect, parsed_request, key, root)
        return IncomingRequest(
            *(caller.tenant, dialect, parsed_request, chain, setup, named),
            key=key,
            may_use=self._may_use and partial(self._may_use, caller),
            conversation=conversation_of(request.headers),
            reference=reference,
            root=continued.root,
            journal=(continued.root and named) or continued.journal,
        )

    async def _check_names(
        self, caller: Caller, dialect: Dialect, proxied: ProxiedRequest, upstream: Upstream
    ) -> None:
        """Refuse a request that names what others may have left under the same provider's key.

        What goes out as it came may name it anywhere, and in a body that cannot be read.
        """
        is_shared = caller.key and self._upstreams.is_shared(upstream, caller.tenant)
        if dialect.state is NO_STATE or not is_shared:
            return
        raw = proxied.body
        try:
            body = await self._offload(len(raw), bounded_json, raw)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise ReferenceUnknown(_UNREADABLE)
        owner = owner_of(dialect, dialect.identity(body), caller.key)
        for name in dialect.state.names(body):
            if await self._resolver.provider.find(caller.tenant, owner, name) is None:
                raise ReferenceUnknown(_UNKNOWN)

    async def _pass(  # noqa: PLR0913 - one has a default
        self,
        caller: Caller,
        proxied: ProxiedRequest,
        model: str,
        dialect: Dialect | None,
        why: Unmanaged,
        *,
        compaction: "_Compaction | None" = None,
    ) -> Response:
        name = dialect.name if dialect else ""
        outcome = proxied.outcome
        outcome.model = model
        upstream = self._upstreams.choose(model, name, proxied.prefix)
        outcome.upstream = upstream.name
        if dialect is not None and proxied.body:
            await self._check_names(caller, dialect, proxied, upstream)
        response = await self._upstreams.send(upstream, proxied, max_bytes=None)
        outcome.answered(upstream.name, response.status_code)
        kind = response.headers.get("content-type", "")
        messages = dialect is not None and dialect.path == _MESSAGES
        stream = kind.startswith("text/event-stream")
        reader = UsageReader(stream=stream, messages=messages)
        compacted = CompactionReader(dialect, stream=stream) if compaction and dialect else None

        async def body() -> AsyncGenerator[bytes]:
            try:
                async for chunk in response.aiter_raw():
                    reader.take(chunk)
                    if compacted is not None:
                        compacted.take(chunk)
                    yield chunk
                if compaction and compacted and response.is_success:
                    noting = self._note_compaction(caller.tenant, compaction, compacted)
                    with suppress(RefoldError):  # the client then continues in a new session
                        await asyncio.shield(self._run_later(noting))
            finally:
                self._run_later(response.aclose())
                if response.is_success and proxied.method == "POST":
                    asks = dialect is not None and dialect.path == proxied.path
                    used = reader.usage(len(proxied.body) if asks else None)
                    if used is not None:
                        outcome.usage, outcome.estimated = used, not reader.reported
                        cost = cost_of(used, facts_of(model, self._models).prices)
                        self._charge(caller, used, cost)

        self._outages.count.passed_unmanaged(why.reason)
        proxied_stream = ProxiedStream(body(), response.status_code)
        ours = {"session": compaction.session} if compaction else {}
        return with_headers(proxied_stream, response, managed=not_managed(*why), **ours)

    def _context_of(self, tenant: str) -> GatewayContext:
        """What a tenant's requests need; what its answers taught about models is its own."""
        context = self._contexts.pop(tenant, None)
        if context is None:
            context = GatewayContext(
                self._resolver,
                self._upstreams,
                Experiences(),
                lambda incoming: self._setup(incoming.parsed_request, incoming.tenant),
                self._run_later,
                self._offload,
                self.unmanaged,
                self._large,
                self._until_recovered if self._outages.recovered else None,
                self._summaries,
                self.sessions.log,
                self._receipts,
            )
        self._contexts[tenant] = context
        if len(self._contexts) > _MAX_TENANTS:
            self._contexts.popitem(last=False)
        return context

    async def _until_recovered(self) -> None:
        """Wait until the store is back; not for many at once, and not while we stop."""
        if self._outages.recovered is None or self._waiting >= _MAX_WAITING:
            raise StoreUnavailable("Too many requests are waiting for the store.")
        self._waiting += 1
        try:
            closing = asyncio.ensure_future(self._closing.wait())
            back = asyncio.ensure_future(self._outages.recovered())
            await asyncio.wait({closing, back}, return_when=asyncio.FIRST_COMPLETED)
            closing.cancel()
            if not back.done():
                back.cancel()
                raise StoreUnavailable("The gateway is shutting down.")
        finally:
            self._waiting -= 1

    def _setup(self, parsed_request: ParsedRequest, tenant: str) -> Setup:
        return self._setups.get(parsed_request, tenant, self._context_of(tenant).experiences)

    def _run_later(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._discard)
        return task

    def _discard(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # else asyncio logs that nobody looked at it


def _target(request: Request) -> Target:
    return request.scope[TARGET]


def _proxied(request: Request, caller: Caller, body: bytes) -> ProxiedRequest:
    """The request as it came; what its path says is for the upstream to decode."""
    prefix, path, query = _target(request)
    headers = tuple(request.headers.raw)
    outcome = Outcome.of(request.scope)
    return ProxiedRequest(
        request.method, path, query, headers, body, caller.tenant, prefix, outcome
    )


def _model_in(proxied: ProxiedRequest) -> str:
    """The model that a request names, in its body or its address."""
    try:
        body = from_json(proxied.body)
    except ValueError:
        body = None
    named: object = cast("dict[str, object]", body).get("model") if isinstance(body, dict) else None
    return named if isinstance(named, str) else proxied.path.removeprefix("/v1/models/")


class RawRoute(Route):
    """A route that is matched by the path as it came, and never by what that decodes to."""

    def __init__(
        self,
        endpoint: Callable[..., Any],
        prefixes: Collection[str],
        methods: Collection[str],
        paths: Collection[str] | None = None,
    ) -> None:
        """Make a route for these paths beneath `/v1`, or for all of them, under each prefix."""
        super().__init__("/v1/{path:path}", endpoint, methods=[*methods])
        self._prefixes = prefixes
        self._paths = paths

    def matches(self, scope: MutableMapping[str, Any]) -> tuple[Match, MutableMapping[str, Any]]:
        """Whether the request is this route's; the target then goes with it."""
        target = target_of(scope, self._prefixes) if scope["type"] == "http" else None
        if target is None or (self._paths is not None and target.path not in self._paths):
            return Match.NONE, {}
        child: dict[str, Any] = {"endpoint": self.endpoint, "path_params": {}, TARGET: target}
        served = not self.methods or scope["method"] in self.methods
        return (Match.FULL if served else Match.PARTIAL), child


def routes(gateway: Gateway) -> list[Route]:
    """The formats' own addresses, and all others beneath `/v1`, which are passed on as they are."""
    prefixes = gateway.prefixes
    return [
        RawRoute(gateway.ask, prefixes, ["POST"], DIALECTS),
        RawRoute(gateway.pass_on, prefixes, _METHODS),
    ]
