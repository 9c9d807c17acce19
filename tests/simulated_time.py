"""Simulated time: a loop whose clock jumps to the next thing that happens.

What would take hours takes seconds, and is the same each time: nothing runs in other threads. So
models may be slow or hang for ever, and whether somebody waited is read off the clock.
"""

import asyncio
import selectors
from concurrent.futures import Future, ThreadPoolExecutor

_NOTHING_HAPPENS = 5  # seconds of real time; then nothing ever will


class Stuck(AssertionError):
    """Somebody waits for something that will never happen."""


class _Jumping(selectors.DefaultSelector):
    """Where others would sleep, it moves the clock."""

    now = 0.0

    def select(self, timeout=None):
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            ready = super().select(_NOTHING_HAPPENS)
            if not ready:
                raise Stuck
        elif timeout > 0:
            self.now += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        self._clock = _Jumping()
        super().__init__(self._clock)

    def time(self):
        return self._clock.now


class _AtOnce(ThreadPoolExecutor):
    """Does the work of threads at once."""

    def submit(self, work, /, *args, **how):
        future = Future()
        try:
            future.set_result(work(*args, **how))
        except BaseException as error:  # noqa: BLE001 - whoever waits is told
            future.set_exception(error)
        return future


def simulated(work):
    """What the coroutine gives, in simulated time."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        loop = runner.get_loop()
        loop.set_default_executor(_AtOnce(1))
        return runner.run(work)


def now():
    """Seconds since the simulation began."""
    return asyncio.get_running_loop().time()
