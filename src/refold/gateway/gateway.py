"""The gateway: any client's requests, governed where they can be, passed on where not."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol, cast
from urllib.parse import quote

import httpx2
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from refold.errors import RefoldError, UpstreamUnreachable
from refold.gateway.aside import Aside
from refold.gateway.asking import SESSION, Asking, Means
from refold.gateway.counting import Counting
from refold.gateway.dialects import DIALECTS
from refold.gateway.dialects.asked import Asked, Unreadable
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.finding import chain_of
from refold.gateway.keeping import Keeping
from refold.gateway.place import Wanted
from refold.gateway.placing import Placing
from refold.gateway.setups import Setups
from refold.gateway.streamed import Streamed
from refold.gateway.upstream import Passing, Upstreams, answered_with
from refold.models.catalogue import NONE, Overrides, facts_of
from refold.models.experience import Experiences
from refold.models.setup import Setup
from refold.models.spending import Usage, cost_of

_MOST_TENANTS: Final = 1_000
_LONGEST_NAME: Final = 200
_MESSAGES: Final = "/v1/messages"


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


Charge = Callable[[Any, Usage, float | None], None]
"""Is told what a caller's answer used, and what that cost in dollars, if it is known."""
Refuse = Callable[[Exception, Dialect | None], Response]
"""Says what went wrong, in the words of the dialect's provider."""


class Gateway:
    """Answers requests to models."""

    def __init__(  # noqa: PLR0913 - two are choices
        self,
        keeping: Keeping,
        upstreams: Upstreams,
        *,
        caller_of: Callable[[Request], Awaitable[Caller]],
        refuse: Refuse,
        charge: Charge = lambda _caller, _used, _cost: None,
        models: Overrides = NONE,
    ) -> None:
        """Make one.

        Args:
            keeping: The sessions.
            upstreams: Where the models are.
            caller_of: Who asks; may refuse.
            refuse: Says what went wrong.
            charge: Is told what answers used.
            models: What the settings say of models.
        """
        self.keeping = keeping
        self._upstreams = upstreams
        self._caller_of = caller_of
        self._refuse = refuse
        self._charge = charge
        self._models = models
        self._setups = Setups(keeping.profile, models)
        self._aside = Aside()
        self._working: set[asyncio.Task[None]] = set()
        self._placing = Placing(keeping)
        self._means: OrderedDict[str, Means] = OrderedDict()

    async def ask(self, request: Request) -> Response:
        """A request in one of the formats."""
        dialect = DIALECTS[request.url.path]
        try:
            caller = await self._caller_of(request)
            raw = await request.body()
            passing = _passing(request, caller, raw)
            try:
                asked = await self._aside(len(raw), dialect.read, raw)
            except Unreadable as error:
                why = str(error) or "no JSON object"
                return await self._pass(caller, passing, "", dialect, why)
            if why := asked.ungoverned or _nameless(asked.model):
                return await self._pass(caller, passing, asked.model, dialect, why)
            return await self._govern(request, caller, dialect, asked, passing)
        except httpx2.TransportError as error:
            return self._refuse(_unreachable(error), dialect)
        except RefoldError as error:
            return self._refuse(error, dialect)

    async def pass_on(self, request: Request) -> Response:
        """Any other request: it is passed on as it is."""
        dialect = next((one for path, one in DIALECTS.items() if _under(request, path)), None)
        try:
            caller = await self._caller_of(request)
            passing = _passing(request, caller, await request.body())
            model = await self._aside(len(passing.body), _model_in, passing)
            return await self._pass(caller, passing, model, dialect, "not a conversation")
        except httpx2.TransportError as error:
            return self._refuse(_unreachable(error), dialect)
        except RefoldError as error:
            return self._refuse(error, dialect)

    async def close(self) -> None:
        """Wait for what is still written; the sessions are closed by who opened the store."""
        while self._working:
            await asyncio.wait(self._working)
        self._aside.close()
        await self.keeping.close()

    async def _govern(
        self, request: Request, caller: Caller, dialect: Dialect, asked: Asked, passing: Passing
    ) -> Response:
        upstream = self._upstreams.choose(asked.model, dialect.name)
        named = request.headers.get(SESSION)
        chain = await self._aside(len(asked.raw), chain_of, dialect, asked, caller.key)
        setup = self._setup_of(asked, caller.tenant)
        wanted = Wanted(caller.tenant, dialect, asked, chain, setup, named)

        def charge(used: Usage, cost: float | None) -> None:
            self._charge(caller, used, cost)

        means = self._means_of(caller.tenant)
        return await Asking(means, wanted, passing, upstream, charge).answer()

    async def _pass(
        self, caller: Caller, passing: Passing, model: str, dialect: Dialect | None, why: str
    ) -> Response:
        upstream = self._upstreams.choose(model, dialect.name if dialect else "")
        response = await self._upstreams.send(upstream, passing, most=None)
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
                if response.is_success and passing.method == "POST":
                    asks = dialect is not None and dialect.path == passing.path
                    used = counting.used(len(passing.body) if asks else None)
                    self._charge_for(caller, model, used)

        made = Streamed(body(), response.status_code)
        return answered_with(made, response, governed=f"no; {why}")

    def _charge_for(self, caller: Caller, model: str, used: Usage | None) -> None:
        if used is not None:
            self._charge(caller, used, cost_of(used, facts_of(model, self._models).prices))

    def _means_of(self, tenant: str) -> Means:
        """What a tenant's requests need; what models taught by one's answers is that one's own."""
        means = self._means.pop(tenant, None)
        if means is None:
            means = Means(
                self._placing,
                self._upstreams,
                Experiences(),
                self._setup,
                self._later,
                self._aside,
            )
        self._means[tenant] = means
        if len(self._means) > _MOST_TENANTS:
            self._means.popitem(last=False)
        return means

    def _setup(self, wanted: Wanted) -> Setup:
        return self._setup_of(wanted.asked, wanted.tenant)

    def _setup_of(self, asked: Asked, tenant: str) -> Setup:
        return self._setups.of(asked, tenant, self._means_of(tenant).experiences)

    def _later(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._working.discard(task)
        if not task.cancelled():
            task.exception()


def _passing(request: Request, caller: Caller, body: bytes) -> Passing:
    """The request as it came; what its path says is for the upstream to decode."""
    scope, headers = request.scope, tuple(request.headers.raw)
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    path = raw.partition(b"?")[0].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    return Passing(request.method, path, query, headers, body, caller.tenant)


def _nameless(model: str) -> str:
    """Why a model of that name is not known; empty if it may be."""
    odd = len(model) > _LONGEST_NAME or not model.isprintable()
    return "no model is so named" if odd else ""


def _under(request: Request, path: str) -> bool:
    """Whether the request is to an address beneath this one, and so of the same provider."""
    return request.url.path.startswith(f"{path}/")


def _model_in(passing: Passing) -> str:
    """The model that a request names, in its body or its address."""
    try:
        body = from_json(passing.body)
    except ValueError:
        body = None
    named: object = cast("dict[str, object]", body).get("model") if isinstance(body, dict) else None
    return named if isinstance(named, str) else passing.path.removeprefix("/v1/models/")


def _unreachable(error: httpx2.TransportError) -> UpstreamUnreachable:
    late = isinstance(error, httpx2.TimeoutException)
    what = "took too long" if late else "cannot be reached, or broke the connection off"
    return UpstreamUnreachable(f"The model's server {what}.")
