"""How one request is timed, a peer's or ours. Needs nothing but the standard library."""

import gc
import json
import signal
from collections.abc import Callable
from time import perf_counter, process_time
from types import FrameType
from typing import Any, TypeVar

Given = TypeVar("Given")

LIMIT = 100_000
"""Tokens that a request may have, a peer's or ours."""
GIVE_UP = 60
TRIES = 200


class TooLong(Exception):
    """A measurement that took more than `GIVE_UP` seconds."""


def best_of(
    prepare: Callable[[], Given], request: Callable[[Given], object], seconds: float
) -> float | None:
    """The shortest time that a request takes; None where the measuring takes too long.

    What a request is given is prepared anew for each try, outside the timing. After the first try,
    which may load things, there is one more at least, and others until they have taken `seconds`.
    """
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(GIVE_UP)
    best: float | None = None
    tries, until = 0, 0.0
    try:
        while tries < 2 or (tries < TRIES and perf_counter() < until):
            took = timed(request, prepare())
            best = took if best is None else min(best, took)
            tries += 1
            until = until or perf_counter() + seconds
    except TooLong:
        pass  # what was measured before that holds
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return best


def show(**row: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    """Print one row for the process that asked; each line is one JSON object."""
    print(json.dumps(row), flush=True)


def timed(request: Callable[[Given], object], given: Given) -> float:
    """How long one request takes, in seconds of this process's own work."""
    gc.collect()
    gc.freeze()  # what is there stays: looking through it before each try would empty the caches
    gc.disable()
    try:
        worked = process_time()
        start = perf_counter()
        request(given)
        passed = perf_counter() - start
        # A request waits for nothing: what passed beyond its own work was other processes' turn.
        return min(passed, process_time() - worked)
    finally:
        gc.enable()


def _too_long(_: int, __: FrameType | None) -> None:
    raise TooLong
