"""How full the window is, and what a session has come to cost."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import JsonValue

from refold.errors import ViewTooLarge
from refold.fold.summary import parse
from refold.log import CODEC, Entry, FoldCompleted, Log, Span, Used
from refold.models.catalogue import NONE, Overrides, facts_of
from refold.models.spending import Usage, cost_of
from refold.session.follow import Following
from refold.view.budget import PER_MESSAGE, Account
from refold.view.project import project

_PAGE = 1_000
"""Entries read at a time."""


class Filled(NamedTuple):
    """How many tokens the next request would have, and of what."""

    system: int
    tools: int
    conversation: int
    folds: int = 0
    """Of the conversation: the summaries that stand for what is folded."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.system + self.tools + self.conversation


def filled(following: Following) -> Filled:
    """What the next request would hold now."""
    sheet, budget, view = following.view.sheet, following.setup.budget, following.view
    parts = (part for row in sheet.rows for part in row.parts)
    told = sum(part.tokens for part in parts if part.kind == "system")
    shown = (text for one in sheet.foldings for _, text in one.shown)
    folds = sum(sheet.counter.text(text) + PER_MESSAGE for text in shown)
    last = following.previous.plan.account if following.previous else Account()
    beside = max(budget.instructions, sheet.instructions)
    # Before the first request of a program, the newest of another tells of tools and instructions.
    system = max(told + beside, 0 if budget.tools else last.system)
    size = view.size(budget, prompt_follows=True)
    if size > following.thresholds.room:  # it would be cut
        with suppress(ViewTooLarge):
            size = project(sheet, view.profile, budget, view.plan, prompt_follows=True).tokens
    return Filled(system, budget.tools or last.tools, max(folds, size - told), folds)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a session has come to cost, up to one of its entries."""

    upto: int = 0
    requests: int = 0
    cost: float | None = 0.0
    """Dollars, of requests and of summaries; None: a price is unknown."""
    unmanaged: float | None = 0.0
    """What the requests would have cost if each had sent everything."""

    @property
    def saved(self) -> float | None:
        """The difference."""
        if self.cost is None or self.unmanaged is None:
            return None
        return self.unmanaged - self.cost


async def spent(
    log: Log, session: str, before: Spent | None = None, models: Overrides = NONE
) -> Spent:
    """What a session has cost, reading on from what is known already."""
    so_far = before or Spent()
    head = await log.head(session)
    while so_far.upto < head:
        span = Span(so_far.upto + 1, min(head, so_far.upto + _PAGE))
        for entry in await log.read(session, span, whole=False):
            if entry.kind == FoldCompleted.KIND:
                for one in await log.read(session, Span(entry.seq, entry.seq)):
                    so_far = _with(so_far, one, models)
            else:
                so_far = _with(so_far, entry, models)
        so_far = replace(so_far, upto=span.last)
    return so_far


def _with(so_far: Spent, entry: Entry, models: Overrides) -> Spent:
    match CODEC.decode(entry) if entry.kind in _COSTING else None:
        case Used(cost=cost, unmanaged={"cost": instead}):
            other = float(instead) if isinstance(instead, int | float) else None
            return replace(
                so_far,
                requests=so_far.requests + 1,
                cost=_sum(so_far.cost, cost),
                unmanaged=_sum(so_far.unmanaged, other),
            )
        case FoldCompleted(summary=summary):
            return replace(so_far, cost=_sum(so_far.cost, _written(summary, models)))
        case _:
            return so_far


_COSTING = {Used.KIND, FoldCompleted.KIND}


def _written(body: JsonValue, models: Overrides) -> float | None:
    """What a model took for a summary; nothing where the log wrote it."""
    summary = parse(body)
    if not summary.usage:
        return 0.0
    usage = summary.usage
    read = usage.get("cache_read", 0)
    told = Usage(usage.get("input", 0), usage.get("output", 0), read)
    return cost_of(told, facts_of(summary.by, models).prices)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
