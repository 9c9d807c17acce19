"""The application: gateway, API and health on one port, and the server that runs it."""

import asyncio
import gc
import logging
import math
import resource
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from refold import __version__
from refold.errors import InvalidInput, RefoldError
from refold.gateway import gateway
from refold.log import Store
from refold.service import metrics
from refold.service.api.router import router
from refold.service.keys import NoSecrets, keyring_of
from refold.service.middleware import ACCESS_LOG, ServiceMiddleware, slow_client_protocol
from refold.service.problem import SAFE, refused_at
from refold.service.service import Service
from refold.service.uvicorn_compat import check, is_news
from refold.settings import Settings
from refold.settings.serve import Serve
from refold.stores import open_store

_OPENAPI: Final = "/api/v1/openapi.json"
_BACKLOG: Final = 2_048
_SEND_BUFFER: Final = 512 << 10
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_GC_THRESHOLD: Final = 20_000
"""New objects between two garbage collections."""
_UVICORN: Final = logging.getLogger("uvicorn.error")


def app(
    settings: Settings,
    *,
    store: Store | None = None,
    address: str = "memory:",
    local: bool = True,
    worker: bool = True,
) -> FastAPI:
    """The application, for any ASGI server that runs its lifespan.

    Args:
        settings: The settings that apply.
        store: The store; by default the one at `address`.
        address: The store's address.
        local: Whether only this machine reaches it: then it needs no keys until one is made.
        worker: Whether it makes folds itself if the store is on a server.
    """
    if store is None:
        journal = settings.profile.store.forget_journal
        store = open_store(address, forget_journal=journal)
    service = Service(settings, store, address, local=local, worker=worker)
    return application(service)


def application(service: Service, extra_routes: Iterable[BaseRoute] = ()) -> FastAPI:
    """The application of a service; its lifespan is the service's."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with service:
            yield

    app = FastAPI(
        title="Refold",
        version=__version__,
        summary="Sessions of agents: kept whole, seen as models see them, folded and explained.",
        openapi_url=_OPENAPI,
        docs_url=None,  # those pages would load scripts from other sites
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service = service
    prefixes = service.gateway.prefixes
    health = (("/healthz", _healthz), ("/readyz", _readyz), ("/metrics", _metrics))
    health_routes = [Route(path, endpoint, methods=["GET"]) for path, endpoint in health]
    # The gateway's routes come first: agents call them all the time, and the API has many.
    app.router.routes.extend([*gateway.routes(service.gateway), *health_routes, *extra_routes])
    app.include_router(router)
    refuse = partial(refused_at, prefixes=prefixes)

    async def answer(request: Request, error: Any) -> Response:  # noqa: ANN401 - as Starlette has it
        if isinstance(error, RequestValidationError):
            error = InvalidInput("The request is not as it must be.", f"{_OPENAPI} says how.")
        return refuse(request.scope, error)

    for kind in (RefoldError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, answer)
    app.add_middleware(
        ServiceMiddleware,
        settings=service.settings.serve,
        refuse=refuse,
        metrics=service.metrics,
        traffic=service.traffic,
        prefixes=prefixes,
    )
    return app


async def _healthz(request: Request) -> Response:
    """The process runs; reports what is known about its store, without asking it."""
    service: Service = request.app.state.service
    store = "available" if service.guard.available else "unavailable"
    return JSONResponse({"status": "ok", "store": store, **_folds(service)}, headers=dict(SAFE))


async def _readyz(request: Request) -> Response:
    """The process takes requests: its store answers, and it is not about to stop.

    With `fail_open` it takes requests without its store, too: it passes them on unmanaged.
    """
    service: Service = request.app.state.service
    if service.draining.is_set():
        return _unready("draining")
    if await service.readiness.answers():
        ready = {"status": "ready", "store": "available", **_folds(service)}
        return JSONResponse(ready, headers=dict(SAFE))
    if not service.settings.serve.fail_open:
        return _unready("the store does not answer")
    return JSONResponse({"status": "ready", "store": "unavailable"}, headers=dict(SAFE))


def _folds(service: Service) -> dict[str, str]:
    """What is wrong with folds, if something is: requests are answered meanwhile."""
    problem = service.workers.problem
    return {"folds": problem} if problem else {}


def _unready(why: str) -> Response:
    return JSONResponse({"status": why}, 503, headers={**SAFE, "Retry-After": "1"})


async def _metrics(request: Request) -> Response:
    service: Service = request.app.state.service
    public = service.settings.serve.metrics or (service.local and not service.keyring.any)
    if not public or not metrics.has_prometheus():
        raise HTTPException(404)
    text, kind = metrics.render()
    return Response(text, headers=dict(SAFE), media_type=kind)


class _Server(uvicorn.Server):
    """A server that leaves signals to `serve`."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on the address; clients wait until the service has started."""
    sock = None
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, proto)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. Else the system buffers megabytes for a client that reads nothing.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError as error:
        if sock is not None:
            sock.close()
        raise InvalidInput(
            f"The service cannot listen on {host}, port {port}: {error.strerror or error}.",
            "Choose another with --host and --port.",
        ) from error
    return sock


