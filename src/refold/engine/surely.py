"""Doing what must be done to its end, though the task be cancelled or the store busy."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from refold.errors import StoreBusy, StoreFailed, StoreFull

T = TypeVar("T")
_PAUSES = (0.02, 0.1, 0.5, 1.0, 2.0)
"""Seconds to wait before each repetition; after the last one it is given up."""
PASSING = (StoreBusy, StoreFull, StoreFailed)
"""What may be otherwise in a moment."""


async def surely(work: Callable[[], Awaitable[T]]) -> T:
    """Do work that may be repeated, until it is done or was tried too often.

    A cancellation that comes meanwhile is not lost: it comes again when the work is done.
    """
    cancelled = False
    try:
        for pause in _PAUSES:
            try:
                return await work()
            except asyncio.CancelledError:
                cancelled = True
            except PASSING:
                cancelled |= await _slept(pause)
        return await work()
    finally:
        if cancelled:
            _cancel_again()


async def _slept(seconds: float) -> bool:
    """Sleep; whether it was disturbed."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        return True
    return False


def _cancel_again() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()  # whoever counts the cancellations (asyncio.timeout) finds them unchanged
        task.cancel()
