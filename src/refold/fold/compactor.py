"""Making a fold: the log is read, a summary is written, and shown as the profile shows it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from refold.fold.extractive import extractive_summary, identifiers, with_results
from refold.fold.job import Job, Steps
from refold.fold.material import Boundary, Material, gather, needed
from refold.fold.replace import render_summary
from refold.fold.summary import Summary
from refold.log import Entry, Log, Span
from refold.view import Counter, Fold
from refold.view.budget import PER_MESSAGE
from refold.wire import wire_for

Write = Callable[[Material, Job, Steps], Awaitable[Summary]]
"""Writes a summary of the material."""
Remember = Callable[[Summary, Job], Awaitable[None]]
"""Keeps what a summary says for other sessions, before what it stands for leaves the view."""

MANUAL = "manual"
_REMEMBERING = 30.0  # seconds that a note may take to be kept


async def from_the_log(material: Material, job: Job, steps: Steps) -> Summary:  # noqa: ARG001
    """The breadcrumb: what the log says by itself. It needs no model and costs nothing."""
    return await asyncio.to_thread(extractive_summary, material)


class Compactor:
    """Makes the summaries of one tenant's folds; give it to an engine."""

    def __init__(
        self,
        log: Log,
        counter: Counter,
        write: Write = from_the_log,
        remember: Remember | None = None,
    ) -> None:
        self._log = log
        self.counter = counter
        self._write = write
        self._remember = remember

    async def __call__(self, job: Job, steps: Steps) -> JsonValue:
        """The summary that the fold is completed with."""
        given = read_context(job.context)
        values, host = given.values, given.host
        gone = await self._forgotten(job) if self._remember else 0
        material = await self._material(job)
        write = from_the_log if given.at_once else self._write
        written = await write(material, job, steps)
        told = await asyncio.to_thread(with_results, written, material)
        summary = replace(
            told,
            messages=material.messages,
            tokens=given.tokens,
            over=tuple(one.seq for one in material.earlier),
        )
        manual = job.trigger == MANUAL
        shown = await asyncio.to_thread(
            render_summary, summary, values, self.counter, manual=manual, host=host
        )
        if self._remember is not None and await self._forgotten(job) == gone:
            async with asyncio.timeout(_REMEMBERING):
                await self._remember(shown, job)
        return shown.as_json()

    async def _forgotten(self, job: Job) -> int:
        """How many of its entries are forgotten: what is forgotten now is not noted any more."""
        found = [await self._log.read(job.session, span, whole=False) for span in job.spans]
        return sum(entry.forgotten for entries in found for entry in entries)

    async def _material(self, job: Job) -> Material:
        visible = await self._log.visible(job.session, last=0)
        entries: list[Entry] = []
        for span in needed(job.spans, visible.outline):
            entries += await self._log.read(job.session, span)
        wire = wire_for(visible.info.format)
        return await asyncio.to_thread(gather, entries, job.spans, visible.outline, wire)


def context(  # noqa: PLR0913 - all that it carries
    values: Fold,
    host: Mapping[str, JsonValue],
    tokens: int = 0,
    *,
    model: str = "",
    summarizer: str = "",
    at_once: bool = False,
) -> JsonValue:
    """What a job must carry so that any process makes the same fold of it.

    Args:
        values: What the fold keeps and shows.
        host: What the host knows of the work under way.
        tokens: What all that it stands for would cost in a request.
        model: The model that the session is for.
        summarizer: The model that summarizes, where one is named.
        at_once: Whether somebody waits, so that the log writes the summary, whoever else could.
    """
    return {
        "fold": values.model_dump(mode="json"),
        "host": dict(host),
        "tokens": tokens,
        "model": model,
        "summarizer": summarizer,
        "at_once": at_once,
    }


def is_extractive(job: Job) -> bool:
    """Whether the log itself writes the summary of this fold, without a model."""
    given = read_context(job.context)
    return given.at_once or (given.values.writer == "log" and not given.summarizer)


class Context(NamedTuple):
    """What a job carries."""

    values: Fold
    host: Mapping[str, JsonValue]
    tokens: int = 0
    model: str = ""
    summarizer: str = ""
    at_once: bool = False


def read_context(value: JsonValue) -> Context:
    """The context that `context` put together."""
    match value:
        case {"fold": values, "host": dict(host), "tokens": int(tokens)}:
            known = Context(
                Fold(),
                host,
                tokens,
                str(value.get("model") or ""),
                str(value.get("summarizer") or ""),
                value.get("at_once") is True,
            )
            try:
                return known._replace(values=Fold.model_validate(values))
            except ValidationError:  # of another version: its own values will do
                return known
        case _:
            return Context(Fold(), {})


# What a fold would do, before it is done: what goes, what stays, what is lost, what it saves.

MOST_NAMES = 20


class Preview(NamedTuple):
    """A fold that has not been made."""

    spans: tuple[Span, ...]
    messages: int
    """That would be folded."""
    kept: int
    """Messages that stay."""
    before: int
    """Tokens of the view now."""
    after: int
    """Tokens of the view then."""
    text: str
    """What would be shown instead."""
    lost: int
    """How many names would be found in the log only."""
    names: tuple[str, ...]
    """The weightiest of them."""
    cost_before: float | None = None
    """Dollars that one more request costs now, its prefix cached."""
    cost_after: float | None = None
    """Dollars that it costs then; the first one, which the cache does not know, more."""
    cost_once: float | None = None
    """Dollars of that first request."""

    @property
    def freed(self) -> int:
        """Tokens that the view would have fewer."""
        return self.before - self.after


def preview(
    boundary: Boundary, summary: Summary, tokens: int, messages: int, counter: Counter
) -> Preview:
    """What folding this to that summary would do to a view of so many tokens and messages."""
    shown = sum(counter.text(one.text) + PER_MESSAGE for one in summary.shown)
    told = {*identifiers(summary.text)}
    gone = [one.name for one in summary.ledger if one.name not in told]
    return Preview(
        boundary.spans,
        boundary.messages,
        messages - boundary.messages,
        tokens,
        tokens - boundary.tokens + shown,
        summary.text,
        len(gone),
        tuple(gone[:MOST_NAMES]),
    )
