"""The real `refold` command in a process whose wall clock, or patience, a test has changed.

Run as `python refold_child.py ARGUMENTS`. Two variables say what is different:

`REFOLD_TEST_CLOCK` names a file with a number of seconds. The process's wall clock is ahead by as
much, or behind where it is negative, from the moment that the file says so. The monotonic clock
goes on as it is, as when somebody sets a machine's clock.

`REFOLD_TEST_GRACE` is how many seconds a worker's lock must be free before others take the worker
for dead. The usual ten make a test slow.
"""

import datetime as dt
import os
import sys
import time
from pathlib import Path

REAL_TIME, REAL_TIME_NS, REAL_DATETIME = time.time, time.time_ns, dt.datetime


def shift_clock(file: Path) -> None:
    """Shift the wall clock of this process. Before anything of Refold's is imported."""

    def offset() -> float:
        try:
            return float(file.read_text() or 0)
        except (OSError, ValueError):  # it is just being written
            return 0.0

    class ShiftedDatetime(REAL_DATETIME):
        @classmethod
        def now(cls, tz=None):
            return REAL_DATETIME.now(tz) + dt.timedelta(seconds=offset())

    time.time = lambda: REAL_TIME() + offset()
    time.time_ns = lambda: REAL_TIME_NS() + int(offset() * 1e9)
    import refold.cli.app  # noqa: PLC0415 - after the clock is another
    import refold.models.catalog  # noqa: PLC0415 - likewise
    import refold.service.app  # noqa: PLC0415
    import refold.session.retention  # noqa: PLC0415, F401

    # Libraries compare the class `datetime` itself, so that only our own modules get another one.
    for name, module in list(sys.modules.items()):
        if name.startswith("refold.") and getattr(module, "datetime", None) is REAL_DATETIME:
            module.datetime = ShiftedDatetime


def shorten_grace(seconds: float) -> None:
    """Take workers for dead sooner."""
    from refold.engine.dbos import DbosEngine, Worker  # noqa: PLC0415 - optional

    for kind in (DbosEngine, Worker):
        defaults = kind.__init__.__kwdefaults__
        assert "grace" in defaults
        defaults["grace"] = seconds


if __name__ == "__main__":
    if file := os.environ.get("REFOLD_TEST_CLOCK"):
        shift_clock(Path(file))
    if grace := os.environ.get("REFOLD_TEST_GRACE"):
        shorten_grace(float(grace))
    from refold.cli.app import app

    app()
