"""Ports for servers that a test starts, and starts again."""

import socket
from random import SystemRandom

_PORTS = range(10_000, 20_000)
"""Below those that the system hands out by itself: there a connection of anybody's could take the
port of a server that is about to start. PostgreSQL servers of tests have those above."""


def free_ports(count: int) -> list[int]:
    """So many, each another."""
    free = [port for port in SystemRandom().sample(_PORTS, 20 + 10 * count) if _is_free(port)]
    assert len(free) >= count, "no port is free"
    return free[:count]


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
