"""What child processes do with PostgreSQL. Each function is one child's life; see `nursery`."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import nursery
import postgres_writers

Report = Callable[[Any], None]


def write(report: Report, address: str, writer: int, number: int) -> None:
    """Write without end; see `postgres_writers`."""
    asyncio.run(postgres_writers.write(report, address, writer, number))


class PostgresNursery(nursery.Nursery):
    """Starts children that have imported the driver before they begin."""

    def __init__(self):
        self._socket, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._started = []


if __name__ == "__main__":
    nursery.children = sys.modules[__name__]  # its own know nothing of PostgreSQL
    with socket.socket(fileno=int(sys.argv[1])) as requests_of_tests:
        nursery.serve(requests_of_tests)
