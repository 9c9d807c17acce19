"""How the time of some work grows with the length of what it is given."""

import time
from collections.abc import Callable
from typing import TypeVar

Text = TypeVar("Text", str, bytes)


def check_growth(work: Callable[[Text], object], piece: Text, size: int) -> None:
    """Ten times the length takes far less than a hundred times the time, as quadratic work would.

    It is the processor's time, and one beside the other: a slow machine is slow for both.
    """

    def took(length: int) -> float:
        text = piece * (length // len(piece))
        start = time.process_time()
        work(text)
        return time.process_time() - start

    took(1_000)
    short = max(min(took(size), took(size)), 0.02)
    assert took(10 * size) < 40 * short
