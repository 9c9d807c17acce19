"""What the processes do that make one fold of several steps, and pay for each.

The fold is the same in each of them: who comes after a dead process goes on with it.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from folders import SESSION, locks_of
from scenarios import open_store

from refold.engine import LocalEngine
from refold.engine.protocol import end_of
from refold.fold.job import Job, Make, Steps
from refold.log import Span
from refold.stores.sql import Reach

CHUNKS = tuple(f"chunk {nth}" for nth in range(5))
NAMES = (*CHUNKS, "merged")
IN_TURN, AT_ONCE, FAILING = "in turn", "at once", "failing"
"""How its steps are done: the last makes some and then fails."""
JOB = Job(SESSION, UUID("0197a000-0000-7000-8000-000000000006"), (Span(2, 5),), "soft")

Report = Callable[[Any], None]


def paid(path: Path | str) -> list[str]:
    """The steps that were paid for, in order, by whichever process."""
    try:
        return _bill(path).read_text().splitlines()
    except FileNotFoundError:
        return []


async def fold_in_steps(report: Report, path: str, reach: Reach, way: str) -> None:
    """Make the fold, or go on with it, to its end."""
    make = _maker(report, path, way)
    async with open_store(path, reach) as store:
        log = store.log()
        async with LocalEngine(log, make, locks=locks_of(path), reach=reach) as engine:
            await engine.recover(SESSION)
            if await end_of(log, SESSION, JOB.fold) is None:
                assert await engine.start(JOB)
                await engine.wait(SESSION, JOB.fold)


def _maker(report: Report, path: str, way: str) -> Make:
    def pays(name: str):
        async def work() -> Any:
            _pay(path, name)
            report(name)
            await asyncio.sleep(0.002)
            return {"text": f"what {name} says"}

        return work

    async def make(_job: Job, steps: Steps):
        if way == AT_ONCE:
            parts = await asyncio.gather(*(steps.step(name, pays(name)) for name in CHUNKS))
        else:
            parts = [await steps.step(name, pays(name)) for name in CHUNKS]
        if way == FAILING:
            raise ValueError("could not be made")
        return [*parts, await steps.step("merged", pays("merged"))]

    return make


def _pay(path: str, name: str) -> None:
    file = os.open(_bill(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{name}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)


def _bill(path: Path | str) -> Path:
    return Path(path).with_suffix(".paid")
