"""From a sheet to a plan: the one place where policies are put in order.

`project` is pure: the same sheet, profile, budget and earlier plan give the same plan. With a
sticky profile it either adds what is new to the plan before, or rewrites; the others follow their
rule literally on each request.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from refold.errors import InvalidMessage, PromptTooLarge, ViewTooLarge
from refold.log import MAIN_SCOPE
from refold.view.budget import Account, Budget, Thresholds, thresholds
from refold.view.plan import LASTING, NOTHING, STICKY, Closed, Layout, LeftOut, Plan, Terms
from refold.view.plan_builder import PlanBuilder, Proposal, drawn_up
from refold.view.policies.fit import emergency, exceeds, fit, marked, oversized, untold
from refold.view.policies.folds import folds, pins, scope
from refold.view.policies.pair import OPENING, opening, pair
from refold.view.policies.tool_output import archive, arguments, dedupe, trim
from refold.view.policies.window import window
from refold.view.profiles import STATIC_MARKER, Profile
from refold.view.view_input import ViewInput
from refold.wire import Drop, Insert, Replace


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
    be replaced like any earlier one. `continued` is what `continuation` gives for the same, where
    that is known already.

    Raises ViewTooLarge when what must be kept alone exceeds the limit.
    """
    try:
        return _plan(inputs, profile, budget, before, continued, prompt_follows=prompt_follows)
    except ViewTooLarge:
        if budget.guessed is None:
            raise
        certain = budget._replace(guessed=None)
        return _plan(inputs, profile, certain, before, prompt_follows=prompt_follows)


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
        return replace(before, cause="", left_out=NOTHING)
    known = None if refused else before
    added = known and continued
    if added is None:
        added = continuation(inputs, profile, budget, known, prompt_follows=prompt_follows)
    if added is not None and known is not None and not marks.rewrite_due(added.tokens, known.tried):
        return added
    begun = _begun(inputs, profile, marks, before, refused, prompt_follows=prompt_follows)
    draft = _steady(begun, profile, marks, before, due=added is not None)
    if refused:
        draft = draft._replace(cause=draft.cause or "limit")
    if added is not None and not draft.cause and added.tokens <= marks.room:
        return replace(added, tried=draft.tried)
    return _anew(draft, profile, budget, marks, before)


def continuation(
    inputs: ViewInput,
    profile: Profile,
    budget: Budget,
    before: Plan | None,
    *,
    prompt_follows: bool,
) -> Plan | None:
    """The plan before with what is new; None where the next plan does not begin with it."""
    if before is None or not _continues(before, inputs, profile):
        return None
    marks = _marks(inputs, profile, budget)
    return _added(inputs, profile, budget, marks, before, prompt_follows=prompt_follows)


def unrewritten(
    inputs: ViewInput,
    profile: Profile,
    budget: Budget,
    before: Plan | None,
    *,
    prompt_follows: bool = False,
) -> int:
    """The tokens that a request which continues no plan would have if nothing were rewritten."""
    marks = _marks(inputs, profile, budget)
    builder, _ = _begun(inputs, profile, marks, before, prompt_follows=prompt_follows)
    builder.apply(window(builder, profile.window, STATIC_MARKER))
    builder.apply(pair(builder))
    return builder.total


def weigh(inputs: ViewInput, profile: Profile, budget: Budget, before: Plan | None) -> PlanBuilder:
    """A desk that weighs each row as it is sent, if nothing more were rewritten to make room."""
    return _begun(inputs, profile, _marks(inputs, profile, budget), before, prompt_follows=True)[0]


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


def _added(  # noqa: PLR0913 - the last is a choice
    inputs: ViewInput,
    profile: Profile,
    budget: Budget,
    marks: Thresholds,
    before: Plan,
    *,
    prompt_follows: bool,
) -> Plan:
    """The plan before, which is closed, with what is new."""
    closed = before.closed
    assert closed is not None  # noqa: S101 - it would not be continued
    builder = PlanBuilder(inputs, closed.rows)
    builder.untold = before.untold
    builder.apply(_lasting(before, builder, STICKY))
    left_out = _left_out_oversized(builder, marks, prompt_follows=prompt_follows)
    builder.apply(scope(builder, closed.quotes))
    builder.apply(pair(builder, closed.rows))
    made = replace(before, cause="", left_out=left_out)
    return drawn_up(builder, closed, profile, budget, made)


def _left_out_oversized(
    builder: PlanBuilder, marks: Thresholds, *, prompt_follows: bool
) -> LeftOut:
    """Replace prompts that no request could hold, and say how much that left out."""
    before = builder.total
    found = [*oversized(builder, marks.room, prompt_follows=prompt_follows)]
    builder.apply(found)
    count = sum(isinstance(change, Replace) for _, change in found)
    return LeftOut(count, before - builder.total, count)


