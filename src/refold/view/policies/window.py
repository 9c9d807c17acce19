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
from refold.view.view_input import Row, ViewInput, group_of
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
    lost = [row.seq for row in rows if builder.lost(row, "window")]
    if sum(1 for _ in builder.visible_rows()) + bool(lost) > limit:
        where = cut(inputs, Keep(head="first run", unit="messages", amount=limit // 2, least=4))
        yield from builder.drop((rows[index] for index in where.rows), "window")
        if where.rows:
            yield from _withdraw_quotes(builder, where.tail)
        lost = [row.seq for row in rows if builder.lost(row, "window")]
    if lost:
        text = marker.replace("{count}", str(len(lost)))
        yield Insert(lost[0], "prompt", text, "window")


def turns(builder: PlanBuilder, values: Window) -> Iterator[Proposal]:
    """Too many turns: the older half goes. Too many tokens: again, or few turns become text."""
    if values.max_turns and len(visible := builder.visible_turns()) > values.max_turns:
        yield from _halve(builder, visible)
    if values.max_tokens and builder.total > values.max_tokens:
        visible = builder.visible_turns()
        if len(visible) < values.text_below:
            yield from _reduce_to_text(builder, visible)
        elif values.halve:
            yield from _halve(builder, visible)


def _halve(builder: PlanBuilder, visible: list[int]) -> Iterator[Proposal]:
    """The older half of the turns goes; of an odd number, the smaller half."""
    newer = builder.inputs.turns[visible[len(visible) // 2]]
    yield from builder.drop(builder.inputs.rows[:newer], "window")
    yield from _withdraw_quotes(builder, newer)


def recent(builder: PlanBuilder, values: Window) -> Iterator[Proposal]:
    """Of what came before the current turn, the newest messages within both limits."""
    inputs = builder.inputs
    first = inputs.turn() if inputs.turns else 0
    messages = len(inputs.rows) - first + len(_quotes(builder, first, len(inputs.rows)))
    tokens = 0
    while first > 0:
        start = inputs.steps[first - 1]
        quotes = _quotes(builder, start, first)
        messages += first - start + len(quotes)
        tokens += sum(map(builder.weight, inputs.rows[start:first]))
        tokens += sum(map(builder.cost, quotes))
        if values.recent_messages and messages > values.recent_messages:
            break
        if values.recent_tokens and tokens > values.recent_tokens:
            break
        first = start
    yield from builder.drop(inputs.rows[:first], "window")
    yield from _withdraw_quotes(builder, first)


def _reduce_to_text(builder: PlanBuilder, visible: list[int]) -> Iterator[Proposal]:
    """Complete turns keep their first prompt and their last reply."""
    inputs, rows, starts = builder.inputs, builder.inputs.rows, builder.inputs.turns
    for turn in visible:
        if turn + 1 == len(starts):  # the current turn
            yield from _withdraw_quotes(builder, starts[turn])
            return
        indexes = range(starts[turn], starts[turn + 1])
        replies = [x for x in indexes if rows[x].role == "assistant" and rows[x].has("text")]
        reply = set(_reply_parts(inputs, replies[-1])) if replies else set[PartRef]()
        for part in _parts(rows[index] for index in indexes[1:]):
            if part.ref not in reply and builder.may_drop(part):
                yield part, Drop("text only")


def _reply_parts(inputs: ViewInput, index: int) -> Iterator[PartRef]:
    """The parts of a reply: its words, and the thoughts that its provider signed with them."""
    rows = group_of(inputs, index)
    for part in _parts(rows):
        if len(rows) > 1 or part.kind == "text" or (part.kind == "thought" and part.sealed):
            yield part.ref


def _withdraw_quotes(builder: PlanBuilder, end: int) -> Iterator[Withdraw]:
    return (Withdraw(insert) for insert in _quotes(builder, 0, end) if end)


def _quotes(builder: PlanBuilder, start: int, end: int) -> list[Insert]:
    rows = builder.inputs.rows
    first = rows[start].seq if 0 < start < len(rows) else 0
    last = rows[end].seq if end < len(rows) else builder.inputs.head + 1
    quotes = (insert for insert in builder.inserts if insert.reason == "delegated")
    return [insert for insert in quotes if first <= insert.before < last]


def _parts(rows: Iterable[Row]) -> Iterator[Part]:
    return (part for row in rows for part in row.parts)
