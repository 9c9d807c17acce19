"""The process of a service: its socket, its log, and the server that runs its application."""

import asyncio
import gc
import logging
import math
import resource
import signal
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import Final

import uvicorn
from starlette.applications import Starlette

from refold.errors import InvalidInput
from refold.log import Store
from refold.service.keys import NoSecrets, keyring_of
from refold.service.middleware import ACCESS_LOG, slow_client_protocol
from refold.service.service import Service
from refold.service.uvicorn_compat import check, is_news
from refold.settings.serve import Serve

_BACKLOG: Final = 2_048
_SEND_BUFFER: Final = 512 << 10
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_GC_THRESHOLD: Final = 20_000
"""New objects between two garbage collections."""
_UVICORN: Final = logging.getLogger("uvicorn.error")


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
            f"There is no key yet, so anyone who reaches {host}:{port} could read and change "
            "every session.",
            "Create one first: refold keys create. Or listen on 127.0.0.1 only.",
        )
    return keyring.any


async def serve(
    app: Starlette, sock: socket.socket, started: Callable[[], None] = lambda: None
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


def _config(app: Starlette, settings: Serve) -> uvicorn.Config:
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