def _terms(inputs: ViewInput, profile: Profile) -> Terms:
    return Terms(inputs.outline, profile, inputs.counter, inputs.scope)


def _continues(before: Plan, inputs: ViewInput, profile: Profile) -> bool:
    """Whether the plan before is the beginning of this one."""
    return (
        profile.rewrite.sticky
        and not profile.window.limits
        and before.closed is not None
        and before.closed.opened
        and before.closed.rows <= len(inputs.rows)
        and before.closed.terms.same(_terms(inputs, profile))
    )


def _repeats(before: Plan, inputs: ViewInput, profile: Profile, budget: Budget) -> bool:
    """Whether this is the request before once more: nothing is new, so nothing is decided anew."""
    return (
        before.closed is not None
        and before.head == inputs.head
        and before.closed.terms.same(_terms(inputs, profile))
        and before.budget == budget
    )


def _anew(
    draft: "_Draft", profile: Profile, budget: Budget, marks: Thresholds, before: Plan | None
) -> Plan:
    """A plan in which every policy has its say."""
    builder = draft.builder
    inputs = builder.inputs
    cause = draft.cause
    left_out = draft.left_out
    reserved = _reserved(builder, profile)
    if builder.total > marks.room - reserved and _marked_total(builder, profile) > marks.room:
        cause = "limit"
        fitted = _fitted(builder, profile, marks.room - reserved)
        left_out = LeftOut(*map(sum, zip(left_out, fitted, strict=True)))
    else:
        _mark(builder, profile)
    if builder.total > marks.room:
        raise ViewTooLarge(kept=builder.total + marks.floor, limit=marks.limit)
    # What a rewrite leaves above the target, another one right after it would leave too.
    rewritten = draft.cause == "target" and builder.total > marks.target
    tried = builder.total if rewritten else draft.tried
    earlier = before.rewrites if before else 0
    start = Closed(
        Layout(inputs.absent()),
        0,
        0,
        0,
        len(inputs.quotes),
        len(inputs.hidden),
        False,  # noqa: FBT003 - a record of facts
        _terms(inputs, profile),
        object(),
    )
    made = Plan(
        profile.name,
        inputs.head,
        start.layout,
        Account(),
        0,
        inputs.scope,
        earlier + bool(cause),
        cause,
        tried,
        builder.untold,
        left_out,
    )
    return drawn_up(builder, start, profile, budget, made)


def _fitted(builder: PlanBuilder, profile: Profile, room: int) -> LeftOut:
    """Leave out what must be, mark it, and say how much that was."""
    whole = builder.copy()
    builder.apply(fit(builder, room, int(profile.fit.low_water * room)))
    gone = _messages(whole) - _messages(builder)
    _mark(whole, profile)
    _mark(builder, profile)
    fewer = _messages(whole) - _messages(builder)
    return LeftOut(gone, whole.total - builder.total, gone - fewer)


def _marked_total(builder: PlanBuilder, profile: Profile) -> int:
    """What it counts with the marks that say what was left out."""
    marked = builder.copy()
    _mark(marked, profile)
    return marked.total


def _mark(builder: PlanBuilder, profile: Profile) -> None:
    builder.apply(marked(builder, profile.fit.marker))
    builder.apply(opening(builder))


def _messages(builder: PlanBuilder) -> int:
    """How many messages would be sent; the stand-ins for the results of one step are one."""
    told = sum(one.kind == "prompt" for one in builder.inserts)
    stand_ins = {one.before for one in builder.inserts if one.kind == "return"}
    return sum(1 for _ in builder.shown_rows()) + told + len(stand_ins)


class _Draft(NamedTuple):
    builder: PlanBuilder
    cause: str
    tried: int
    left_out: LeftOut


def _steady(
    start: tuple[PlanBuilder, LeftOut],
    profile: Profile,
    marks: Thresholds,
    before: Plan | None,
    *,
    due: bool,
) -> _Draft:
    """What stands without rewriting, or what a rewrite makes of it where that is worth it."""
    tried = before.tried if before else 0
    begun, out = start
    builder = begun.copy()
    if not profile.rewrite.sticky:
        moved = _ruled(builder, profile, marks)
        builder.apply(pair(builder))
        return _Draft(builder, "rule" if moved else "", tried, out)
    limited = builder.apply(window(builder, profile.window, STATIC_MARKER))
    builder.apply(pair(builder))
    cause = "window" if limited else ""
    if not (due or marks.rewrite_due(builder.total, tried)):
        return _Draft(builder, cause, tried, out)
    smaller = begun
    _shrunk(smaller, profile, marks)
    smaller.apply(window(smaller, profile.window, STATIC_MARKER))
    smaller.apply(pair(smaller))
    if smaller.total <= builder.total - marks.gain:
        return _Draft(smaller, "target", 0, out)
    return _Draft(builder, cause, builder.total, out)


