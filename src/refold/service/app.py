"""The application: gateway, API and health, on one port."""

import asyncio
import gc
import logging
import math
import resource
import signal
import socket
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
from starlette.responses import Response
from starlette.routing import BaseRoute

from refold import __version__
from refold.errors import InvalidInput, RefoldError
from refold.gateway import gateway
from refold.log import Store
from refold.service import health
from refold.service.api.router import router
from refold.service.keys import NoSecrets, keyring_of
from refold.service.middleware import Front, patient
from refold.service.problem import refused_at
from refold.service.service import Service
from refold.service.uvicorn_compat import check, is_news
from refold.settings import Settings
from refold.settings.serve import Serve
from refold.stores import open_store

_OPENAPI: Final = "/api/v1/openapi.json"


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
        settings: What applies.
        store: Where everything is kept; else the store at `address`.
        address: The store's address.
        local: Whether only this machine reaches it: then it needs no keys until one is made.
        worker: Whether it makes folds itself where the store is on a server.
    """
    service = Service(settings, store or open_store(address), address, local=local, worker=worker)
    return application(service)


def application(service: Service, more: Iterable[BaseRoute] = ()) -> FastAPI:
    """The application of a service; its lifespan is the service's."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with service:
            yield

    made = FastAPI(
        title="Refold",
        version=__version__,
        summary="Sessions of agents: kept whole, seen as models see them, folded and explained.",
        openapi_url=_OPENAPI,
        docs_url=None,  # those pages would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    made.state.service = service
    prefixes = service.gateway.prefixes
    # The gateway's come first: agents ask it all the time, and the API has many routes to try.
    made.router.routes.extend([*gateway.routes(service.gateway), *health.routes(), *more])
    made.include_router(router)
    refuse = partial(refused_at, prefixes=prefixes)

    async def refused(request: Request, error: Any) -> Response:  # noqa: ANN401 - as Starlette has it
        """The answer to a request that ended with an error."""
        if isinstance(error, RequestValidationError):
            error = InvalidInput("The request is not as it must be.", f"{_OPENAPI} says how.")
        # The request's URL would be parsed with whatever its Host header says.
        return refuse(request.scope["path"], error)

    for kind in (RefoldError, HTTPException, RequestValidationError):
        made.add_exception_handler(kind, refused)
    made.add_middleware(
        Front,
        settings=service.settings.serve,
        refuse=refuse,
        measuring=service.measuring,
        traffic=service.traffic,
        prefixes=prefixes,
    )
    return made


# Listening on a port, and stopping without breaking anything off.

_WAITING: Final = 2_048  # connections that nobody has taken yet
_SEND_BUFFER: Final = 512 << 10
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_NEW_VALUES: Final = 20_000
"""How many more values than before there are when garbage is looked for."""
_UVICORN: Final = logging.getLogger("uvicorn.error")


class _Server(uvicorn.Server):
    """A server that leaves signals to us."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens on the address; who comes now waits until the service has begun."""
    try:
        family, kind, proto, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, proto)
    except OSError as error:
        raise _not_there(host, port, error) from error
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it. The system would else take megabytes for a client that reads nothing.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    try:
        sock.bind(where)
        sock.listen(_WAITING)
    except OSError as error:
        sock.close()
        raise _not_there(host, port, error) from error
    return sock


def raise_file_limit() -> None:
    """Allow this process as many open files as the system lets it have.

    Each request under way takes a connection of its client and one to its model. Most systems let a
    process have 1,024 unless it asks for more.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems report more than they allow
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def calm_garbage_collection() -> None:
    """Collect garbage less often: each message is many small values, and few of them are garbage.

    The usual thresholds made reading a request of many values take three times as long. What was
    imported is not looked at again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_VALUES, 20, 50)


def log_to_standard_error() -> None:
    """Write what the service logs to standard error, without secrets."""
    # Of an outage, the service itself tells once; the driver would for each connection it tries.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    handler = logging.StreamHandler()
    handler.addFilter(NoSecrets())
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    for name, level in (("refold", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.addHandler(handler)
        logger.propagate = False


def is_local(sock: socket.socket) -> bool:
    """Whether only this machine reaches it."""
    return ip_address(sock.getsockname()[0]).is_loopback


def address_of(sock: socket.socket) -> str:
    """How clients of this machine call it."""
    host, port = sock.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def check_keys(store: Store, sock: socket.socket) -> bool:
    """Whether keys are needed; raises where everybody could come in from elsewhere."""
    async with store:
        keyring = keyring_of(store)
        await keyring.look()
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
    """Answer requests until a signal comes, and then until those under way have ended."""
    service: Service = app.state.service
    config = _config(app, service.settings.serve)
    check(config)
    server = _Server(config)
    loop = asyncio.get_running_loop()
    draining: list[asyncio.Task[None]] = []

    def told() -> None:
        if draining:
            server.force_exit = server.should_exit = True
        else:
            draining.append(asyncio.create_task(_drained(service, server)))

    _UVICORN.addFilter(is_news)
    try:
        async with service:
            for one in _SIGNALS:
                loop.add_signal_handler(one, told)
            started()
            await server.serve(sockets=[sock])
    finally:
        _UVICORN.removeFilter(is_news)
        for one in _SIGNALS:
            loop.remove_signal_handler(one)
        for task in draining:
            task.cancel()


async def _drained(service: Service, server: uvicorn.Server) -> None:
    """Those who ask whether it is ready hear of it first."""
    service.draining.set()
    await asyncio.sleep(service.settings.serve.times.drain_delay)
    server.should_exit = True


def _config(app: FastAPI, settings: Serve) -> uvicorn.Config:
    times, sizes = settings.times, settings.sizes
    return uvicorn.Config(
        app,
        http=patient(settings),
        ws="none",
        lifespan="off",  # the service is entered before, so that its errors are told
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=sizes.connections,
        h11_max_incomplete_event_size=sizes.headers,
        backlog=_WAITING,
        timeout_keep_alive=math.ceil(times.idle),
        timeout_graceful_shutdown=math.ceil(times.drain),
    )


def _not_there(host: str, port: int, error: OSError) -> InvalidInput:
    return InvalidInput(
        f"The service cannot listen on {host}, port {port}: {error.strerror or error}.",
        "Choose another with --host and --port.",
    )
