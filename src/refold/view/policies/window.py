"""Fixed limits on messages, turns and tokens, for when nothing summarizes.

Each is a rule of its own, off when its value is 0. Cuts fall between steps, so that no call loses
its result, and the latest prompt always stays. Limits on what came before leave the current turn
alone, however long it is. A marker stands for what is left out, in every request.
"""

from collections.abc import Iterable, Iterator

from refold.log import PartRef
from refold.view.cut import cut
from refold.view.plan_builder import PlanBuilder, Proposal, Withdraw
from refold.view.profiles import STATIC_MARKER, Keep, Profile, Window
from refold.view.view_input import Row, ViewInput, group_of
from refold.wire import Drop, Insert, Part


def window(builder: PlanBuilder, profile: Profile) -> Iterator[Proposal]:
    """Propose what the limits take out, beyond what they took out before."""
    values = profile.window
    marker = profile.fit.marker or (STATIC_MARKER if values.max_messages else "")
    if values.max_messages:
        yield from middle(builder, values.max_messages)
    if values.max_turns or values.max_tokens:
        yield from turns(builder, values)
    if values.rolling:
        yield from recent(builder, values, marker)
    if marker and (lost := _lost(builder)):
        yield Insert(lost[0], "prompt", marker.replace("{count}", str(len(lost))), "window")


def _lost(builder: PlanBuilder) -> list[int]:
    return [row.seq for row in builder.inputs.rows if builder.lost(row, "window")]


def middle(builder: PlanBuilder, limit: int) -> Iterator[Proposal]:
    """Over the limit, keep the first run and the newest messages."""
    if sum(1 for _ in builder.visible_rows()) + bool(_lost(builder)) > limit:
        inputs = builder.inputs
        where = cut(inputs, Keep(head="first run", unit="messages", amount=limit // 2, least=4))
        yield from builder.drop((inputs.rows[index] for index in where.rows), "window")
        if where.rows:
            yield from _withdraw_quotes(builder, where.tail)


def turns(builder: PlanBuilder, values: Window) -> Iterator[Proposal]:
    """Over either limit, drop the older half; over the token limit, few turns become text first."""
    if values.max_turns and len(visible := builder.visible_turns()) > values.max_turns:
        yield from _halve(builder, visible, values.max_turns)
    if values.max_tokens:
        yield from _within(builder, values)


def _within(builder: PlanBuilder, values: Window) -> Iterator[Proposal]:
    before, reduced = 0, False
    # Halving ends above the limit where only the current turn is left, or what is pinned.
    while builder.total > values.max_tokens and builder.total != before:
        visible = builder.visible_turns()
        if len(visible) < values.text_below and not reduced:
            reduced = True
            yield from _reduce_to_text(builder, visible)
        elif len(visible) > 1:
            before = builder.total
            yield from _halve(builder, visible)
        else:
            return


def _halve(builder: PlanBuilder, visible: list[int], limit: int = 0) -> Iterator[Proposal]:
    """Drop the older half of the turns; of an odd number, the smaller half.

    With a limit, repeat as needed: if each request is planned from scratch, all turns are back
    each time.
    """
    stay = len(visible) - len(visible) // 2
    while stay > limit > 0:
        stay -= stay // 2
    newer = builder.inputs.turns[visible[-stay]]
    yield from builder.drop(builder.inputs.rows[:newer], "window")
    yield from _withdraw_quotes(builder, newer)


def recent(builder: PlanBuilder, values: Window, marker: str) -> Iterator[Proposal]:
    """Of what came before the current turn, the newest messages within both limits."""
    inputs = builder.inputs
    first = inputs.turn() if inputs.turns else 0
    messages = len(inputs.rows) - first + len(_quotes(builder, first, len(inputs.rows)))
    tokens = 0
    marker_tokens = builder.cost(Insert(1, "prompt", marker, "window")) if marker else 0
    while first > 0:
        start = inputs.steps[first - 1]
        quotes = _quotes(builder, start, first)
        messages += first - start + len(quotes)
        tokens += sum(map(builder.weight, inputs.rows[start:first]))
        tokens += sum(map(builder.cost, quotes))
        marked = bool(marker) and start > 0  # it replaces everything before
        if values.recent_messages and messages + marked > values.recent_messages:
            break
        if values.recent_tokens and tokens + marked * marker_tokens > values.recent_tokens:
            break
        first = start
    yield from builder.drop(inputs.rows[:first], "window")
    yield from _withdraw_quotes(builder, first)


def restore(builder: PlanBuilder, count: int) -> Iterator[Proposal]:
    """After a restart, show this many earlier turns, as text."""
    inputs = builder.inputs
    last = inputs.rows[-1] if inputs.rows else None
    answered = last is not None and last.role == "assistant" and not last.has("call")
    current = len(inputs.turns) if answered else len(inputs.turns) - 1
    visible = [turn for turn in builder.visible_turns() if turn < current]
    if not visible or count < 1:
        return
    kept = visible[-count:]
    yield from builder.drop(inputs.rows[: inputs.turns[kept[0]]], "restored")
    yield from _reduce_to_text(builder, kept, current)


def _reduce_to_text(
    builder: PlanBuilder, visible: list[int], current: int | None = None
) -> Iterator[Proposal]:
    """Complete turns keep their first prompt and their last reply; by default, the last is open.

    The newest prompt stays in any case: it may have come in the middle of a turn, unanswered.
    """
    inputs, rows, starts = builder.inputs, builder.inputs.rows, builder.inputs.turns
    prompt = None if inputs.prompt is None else rows[inputs.prompt].seq
    current = len(starts) - 1 if current is None else current
    for turn in visible:
        if turn == current:
            yield from _withdraw_quotes(builder, starts[turn])
            return
        indexes = range(starts[turn], starts[turn + 1] if turn + 1 < len(starts) else len(rows))
        replies = [x for x in indexes if rows[x].role == "assistant" and rows[x].has("text")]
        reply = set(_reply_parts(inputs, replies[-1])) if replies else set[PartRef]()
        for part in _parts(rows[index] for index in indexes[1:]):
            if part.ref not in reply and part.seq != prompt and builder.may_drop(part):
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
