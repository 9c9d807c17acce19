"""What child processes do. Each function is one child's life; `report` sends a line to the test."""

import asyncio
import os
import resource
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import folders
import scenarios
import steppers
import writers

from refold.errors import RefoldError
from refold.stores import SqliteStore
from refold.stores.sql import onwards
from refold.testing.crash import CrashAt

Report = Callable[[Any], None]


def crash(report: Report, path: str, scenario: str, point: str, after: int) -> None:
    """Do something and die at a point of it."""
    asyncio.run(scenarios.play(path, scenario, CrashAt(point, after)))
    report("survived")


def write(report: Report, path: str, writer: int, number: int) -> None:
    """Write without end; see `writers`."""
    asyncio.run(writers.write(report, path, writer, number))


def fold_and_crash(report: Report, path: str, point: str, after: int) -> None:  # noqa: ARG001 - it has nothing to say
    """Fold a session again and again, and die at a point of it."""
    reach = CrashAt(point, after)
    asyncio.run(folders.fold(lambda _: None, path, folders.SILENT, 0, reach=reach))


def fold(report: Report, path: str, folder: int, number: int) -> None:
    """Append and fold without end; see `folders`."""
    asyncio.run(folders.fold(report, path, folder, number))


def fold_in_steps(report: Report, path: str, crash: list[Any] | None, way: str) -> None:
    """Make one fold of several steps, and die at a point of it if told to."""
    reach = CrashAt(*crash) if crash else onwards
    asyncio.run(steppers.fold_in_steps(report, path, reach, way))


def append_beside(report: Report, path: str, folder: int, number: int) -> None:
    """Append without end, and leave the folding to others."""
    asyncio.run(folders.append(report, path, folder, number))


def look(report: Report, path: str) -> None:
    """Open the store as a new process does, and read it while others write."""

    async def heads() -> dict[str, int]:
        async with scenarios.open_store(path) as store:
            log = store.log()
            listed = (await log.sessions(limit=1000)).sessions
            return {info.session: len(await log.read(info.session)) for info in listed}

    report(asyncio.run(heads()))
    with closing(sqlite3.connect(path)) as db:
        report(db.execute("PRAGMA integrity_check").fetchall())


def hold_lock(report: Report, path: str) -> None:
    """Begin to write, and never end."""
    _hold(report, path, "BEGIN IMMEDIATE")


def hold_snapshot(report: Report, path: str) -> None:
    """Begin to read, and never end."""
    _hold(report, path, "BEGIN; SELECT count(*) FROM entries")


def _hold(report: Report, path: str, script: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in script.split("; "):
            db.execute(statement).fetchall()
        report("held")
        signal.pause()


def fill(report: Report, path: str, limit: int) -> None:
    """Append until no file may grow beyond the limit; then, without it, once more."""

    async def filled() -> None:
        async with scenarios.open_store(path) as store:
            _limit_files(limit)
            taken, error = await scenarios.fill(store.log())
            report([taken, *_told(error)])
            _limit_files(resource.RLIM_INFINITY)
            again = scenarios.filling(taken)
            done = await store.log().append("full", again, expected=taken)
            report([done.first, done.last])

    asyncio.run(filled())


def forget_within(report: Report, path: str, limit: int) -> None:
    """Forget a session while no file may grow beyond the limit."""

    async def forget() -> None:
        async with scenarios.open_store(path) as store:
            _limit_files(limit)
            try:
                await store.log().forget("doomed")
            except RefoldError as error:
                report(_told(error))
            else:
                report("forgotten")

    asyncio.run(forget())


def _limit_files(size: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))


def open_and_append(report: Report, path: str, *, unprivileged: bool = False) -> None:
    """Open the store and append to it, as a user who owns nothing if asked to."""
    if unprivileged and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    async def append() -> None:
        try:
            async with SqliteStore(path) as store:
                await store.log().append("full", scenarios.filling(0), expected=0)
        except RefoldError as error:
            report(_told(error))
        else:
            report("appended")

    asyncio.run(append())


def _told(error: RefoldError) -> list[str]:
    """What a person is told."""
    return [type(error).__name__, error.what, error.fix]