def _begun(  # noqa: PLR0913 - two are choices
    inputs: ViewInput,
    profile: Profile,
    marks: Thresholds,
    before: Plan | None,
    refused: int = 0,
    *,
    prompt_follows: bool,
) -> tuple[PlanBuilder, LeftOut]:
    """What was decided for good, now or before, and what the log itself says."""
    reasons = STICKY if profile.rewrite.sticky else LASTING
    builder = PlanBuilder(inputs)
    if before is not None and profile.window.rolling:
        builder.apply(_lasting(before, builder, reasons - {"window"}))
    elif before is not None:
        builder.apply(_lasting(before, builder, reasons))
        builder.untold = before.untold
    if refused:
        builder.apply(emergency(builder, profile, refused))
    left_out = _left_out_oversized(builder, marks, prompt_follows=prompt_follows)
    builder.apply(folds(builder))
    builder.apply(pins(builder))
    builder.apply(scope(builder))
    builder.apply(untold(builder) if refused else ())
    return builder, left_out


def _ruled(builder: PlanBuilder, profile: Profile, marks: Thresholds) -> bool:
    """Each rule to the letter, whatever it moves."""
    moved = builder.apply(trim(builder, profile.trim))
    inputs = builder.inputs
    turn = inputs.turn()
    if inputs.scope != MAIN_SCOPE and profile.trigger.generation:
        if builder.total + marks.floor > marks.generation and inputs.steps:
            moved |= builder.apply(archive(builder, profile.archive, inputs.steps[-1], 0, turn))
    elif builder.total + marks.floor >= marks.soft:
        moved |= profile.dedupe and builder.apply(dedupe(builder, turn))
        moved |= builder.apply(archive(builder, profile.archive, turn, 0))
        moved |= builder.apply(arguments(builder, profile.arguments, turn, 0))
    return builder.apply(window(builder, profile.window, STATIC_MARKER)) or moved


def _shrunk(builder: PlanBuilder, profile: Profile, marks: Thresholds) -> None:
    """Old results and arguments, down to the low-water mark: first what is said twice."""
    end = _settled(builder, profile, marks)
    builder.apply(trim(builder, profile.trim))
    if profile.dedupe:
        builder.apply(dedupe(builder, end))
    builder.apply(archive(builder, profile.archive, end, marks.low_water))
    builder.apply(arguments(builder, profile.arguments, end, marks.low_water))


def _settled(builder: PlanBuilder, profile: Profile, marks: Thresholds) -> int:
    """The row before which results may be rewritten: the current turn and the newest tokens stay.

    A turn that alone exceeds the low-water mark is protected by its newest tokens only.
    """
    inputs = builder.inputs
    tail = int(profile.archive.recent * marks.target)
    at = len(inputs.rows)
    while at and tail > 0:
        at -= 1
        tail -= builder.weight(inputs.rows[at])
    turn = inputs.turn()
    if sum(builder.weight(row) for row in inputs.rows[turn:]) <= marks.low_water:
        at = min(at, turn)
    return inputs.steps[at] if at < len(inputs.rows) else at


def _reserved(builder: PlanBuilder, profile: Profile) -> int:
    """Room for the messages that fitting itself may have to insert."""
    texts = (OPENING, profile.fit.marker)
    return sum(builder.cost(Insert(1, "prompt", text, "")) for text in texts if text)


def _lasting(before: Plan, builder: PlanBuilder, reasons: frozenset[str]) -> Iterator[Proposal]:
    """The earlier decisions that stand; not on what has been pinned or become the prompt since."""
    inputs = builder.inputs
    rows = inputs.rows[builder.start :]
    if not rows:
        return
    known = len(before.closed.layout.gone) if builder.start and before.closed else 0
    gone = sorted(one for one in before.layout.gone[known:] if one.reason in reasons)
    prompt = inputs.rows[inputs.prompt].seq if inputs.prompt is not None else None
    drops = [(one.span, Drop(one.reason)) for one in gone]
    at = 0
    for row in rows:
        while at < len(drops) and drops[at][0].last < row.seq:
            at += 1
        lost = drops[at][1] if at < len(drops) and row.seq in drops[at][0] else None
        for part in row.parts:
            change = lost or before.layout.changes.get(part.ref)
            asked = row.seq == prompt and part.kind == "prompt"
            if change and change.reason in reasons and not (asked or builder.held(part)):
                yield part, change
