"""Fixed limits on messages, turns and tokens, for when nothing summarizes.

Each is a rule of its own, off when its value is 0. Cuts fall between steps, so that no call loses
its result, and the latest prompt always stays. Limits on what came before leave the current turn
alone, however long it is.
"""

from collections.abc import Iterable, Iterator

from refold.log import PartRef
from refold.view.cut import cut
from refold.view.plan_builder import PlanBuilder, Proposal, Withdraw
from refold.view.profiles import Keep, Window
from refold.view.view_input import Row, ViewInput, with_row
from refold.wire import Drop, Insert, Part


def window(builder: PlanBuilder, values: Window, marker: str) -> Iterator[Proposal]:
    """Propose what the limits take out, beyond what they took out before."""
    if values.max_messages:
        yield from middle(builder, values.max_messages, marker)
    if values.max_turns or values.max_tokens:
        yield from turns(builder, values)
    if values.rolling:
        yield from recent(builder, values)


def middle(builder: PlanBuilder, limit: int, marker: str) -> Iterator[Proposal]:
    """Over the limit, keep the first run and the newest messages, with a marker between."""
    inputs = builder.inputs
    rows = inputs.rows
    gone = [at for at, row in enumerate(rows) if builder.lost(row, "window")]
    kept = sum(1 for _ in builder.shown_rows()) + bool(gone)
    if kept > limit:
        where = cut(inputs, Keep(head="first run", unit="messages", amount=limit // 2, least=4))
        yield from _dropped(builder, (rows[at] for at in where.rows))
        if where.rows:
            yield from _untold(builder, where.tail)
        gone = [at for at, row in enumerate(rows) if builder.lost(row, "window")]
    if gone:
        text = marker.replace("{count}", str(len(gone)))
        yield Insert(rows[gone[0]].seq, "prompt", text, "window")


def turns(builder: PlanBuilder, values: Window) -> Iterator[Proposal]:
    """Too many turns: the older half goes. Too many tokens: again, or few turns become text."""
    if values.max_turns and len(there := _there(builder)) > values.max_turns:
        yield from _halved(builder, there)
    if values.max_tokens and builder.total > values.max_tokens:
        there = _there(builder)
        if len(there) < values.text_below:
            yield from _texts(builder, there)
        elif values.halve:
            yield from _halved(builder, there)


def _there(builder: PlanBuilder) -> list[int]:
    """The turns of which the prompt is shown; of some others, system content may be left."""
    rows, starts = builder.inputs.rows, builder.inputs.turns
    return [
        nth
        for nth, at in enumerate(starts)
        if any(part.kind == "prompt" for part in builder.shown(rows[at]))
    ]


def _halved(builder: PlanBuilder, there: list[int]) -> Iterator[Proposal]:
    """The older half of the turns goes; of an odd number, the smaller half."""
    newer = builder.inputs.turns[there[len(there) // 2]]
    yield from _dropped(builder, builder.inputs.rows[:newer])
    yield from _untold(builder, newer)


def recent(builder: PlanBuilder, values: Window) -> Iterator[Proposal]:
    """Of what came before the current turn, the newest messages within both limits."""
    inputs = builder.inputs
    first = inputs.turn() if inputs.turns else 0
    messages = len(inputs.rows) - first + len(_told(builder, first, len(inputs.rows)))
    tokens = 0
    while first > 0:
        start = inputs.steps[first - 1]
        here = _told(builder, start, first)
        messages += first - start + len(here)
        tokens += sum(map(builder.weight, inputs.rows[start:first])) + sum(map(builder.cost, here))
        if values.recent_messages and messages > values.recent_messages:
            break
        if values.recent_tokens and tokens > values.recent_tokens:
            break
        first = start
    yield from _dropped(builder, inputs.rows[:first])
    yield from _untold(builder, first)


def _texts(builder: PlanBuilder, there: list[int]) -> Iterator[Proposal]:
    """Complete turns keep their first prompt and their last reply."""
    rows, starts = builder.inputs.rows, builder.inputs.turns
    for nth in there:
        if nth + 1 == len(starts):  # the turn that is under way
            yield from _untold(builder, starts[nth])
            return
        turn = range(starts[nth], starts[nth + 1])
        replies = [at for at in turn if rows[at].role == "assistant" and rows[at].has("text")]
        reply = set(_reply(builder.inputs, replies[-1])) if replies else set[PartRef]()
        for part in _parts(rows[at] for at in turn[1:]):
            said = part.ref in reply
            if not (said or builder.held(part) or isinstance(builder.change(part), Drop)):
                yield part, Drop("text only")


def _reply(inputs: ViewInput, at: int) -> Iterator[PartRef]:
    """The parts of a reply: its words, and the thoughts that its provider signed with them."""
    rows = with_row(inputs, at)
    for part in _parts(rows):
        if len(rows) > 1 or part.kind == "text" or (part.kind == "thought" and part.sealed):
            yield part.ref


def _dropped(builder: PlanBuilder, rows: Iterable[Row]) -> Iterator[tuple[Part, Drop]]:
    for part in _parts(rows):
        if not builder.held(part) and not isinstance(builder.change(part), Drop):
            yield part, Drop("window")


def _untold(builder: PlanBuilder, end: int) -> Iterator[Withdraw]:
    """What was delegated before row `end` is no longer told, as it would be no longer shown."""
    return (Withdraw(insert) for insert in _told(builder, 0, end) if end)


def _told(builder: PlanBuilder, start: int, end: int) -> list[Insert]:
    """What is told of delegated work from one row on, up to another."""
    rows = builder.inputs.rows
    first = rows[start].seq if 0 < start < len(rows) else 0
    last = rows[end].seq if end < len(rows) else builder.inputs.head + 1
    told = (one for one in builder.inserts if one.reason == "delegated")
    return [one for one in told if first <= one.before < last]


def _parts(rows: Iterable[Row]) -> Iterator[Part]:
    return (part for row in rows for part in row.parts)
