"""A desk drawn up as a plan: the decisions as runs and changes, and where the tokens go.

The last step may still get its answers; what is before it is closed, and later plans only add to
it. So a request costs what is new.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import cast

from refold.log import PartRef
from refold.log.span import Span, intersect, union
from refold.view.budget import Account, Budget
from refold.view.desk import Desk
from refold.view.plan import Closed, Layout, Plan
from refold.view.profiles import Profile
from refold.view.reasons import STICKY, Gone, Reason
from refold.view.row import Row
from refold.view.sheet import Sheet
from refold.view.thresholds import effective_limit
from refold.wire import Change, Insert


def drawn_up(desk: Desk, closed: Closed, profile: Profile, budget: Budget, made: Plan) -> Plan:
    """The desk as a plan; the last step may still get its answers, what is before it is closed."""
    sheet = desk.sheet
    inserts = sorted(desk.inserts, key=_place)
    last = max(closed.rows, _open(desk, inserts))
    middle = sheet.rows[last].seq if last < len(sheet.rows) else sheet.head + 1
    done = [one for one in inserts if _place(one) <= (middle, False)]
    hidden = (Gone(Span(seq, seq), why) for seq, why in _new(sheet, closed))
    now = Closed(
        closed.layout
        + Layout(tuple(hidden))
        + _layout(desk, sheet.rows[closed.rows : last], tuple(done)),
        last,
        closed.tokens
        + sum(desk.weight(row) for row in sheet.rows[closed.rows : last])
        + sum(map(desk.cost, done)),
        closed.system + _system(desk, sheet.rows[closed.rows : last]),
        bisect_right(sheet.quotes, middle, key=lambda one: one.seq),
        len(sheet.hidden),
        closed.opened or bool(done) or _speaks(desk, sheet.rows[closed.rows : last]),
        closed.terms,
        closed.series,
    )
    tokens = closed.tokens + desk.total
    system = now.system + _system(desk, sheet.rows[last:])
    return replace(
        made,
        head=sheet.head,
        layout=now.layout + _layout(desk, sheet.rows[last:], tuple(inserts[len(done) :])),
        account=_account(sheet, profile, budget, tokens, system),
        budget=budget,
        tokens=tokens,
        closed=now,
    )


def _speaks(desk: Desk, rows: list[Row]) -> bool:
    return any(part.kind != "system" for row in rows for part in desk.shown(row))


def _place(insert: Insert) -> tuple[int, bool]:
    """Where an insert stands; one that tells of a row belongs to that row, others stand before."""
    return insert.before, insert.reason == "late"


def _open(desk: Desk, inserts: list[Insert]) -> int:
    """The row from which on a later message may still change how this is rendered.

    That is the last step, or the one before it where stand-ins may join what follows it, or what
    systems have said since the last response, where that waits for the next.
    """
    sheet = desk.sheet
    if not sheet.steps:
        return 0
    last = sheet.steps[-1]
    shown = last - 1
    while shown >= desk.start and not desk.shown(sheet.rows[shown]):
        shown -= 1
    if shown < desk.start:
        return last
    asked = sheet.steps[shown]
    first, end = sheet.rows[asked].seq, sheet.rows[last].seq
    waits = any(one.kind == "return" and first < one.before <= end for one in inserts)
    return _unsaid(desk, asked if waits else last)


def _unsaid(desk: Desk, at: int) -> int:
    """The first of what systems have said since the last response before this row, or the row."""
    sheet = desk.sheet
    first = at
    for nth in range(at - 1, desk.start - 1, -1) if sheet.wire.systems_last else ():
        shown = bool(desk.shown(sheet.rows[nth]))
        if shown and sheet.rows[nth].role == "assistant":
            break
        if shown and sheet.rows[nth].role == "system":
            first = sheet.steps[nth]
    return first


def _new(sheet: Sheet, closed: Closed) -> Iterator[tuple[int, Reason]]:
    newest = islice(reversed(sheet.hidden.items()), len(sheet.hidden) - closed.hidden)
    yield from reversed(list(newest))


def _layout(desk: Desk, rows: list[Row], inserts: tuple[Insert, ...]) -> Layout:
    lost: list[tuple[int, int, Reason]] = []
    changes: dict[PartRef, Change] = {}
    for at, row in enumerate(rows):
        if not desk.shown(row):
            lost.append((at, row.seq, _why(desk, row)))
            continue
        for part in row.parts:
            change = desk.change(part)
            if change is not None:
                changes[part.ref] = change
    return Layout(tuple(_runs(lost, desk.sheet)) if lost else (), changes, inserts)


def _why(desk: Desk, row: Row) -> Reason:
    """Why nothing of a row is shown; a reason that lasts, where its parts have several."""
    reasons = [change.reason for part in row.parts if (change := desk.change(part))]
    lasting = [reason for reason in reasons if reason in STICKY]
    return cast("Reason", (*lasting, *reasons, "empty")[0])


def _runs(lost: list[tuple[int, int, Reason]], sheet: Sheet) -> Iterator[Gone]:
    """The rows as runs; between them may lie entries that hold no part, but none that are apart."""
    apart = union(one.span for one in sheet.absent())
    run, at = Gone(Span(lost[0][1], lost[0][1]), lost[0][2]), lost[0][0]
    for row, seq, reason in lost[1:]:
        gap = (Span(run.span.last + 1, seq - 1),) if seq > run.span.last + 1 else ()
        if row == at + 1 and reason == run.reason and not intersect(apart, gap):
            run = Gone(Span(run.span.first, seq), reason)
        else:
            yield run
            run = Gone(Span(seq, seq), reason)
        at = row
    yield run


def _system(desk: Desk, rows: list[Row]) -> int:
    return sum(
        desk.tokens(part) for row in rows for part in desk.shown(row) if part.kind == "system"
    )


def _account(sheet: Sheet, profile: Profile, budget: Budget, tokens: int, system: int) -> Account:
    instructions = max(budget.instructions, sheet.instructions)
    limit = effective_limit(profile, budget)
    left = max(0, limit - tokens - instructions - budget.tools)
    return Account(
        system=system + instructions,
        conversation=tokens - system,
        tools=budget.tools,
        reserve=budget.reserve,
        limit=limit,
        headroom=min(int(tokens * sheet.counter.spread), left),
    )
