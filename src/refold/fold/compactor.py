"""Making a fold: read the log, write a summary, and render it as the profile says."""

import asyncio
from collections import Counter as Counts
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from math import ceil
from typing import NamedTuple, Protocol, runtime_checkable

from pydantic import JsonValue, ValidationError

from refold.errors import FoldNotMade
from refold.fold.extractive import extractive_summary, with_results
from refold.fold.identifiers import all_names, names
from refold.fold.job import Job, Steps
from refold.fold.material import (
    Boundary,
    Material,
    Passage,
    beside,
    gather,
    kept,
    needed,
    passage_of,
    top_level,
)
from refold.fold.replace import render_summary
from refold.fold.summary import Offer, Summary, shown_tokens
from refold.log import CODEC, Entry, Log, Message, Span
from refold.terminal_text import counted
from refold.view import Counter, Fold
from refold.wire import Wire, wire_for

Write = Callable[[Material, Job, Steps], Awaitable[Summary]]
Remember = Callable[[Summary, Job], Awaitable[None]]
"""Saves what a summary says for other sessions, before the summarized messages leave the view."""


@runtime_checkable
class Offering(Protocol):
    """A writer that chooses between models."""

    async def offers(self, material: Material, job: Job) -> tuple[Offer, ...]:
        """Between whom it would choose."""
        ...


MANUAL = "manual"
PRIMARY, AUTO = "primary", "auto"
"""Summarizers in settings that are no names: the session's own model, and whoever does it for
least."""
MAX_NAMES = 20
_REMEMBER_TIMEOUT = 30.0


async def from_the_log(material: Material, job: Job, steps: Steps) -> Summary:  # noqa: ARG001
    """Write the extractive summary: it needs no model and costs nothing."""
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
        """Make the summary that the fold is completed with."""
        context = read_context(job.context)
        forgotten = await self._count_forgotten(job) if self._remember else 0
        material = await self._material(job)
        rendered = await self._rendered(material, job, steps)
        filtered = top_level(material) if context.shared else None
        if filtered is not None:
            # Delegates are filtered before anything is summarized: nothing can be taken out of
            # a summary afterward.
            try:
                other = await self._rendered(filtered, job, steps)
            except FoldNotMade:
                other = await self._rendered(filtered, job, steps, from_the_log)
            usage = Counts(rendered.usage) + Counts(other.usage)
            other = replace(other, messages=0, tokens=0, over=(), state=(), usage={})
            rendered = replace(rendered, for_delegates=other, usage=dict(usage))
        # Nothing that was forgotten in the meantime may end up in a note.
        if self._remember is not None and await self._count_forgotten(job) == forgotten:
            async with asyncio.timeout(_REMEMBER_TIMEOUT):
                await self._remember(rendered, job)
        return rendered.as_json()

    async def _rendered(
        self, material: Material, job: Job, steps: Steps, write: Write | None = None
    ) -> Summary:
        context = read_context(job.context)
        write = write or (from_the_log if context.at_once else self._write)
        summary = await write(material, job, steps)
        summary = replace(
            await asyncio.to_thread(with_results, summary, material),
            messages=material.messages,
            tokens=context.tokens,
            over=tuple(fold.seq for fold in material.earlier),
            state=material.state,
        )
        return await asyncio.to_thread(
            render_summary,
            summary,
            context.values,
            self.counter,
            dropped=material.shown,
            manual=job.trigger == MANUAL,
            host=context.host,
            kept=await asyncio.to_thread(all_names, material.kept),
        )

    async def offers(self, job: Job) -> tuple[Offer, ...]:
        """Who could write the summary, and for how much, the cheapest first."""
        if not isinstance(self._write, Offering):
            return ()
        return await self._write.offers(await self._material(job), job)

    async def _count_forgotten(self, job: Job) -> int:
        spans = [await self._log.read(job.session, span, whole=False) for span in job.spans]
        return sum(entry.forgotten for entries in spans for entry in entries)

    async def _material(self, job: Job) -> Material:
        visible = await self._log.visible(job.session, last=0)
        entries: list[Entry] = []
        for span in needed(job.spans, visible.outline):
            entries += await self._log.read(job.session, span)
        wire = wire_for(visible.info.format)
        material = await asyncio.to_thread(gather, entries, job.spans, visible.outline, wire)
        evidence = beside(material, job.spans, visible.outline)
        staying = kept(job.spans, job.head, visible.outline)
        return replace(
            material,
            beside=await self._passages(job, evidence, wire),
            kept=await self._passages(job, staying, wire),
        )

    async def _passages(self, job: Job, spans: Iterable[Span], wire: Wire) -> tuple[Passage, ...]:
        found: list[Passage] = []
        for span in spans:
            for entry in await self._log.read(job.session, span):
                value = CODEC.decode(entry)
                if isinstance(value, Message) and (
                    passage := passage_of(entry, value.payload, wire)
                ):
                    found.append(passage)
        return tuple(found)


class Context(NamedTuple):
    """What a job carries so that any process makes the same fold of it."""

    values: Fold
    host: Mapping[str, JsonValue]
    tokens: int = 0
    model: str = ""
    summarizer: str = ""
    at_once: bool = False
    system: str = ""
    shared: bool = False

    @property
    def named(self) -> str:
        """The summarizer that settings name, if they name one."""
        return "" if self.summarizer in {PRIMARY, AUTO} else self.summarizer


