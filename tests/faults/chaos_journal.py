"""What the workers of the chaos test do, written down so that it survives `kill -9`."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import time
from typing import NamedTuple
from uuid import UUID

from pydantic import JsonValue

from refold.fold.job import Job, Make, Steps

MAKING = "making"
CALLING = "calling"


class Line(NamedTuple):
    """One thing that happened."""

    what: str
    """`begin` or `end` of making a fold or of calling a model; `gone`: the worker is no more."""
    at: float
    """Seconds since 1970, by the clock that all processes of this machine share."""
    worker: str
    kind: str = ""
    fold: str = ""
    step: str = ""


class Journal:
    """Appends to the file; each line is on the disk before anything goes on."""

    def __init__(self, path: Path | str, worker: str):
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._worker = worker

    def write(self, what: str, kind: str, fold: UUID, step: str = "") -> None:
        self._write(Line(what, time(), self._worker, kind, str(fold), step))

    def gone(self) -> None:
        """Say that the worker is no more."""
        self._write(Line("gone", time(), self._worker))

    def _write(self, line: Line) -> None:
        os.write(self._file, b"\n" + json.dumps(line).encode() + b"\n")
        os.fsync(self._file)


def lines_of(path: Path) -> list[Line]:
    """Every line that was written whole, in the order of their times."""
    found = path.read_bytes().split(b"\n") if path.exists() else []
    lines = [Line(*json.loads(line)) for line in found if line.endswith(b"]")]
    return sorted(lines, key=lambda line: line.at)


class NotedSteps:
    """Steps that write down each call of a model."""

    def __init__(self, steps: Steps, journal: Journal, job: Job):
        self._steps = steps
        self._journal = journal
        self._job = job

    async def step(self, name: str, work: Callable[[], Awaitable[JsonValue]]) -> JsonValue:
        async def noted() -> JsonValue:
            self._journal.write("begin", CALLING, self._job.fold, name)
            try:
                return await work()
            finally:
                self._journal.write("end", CALLING, self._job.fold, name)

        return await self._steps.step(name, noted)


def noted(make: Make, journal: Journal) -> Make:
    """The same `make`, but what it does is written down."""

    async def make_and_note(job: Job, steps: Steps) -> JsonValue:
        journal.write("begin", MAKING, job.fold)
        try:
            return await make(job, NotedSteps(steps, journal, job))
        finally:
            journal.write("end", MAKING, job.fold)

    return make_and_note
