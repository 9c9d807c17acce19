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
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Protocol, cast

import httpx2
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from refold.errors import RefoldError, StoreError, StoreUnavailable, UpstreamUnreachable
from refold.gateway.dialects import DIALECTS
from refold.gateway.dialects.dialect import BOUNDS, Bounds, Dialect, ParsedRequest, Unreadable
from refold.gateway.incoming import IncomingRequest, chain_of
from refold.gateway.large_requests import (
    LargeRequests,
    LoggedAnswer,
    ThreadOffload,
    UnloggedAnswer,
    partial_body,
)
from refold.gateway.managed_request import SESSION, GatewayContext, ManagedRequest
from refold.gateway.recent_answers import Share
from refold.gateway.session_resolver import SessionResolver
from refold.gateway.sessions import GatewaySessions, Origin, Setups
from refold.gateway.unmanaged import OutagePolicy, Reason, UnmanagedTurns, not_managed
from refold.gateway.upstream import (
    Counting,
    InvalidAnswer,
    ProxiedRequest,
    Streamed,
    Target,
    Upstreams,
    answered_with,
    target_of,
)
from refold.models.catalog import NONE, Overrides, Usage, cost_of, facts_of
from refold.models.experience import Experiences, Setup

_MOST_TENANTS: Final = 1_000
_LONGEST_NAME: Final = 200
_MESSAGES: Final = "/v1/messages"
TARGET: Final = "refold.target"
"""Where the scope of a request has its target."""
_MAX_WAITING: Final = 1_000
"""Notes that wait for the store to be back."""


class Unmanaged(NamedTuple):
    """Why a request is passed on unmanaged."""

    reason: Reason
    detail: str = ""


class Caller(Protocol):
    """Who asks."""

    @property
    def tenant(self) -> str:
        """Whose sessions these are."""
        ...

    @property
    def key(self) -> str:
        """The id of the key."""
        ...

    @property
    def stale(self) -> bool:
        """Whether the key was checked against what was known before the store failed."""
        ...


Charge = Callable[[Any, Usage, float | None], None]
"""Is told what a caller's answer used, and what that cost in dollars, if it is known."""
MayUse = Callable[[Any, Origin], Awaitable[bool]]
"""Whether a caller may go on in a session that began like this."""
Refuse = Callable[[Exception, Dialect | None], Response]
"""Says what went wrong, in the words of the dialect's provider."""


