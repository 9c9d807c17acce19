"""What a session's next request would send, or a past one sent, and why; and what it cost."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pydantic_core import from_json

from refold.errors import InvalidInput, InvalidSetting, ViewTooLarge
from refold.fold.trigger import while_folding
from refold.log import (
    CODEC,
    Entry,
    Findings,
    FoldCompleted,
    Folded,
    Log,
    Message,
    Outline,
    Requested,
    Span,
    Used,
    Visible,
)
from refold.log.entry import placed, seqs, spans_of, subtract, union, up_to
from refold.log.kinds import KINDS
from refold.log.outline import replay
from refold.models import ModelSettings, budget_for, counter_for
from refold.models.catalog import Usage
from refold.recall.text import last_record, plan_of
from refold.session.live_view import LiveView
from refold.settings import load_settings
from refold.view.budget import ASSUMED_WINDOW, PER_MESSAGE, Account, thresholds
from refold.view.explain import Explanation
from refold.view.explain import explain as explain_request
from refold.view.explanation import Context, Line, Total, lines_of, totals
from refold.view.profiles import PROFILES
from refold.view.profiles import profile as shipped_profile
from refold.view.project import project, unrewritten
from refold.view.record import context_of, shown_spans
from refold.view.tokens import corrected
from refold.view.view_input import ViewInput, weight
from refold.wire import wire_for

_CONTROL: Final = frozenset(kind.KIND for kind in KINDS if kind.CONTROL)
_COSTING: Final = {Used.KIND, FoldCompleted.KIND, Findings.KIND}
_NO_TOKENS: Final = Usage(0)
_PAGE: Final = 500
"""Entries read at a time."""
_PAGE_WITHOUT_BODIES: Final = 1_000


async def explanation(  # noqa: PLR0913 - what to explain it for
    log: Log,
    session: str,
    *,
    profile: str | None = None,
    model: str | None = None,
    window: int | None = None,
    target_tokens: int | None = None,
    every: bool = True,
) -> Explanation:
    """Explain why each part of a session is in its next request or not; nothing is sent.

    Args:
        log: The log that holds the session.
        session: Its name.
        profile: The profile, by default the session's own.
        model: The model, by default that of the last request, or of the newest answer that names
            one, as in an imported session.
        window: Override the model's window.
        target_tokens: Above how many tokens the past is rewritten, instead of the profile's.
        every: Also cover the entries that the view does not need.
    """
    settings = load_settings(profile or (await log.info(session)).profile)
    visible = await log.visible(session, last=settings.profile.window.read or None)
    values = settings.profile
    if visible.outline.folds and values.fold.breadcrumb:  # a session with folds goes on folding
        values = while_folding(values)
    if target_tokens is not None:
        rewrite = values.rewrite.model_copy(update={"target_tokens": target_tokens})
        values = values.model_copy(update={"rewrite": rewrite})
    before = await last_record(log, session, visible.outline.record)
    last_model = None
    if visible.outline.record:
        with suppress(InvalidInput):  # forgotten since
            last_model = await _model_at(log, session, visible.outline.record)
    model = model or last_model or _recorded_model(visible.entries)
    same = before.plan if before is not None and model == last_model else None
    counter = corrected(counter_for(model), same and same.correction)
    models = {**settings.models, **({model: ModelSettings(window=window)} if window else {})}
    budget = budget_for(model, values, counter=counter, models=models)
    isolated = values.delegates == "apart"
    inputs = ViewInput.of(visible, wire_for(visible.info.format), counter, isolated=isolated)
    if same is not None:
        # The session alone does not know the tools, instructions and reserve of its requests.
        account = same.account
        instructions = max(0, account.system - inputs.system_tokens)
        budget = budget._replace(
            tools=account.tools, instructions=instructions, reserve=account.reserve
        )
        if budget.window is None and account.limit not in {0, budget.limit}:
            # The program that made the request knew the window: it may be set in its code.
            budget = budget._replace(window=account.limit + account.reserve)
    plan = project(inputs, values, budget, before and before.plan)
    read = spans_of(entry.seq for entry in visible.entries)
    missing = subtract(up_to(visible.info.entries), read) if every else ()
    others = [entry for span in missing for entry in await log.read(session, span)]
    newest = visible.outline.record
    context = await _context_at(log, session, newest) if newest else Context()
    return explain_request(
        inputs,
        plan,
        budget,
        info=visible.info,
        model=model or None,
        entries=(*visible.entries, *others),
        context=context._replace(held=0),
    )


async def explain_past(log: Log, session: str, seq: int, *, every: bool = True) -> Explanation:
    """Explain why each part of a session was in a past request or not, from its record.

    The window and the counts of single parts are those known of the model today. Unless `every`,
    what was not sent is not read, however much that is: it is `unlisted`, with its reasons. Raises
    Unrebuildable when something that the request was made of is gone.
    """
    plan = await plan_of(log, session, seq)
    model = await _model_at(log, session, seq)
    info = replace(await log.info(session), entries=plan.head)
    try:
        values = shipped_profile(plan.profile)
    except InvalidSetting:  # it does not exist any more; nothing is planned by it here
        values = PROFILES["balanced"]
    entries: list[Entry] = []
    if every:
        for first in range(1, plan.head + 1, _PAGE):
            entries += await log.read(session, Span(first, min(plan.head, first + _PAGE - 1)))
        outline = replay(entry for entry in entries if entry.kind in _CONTROL)
        needed = {*seqs(outline.needed(plan.head))}
        visible = Visible(info, outline, tuple(entry for entry in entries if entry.seq in needed))
    else:
        for span in shown_spans(plan):
            entries += await log.read(session, span)
        # The record says what was left out and why: no outline is needed.
        visible = Visible(info, Outline(info.title), tuple(entries))
    counter = corrected(counter_for(model), plan.correction)
    isolated = values.delegates == "apart"
    wire = wire_for(info.format)
    inputs = ViewInput.of(visible, wire, counter, plan.scope, isolated=isolated)
    budget = budget_for(model, values, counter=counter)
    context = await _context_at(log, session, seq)
    explained = explain_request(
        inputs, plan, budget, info=info, model=model or None, entries=entries, context=context
    )
    return explained if every else replace(explained, unlisted=plan.layout.omissions)


async def last_model(log: Log, session: str) -> str:
    """The name of the model of a session's newest request; empty if there is none."""
    record = (await log.outlined(session)).outline.record
    if not record:
        return ""
    with suppress(InvalidInput):  # forgotten since
        return await _model_at(log, session, record)
    return ""


