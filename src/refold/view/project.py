"""From a view's input to a plan: the one place where policies are put in order.

`project` is pure: the same input, profile, budget and earlier plan give the same plan. With a
sticky profile it either adds what is new to the plan before, or rewrites; the others follow their
rule literally on each request.

The order, in each plan (of two proposals for one part the later counts: `PlanBuilder.apply`):

1. what the plan before decided, as far as it lasts, then emergency, restore, oversized, folds,
   findings, pins, scope, rendered, and after an emergency or a restore withdraw_lost
   (`_carry_over`);
2. trim; to make room also dedupe, archive and arguments (`_draft`, `_compact_to`,
   `_apply_rules`);
3. window and pair (`_draft`, `_apply_rules`);
4. fit, and the markers for what is left out (`_fit`, `_insert_markers`).

A plan that only adds to the one before has oversized, scope and pair (`continuation`).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from refold.errors import InvalidMessage, PromptTooLarge, ViewTooLarge
from refold.log import MAIN_SCOPE
from refold.view.budget import Account, Budget, Thresholds, thresholds
from refold.view.plan import LASTING, STICKY, Closed, Layout, LeftOut, Pace, Plan, Terms
from refold.view.plan_builder import PlanBuilder, Proposal, finalize
from refold.view.policies.fit import emergency, exceeds, fit, mark_fitted, oversized, withdraw_lost
from refold.view.policies.folds import findings, folds, pins, scope
from refold.view.policies.pair import OPENING, opening, pair
from refold.view.policies.tool_output import archive, arguments, dedupe, rendered, trim
from refold.view.policies.window import restore, window
from refold.view.profiles import Profile
from refold.view.view_input import ViewInput
from refold.wire import Drop, Insert, Replace


class _Draft(NamedTuple):
    builder: PlanBuilder
    cause: str
    tried: int
    left_out: LeftOut


def project(  # noqa: PLR0913 - the last two are choices
    inputs: ViewInput,
    profile: Profile,
    budget: Budget,
    before: Plan | None = None,
    *,
    prompt_follows: bool = False,
    continued: Plan | None = None,
) -> Plan:
    """The plan for the next request.

    With `prompt_follows` it is planned before the next prompt is known: the newest one so far may
    be replaced like any earlier one. `continued` is the result of `continuation` for the same
    arguments, if it is known already.

    Raises ViewTooLarge when what must be kept alone exceeds the limit.
    """
    try:
        plan = _plan(inputs, profile, budget, before, continued, prompt_follows=prompt_follows)
    except ViewTooLarge:
        if budget.guessed is None:
            raise
        certain = budget._replace(guessed=None)
        plan = _plan(inputs, profile, certain, before, prompt_follows=prompt_follows)
    newest = max((fold.seq for fold in inputs.foldings), default=0)
    pace = before.pace if before else Pace()
    return replace(plan, pace=pace.after(newest, plan.account.sent))


def _plan(  # noqa: PLR0913 - one is a choice
    inputs: ViewInput,
    profile: Profile,
    budget: Budget,
    before: Plan | None,
    continued: Plan | None = None,
    *,
    prompt_follows: bool,
) -> Plan:
    if not inputs.rows and "unreadable" in inputs.hidden.values():
        raise InvalidMessage(f"None of its messages is in the format {inputs.wire.name!r}.")
    marks = _marks(inputs, profile, budget)
    refused = budget.refused if profile.emergency.on else 0
    if before is not None and _repeats(before, inputs, profile, budget):
        return replace(before, cause="", left_out=LeftOut())
    continued_from = None if refused or budget.restored else before
    added = continued_from and continued
    if added is None:
        added = continuation(inputs, profile, budget, continued_from, prompt_follows=prompt_follows)
    tried = continued_from.tried if continued_from else 0
    if added is not None and not marks.rewrite_due(added.tokens, tried):
        return added
    start = _carry_over(
        inputs,
        profile,
        marks,
        before,
        budget._replace(refused=refused),
        prompt_follows=prompt_follows,
    )
    draft = _draft(start, profile, marks, before, due=added is not None)
    if refused or budget.restored:
        draft = draft._replace(cause=draft.cause or ("limit" if refused else "restart"))
    if added is not None and not draft.cause and added.tokens <= marks.room:
        return replace(added, tried=draft.tried)
    return _finish(draft, profile, budget, marks, before)


def continuation(
    inputs: ViewInput,
    profile: Profile,
    budget: Budget,
    before: Plan | None,
    *,
    prompt_follows: bool,
) -> Plan | None:
    """The plan before with what is new; None where the next plan does not begin with it."""
    if before is None or before.closed is None or not _continues(before.closed, inputs, profile):
        return None
    closed = before.closed
    builder = PlanBuilder(inputs, closed.rows)
    builder.hidden_until = before.hidden_until
    builder.apply(_lasting(before, builder, STICKY))
    marks = _marks(inputs, profile, budget)
    left_out = _replace_oversized(builder, marks, prompt_follows=prompt_follows)
    builder.apply(scope(builder, closed.quotes))
    builder.apply(pair(builder, closed.rows))
    return finalize(builder, closed, profile, budget, replace(before, cause="", left_out=left_out))


def unrewritten(  # noqa: PLR0913 - two are choices
    inputs: ViewInput,
    profile: Profile,
    budget: Budget,
    before: Plan | None,
    *,
    prompt_follows: bool = False,
    limits: bool = True,
) -> int:
    """The tokens of a request that continues no plan, if nothing were rewritten.

    Without `limits`, as if the profile had no fixed limits either.
    """
    marks = _marks(inputs, profile, budget)
    builder, _ = _carry_over(inputs, profile, marks, before, prompt_follows=prompt_follows)
    if limits:
        builder.apply(window(builder, profile))
    builder.apply(pair(builder))
    return builder.total


def weigh(inputs: ViewInput, profile: Profile, budget: Budget, before: Plan | None) -> PlanBuilder:
    """A builder that weighs each row as it is sent if nothing more is rewritten to make room."""
    marks = _marks(inputs, profile, budget)
    return _carry_over(inputs, profile, marks, before, prompt_follows=True)[0]


def check_prompt(inputs: ViewInput, profile: Profile, budget: Budget) -> None:
    """Raise PromptTooLarge when the latest prompt alone is more than any request could hold."""
    if inputs.prompt is None:
        return
    row = inputs.rows[inputs.prompt]
    marks = _marks(inputs, profile, budget._replace(guessed=None))
    if exceeds(PlanBuilder(inputs), row, marks.room):
        kept, limit = row.tokens + marks.floor, marks.limit
        raise PromptTooLarge(seq=row.seq, tokens=row.tokens, kept=kept, limit=limit)


def _marks(inputs: ViewInput, profile: Profile, budget: Budget) -> Thresholds:
    return thresholds(profile, budget, inputs.counter.spread, instructions=inputs.instructions)


def _terms(inputs: ViewInput, profile: Profile) -> Terms:
    newest = max((found.seq for found in inputs.findings.values()), default=0)
    return Terms(inputs.outline, profile, inputs.counter, inputs.scope, newest)


def _repeats(before: Plan, inputs: ViewInput, profile: Profile, budget: Budget) -> bool:
    return (
        before.closed is not None
        and before.head == inputs.head
        and before.closed.terms.same(_terms(inputs, profile))
        and before.budget == budget
    )


def _continues(closed: Closed, inputs: ViewInput, profile: Profile) -> bool:
    return (
        profile.rewrite.sticky
        and not profile.window.limits
        and not profile.trim.max_chars
        and profile.results == "native"
        and closed.opened
        and closed.rows <= len(inputs.rows)
        and closed.terms.same(_terms(inputs, profile))
    )


def _carry_over(  # noqa: PLR0913 - two are choices
    inputs: ViewInput,
    profile: Profile,
    marks: Thresholds,
    before: Plan | None,
    once: Budget = Budget(),  # noqa: B008 - it is frozen
    *,
    prompt_follows: bool,
) -> tuple[PlanBuilder, LeftOut]:
    """Start with the earlier decisions that last, and with what the log itself says."""
    reasons = STICKY if profile.rewrite.sticky else LASTING
    builder = PlanBuilder(inputs)
    if before is not None and profile.window.rolling:
        builder.apply(_lasting(before, builder, reasons - {"window"}))
    elif before is not None:
        builder.apply(_lasting(before, builder, reasons))
        builder.hidden_until = before.hidden_until
    if once.refused:
        builder.apply(emergency(builder, profile, once.refused))
    if once.restored:
        builder.apply(restore(builder, once.restored))
    left_out = _replace_oversized(builder, marks, prompt_follows=prompt_follows)
    builder.apply(folds(builder))
    builder.apply(findings(builder))
    builder.apply(pins(builder))
    builder.apply(scope(builder))
    if profile.results == "markdown":
        builder.apply(rendered(builder))
    if once.refused or once.restored:
        builder.apply(withdraw_lost(builder))
    return builder, left_out


def _lasting(before: Plan, builder: PlanBuilder, reasons: frozenset[str]) -> Iterator[Proposal]:
    """Earlier decisions, except on what has been pinned or become the prompt since."""
    inputs = builder.inputs
    rows = inputs.rows[builder.start :]
    if not rows:
        return
    closed = len(before.closed.layout.omissions) if builder.start and before.closed else 0
    later = before.layout.omissions[closed:]
    omissions = sorted(omission for omission in later if omission.reason in reasons)
    prompt = inputs.rows[inputs.prompt].seq if inputs.prompt is not None else None
    index = 0
    for row in rows:
        while index < len(omissions) and omissions[index].span.last < row.seq:
            index += 1
        lost = None
        if index < len(omissions) and row.seq in omissions[index].span:
            lost = Drop(omissions[index].reason)
        for part in row.parts:
            change = lost or before.layout.changes.get(part.ref)
            is_latest_prompt = row.seq == prompt and part.kind == "prompt"
            lasts = change and change.reason in reasons
            if change and lasts and not (is_latest_prompt or builder.must_stay(part)):
                yield part, change


def _replace_oversized(builder: PlanBuilder, marks: Thresholds, *, prompt_follows: bool) -> LeftOut:
    """Replace prompts that no request could hold, and return how much that left out."""
    before = builder.total
    proposals = [*oversized(builder, marks.room, prompt_follows=prompt_follows)]
    builder.apply(proposals)
    count = sum(isinstance(change, Replace) for _, change in proposals)
    return LeftOut(count, before - builder.total, count)


def _draft(
    start: tuple[PlanBuilder, LeftOut],
    profile: Profile,
    marks: Thresholds,
    before: Plan | None,
    *,
    due: bool,
) -> _Draft:
    """Keep what stands, or rewrite it where that is worth losing the provider's cache.

    A profile that is not sticky follows its rules to the letter instead.
    """
    tried = before.tried if before else 0
    carried, left_out = start
    builder = carried.copy()
    if not profile.rewrite.sticky:
        changed = _apply_rules(builder, profile, marks)
        builder.apply(pair(builder))
        return _Draft(builder, "rule" if changed else "", tried, left_out)
    trimmed = builder.apply(trim(builder, profile.trim))
    limited = builder.apply(window(builder, profile))
    builder.apply(pair(builder))
    cause = "window" if limited else "rule" if trimmed else ""
    if not (due or marks.rewrite_due(builder.total, tried)):
        return _Draft(builder, cause, tried, left_out)
    smaller = carried
    _compact_to(smaller, profile, marks)
    smaller.apply(window(smaller, profile))
    smaller.apply(pair(smaller))
    if smaller.total <= builder.total - marks.gain:
        return _Draft(smaller, "target", 0, left_out)
    return _Draft(builder, cause, builder.total, left_out)


def _apply_rules(builder: PlanBuilder, profile: Profile, marks: Thresholds) -> bool:
    changed = builder.apply(trim(builder, profile.trim))
    inputs = builder.inputs
    turn = inputs.turn()
    if inputs.scope != MAIN_SCOPE and profile.trigger.generation:
        if 0 < marks.generation < builder.total + marks.floor and inputs.steps:
            changed |= builder.apply(archive(builder, profile.archive, inputs.steps[-1], 0, turn))
    elif builder.total + marks.floor >= marks.soft:
        changed |= profile.dedupe and builder.apply(dedupe(builder, turn))
        changed |= builder.apply(archive(builder, profile.archive, turn, 0))
        changed |= builder.apply(arguments(builder, profile.arguments, turn, 0))
    return builder.apply(window(builder, profile)) or changed


def _compact_to(builder: PlanBuilder, profile: Profile, marks: Thresholds) -> None:
    """Shorten old results and arguments down to the low-water mark, duplicates first."""
    end = _settled_rows(builder, profile, marks)
    builder.apply(trim(builder, profile.trim))
    if profile.dedupe:
        builder.apply(dedupe(builder, end))
    builder.apply(archive(builder, profile.archive, end, marks.low_water))
    builder.apply(arguments(builder, profile.arguments, end, marks.low_water))


def _settled_rows(builder: PlanBuilder, profile: Profile, marks: Thresholds) -> int:
    """The row before which results may be rewritten: the current turn and the newest tokens stay.

    A turn that alone exceeds the low-water mark is protected by its newest tokens only.
    """
    inputs = builder.inputs
    tail = int(profile.archive.recent * marks.target)
    index = len(inputs.rows)
    while index and tail > 0:
        index -= 1
        tail -= builder.weight(inputs.rows[index])
    turn = inputs.turn()
    if sum(map(builder.weight, inputs.rows[turn:])) <= marks.low_water:
        index = min(index, turn)
    return inputs.steps[index] if index < len(inputs.rows) else index


def _finish(
    draft: _Draft, profile: Profile, budget: Budget, marks: Thresholds, before: Plan | None
) -> Plan:
    """The draft as a plan: fitted into the limit, with markers for what is left out."""
    builder, inputs = draft.builder, draft.builder.inputs
    cause, left_out = draft.cause, draft.left_out
    # Fitting itself may have to insert these messages.
    texts = (OPENING, profile.fit.marker)
    reserved = sum(builder.cost(Insert(1, "prompt", text, "")) for text in texts if text)
    marked = builder.copy()
    if builder.total > marks.room - reserved:
        _insert_markers(marked, profile)
    if marked.total > marks.room:
        cause = "limit"
        fitted = _fit(builder, profile, marks.room - reserved)
        left_out = LeftOut(*map(sum, zip(left_out, fitted, strict=True)))
    else:
        _insert_markers(builder, profile)
    if builder.total > marks.room:
        raise ViewTooLarge(kept=builder.total + marks.floor, limit=marks.limit)
    # What a rewrite leaves above the target, another one right after it would leave too.
    still_above = draft.cause == "target" and builder.total > marks.target
    start = Closed(
        Layout(inputs.absent()),
        rows=0,
        tokens=0,
        system=0,
        quotes=len(inputs.quotes),
        hidden=len(inputs.hidden),
        opened=False,
        terms=_terms(inputs, profile),
        series=object(),
    )
    plan = Plan(
        profile.name,
        inputs.head,
        start.layout,
        Account(),
        tokens=0,
        scope=inputs.scope,
        rewrites=(before.rewrites if before else 0) + bool(cause),
        cause=cause,
        tried=builder.total if still_above else draft.tried,
        hidden_until=builder.hidden_until,
        left_out=left_out,
    )
    return finalize(builder, start, profile, budget, plan)


def _fit(builder: PlanBuilder, profile: Profile, room: int) -> LeftOut:
    whole = builder.copy()
    builder.apply(fit(builder, room, int(profile.fit.low_water * room)))
    dropped = _messages(whole) - _messages(builder)
    _insert_markers(whole, profile)
    _insert_markers(builder, profile)
    fewer = _messages(whole) - _messages(builder)
    return LeftOut(dropped, whole.total - builder.total, dropped - fewer)


def _insert_markers(builder: PlanBuilder, profile: Profile) -> None:
    builder.apply(mark_fitted(builder, profile.fit.marker))
    builder.apply(opening(builder))


def _messages(builder: PlanBuilder) -> int:
    """How many messages would be sent; the placeholders for the results of one step are one."""
    prompts = sum(insert.kind == "prompt" for insert in builder.inserts)
    placeholders = {insert.before for insert in builder.inserts if insert.kind == "return"}
    return sum(1 for _ in builder.visible_rows()) + prompts + len(placeholders)