class Gateway:
    """Answers requests to models."""

    def __init__(  # noqa: PLR0913 - two are choices
        self,
        sessions: GatewaySessions,
        upstreams: Upstreams,
        *,
        caller_of: Callable[[Request], Awaitable[Caller]],
        refuse: Refuse,
        charge: Charge = lambda _caller, _used, _cost: None,
        models: Overrides = NONE,
        outages: OutagePolicy | None = None,
        large: LargeRequests | None = None,
        may_use: MayUse | None = None,
        share: Share | None = None,
        bounds: Bounds = BOUNDS,
    ) -> None:
        """Make one.

        Args:
            sessions: The sessions.
            upstreams: Where the models are.
            caller_of: Who asks; may refuse.
            refuse: Says what went wrong.
            charge: Is told what answers used.
            models: What the settings say of models.
            outages: What to do while the store is unavailable; else requests are refused.
            large: Answers large requests elsewhere; else they are answered here.
            may_use: Whether a caller may go on in a session that it names; else any may.
            share: Is given what answers are known by, for another process.
            bounds: How much a managed request may hold; others are passed on as they come.
        """
        self._bounds = bounds
        self.sessions = sessions
        self._upstreams = upstreams
        self._caller_of = caller_of
        self._refuse = refuse
        self._charge = charge
        self._models = models
        self._setups = Setups(sessions.profile, models)
        self._aside = ThreadOffload()
        self._working: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()
        self._waiting = 0
        self._resolver = SessionResolver(sessions, share=share)
        self._large = large
        self._may_use = may_use
        self._outages = outages or OutagePolicy()
        self.unmanaged = UnmanagedTurns(
            self._outages, lambda tenant, keys: sessions.log(tenant).marked(keys)
        )
        self._context: OrderedDict[str, GatewayContext] = OrderedDict()

    def take_answer(self, shared: Sequence[Any]) -> None:
        """Another process of the service gave an answer, and shares what it is known by."""
        self._resolver.recent.take(shared)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What the raw paths of requests to the gateway begin with."""
        return self._upstreams.prefixes

    async def ask(self, request: Request) -> Response:
        """A request in one of the formats."""
        dialect = DIALECTS[_target(request).path]
        try:
            caller = await self._caller_of(request)
            raw = await self._small_body(request, caller)
            if isinstance(raw, Response):
                return raw
            proxied = _proxied(request, caller, raw)
            try:
                parsed_request = await self._aside(len(raw), dialect.read, raw, self._bounds)
            except Unreadable as error:
                why = Unmanaged("unreadable-body", str(error) or "no JSON object")
                return await self._pass(caller, proxied, "", dialect, why)
            if detail := parsed_request.unmanaged or _nameless(parsed_request.model):
                reason = "over-bounds" if parsed_request.over_bounds else "unsupported-request"
                why = Unmanaged(reason, detail)
                return await self._pass(caller, proxied, parsed_request.model, dialect, why)
            return await self._manage(request, caller, dialect, parsed_request, proxied)
        except httpx2.TransportError as error:
            return self._refuse(_unreachable(error), dialect)
        except RefoldError as error:
            return self._refuse(error, dialect)

    async def log_answer(self, answer: UnloggedAnswer) -> LoggedAnswer:
        """Log the answer to a request that another process has asked."""
        return await self._resolver.log_answer(answer)

    async def pass_on(self, request: Request) -> Response:
        """Any other request: it is passed on as it is."""
        parsed_request = _target(request).path
        dialect = next(
            (one for path, one in DIALECTS.items() if parsed_request.startswith(f"{path}/")), None
        )
        try:
            caller = await self._caller_of(request)
            raw = await self._small_body(request, caller)
            if isinstance(raw, Response):
                return raw
            proxied = _proxied(request, caller, raw)
            model = await self._aside(len(proxied.body), _model_in, proxied)
            why = Unmanaged("not-a-conversation")
            return await self._pass(caller, proxied, model, dialect, why)
        except httpx2.TransportError as error:
            return self._refuse(_unreachable(error), dialect)
        except RefoldError as error:
            return self._refuse(error, dialect)

    async def close(self) -> None:
        """Wait for what is still written; the sessions are closed by who opened the store."""
        self._closing.set()
        while self._working:
            await asyncio.wait(self._working)
        await self.unmanaged.close()
        self._aside.close()
        await self.sessions.close()

    async def _small_body(self, request: Request, caller: Caller) -> bytes | Response:
        """The body, or the answer of another process to a request that is too large for this."""
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
        upstream = self._upstreams.choose(parsed_request.model, dialect.name, proxied.prefix)
        named = request.headers.get(SESSION)
        chain = await self._aside(
            len(parsed_request.raw), chain_of, dialect, parsed_request, caller.key
        )
        setup = self._setup_of(parsed_request, caller.tenant)
        incoming = IncomingRequest(
            *(caller.tenant, dialect, parsed_request, chain, setup, named),
            key=caller.key,
            may_use=self._may_use and partial(self._may_use, caller),
        )

        def charge(used: Usage, cost: float | None) -> None:
            self._charge(caller, used, cost)

        context = self._means_of(caller.tenant)
        try:
            if caller.stale:
                raise StoreUnavailable("The store did not answer when the key was checked.")
            return await ManagedRequest(context, incoming, proxied, upstream, charge).answer()
        except StoreError:
            if not self._outages.fail_open:
                raise
        why = Unmanaged("store-unavailable")
        response = await self._pass(caller, proxied, parsed_request.model, dialect, why)
        if response.status_code == HTTPStatus.OK:
            self.unmanaged.passed(caller.tenant, chain)
        return response

    async def _pass(
        self,
        caller: Caller,
        proxied: ProxiedRequest,
        model: str,
        dialect: Dialect | None,
        why: Unmanaged,
    ) -> Response:
        name = dialect.name if dialect else ""
        upstream = self._upstreams.choose(model, name, proxied.prefix)
        response = await self._upstreams.send(upstream, proxied, most=None)
        kind = response.headers.get("content-type", "")
        messages = dialect is not None and dialect.path == _MESSAGES
        counting = Counting(stream=kind.startswith("text/event-stream"), messages=messages)

        async def body() -> AsyncGenerator[bytes]:
            try:
                async for chunk in response.aiter_raw():
                    counting.take(chunk)
                    yield chunk
            finally:
                self._later(response.aclose())
                if response.is_success and proxied.method == "POST":
                    asks = dialect is not None and dialect.path == proxied.path
                    used = counting.used(len(proxied.body) if asks else None)
                    self._charge_for(caller, model, used)

        self._outages.count.passed_unmanaged(why.reason)
        made = Streamed(body(), response.status_code)
        return answered_with(made, response, managed=not_managed(*why))

    def _charge_for(self, caller: Caller, model: str, used: Usage | None) -> None:
        if used is not None:
            self._charge(caller, used, cost_of(used, facts_of(model, self._models).prices))

    def _means_of(self, tenant: str) -> GatewayContext:
        """What a tenant's requests need; what models taught by one's answers is that one's own."""
        context = self._context.pop(tenant, None)
        if context is None:
            context = GatewayContext(
                self._resolver,
                self._upstreams,
                Experiences(),
                self._setup,
                self._later,
                self._aside,
                self.unmanaged,
                self._large,
                self._until_recovered if self._outages.recovered else None,
            )
        self._context[tenant] = context
        if len(self._context) > _MOST_TENANTS:
            self._context.popitem(last=False)
        return context

    async def _until_recovered(self) -> None:
        """Wait until the store is back; not for many at once, and not while we stop."""
        if self._outages.recovered is None or self._waiting >= _MAX_WAITING:
            raise StoreUnavailable("Too much waits for the store.")
        self._waiting += 1
        try:
            closing = asyncio.ensure_future(self._closing.wait())
            back = asyncio.ensure_future(self._outages.recovered())
            await asyncio.wait({closing, back}, return_when=asyncio.FIRST_COMPLETED)
            closing.cancel()
            if not back.done():
                back.cancel()
                raise StoreUnavailable("The gateway stops.")
        finally:
            self._waiting -= 1

    def _setup(self, incoming: IncomingRequest) -> Setup:
        return self._setup_of(incoming.parsed_request, incoming.tenant)

    def _setup_of(self, parsed_request: ParsedRequest, tenant: str) -> Setup:
        return self._setups.of(parsed_request, tenant, self._means_of(tenant).experiences)

    def _later(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._working.discard(task)
        if not task.cancelled():
            task.exception()


def _target(request: Request) -> Target:
    return request.scope[TARGET]


def _proxied(request: Request, caller: Caller, body: bytes) -> ProxiedRequest:
    """The request as it came; what its path says is for the upstream to decode."""
    prefix, path, query = _target(request)
    headers = tuple(request.headers.raw)
    return ProxiedRequest(request.method, path, query, headers, body, caller.tenant, prefix)


def _nameless(model: str) -> str:
    """Why a model of that name is not known; empty if it may be."""
    odd = len(model) > _LONGEST_NAME or not model.isprintable()
    return "no model is so named" if odd else ""


def _model_in(proxied: ProxiedRequest) -> str:
    """The model that a request names, in its body or its address."""
    try:
        body = from_json(proxied.body)
    except ValueError:
        body = None
    named: object = cast("dict[str, object]", body).get("model") if isinstance(body, dict) else None
    return named if isinstance(named, str) else proxied.path.removeprefix("/v1/models/")


def _unreachable(error: httpx2.TransportError) -> UpstreamUnreachable:
    if isinstance(error, InvalidAnswer):
        return UpstreamUnreachable(f"The model's server {error}.")
    late = isinstance(error, httpx2.TimeoutException)
    what = "took too long" if late else "cannot be reached, or broke the connection off"
    return UpstreamUnreachable(f"The model's server {what}.")


# The gateway's addresses.

_OTHERS: Final = ["GET", "POST", "DELETE", "PUT", "PATCH"]


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
        RawRoute(gateway.pass_on, prefixes, _OTHERS),
    ]
