"""Crashes on purpose: a process that dies at a named point of a store's or an engine's work.

    async with SqliteStore(path, reach=CrashAt("commit.written")) as store:
        await store.log().append(…)  # never returns: the process is gone

The process ends as by `kill -9`: nothing is flushed, closed or rolled back. So do this in a child
process, and look at the file from another.
"""

import os
import signal
from typing import Final

from refold.errors import InvalidInput

POINTS: Final = (
    "migrate.written",
    "migrate.committed",
    "upload.begun",
    "append.begun",
    "commit.written",
    "commit.done",
    "write.written",
    "write.done",
    "fork.written",
    "index.written",
    "forget.erased",
    "expire.erased",
    "scrub.merged",
    "scrub.vacuumed",
)
"""Every point that the SQLite store reaches."""
FOLD_POINTS: Final = (
    "fold.locked",
    "fold.resumed",
    "fold.started",
    "fold.stepping",
    "fold.stepped",
    "fold.made",
    "fold.completed",
    "fold.failed",
)
"""Every point that the local engine reaches."""


class CrashAt:
    """Given to a store or an engine as `reach`: ends the process at `point`.

    It lets the point go by `after` times before.

    `CrashAt("append.begun", after=2)` lets two appends pass and dies in the third.
    """

    def __init__(self, point: str, after: int = 0) -> None:
        points = (*POINTS, *FOLD_POINTS)
        if point not in points:  # it would never be reached, and its test would show nothing
            raise InvalidInput(f"Nothing reaches a point {point!r}.", f"Use one of {points}.")
        self.point = point
        self._left = after

    def __call__(self, point: str) -> None:
        if point != self.point:
            return
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1