def _recorded_model(entries: Sequence[Entry]) -> str:
    """The model that the newest answer names: an imported session has no request records."""
    for entry in reversed(entries):
        if entry.kind == Message.KIND and not entry.forgotten:
            with suppress(ValueError):
                match from_json(entry.body):
                    case {"model_name": str(name)} if name:
                        return name
                    case _:
                        pass
    return ""


async def _context_at(log: Log, session: str, seq: int) -> Context:
    for entry in await log.read(session, Span(seq, seq)):
        return context_of(CODEC.decode(entry))
    return Context()


async def _model_at(log: Log, session: str, seq: int) -> str:
    for entry in await log.read(session, Span(seq, seq)):
        match CODEC.decode(entry):
            case Requested(model=model):
                return model
            case _:
                pass
    raise InvalidInput(f"Entry {seq} is not a request record.")


class Needed(NamedTuple):
    """The tokens that a request would take up in the window, and for what."""

    spans: int
    """For the messages of the spans, as they were said."""
    others: int
    """For all else that is sent."""
    reserve: int
    """Kept for the answer."""
    margin: int
    """Kept because the count may be too low."""
    above: int
    """Above a limit that is smaller than the window: your own, or the provider's."""
    window: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """How the messages of some spans would appear in the next request."""

    fits: bool
    """Whether the request can be sent without leaving whole messages out."""
    needed: Needed
    """What it would take up if nothing were rewritten or left out."""
    messages: tuple[Line, ...] = ()
    """Those of the spans, each with what becomes of its parts; empty where nothing can be sent."""

    @property
    def verbatim(self) -> int:
        """How many of them are sent unchanged."""
        return sum(_is_verbatim(line) for line in self.messages)

    @property
    def changes(self) -> tuple[Total, ...]:
        """What happens to the parts of the others, by reason."""
        changed = totals(line for line in self.messages if not _is_verbatim(line))
        return tuple(total for total in changed if total.disposition.edit != "keep")


