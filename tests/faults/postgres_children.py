"""What child processes do with PostgreSQL. Each function is one child's life; see `nursery`."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import postgres_writers
from nursery import serve_tests

Report = Callable[[Any], None]


def write(report: Report, address: str, writer: int, number: int) -> None:
    """Write without end; see `postgres_writers`."""
    asyncio.run(postgres_writers.write(report, address, writer, number))


if __name__ == "__main__":
    serve_tests(sys.modules[__name__])