def context(  # noqa: PLR0913 - all that it carries
    values: Fold,
    host: Mapping[str, JsonValue],
    tokens: int = 0,
    *,
    model: str = "",
    summarizer: str = "",
    at_once: bool = False,
    system: str = "",
    shared: bool = False,
) -> JsonValue:
    """Build the context of a job.

    Args:
        values: The profile's settings for folds.
        host: What the host knows of the work under way.
        tokens: What all of the folded messages would cost in a request.
        model: The session's model.
        summarizer: The model that summarizes, if one is named.
        at_once: Whether somebody is waiting: the summary is then extractive, without a model.
        system: The instructions that the session's model works under, for the summarizer.
        shared: Whether delegated agents are shown the summary, or one without others' work.
    """
    return {
        "fold": values.model_dump(mode="json"),
        "host": dict(host),
        "tokens": tokens,
        "model": model,
        "summarizer": summarizer,
        "at_once": at_once,
        **({"system": system} if system else {}),
        "shared": shared,
    }


def read_context(value: JsonValue) -> Context:
    match value:
        case {"fold": values, "host": dict(host), "tokens": int(tokens)}:
            try:
                fold = Fold.model_validate(values)
            except ValidationError:  # written by another version
                fold = Fold()
            return Context(
                fold,
                host,
                tokens,
                str(value.get("model") or ""),
                str(value.get("summarizer") or ""),
                value.get("at_once") is True,
                str(value.get("system") or ""),
                value.get("shared") is True,
            )
        case _:
            return Context(Fold(), {})


def is_extractive(job: Job) -> bool:
    """Whether this fold is made from the log alone, without a model."""
    context = read_context(job.context)
    return context.at_once or (context.values.writer == "log" and not context.summarizer)


class Preview(NamedTuple):
    """What a fold would do, before it is made."""

    spans: tuple[Span, ...]
    messages: int
    """For how many messages the summary would stand, with those of the folds beneath it."""
    kept: int
    """Messages that would stay."""
    before: int
    """Tokens of the next request's messages now."""
    after: int
    """The same after the fold."""
    text: str
    """What would be shown in place of the messages."""
    lost: int
    """How many names only the log would still have."""
    names: tuple[str, ...]
    """The weightiest of them."""
    cost_before: float | None = None
    """Dollars that one more request costs now, with its prefix cached."""
    cost_after: float | None = None
    """The same after the fold, from its second request on."""
    cost_once: float | None = None
    """Dollars of the first request after the fold, whose prefix is not cached yet."""
    price: float | None = None
    """Dollars that folding now adds to the next request, with its summary; negative if it saves."""
    offers: tuple[Offer, ...] = ()
    """Who could write the summary, and for how much, the cheapest first."""
    by_log: bool = False
    """Whether the summary is written from the log, without a model."""
    folded: int = 0
    """Of the messages, those that an earlier fold has replaced already."""
    besides: int = 0
    """Tokens of the next request beside its messages: instructions and tool definitions."""

    @property
    def request_before(self) -> int:
        """Tokens of the whole next request now."""
        return self.before + self.besides

    @property
    def request_after(self) -> int:
        """The same after the fold."""
        return self.after + self.besides

    @property
    def freed(self) -> int:
        return self.before - self.after

    @property
    def saves(self) -> float | None:
        """Dollars that each later request costs less."""
        if self.cost_before is None or self.cost_after is None:
            return None
        return self.cost_before - self.cost_after

    @property
    def pays_after(self) -> int | None:
        """Requests until the fold has saved its price; None if it never does, or none is known."""
        if self.price is None or not self.saves or self.saves <= 0:
            return None
        return max(0, ceil(self.price / self.saves))

    @property
    def price_text(self) -> str:
        """The price in words, and when it is paid back; empty if no price is known."""
        if self.price is None:
            return ""
        if self.price <= 0:
            return f"nothing: the next request is {_dollars(-self.price)} cheaper at once"
        once = f"{_dollars(self.price)} once, with the summary"
        if self.pays_after is None:
            return f"{once}; later requests cost no less"
        return f"{once}; paid back after {counted(self.pays_after, 'request')}"

    def __str__(self) -> str:
        """What a fold would do, in three lines, as `refold explain --fold` prints it."""
        return "\n".join(self.sentences)

    @property
    def sentences(self) -> tuple[str, str, str]:
        """How many messages it replaces, what the next request becomes, and the price."""
        price = self.price_text or "unknown, because no price is known for this model"
        goes = f"{counted(self.messages, 'message')} would become a summary"
        sizes = f"{self.request_before:,} to about {self.request_after:,} tokens"
        return (
            f"{goes}, {self.kept:,} would stay.",
            f"The next request would go from {sizes}.",
            f"Price: {price}.",
        )


def preview(
    boundary: Boundary, summary: Summary, tokens: int, messages: int, counter: Counter
) -> Preview:
    """Preview folding this boundary to that summary, in a view of so many tokens and messages."""
    shown_names = {*names(summary.text)}
    lost = [name.name for name in summary.ledger if name.name not in shown_names]
    return Preview(
        boundary.spans,
        summary.messages,
        messages - boundary.messages,
        tokens,
        tokens - boundary.tokens + shown_tokens(summary, counter),
        summary.text,
        len(lost),
        tuple(lost[:MAX_NAMES]),
        folded=folded_before(boundary, summary),
    )


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 0.1 else f"${amount:.4f}"  # noqa: PLR2004 - 10 cents


def folded_before(boundary: Boundary, summary: Summary) -> int:
    """Of the messages that a summary stands for, those that an earlier fold has replaced."""
    return max(0, summary.messages - boundary.messages)
