"""What a request leaves out when it would not fit otherwise.

First what the model and the tools said before the latest prompt, the oldest first; then older
prompts; then earlier steps of the current turn; then the newest results are cut; then summaries
go; last the newest results. System content, pins and the latest prompt never.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from refold.view.budget import PER_MESSAGE
from refold.view.plan import Reason
from refold.view.plan_builder import PlanBuilder, Proposal, Withdraw
from refold.view.profiles import Profile
from refold.view.view_input import Row
from refold.wire import Change, Drop, Insert, Kind, Part, Replace

_QUOTED = ("delegated", "late")
_SMALLEST = 200
"""Characters to which the newest results are cut before they are left out."""
_MARK = "\n[…{length} chars, cut to fit]\n"
_NO_SUMMARY = "[Earlier conversation left out to stay within context budget]"
_OVERSIZED = (
    "[The user's message here was too long for the context window ({chars:,} characters) and is "
    "left out. It is kept in the log as entry {seq}.]"
)


def fit(builder: PlanBuilder, room: int, aim: int) -> Iterator[Proposal]:
    """Propose, one unit after the other, what to leave out until the total is at most `aim`.

    What only the room demands (the current turn) stops as soon as there is room.
    """
    if builder.total <= room:
        return
    inputs = builder.inputs
    prompt = len(inputs.rows) if inputs.prompt is None else inputs.prompt
    # The latest prompt may come with the newest results, in one step.
    current = inputs.steps[prompt] if prompt < len(inputs.steps) else prompt
    last_step = inputs.steps[-1] if inputs.steps else 0
    for stage, enough in (
        (_quotes(builder), aim),
        (_steps(builder, 0, current), aim),
        (_prompts(builder, prompt), aim),
        (_steps(builder, current, last_step), aim),
        (_cuts(builder), room),
        (_summaries(builder), room),
        (_steps(builder, 0, len(inputs.rows)), room),
    ):
        for unit in stage:
            if builder.total <= enough:
                return
            yield from unit


def mark_fitted(builder: PlanBuilder, marker: str) -> Iterator[Insert]:
    lost = [row.seq for row in builder.inputs.rows if builder.lost(row, "fitted")]
    if lost and marker:
        yield Insert(lost[0], "prompt", marker.replace("{count}", str(len(lost))), "fitted")


def _quotes(builder: PlanBuilder) -> Iterator[list[Proposal]]:
    """Text in the user's place that was never the user's, the oldest first."""
    quotes = [
        insert
        for insert in builder.inserts
        if insert.reason in _QUOTED
        and not any((ref.seq, ref.index) in builder.pinned for ref in insert.sources)
    ]
    for _, same in groupby(sorted(quotes, key=_position), key=_position):
        yield [Withdraw(insert) for insert in same]


def _summaries(builder: PlanBuilder) -> Iterator[list[Proposal]]:
    """What folds show, the oldest first; recall still finds the folded messages."""
    inserts = [insert for insert in builder.inserts if insert.reason == "summary"]
    inserts.sort(key=_position)
    for sources, same in groupby(inserts, key=lambda insert: insert.sources):
        shown = list(same)
        mark = Insert(shown[0].before, "prompt", _NO_SUMMARY, "fitted", sources=sources)
        smaller = builder.cost(mark) < sum(map(builder.cost, shown))
        yield [*map(Withdraw, shown), mark] if smaller else []


def _position(insert: Insert) -> int:
    return insert.before


def _steps(builder: PlanBuilder, start: int, end: int) -> Iterator[list[Proposal]]:
    """Responses with what answers them, and whatever else is no prompt, the oldest first."""
    inputs = builder.inputs
    while start < end:
        step = inputs.step(start)
        unit = [
            part
            for index in step
            for part in builder.visible_parts(inputs.rows[index])
            if part.kind != "prompt" and not (part.kind == "system" and part.fixed)
        ]
        if unit and not any(map(builder.must_stay, unit)):
            yield [(part, Drop("fitted")) for part in unit]
        start = step.stop


def _prompts(builder: PlanBuilder, latest: int) -> Iterator[list[Proposal]]:
    """Earlier prompts, the oldest first; but the very first, which states the task, last."""
    rows = [row for row in builder.inputs.rows[:latest] if row.has("prompt")]
    for row in (*rows[1:], *rows[:1]):
        unit = [part for part in builder.visible_parts(row) if part.kind == "prompt"]
        if not any(map(builder.must_stay, unit)):
            yield [(part, Drop("fitted")) for part in unit]


def _cuts(builder: PlanBuilder) -> Iterator[list[Proposal]]:
    """The results of the newest step, largest first, cut to both of their ends."""
    inputs = builder.inputs
    if not inputs.steps:
        return
    returns = [
        part
        for index in inputs.step(inputs.steps[-1])
        for part in builder.visible_parts(inputs.rows[index])
        if part.kind == "return" and not part.sealed and not builder.must_stay(part)
    ]
    for share in (2000, _SMALLEST):
        for part in sorted(returns, key=lambda part: -part.chars):
            if part.chars > 2 * share + PER_MESSAGE + len(_MARK):
                mark = _MARK.replace("{length}", str(part.chars))
                yield [(part, Replace(share, mark, share, "fitted"))]


def emergency(builder: PlanBuilder, profile: Profile, refused: int) -> Iterator[Proposal]:
    """After a refusal: drop old turns and cut long messages, as the profile's emergency says.

    The latest prompt stays as it was said. After another refusal nothing else does. What is cut
    stays cut in later requests.
    """
    values, rows, latest = profile.emergency, builder.inputs.rows, builder.inputs.prompt
    if refused > 1:
        others = (row for index, row in enumerate(rows) if index != latest)
        yield from builder.drop(others, "emergency")
        return
    if values.turns:
        turns = builder.visible_turns()
        if len(turns) > values.turns:
            start = builder.inputs.turns[turns[-values.turns]]
            yield from builder.drop(rows[:start], "emergency")
    marker = profile.trim.marker
    if values.result_chars:
        yield from _cut_to(builder, rows, "return", values.result_chars, marker)
    if values.user_chars:
        others = (row for index, row in enumerate(rows) if index != latest)
        yield from _cut_to(builder, others, "prompt", values.user_chars, marker)


def withdraw_lost(builder: PlanBuilder) -> list[Withdraw]:
    """No longer quote what was delegated in turns that an emergency or a restart dropped."""
    reasons: tuple[Reason, ...] = ("emergency", "restored")
    rows = builder.inputs.rows
    lost = [row.seq for row in rows if any(builder.lost(row, reason) for reason in reasons)]
    last = lost[-1] if lost else 0
    quotes = (insert for insert in builder.inserts if insert.reason == "delegated")
    return [Withdraw(insert) for insert in quotes if insert.before <= last]


def _cut_to(
    builder: PlanBuilder, rows: Iterable[Row], kind: Kind, max_chars: int, marker: str
) -> Iterator[tuple[Part, Replace]]:
    """Cut longer parts to both of their ends; with the mark they have `max_chars` characters.

    So each is shorter than before: a longer request would be refused again.
    """
    for part in (part for row in rows for part in row.parts):
        if part.kind == kind and part.chars > max_chars and builder.free(part):
            mark = marker.replace("{length}", str(part.chars))
            kept = max(0, max_chars - len(mark))
            yield part, Replace(kept - kept // 2, mark, kept // 2, "emergency")


def oversized(
    builder: PlanBuilder, room: int, *, prompt_follows: bool = False
) -> Iterator[tuple[Part, Change]]:
    """Replace each earlier prompt that no request could hold by a line that says where it is.

    The latest prompt is always sent verbatim, so a request with one that is too long is refused.
    From the next prompt on it is an earlier one, and would stay in the way, because fitting leaves
    out everything else first. With `prompt_follows` the latest prompt counts as an earlier one.
    """
    inputs = builder.inputs
    latest = None if prompt_follows else inputs.prompt
    for index, row in enumerate(inputs.rows[builder.start :], builder.start):
        if index != latest and exceeds(builder, row, room):
            first, *rest = prompts = [part for part in row.parts if part.kind == "prompt"]
            if all(map(builder.free, prompts)):  # else pinned, or decided before
                yield first, Replace(0, _oversized_line(row), 0, "oversized")
                yield from ((part, Drop("oversized")) for part in rest)


def exceeds(builder: PlanBuilder, row: Row, room: int) -> bool:
    """Whether the prompt in this row is too long for any request with this room for messages."""
    # Most prompts are short: only a long one is worth adding up what else must be sent.
    if row.tokens <= room // 2 or not row.has("prompt"):
        return False
    tokens = sum(part.tokens for part in row.parts if part.kind == "prompt") + PER_MESSAGE
    inputs = builder.inputs
    required = sum(
        part.tokens
        for other in inputs.rows
        for part in other.parts
        if builder.must_stay(part) and not (other is row and part.kind == "prompt")
    )
    quotes = (Insert(quote.seq, "prompt", quote.text, "pinned") for quote in inputs.pinned)
    left = room - required - sum(map(builder.cost, quotes))
    line = Insert(row.seq, "prompt", _oversized_line(row), "oversized")
    # Where not even the line would fit, something else is too large.
    return tokens > left >= builder.cost(line)


def _oversized_line(row: Row) -> str:
    chars = sum(part.chars for part in row.parts if part.kind == "prompt")
    return _OVERSIZED.format(chars=chars, seq=row.seq)
