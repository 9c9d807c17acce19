"""What is compared: a bare streaming reverse proxy, the gateway, and the whole service."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from refold.engine import LocalEngine
from refold.fold.compactor import from_the_log
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.gateway import Gateway, routes
from refold.gateway.outcome import Outcome
from refold.gateway.sessions import GatewaySessions
from refold.gateway.upstream import Upstream, Upstreams
from refold.gateway.upstream_stream import client
from refold.models.making import makes
from refold.settings import Settings, UpstreamSettings
from refold.settings.serve import Serve
from refold.stores.postgres import PostgresStore
from refold.view import PROFILES

PATH: Final = "/v1/chat/completions"
_HOPS: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
)
_LIMITS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=256)
_TIMEOUT: Final = httpx2.Timeout(120.0)

Life = Callable[[Starlette], AbstractAsyncContextManager[None]]


class Caller(NamedTuple):
    """Everybody."""

    tenant: str = "default"
    key: str = ""
    stale: bool = False


def bare(upstream: str, ready: Connection) -> None:
    """Pass requests on and answers back, headers and bodies, as they come."""
    asking = httpx2.AsyncClient(timeout=_TIMEOUT, limits=_LIMITS)

    async def ask(request: Request) -> Response:
        headers = [one for one in request.headers.items() if one[0] not in _HOPS]
        passed = asking.build_request(
            request.method,
            upstream + request.url.path,
            headers=headers,
            content=await request.body(),
        )
        response = await asking.send(passed, stream=True)

        async def body() -> AsyncGenerator[bytes]:
            try:
                async for chunk in response.aiter_raw():
                    yield chunk
            finally:
                await response.aclose()

        items = response.headers.multi_items()
        back = {name: value for name, value in items if name not in _HOPS}
        return StreamingResponse(body(), response.status_code, headers=back)

    serve(Starlette(routes=[Route(PATH, ask, methods=["POST"])]), ready)


def gateway(upstream: str, store: str, most: int, ready: Connection) -> None:
    """The gateway, over a store on a server; whoever asks is let in."""
    kept = PostgresStore(store)

    async def caller_of(_: Request) -> Caller:
        return Caller()

    def refuse(error: Exception, _: Dialect | None, __: Outcome) -> Response:
        return Response(f"{type(error).__name__}: {error}", 500)

    made = Gateway(
        GatewaySessions(
            kept,
            PROFILES["balanced"],
            lambda log: LocalEngine(log, makes(log, from_the_log)),
            max_idle=most,
        ),
        Upstreams([Upstream("up", f"{upstream}/v1")], client(_TIMEOUT, _LIMITS)),
        caller_of=caller_of,
        refuse=refuse,
    )

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        async with kept:
            yield
            await made.close()

    serve(Starlette(routes=routes(made), lifespan=life), ready)


def service(upstream: str, store: str, ready: Connection) -> None:
    """The service as `refold serve` runs it: keys, limits, quotas, API, a worker."""
    from refold.service.app import app  # noqa: PLC0415 - slow

    named = UpstreamSettings(name="up", base_url=f"{upstream}/v1")
    settings = Settings(PROFILES["balanced"], {}, {}, serve=Serve(upstreams=(named,)))
    serve(app(settings, store=PostgresStore(store), address=store, local=False), ready)


def serve(app: ASGIApp, ready: Connection) -> None:
    sock = socket.create_server(("127.0.0.1", 0), backlog=2_048)
    config = uvicorn.Config(app, log_level="warning", access_log=False, ws="none", lifespan="on")
    server = uvicorn.Server(config)

    async def live() -> None:
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        while not server.started and not serving.done():  # noqa: ASYNC110 - it says so nowhere else
            await asyncio.sleep(0.01)
        ready.send(sock.getsockname()[1])
        await serving

    asyncio.run(live())
