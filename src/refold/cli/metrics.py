"""Metrics over HTTP, for Prometheus."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from refold.errors import InvalidInput
from refold.service.prometheus import measured

_LARGEST_PORT: Final = 65_535


@contextmanager
def metrics_at(where: str | None) -> Generator[str | None]:
    """Serve what the process measures at HOST:PORT, meanwhile; port 0 is any that is free.

    Gives the address that answers, or None when nothing was asked for. It sets OpenTelemetry's
    provider of metrics, which a process can do once: where one is set, that one stays.
    """
    if where is None:
        yield None
        return
    host, port = _host_and_port(where)
    provider = measured()
    from prometheus_client import REGISTRY, start_http_server  # noqa: PLC0415 - optional

    try:
        server, thread = start_http_server(port, addr=host, registry=REGISTRY)
    except OSError as error:
        provider.shutdown()
        raise InvalidInput(
            f"Metrics cannot be served at {where}: {error.strerror}.", "Name another HOST:PORT."
        ) from error
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        provider.shutdown()
        server.shutdown()
        server.server_close()
        thread.join()


def _host_and_port(where: str) -> tuple[str, int]:
    host, colon, port = where.rpartition(":")
    if colon and host and port.isdecimal() and int(port) <= _LARGEST_PORT:
        return host.strip("[]"), int(port)
    raise InvalidInput(f"{where!r} is no HOST:PORT.", "For example 127.0.0.1:9464.")