def _is_verbatim(line: Line) -> bool:
    return all(part.disposition.edit == "keep" for part in line.parts)


async def forecast(live: LiveView, spans: Sequence[Span], said: bytes, *, unfold: bool) -> Forecast:
    """Plan the next request and look these entries up in it; nothing is written.

    Args:
        live: The session's view.
        spans: The entries in question.
        said: What the user says next, as a message. A request follows a prompt, and which results
            count as old depends on it.
        unfold: Plan as if the folds over the spans were unfolded.
    """
    await live.catch_up()
    inputs = await _read_unfolded(live, spans if unfold else ())
    draft = live.author.draft(Message(said), scope=live.scope)
    inputs.extend([placed(draft, inputs.head + 1)])
    budget = live.setup.budget
    if not budget.tools and live.previous is not None:
        # This program made no request yet: the newest one says what goes besides the messages.
        account = live.previous.plan.account
        instructions = max(budget.instructions, account.system)
        budget = budget._replace(tools=account.tools, instructions=instructions)
    profile, before = live.view.profile, live.view.plan
    marks = thresholds(profile, budget, inputs.counter.spread, instructions=inputs.instructions)
    whole = unrewritten(inputs, profile, budget, before, limits=False) + marks.floor
    inside = sum(weight(row) for row in inputs.rows if any(row.seq in span for span in spans))
    window = budget.window or ASSUMED_WINDOW
    margin, above = marks.limit - marks.room - marks.floor, window - budget.reserve - marks.limit
    needed = Needed(inside, whole - inside, budget.reserve, max(0, margin), max(0, above), window)
    try:
        plan = project(inputs, profile, budget, before)
    except ViewTooLarge:
        return Forecast(fits=False, needed=needed)
    lines = lines_of(inputs, plan)
    messages = tuple(line for line in lines if any(line.seq in span for span in spans))
    return Forecast(not plan.left_out.messages, needed, messages)


async def _read_unfolded(live: LiveView, unfolded: Iterable[Span]) -> ViewInput:
    log, name = live.log, live.name
    read = live.setup.profile.window.read or None
    visible = await log.visible(name, last=read)
    outline, spans = visible.outline, tuple(unfolded)
    if spans:
        # As unfolding does it: a fold keeps standing for the rest of its spans.
        rest = ((fold, subtract(union(fold.spans), spans)) for fold in outline.folds)
        folds = tuple(Folded(fold.seq, fold.fold, left) for fold, left in rest if left)
        outline = replace(outline, folds=folds)
        needed = outline.needed(visible.info.entries, read)
        entries = [entry for span in needed for entry in await log.read(name, span)]
        visible = Visible(visible.info, outline, tuple(entries))
    return live.describe(visible)


class Filled(NamedTuple):
    """How many tokens the next request would have, and of what."""

    system: int
    tools: int
    conversation: int
    folds: int = 0
    """Of the conversation: the summaries that stand for what is folded."""

    @property
    def total(self) -> int:
        return self.system + self.tools + self.conversation


def filled(live: LiveView) -> Filled:
    inputs, budget, view = live.view.inputs, live.setup.budget, live.view
    summaries = (text for fold in inputs.foldings for _, text in fold.shown)
    folds = sum(inputs.counter.text(text) + PER_MESSAGE for text in summaries)
    system, tools = _system_and_tools(live)
    size = view.size(budget, prompt_follows=True)
    if size > live.thresholds.room:  # it would be cut
        with suppress(ViewTooLarge):
            size = project(inputs, view.profile, budget, view.plan, prompt_follows=True).tokens
    conversation = max(folds, size - inputs.system_tokens)
    return Filled(system, tools, conversation, folds)


def besides_messages(live: LiveView) -> int:
    """Tokens of the next request beside its messages: instructions and tool definitions."""
    return sum(_system_and_tools(live)) - live.view.inputs.system_tokens


def _system_and_tools(live: LiveView) -> tuple[int, int]:
    inputs, budget = live.view.inputs, live.setup.budget
    last = live.previous.plan.account if live.previous else Account()
    instructions = max(budget.instructions, inputs.instructions)
    # Before a program's first request, the newest one of another gives tools and instructions.
    system = max(inputs.system_tokens + instructions, 0 if budget.tools else last.system)
    return system, budget.tools or last.tools
