"""Making a fold: the log is read, a summary is written, and shown as the profile shows it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from refold.fold.breadcrumb import breadcrumb, with_results
from refold.fold.job import Job, Steps
from refold.fold.material import Material, gather, needed
from refold.fold.replace import placed
from refold.fold.summary import Summary
from refold.log import Entry, Log
from refold.view import Counter, Fold
from refold.wire import wire_for

Write = Callable[[Material, Job, Steps], Awaitable[Summary]]
"""Writes a summary of the material."""

MANUAL = "manual"


async def from_the_log(material: Material, job: Job, steps: Steps) -> Summary:  # noqa: ARG001
    """The breadcrumb: what the log says by itself. It needs no model and costs nothing."""
    return await asyncio.to_thread(breadcrumb, material)


class Folder:
    """Makes the summaries of one tenant's folds; give it to an engine."""

    def __init__(self, log: Log, counter: Counter, write: Write = from_the_log) -> None:
        self._log = log
        self.counter = counter
        self._write = write

    async def __call__(self, job: Job, steps: Steps) -> JsonValue:
        """The summary that the fold is completed with."""
        values, host, tokens = read_context(job.context)
        material = await self._material(job)
        written = await self._write(material, job, steps)
        summary = replace(
            with_results(written, material),
            messages=material.messages,
            tokens=tokens,
            over=tuple(one.seq for one in material.earlier),
        )
        manual = job.trigger == MANUAL
        shown = await asyncio.to_thread(
            placed, summary, values, self.counter, manual=manual, host=host
        )
        return shown.as_json()

    async def _material(self, job: Job) -> Material:
        visible = await self._log.visible(job.session, last=0)
        entries: list[Entry] = []
        for span in needed(job.spans, visible.outline):
            entries += await self._log.read(job.session, span)
        wire = wire_for(visible.info.format)
        return await asyncio.to_thread(gather, entries, job.spans, visible.outline, wire)


def context(values: Fold, host: Mapping[str, JsonValue], tokens: int = 0) -> JsonValue:
    """What a job must carry so that any process makes the same fold of it.

    `tokens` is what all that it stands for would cost in a request.
    """
    return {"fold": values.model_dump(mode="json"), "host": dict(host), "tokens": tokens}


class Context(NamedTuple):
    """What a job carries."""

    values: Fold
    host: Mapping[str, JsonValue]
    tokens: int = 0


def read_context(value: JsonValue) -> Context:
    """The context that `context` put together."""
    match value:
        case {"fold": values, "host": dict(host), "tokens": int(tokens)}:
            try:
                return Context(Fold.model_validate(values), host, tokens)
            except ValidationError:  # of another version: its own values will do
                return Context(Fold(), host, tokens)
        case _:
            return Context(Fold(), {})
