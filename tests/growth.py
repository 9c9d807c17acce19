"""How the time of some work grows with the length of what it is given."""

import gc
import time
from collections.abc import Callable
from typing import TypeVar

Text = TypeVar("Text", str, bytes)
TRIES = 4


def check_growth(work: Callable[[Text], object], piece: Text, size: int) -> None:
    """Ten times the length takes far less than a hundred times the time, as quadratic work would.

    It is the processor's time, and one beside the other: a slow machine is slow for both. What
    grows too fast does so every time, so one pair that does not is enough: in the others something
    else took the time.
    """

    def took(length: int) -> float:
        text = piece * (length // len(piece))
        start = time.process_time()
        work(text)
        return time.process_time() - start

    def ratio() -> float:
        short = max(min(took(size), took(size)), 0.02)
        return took(10 * size) / short

    took(1_000)
    gc.disable()  # it looks through all that the tests before this one have left
    try:
        assert any(ratio() < 40 for _ in range(TRIES))
    finally:
        gc.enable()