def raise_file_limit() -> None:
    """Allow this process as many open files as the system permits.

    Each request needs a connection to its client and one to its model. Most systems allow a process
    1,024 files unless it asks for more.
    """
    _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems report more than they allow
        resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, maximum))


def calm_garbage_collection() -> None:
    """Collect garbage less often: a message is many small objects, and few of them are garbage.

    With the default thresholds, parsing a large request took three times as long. What was imported
    is never scanned again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, 20, 50)


def log_to_standard_error(*, json_access_log: bool = False) -> None:
    """Log to standard error, without secrets; the access log to standard output if it is JSON."""
    # The service logs an outage once; the driver would log each attempt to connect.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    handler = logging.StreamHandler()
    handler.addFilter(NoSecrets())
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    for name, level in (("refold", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.addHandler(handler)
        logger.propagate = False
    if json_access_log:
        # Its lines have no secrets, and a filter of whole lines might cut through their syntax.
        lines = logging.StreamHandler(sys.stdout)
        ACCESS_LOG.addHandler(lines)
        ACCESS_LOG.propagate = False


def is_local(sock: socket.socket) -> bool:
    """Whether only this machine reaches it."""
    return ip_address(sock.getsockname()[0]).is_loopback


def address_of(sock: socket.socket) -> str:
    """The URL for clients on this machine."""
    host, port = sock.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def check_keys(store: Store, sock: socket.socket) -> bool:
    """Whether keys are needed; raises if other machines could call the service without one."""
    async with store:
        keyring = keyring_of(store)
        await keyring.refresh()
    if not keyring.any and not is_local(sock):
        host, port = sock.getsockname()[:2]
        raise InvalidInput(
            f"There is no key yet, so whoever reaches {host}:{port} could read and change "
            "every session.",
            "Make one first: refold keys create. Or listen on 127.0.0.1 only.",
        )
    return keyring.any


async def serve(
    app: FastAPI, sock: socket.socket, started: Callable[[], None] = lambda: None
) -> None:
    """Answer requests until a signal, and then until those under way have ended."""
    service: Service = app.state.service
    config = _config(app, service.settings.serve)
    check(config)
    server = _Server(config)
    loop = asyncio.get_running_loop()
    draining: list[asyncio.Task[None]] = []

    def stop() -> None:
        if draining:  # the second signal
            server.force_exit = server.should_exit = True
        else:
            draining.append(asyncio.create_task(_drain(service, server)))

    _UVICORN.addFilter(is_news)
    try:
        async with service:
            for number in _SIGNALS:
                loop.add_signal_handler(number, stop)
            started()
            await server.serve(sockets=[sock])
    finally:
        _UVICORN.removeFilter(is_news)
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        for task in draining:
            task.cancel()


async def _drain(service: Service, server: uvicorn.Server) -> None:
    # `/readyz` fails first, so that load balancers stop sending requests.
    service.draining.set()
    await asyncio.sleep(service.settings.serve.times.drain_delay)
    server.should_exit = True


def _config(app: FastAPI, settings: Serve) -> uvicorn.Config:
    times, sizes = settings.times, settings.sizes
    return uvicorn.Config(
        app,
        http=slow_client_protocol(settings),
        ws="none",
        lifespan="off",  # `serve` enters the service before, so that its errors are reported
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=sizes.connections,
        h11_max_incomplete_event_size=sizes.headers,
        backlog=_BACKLOG,
        timeout_keep_alive=math.ceil(times.idle),
        timeout_graceful_shutdown=math.ceil(times.drain),
    )
