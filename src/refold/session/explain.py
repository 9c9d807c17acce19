"""What a session's next request would send, or a past one sent, and why."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import JsonValue

from refold.errors import InvalidInput, InvalidSetting, ViewTooLarge
from refold.fold.summary import parse
from refold.fold.trigger import while_folding
from refold.log import CODEC, Entry, FoldCompleted, Log, Requested, Span, Used, Visible
from refold.log.entry import seqs, spans_of, subtract, up_to
from refold.log.kinds import KINDS
from refold.log.outline import replay
from refold.models import ModelSettings, budget_for, counter_for
from refold.models.catalog import NONE, Overrides, Usage, cost_of, facts_of, unmanaged
from refold.recall.text import last_record, plan_of
from refold.session.live_view import LiveView
from refold.settings import load_settings
from refold.view import Previous
from refold.view.budget import PER_MESSAGE, Account, Budget
from refold.view.explain import Explanation
from refold.view.explain import explain as explain_request
from refold.view.profiles import PROFILES, Profile
from refold.view.profiles import profile as named
from refold.view.project import project
from refold.view.view_input import ViewInput, weight
from refold.wire import wire_for

_CONTROL = frozenset(kind.KIND for kind in KINDS if kind.CONTROL)
_PAGE = 500
"""Entries read at a time."""


async def explanation(  # noqa: PLR0913 - what to explain it for
    log: Log,
    session: str,
    *,
    profile: str | None = None,
    model: str | None = None,
    window: int | None = None,
    target_tokens: int | None = None,
) -> Explanation:
    """Why each part of a session is in its next request or not; nothing is sent or changed.

    Args:
        log: Where the session is.
        session: Its name.
        profile: The profile, else the session's own.
        model: The model, else that of the last request.
        window: The model's window, if you know better.
        target_tokens: Above how many tokens the past is rewritten, instead of the profile's.
    """
    settings = load_settings(profile or (await log.info(session)).profile)
    visible = await log.visible(session, last=settings.profile.window.read or None)
    values = _retargeted(_followed(settings.profile, visible), target_tokens)
    before = await last_record(log, session, visible.outline.record)
    asked = await _last_model(log, session, visible)
    model = model or asked or ""
    counter = counter_for(model)
    known = {model: ModelSettings(window=window)} if window else {}
    budget = budget_for(model, values, counter=counter, models={**settings.models, **known})
    apart = values.delegates == "apart"
    inputs = ViewInput.of(visible, wire_for(visible.info.format), counter, apart=apart)
    if before is not None and model == asked:
        budget = _as_before(budget, before.plan.account, inputs)
    plan = project(inputs, values, budget, before and before.plan)
    entries = (*visible.entries, *await _others(log, visible))
    return explain_request(
        inputs, plan, budget, info=visible.info, model=model or None, entries=entries
    )


async def explained_at(log: Log, session: str, seq: int) -> Explanation:
    """Why each part of a session was in a past request or not, as its record says.

    The window and the counts of single parts are those known of the model today. Raises
    Unrebuildable when something that the request was made of is gone.
    """
    plan = await plan_of(log, session, seq)
    model = await _model_at(log, session, seq)
    info = replace(await log.info(session), entries=plan.head)
    values = _named(plan.profile)
    entries = await _up_to(log, session, plan.head)
    outline = replay(entry for entry in entries if entry.kind in _CONTROL)
    needed = {*seqs(outline.needed(plan.head))}
    seen = Visible(info, outline, tuple(one for one in entries if one.seq in needed))
    counter = counter_for(model)
    apart = values.delegates == "apart"
    inputs = ViewInput.of(seen, wire_for(info.format), counter, plan.scope, apart=apart)
    budget = budget_for(model, values, counter=counter)
    return explain_request(inputs, plan, budget, info=info, model=model or None, entries=entries)


def _as_before(budget: Budget, account: Account, inputs: ViewInput) -> Budget:
    """With the tools, the instructions and the answer's room of the newest request.

    Who asks the model knows them, the session alone does not.
    """
    said = (part for row in inputs.rows for part in row.parts if part.kind == "system")
    instructions = max(0, account.system - sum(part.tokens for part in said))
    return budget._replace(tools=account.tools, instructions=instructions, reserve=account.reserve)


async def _up_to(log: Log, session: str, head: int) -> list[Entry]:
    found: list[Entry] = []
    for first in range(1, head + 1, _PAGE):
        found += await log.read(session, Span(first, min(head, first + _PAGE - 1)))
    return found


def _named(profile: str) -> Profile:
    """The profile that a record names; one that is not there any more plans nothing here."""
    try:
        return named(profile)
    except InvalidSetting:
        return PROFILES["balanced"]


async def _model_at(log: Log, session: str, seq: int) -> str:
    for entry in await log.read(session, Span(seq, seq)):
        match CODEC.decode(entry):
            case Requested(model=model):
                return model
            case _:
                pass
    raise InvalidInput(f"Entry {seq} is no request record.")


async def _last_model(log: Log, session: str, visible: Visible) -> str | None:
    """The model of the newest request."""
    at = visible.outline.record
    try:
        return await _model_at(log, session, at) if at else None
    except InvalidInput:  # forgotten since
        return None


def _followed(values: Profile, visible: Visible) -> Profile:
    """The values by which the session is planned: one with folds goes on folding."""
    return while_folding(values) if visible.outline.folds and values.fold.breadcrumb else values


def _retargeted(values: Profile, tokens: int | None) -> Profile:
    if tokens is None:
        return values
    rewrite = values.rewrite.model_copy(update={"target_tokens": tokens})
    return values.model_copy(update={"rewrite": rewrite})


async def _others(log: Log, visible: Visible) -> list[Entry]:
    """The entries that the view does not need, because the explanation tells of them, too."""
    seen = spans_of(entry.seq for entry in visible.entries)
    missing = subtract(up_to(visible.info.entries), seen)
    return [entry for span in missing for entry in await log.read(visible.info.session, span)]


# How full the window is, and what a session has come to cost.

_PAGE_MEASURING = 1_000
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


def filled(live: LiveView) -> Filled:
    """What the next request would hold now."""
    inputs, budget, view = live.view.inputs, live.setup.budget, live.view
    parts = (part for row in inputs.rows for part in row.parts)
    told = sum(part.tokens for part in parts if part.kind == "system")
    shown = (text for one in inputs.foldings for _, text in one.shown)
    folds = sum(inputs.counter.text(text) + PER_MESSAGE for text in shown)
    last = live.previous.plan.account if live.previous else Account()
    beside = max(budget.instructions, inputs.instructions)
    # Before the first request of a program, the newest of another tells of tools and instructions.
    system = max(told + beside, 0 if budget.tools else last.system)
    size = view.size(budget, prompt_follows=True)
    if size > live.thresholds.room:  # it would be cut
        with suppress(ViewTooLarge):
            size = project(inputs, view.profile, budget, view.plan, prompt_follows=True).tokens
    return Filled(system, budget.tools or last.tools, max(folds, size - told), folds)


@dataclass(frozen=True, slots=True)
class SessionCost:
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


async def session_cost(
    log: Log, session: str, before: SessionCost | None = None, models: Overrides = NONE
) -> SessionCost:
    """What a session has cost, reading on from what is known already."""
    so_far = before or SessionCost()
    head = await log.head(session)
    while so_far.upto < head:
        span = Span(so_far.upto + 1, min(head, so_far.upto + _PAGE_MEASURING))
        for entry in await log.read(session, span, whole=False):
            if entry.kind == FoldCompleted.KIND:
                for one in await log.read(session, Span(entry.seq, entry.seq)):
                    so_far = _with(so_far, one, models)
            else:
                so_far = _with(so_far, entry, models)
        so_far = replace(so_far, upto=span.last)
    return so_far


def _with(so_far: SessionCost, entry: Entry, models: Overrides) -> SessionCost:
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


# What a request came to use and cost, beside what it would have without us.


def used(
    live: LiveView,
    request: Previous,
    known: int,
    told: Usage | None,
    answer: Iterable[bytes],
) -> Used:
    """The entry that says so; without what the provider told, by our own count, and marked so.

    `known` is the head of the request before.
    """
    account, prices = request.plan.account, live.setup.prices
    usage = told or Usage(account.sent, sum(map(live.weight_of, answer)))
    beside = account.sent - request.plan.tokens
    whole = live.whole + beside - _unsendable(live, request)
    # All but what is new since the request before, as a cache would have it.
    inputs = live.view.inputs
    before = whole - sum(map(weight, inputs.rows[inputs.at(known + 1) :]))
    instead = unmanaged(usage, account.sent, whole, before if known else 0)
    other = {**instead._asdict(), "cost": cost_of(instead, prices)}
    marked = {} if told else {"estimated": True}
    return Used(request.seq, {**usage._asdict(), **marked}, cost_of(usage, prices), other)


def _unsendable(live: LiveView, request: Previous) -> int:
    """The tokens of prompts that are too long for the window: nobody could have sent them."""
    inputs = live.view.inputs
    seqs = {
        ref.seq for ref, edit in request.plan.layout.changes.items() if edit.reason == "oversized"
    }
    return sum(weight(row) for row in inputs.rows if row.seq in seqs) if seqs else 0
