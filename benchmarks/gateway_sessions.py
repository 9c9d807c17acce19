"""Many sessions at once through the gateway: errors, and memory for each that is idle."""

import asyncio
import os
import random
import sys
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from benchmarks.gateway_load import Talk, sessions

_AT_ONCE = 32
_WARMING = 64


class Opened(NamedTuple):
    """What came of it."""

    errors: int
    pace: float
    memory: int
    """Bytes that the process grew by."""


def opened(port: int, pid: int, count: int, turns: int) -> Opened:
    """Hold so many conversations, a turn of each in turn, in another order each time."""
    asyncio.run(sessions(port, [Talk(f"warming {at}") for at in range(_WARMING)], _AT_ONCE))
    talks = [Talk(f"session {at}") for at in range(count)]
    before = _resident(pid)
    began = perf_counter()
    errors: list[str] = []
    for turn in range(turns):
        random.Random(turn).shuffle(talks)
        errors += asyncio.run(sessions(port, talks, _AT_ONCE))
    if errors:
        print(errors[0], file=sys.stderr)
    pace = count * turns / (perf_counter() - began)
    return Opened(len(errors), pace, _resident(pid) - before)


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
