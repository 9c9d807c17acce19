"""What takes long is done beside the event loop, so that others are answered meanwhile.

It must be pure, or safe in threads: it runs while the loop does.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

LARGE: Final = 256 * 1024
"""Bytes up to which reading takes less than others would notice; a thread costs more than that."""
_THREADS: Final = 2
"""More would only take turns with each other and the loop."""

Given = ParamSpec("Given")
Made = TypeVar("Made")


class Aside:
    """Does what is large in threads of its own, and what is small at once."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "refold-gateway")

    async def __call__(
        self, size: int, work: Callable[Given, Made], *given: Given.args, **more: Given.kwargs
    ) -> Made:
        """What the work makes of what was given, which has so many bytes."""
        if size <= LARGE:
            return work(*given, **more)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*given, **more))

    def close(self) -> None:
        """Begin nothing more; what is under way ends by itself."""
        self._threads.shutdown(wait=False)
