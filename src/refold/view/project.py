"""From a sheet to a plan: the one place where policies are put in order.

`project` is pure: the same sheet, profile, budget and earlier plan give the same plan. With a
sticky profile it either adds what is new to the plan before, or rewrites; the others follow their
rule literally on each request.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from refold.errors import InvalidMessage, ViewTooLarge
from refold.log import MAIN_SCOPE
from refold.view.bounds import Bounds, bounds_of
from refold.view.budget import Account, Budget
from refold.view.closing import drawn_up, limit_of
from refold.view.desk import Desk, Proposal
from refold.view.plan import NOTHING, Closed, Layout, LeftOut, Plan, Terms
from refold.view.policies.archive import archive
from refold.view.policies.arguments import arguments
from refold.view.policies.dedupe import dedupe
from refold.view.policies.emergency import emergency, untold
from refold.view.policies.fit import fit, marked
from refold.view.policies.folds import folds
from refold.view.policies.pair import OPENING, opening, pair
from refold.view.policies.pins import pins
from refold.view.policies.scope import scope
from refold.view.policies.trim import trim
from refold.view.policies.window import window
from refold.view.profiles import STATIC_MARKER, Profile
from refold.view.reasons import LASTING, STICKY
from refold.view.sheet import Sheet
from refold.wire import Drop, Insert


def project(sheet: Sheet, profile: Profile, budget: Budget, before: Plan | None = None) -> Plan:
    """The plan for the next request.

    Raises ViewTooLarge when what must be kept alone exceeds the limit.
    """
    if not sheet.rows and "unreadable" in sheet.hidden.values():
        raise InvalidMessage(f"None of its messages is in the format {sheet.wire.name!r}.")
    bounds = bounds_of(sheet, profile, budget)
    if before is not None and _repeats(before, sheet, profile, budget):
        return replace(before, cause="", left_out=NOTHING)
    added = None
    known = None if bounds.refused else before
    if known is not None and known.closed is not None and _continues(known, sheet, profile):
        added = _added(sheet, profile, budget, known, known.closed)
        if not bounds.due(added.tokens, known.tried):
            return added
    draft = _steady(sheet, profile, bounds, before, due=added is not None)
    if bounds.refused:
        draft = draft._replace(cause=draft.cause or "limit")
    if added is not None and not draft.cause and added.tokens <= bounds.room:
        return replace(added, tried=draft.tried)
    return _anew(draft, profile, budget, bounds, before)


def unrewritten(sheet: Sheet, profile: Profile, budget: Budget, before: Plan | None) -> int:
    """The tokens that the next request would have if nothing were rewritten to make room."""
    if before is not None and before.closed is not None and _continues(before, sheet, profile):
        return _added(sheet, profile, budget, before, before.closed).tokens
    desk = _begun(sheet, profile, before)
    desk.apply(window(desk, profile.window, STATIC_MARKER))
    desk.apply(pair(desk))
    return desk.total


def _added(sheet: Sheet, profile: Profile, budget: Budget, before: Plan, closed: Closed) -> Plan:
    """The plan before, with what is new."""
    desk = Desk(sheet, closed.rows)
    desk.untold = before.untold
    desk.apply(_lasting(before, desk, STICKY))
    desk.apply(scope(desk, closed.quotes))
    desk.apply(pair(desk, closed.rows))
    return drawn_up(desk, closed, profile, budget, replace(before, cause="", left_out=NOTHING))


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
    draft: "_Draft", profile: Profile, budget: Budget, bounds: Bounds, before: Plan | None
) -> Plan:
    """A plan in which every policy has its say."""
    desk = draft.desk
    sheet = desk.sheet
    beside = budget.tools + max(budget.instructions, sheet.instructions)
    reserved = _reserved(desk, profile)
    cause = draft.cause
    left_out = NOTHING
    if desk.total > bounds.room - reserved:
        cause = "limit"
        left_out = _fitted(desk, profile, bounds.room - reserved)
    else:
        _mark(desk, profile)
    if desk.total > bounds.room:
        raise ViewTooLarge(kept=desk.total + beside, limit=limit_of(profile, budget))
    # What a rewrite leaves above the target, another one right after it would leave too.
    rewritten = draft.cause == "target" and desk.total > bounds.target
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


def _steady(
    sheet: Sheet, profile: Profile, bounds: Bounds, before: Plan | None, *, due: bool
) -> _Draft:
    """What stands without rewriting, or what a rewrite makes of it where that is worth it."""
    tried = before.tried if before else 0
    begun = _begun(sheet, profile, before, bounds.refused)
    desk = begun.copy()
    if not profile.rewrite.sticky:
        moved = _ruled(desk, profile, bounds)
        desk.apply(pair(desk))
        return _Draft(desk, "rule" if moved else "", tried)
    limited = desk.apply(window(desk, profile.window, STATIC_MARKER))
    desk.apply(pair(desk))
    cause = "window" if limited else ""
    if not (due or bounds.due(desk.total, tried)):
        return _Draft(desk, cause, tried)
    smaller = begun
    _shrunk(smaller, profile, bounds)
    smaller.apply(window(smaller, profile.window, STATIC_MARKER))
    smaller.apply(pair(smaller))
    if smaller.total <= desk.total - bounds.gain:
        return _Draft(smaller, "target", 0)
    return _Draft(desk, cause, desk.total)


def _begun(sheet: Sheet, profile: Profile, before: Plan | None, refused: int = 0) -> Desk:
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
    desk.apply(folds(desk))
    desk.apply(pins(desk))
    desk.apply(scope(desk))
    desk.apply(untold(desk) if refused else ())
    return desk


def _ruled(desk: Desk, profile: Profile, bounds: Bounds) -> bool:
    """Each rule to the letter, whatever it moves."""
    moved = desk.apply(trim(desk, profile.trim))
    sheet = desk.sheet
    turn = sheet.turn()
    if sheet.scope != MAIN_SCOPE and profile.trigger.generation:
        if desk.total > bounds.generation and sheet.steps:
            moved |= desk.apply(archive(desk, profile.archive, sheet.steps[-1], 0, turn))
    elif desk.total > profile.trigger.soft * bounds.room:
        moved |= profile.dedupe and desk.apply(dedupe(desk, turn))
        moved |= desk.apply(archive(desk, profile.archive, turn, 0))
        moved |= desk.apply(arguments(desk, profile.arguments, turn, 0))
    return desk.apply(window(desk, profile.window, STATIC_MARKER)) or moved


def _shrunk(desk: Desk, profile: Profile, bounds: Bounds) -> None:
    """Old results and arguments, down to the low-water mark: first what is said twice."""
    end = _settled(desk, profile, bounds)
    desk.apply(trim(desk, profile.trim))
    if profile.dedupe:
        desk.apply(dedupe(desk, end))
    desk.apply(archive(desk, profile.archive, end, bounds.low))
    desk.apply(arguments(desk, profile.arguments, end, bounds.low))


def _settled(desk: Desk, profile: Profile, bounds: Bounds) -> int:
    """The row before which results may be rewritten: the current turn and the newest tokens stay.

    A turn that alone exceeds the low-water mark is protected by its newest tokens only.
    """
    sheet = desk.sheet
    tail = int(profile.archive.recent * bounds.target)
    at = len(sheet.rows)
    while at and tail > 0:
        at -= 1
        tail -= desk.weight(sheet.rows[at])
    turn = sheet.turn()
    if sum(desk.weight(row) for row in sheet.rows[turn:]) <= bounds.low:
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
