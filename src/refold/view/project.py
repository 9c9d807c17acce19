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
from refold.view.plan_builder import Desk, Proposal, drawn_up
from refold.view.policies.fit import emergency, exceeds, fit, marked, oversized, untold
from refold.view.policies.folds import folds, pins, scope
from refold.view.policies.pair import OPENING, opening, pair
from refold.view.policies.tool_output import archive, arguments, dedupe, trim
from refold.view.policies.window import window
from refold.view.profiles import STATIC_MARKER, Profile
from refold.view.view_input import Sheet
from refold.wire import Drop, Insert, Replace


def project(  # noqa: PLR0913 - the last two are choices
    sheet: Sheet,
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
        return _plan(sheet, profile, budget, before, continued, prompt_follows=prompt_follows)
    except ViewTooLarge:
        if budget.guessed is None:
            raise
        certain = budget._replace(guessed=None)
        return _plan(sheet, profile, certain, before, prompt_follows=prompt_follows)


def _plan(  # noqa: PLR0913 - one is a choice
    sheet: Sheet,
    profile: Profile,
    budget: Budget,
    before: Plan | None,
    continued: Plan | None = None,
    *,
    prompt_follows: bool,
) -> Plan:
    if not sheet.rows and "unreadable" in sheet.hidden.values():
        raise InvalidMessage(f"None of its messages is in the format {sheet.wire.name!r}.")
    marks = _marks(sheet, profile, budget)
    refused = budget.refused if profile.emergency.on else 0
    if before is not None and _repeats(before, sheet, profile, budget):
        return replace(before, cause="", left_out=NOTHING)
    known = None if refused else before
    added = known and continued
    if added is None:
        added = continuation(sheet, profile, budget, known, prompt_follows=prompt_follows)
    if added is not None and known is not None and not marks.rewrite_due(added.tokens, known.tried):
        return added
    begun = _begun(sheet, profile, marks, before, refused, prompt_follows=prompt_follows)
    draft = _steady(begun, profile, marks, before, due=added is not None)
    if refused:
        draft = draft._replace(cause=draft.cause or "limit")
    if added is not None and not draft.cause and added.tokens <= marks.room:
        return replace(added, tried=draft.tried)
    return _anew(draft, profile, budget, marks, before)


def continuation(
    sheet: Sheet, profile: Profile, budget: Budget, before: Plan | None, *, prompt_follows: bool
) -> Plan | None:
    """The plan before with what is new; None where the next plan does not begin with it."""
    if before is None or not _continues(before, sheet, profile):
        return None
    marks = _marks(sheet, profile, budget)
    return _added(sheet, profile, budget, marks, before, prompt_follows=prompt_follows)


def unrewritten(
    sheet: Sheet,
    profile: Profile,
    budget: Budget,
    before: Plan | None,
    *,
    prompt_follows: bool = False,
) -> int:
    """The tokens that a request which continues no plan would have if nothing were rewritten."""
    marks = _marks(sheet, profile, budget)
    desk, _ = _begun(sheet, profile, marks, before, prompt_follows=prompt_follows)
    desk.apply(window(desk, profile.window, STATIC_MARKER))
    desk.apply(pair(desk))
    return desk.total


def weigh(sheet: Sheet, profile: Profile, budget: Budget, before: Plan | None) -> Desk:
    """A desk that weighs each row as it is sent, if nothing more were rewritten to make room."""
    return _begun(sheet, profile, _marks(sheet, profile, budget), before, prompt_follows=True)[0]


def check_prompt(sheet: Sheet, profile: Profile, budget: Budget) -> None:
    """Raise PromptTooLarge when the latest prompt alone is more than any request could hold."""
    if sheet.prompt is None:
        return
    row = sheet.rows[sheet.prompt]
    marks = _marks(sheet, profile, budget._replace(guessed=None))
    if exceeds(Desk(sheet), row, marks.room):
        kept, limit = row.tokens + marks.floor, marks.limit
        raise PromptTooLarge(seq=row.seq, tokens=row.tokens, kept=kept, limit=limit)


def _marks(sheet: Sheet, profile: Profile, budget: Budget) -> Thresholds:
    return thresholds(profile, budget, sheet.counter.spread, instructions=sheet.instructions)


def _added(  # noqa: PLR0913 - the last is a choice
    sheet: Sheet,
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
    desk = Desk(sheet, closed.rows)
    desk.untold = before.untold
    desk.apply(_lasting(before, desk, STICKY))
    left_out = _left_out_oversized(desk, marks, prompt_follows=prompt_follows)
    desk.apply(scope(desk, closed.quotes))
    desk.apply(pair(desk, closed.rows))
    made = replace(before, cause="", left_out=left_out)
    return drawn_up(desk, closed, profile, budget, made)


def _left_out_oversized(desk: Desk, marks: Thresholds, *, prompt_follows: bool) -> LeftOut:
    """Replace prompts that no request could hold, and say how much that left out."""
    before = desk.total
    found = [*oversized(desk, marks.room, prompt_follows=prompt_follows)]
    desk.apply(found)
    count = sum(isinstance(change, Replace) for _, change in found)
    return LeftOut(count, before - desk.total, count)


def _terms(sheet: Sheet, profile: Profile) -> Terms:
    return Terms(sheet.outline, profile, sheet.counter, sheet.scope)


def _continues(before: Plan, sheet: Sheet, profile: Profile) -> bool:
    """Whether the plan before is the beginning of this one."""
    return (
        profile.rewrite.sticky
        and not profile.window.limits
        and before.closed is not None
        and before.closed.opened
        and before.closed.rows <= len(sheet.rows)
        and before.closed.terms.same(_terms(sheet, profile))
    )


def _repeats(before: Plan, sheet: Sheet, profile: Profile, budget: Budget) -> bool:
    """Whether this is the request before once more: nothing is new, so nothing is decided anew."""
    return (
        before.closed is not None
        and before.head == sheet.head
        and before.closed.terms.same(_terms(sheet, profile))
        and before.budget == budget
    )


def _anew(
    draft: "_Draft", profile: Profile, budget: Budget, marks: Thresholds, before: Plan | None
) -> Plan:
    """A plan in which every policy has its say."""
    desk = draft.desk
    sheet = desk.sheet
    cause = draft.cause
    left_out = draft.left_out
    reserved = _reserved(desk, profile)
    if desk.total > marks.room - reserved and _marked_total(desk, profile) > marks.room:
        cause = "limit"
        fitted = _fitted(desk, profile, marks.room - reserved)
        left_out = LeftOut(*map(sum, zip(left_out, fitted, strict=True)))
    else:
        _mark(desk, profile)
    if desk.total > marks.room:
        raise ViewTooLarge(kept=desk.total + marks.floor, limit=marks.limit)
    # What a rewrite leaves above the target, another one right after it would leave too.
    rewritten = draft.cause == "target" and desk.total > marks.target
    tried = desk.total if rewritten else draft.tried
    earlier = before.rewrites if before else 0
    start = Closed(
        Layout(sheet.absent()),
        0,
        0,
        0,
        len(sheet.quotes),
        len(sheet.hidden),
        False,  # noqa: FBT003 - a record of facts
        _terms(sheet, profile),
        object(),
    )
    made = Plan(
        profile.name,
        sheet.head,
        start.layout,
        Account(),
        0,
        sheet.scope,
        earlier + bool(cause),
        cause,
        tried,
        desk.untold,
        left_out,
    )
    return drawn_up(desk, start, profile, budget, made)


def _fitted(desk: Desk, profile: Profile, room: int) -> LeftOut:
    """Leave out what must be, mark it, and say how much that was."""
    whole = desk.copy()
    desk.apply(fit(desk, room, int(profile.fit.low_water * room)))
    gone = _messages(whole) - _messages(desk)
    _mark(whole, profile)
    _mark(desk, profile)
    fewer = _messages(whole) - _messages(desk)
    return LeftOut(gone, whole.total - desk.total, gone - fewer)


def _marked_total(desk: Desk, profile: Profile) -> int:
    """What it counts with the marks that say what was left out."""
    marked = desk.copy()
    _mark(marked, profile)
    return marked.total


def _mark(desk: Desk, profile: Profile) -> None:
    desk.apply(marked(desk, profile.fit.marker))
    desk.apply(opening(desk))


def _messages(desk: Desk) -> int:
    """How many messages would be sent; the stand-ins for the results of one step are one."""
    told = sum(one.kind == "prompt" for one in desk.inserts)
    stand_ins = {one.before for one in desk.inserts if one.kind == "return"}
    return sum(1 for _ in desk.shown_rows()) + told + len(stand_ins)


class _Draft(NamedTuple):
    desk: Desk
    cause: str
    tried: int
    left_out: LeftOut


def _steady(
    start: tuple[Desk, LeftOut],
    profile: Profile,
    marks: Thresholds,
    before: Plan | None,
    *,
    due: bool,
) -> _Draft:
    """What stands without rewriting, or what a rewrite makes of it where that is worth it."""
    tried = before.tried if before else 0
    begun, out = start
    desk = begun.copy()
    if not profile.rewrite.sticky:
        moved = _ruled(desk, profile, marks)
        desk.apply(pair(desk))
        return _Draft(desk, "rule" if moved else "", tried, out)
    limited = desk.apply(window(desk, profile.window, STATIC_MARKER))
    desk.apply(pair(desk))
    cause = "window" if limited else ""
    if not (due or marks.rewrite_due(desk.total, tried)):
        return _Draft(desk, cause, tried, out)
    smaller = begun
    _shrunk(smaller, profile, marks)
    smaller.apply(window(smaller, profile.window, STATIC_MARKER))
    smaller.apply(pair(smaller))
    if smaller.total <= desk.total - marks.gain:
        return _Draft(smaller, "target", 0, out)
    return _Draft(desk, cause, desk.total, out)


def _begun(  # noqa: PLR0913 - two are choices
    sheet: Sheet,
    profile: Profile,
    marks: Thresholds,
    before: Plan | None,
    refused: int = 0,
    *,
    prompt_follows: bool,
) -> tuple[Desk, LeftOut]:
    """What was decided for good, now or before, and what the log itself says."""
    reasons = STICKY if profile.rewrite.sticky else LASTING
    desk = Desk(sheet)
    if before is not None and profile.window.rolling:
        desk.apply(_lasting(before, desk, reasons - {"window"}))
    elif before is not None:
        desk.apply(_lasting(before, desk, reasons))
        desk.untold = before.untold
    if refused:
        desk.apply(emergency(desk, profile, refused))
    left_out = _left_out_oversized(desk, marks, prompt_follows=prompt_follows)
    desk.apply(folds(desk))
    desk.apply(pins(desk))
    desk.apply(scope(desk))
    desk.apply(untold(desk) if refused else ())
    return desk, left_out


def _ruled(desk: Desk, profile: Profile, marks: Thresholds) -> bool:
    """Each rule to the letter, whatever it moves."""
    moved = desk.apply(trim(desk, profile.trim))
    sheet = desk.sheet
    turn = sheet.turn()
    if sheet.scope != MAIN_SCOPE and profile.trigger.generation:
        if desk.total + marks.floor > marks.generation and sheet.steps:
            moved |= desk.apply(archive(desk, profile.archive, sheet.steps[-1], 0, turn))
    elif desk.total + marks.floor >= marks.soft:
        moved |= profile.dedupe and desk.apply(dedupe(desk, turn))
        moved |= desk.apply(archive(desk, profile.archive, turn, 0))
        moved |= desk.apply(arguments(desk, profile.arguments, turn, 0))
    return desk.apply(window(desk, profile.window, STATIC_MARKER)) or moved


def _shrunk(desk: Desk, profile: Profile, marks: Thresholds) -> None:
    """Old results and arguments, down to the low-water mark: first what is said twice."""
    end = _settled(desk, profile, marks)
    desk.apply(trim(desk, profile.trim))
    if profile.dedupe:
        desk.apply(dedupe(desk, end))
    desk.apply(archive(desk, profile.archive, end, marks.low_water))
    desk.apply(arguments(desk, profile.arguments, end, marks.low_water))


def _settled(desk: Desk, profile: Profile, marks: Thresholds) -> int:
    """The row before which results may be rewritten: the current turn and the newest tokens stay.

    A turn that alone exceeds the low-water mark is protected by its newest tokens only.
    """
    sheet = desk.sheet
    tail = int(profile.archive.recent * marks.target)
    at = len(sheet.rows)
    while at and tail > 0:
        at -= 1
        tail -= desk.weight(sheet.rows[at])
    turn = sheet.turn()
    if sum(desk.weight(row) for row in sheet.rows[turn:]) <= marks.low_water:
        at = min(at, turn)
    return sheet.steps[at] if at < len(sheet.rows) else at


def _reserved(desk: Desk, profile: Profile) -> int:
    """Room for the messages that fitting itself may have to insert."""
    texts = (OPENING, profile.fit.marker)
    return sum(desk.cost(Insert(1, "prompt", text, "")) for text in texts if text)


def _lasting(before: Plan, desk: Desk, reasons: frozenset[str]) -> Iterator[Proposal]:
    """The earlier decisions that stand; not on what has been pinned or become the prompt since."""
    sheet = desk.sheet
    rows = sheet.rows[desk.start :]
    if not rows:
        return
    known = len(before.closed.layout.gone) if desk.start and before.closed else 0
    gone = sorted(one for one in before.layout.gone[known:] if one.reason in reasons)
    prompt = sheet.rows[sheet.prompt].seq if sheet.prompt is not None else None
    drops = [(one.span, Drop(one.reason)) for one in gone]
    at = 0
    for row in rows:
        while at < len(drops) and drops[at][0].last < row.seq:
            at += 1
        lost = drops[at][1] if at < len(drops) and row.seq in drops[at][0] else None
        for part in row.parts:
            change = lost or before.layout.changes.get(part.ref)
            asked = row.seq == prompt and part.kind == "prompt"
            if change and change.reason in reasons and not (asked or desk.held(part)):
                yield part, change
