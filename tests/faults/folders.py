"""What the processes do that fold one session while they, or others, append to it.

Each message follows from its writer and its number, so that a process that replaces a killed one
appends the same again.
"""

import asyncio
import fcntl
import json
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random, random
from typing import Any
from uuid import uuid4

from scenarios import drafts, message, open_store

from refold.engine import LocalEngine
from refold.fold.job import Job, Make, Steps
from refold.log import Log, Message, Opened
from refold.log.entry import spans_of, subtract
from refold.stores.sql import Reach, onwards

SESSION = "folded"
SILENT = -1
"""The folder that appends nothing."""
OPENING = Opened("test", "balanced")
_KEPT = 2

Report = Callable[[Any], None]


def said(folder: int, number: int):
    """One message of one writer."""
    return drafts(f"{folder} {number}", message(f"word {number} of {folder}"))


def locks_of(path: Path | str) -> Path:
    """Where the engines over this store have their locks."""
    return Path(path).with_suffix(".locks")


async def due(log: Log) -> Job | None:
    """What a host would fold now: the messages that no fold stands for, but not the newest."""
    visible = await log.visible(SESSION, last=0)
    outline, head = visible.outline, visible.info.entries
    bare = subtract(outline.on_line(head), (s for fold in outline.folds for s in fold.spans))
    messages = [
        entry.seq
        for span in bare
        for entry in await log.read(SESSION, span)
        if entry.kind == Message.KIND
    ]
    spans = spans_of(messages[:-_KEPT])
    return Job(SESSION, uuid4(), spans, "soft", head=head) if spans else None


def fails(job: Job) -> bool:
    """Whether making this one fails, each time."""
    return Random(job.fold.int).random() < 0.2  # noqa: S311 - nothing secret


def maker(path: Path | str) -> Make:
    """Makes summaries that take a moment; some fail. It sees whether it is alone."""
    witness = locks_of(path).with_suffix(".witness")

    async def make(job: Job, steps: Steps):
        with witness.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AssertionError("two are made at once") from None
            await asyncio.sleep(random() / 40)  # noqa: S311 - nothing secret
        if fails(job):
            raise ValueError("could not be made")
        return await steps.step("summary", _summary(job))

    return make


def _summary(job: Job):
    async def summarized():
        return json.loads(json.dumps([[span.first, span.last] for span in job.spans]))

    return summarized


async def fold(
    report: Report, path: str, folder: int, number: int, *, reach: Reach = onwards
) -> None:
    """Append, fold what is due, and look after what others left, until told to stop."""
    stop = _told_to_stop()
    async with open_store(path, reach) as store:
        log = store.log()
        async with LocalEngine(log, maker(path), locks=locks_of(path), reach=reach) as engine:
            while not stop.is_set():
                if folder != SILENT:
                    await _append(report, log, folder, number)
                    number += 1
                job = await due(log)
                if job is not None and await engine.start(job):
                    report(["began", str(job.fold)])
                    await engine.wait(SESSION, job.fold)
                    report(["ended", str(job.fold)])
                else:
                    await engine.recover(SESSION)
                    await asyncio.sleep(0.001)


async def append(report: Report, path: str, folder: int, number: int) -> None:
    """Append only."""
    stop = _told_to_stop()
    async with open_store(path) as store:
        while not stop.is_set():
            await _append(report, store.log(), folder, number)
            number += 1
            await asyncio.sleep(0.002)


async def _append(report: Report, log: Log, folder: int, number: int) -> None:
    done = await log.append(SESSION, said(folder, number), expected=None)
    report(["said", folder, number, done.first])


def _told_to_stop() -> asyncio.Event:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    return stop
