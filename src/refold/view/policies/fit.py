"""What a request leaves out when it would not fit otherwise.

First what the model and the tools said before the latest prompt, the oldest first; then older
prompts; then earlier steps of the current turn; then the newest results are cut; then summaries
go; last the newest results. System content, pins and the latest prompt never.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from refold.view.budget import PER_MESSAGE
from refold.view.plan_builder import PlanBuilder, Proposal, Withdraw
from refold.view.policies.tool_output import trim
from refold.view.profiles import Profile, Trim
from refold.view.view_input import Row
from refold.wire import Change, Drop, Insert, Part, Replace

_TOLD = ("delegated", "late")
_SMALLEST = 200
"""Characters to which the newest results are cut before they are left out."""
_MARK = "\n[…{length} chars, cut to fit]\n"
_NO_SUMMARY = "[Earlier conversation left out to stay within context budget]"


def fit(builder: PlanBuilder, room: int, aim: int) -> Iterator[Proposal]:
    """Propose, one unit after the other, what to leave out until the total is at most `aim`.

    What only the room demands (the current turn) stops as soon as there is room.
    """
    if builder.total <= room:
        return
    inputs = builder.inputs
    prompt = len(inputs.rows) if inputs.prompt is None else inputs.prompt
    current = _current(builder, prompt)
    for stage, enough in (
        (_told(builder), aim),
        (_steps(builder, 0, current), aim),
        (_prompts(builder, prompt), aim),
        (_steps(builder, current, _last_step(builder)), aim),
        (_cuts(builder), room),
        (_summaries(builder), room),
        (_steps(builder, 0, len(inputs.rows)), room),
    ):
        for unit in stage:
            if builder.total <= enough:
                return
            yield from unit


def marked(builder: PlanBuilder, marker: str) -> Iterator[Insert]:
    """One marker where fitting first left a message out."""
    gone = [row.seq for row in builder.inputs.rows if builder.lost(row, "fitted")]
    if gone and marker:
        yield Insert(gone[0], "prompt", marker.replace("{count}", str(len(gone))), "fitted")


def _told(builder: PlanBuilder) -> Iterator[list[Proposal]]:
    """What is told as text in the user's place and was never the user's, the oldest first."""
    told = [one for one in builder.inserts if one.reason in _TOLD and not _pinned(builder, one)]
    for _, same in groupby(sorted(told, key=_place), key=_place):
        yield [Withdraw(insert) for insert in same]


def _summaries(builder: PlanBuilder) -> Iterator[list[Proposal]]:
    """What folds show, the oldest first; recall still finds what they stand for."""
    shown = [one for one in builder.inserts if one.reason == "summary"]
    for sources, same in groupby(sorted(shown, key=_place), key=lambda one: one.sources):
        gone = list(same)
        mark = Insert(gone[0].before, "prompt", _NO_SUMMARY, "fitted", sources=sources)
        yield (
            [*map(Withdraw, gone), mark]
            if builder.cost(mark) < sum(map(builder.cost, gone))
            else []
        )


def _pinned(builder: PlanBuilder, insert: Insert) -> bool:
    return any((one.seq, one.index) in builder.pinned for one in insert.sources)


def _place(insert: Insert) -> int:
    return insert.before


def _current(builder: PlanBuilder, prompt: int) -> int:
    """The row that the latest prompt's step begins with: it may come with the newest results."""
    steps = builder.inputs.steps
    return steps[prompt] if prompt < len(steps) else prompt


def _last_step(builder: PlanBuilder) -> int:
    inputs = builder.inputs
    return inputs.steps[-1] if inputs.steps else 0


def _steps(builder: PlanBuilder, start: int, end: int) -> Iterator[list[Proposal]]:
    """Responses with what answers them, and whatever else is no prompt, the oldest first."""
    inputs = builder.inputs
    at = start
    while at < end:
        step = inputs.step(at)
        unit = [
            part
            for one in step
            for part in builder.shown(inputs.rows[one])
            if part.kind != "prompt" and not (part.kind == "system" and part.fixed)
        ]
        if unit and not any(builder.held(part) for part in unit):
            yield [(part, Drop("fitted")) for part in unit]
        at = step.stop


def _prompts(builder: PlanBuilder, latest: int) -> Iterator[list[Proposal]]:
    """Earlier prompts, the oldest first; but the very first, which states the task, last."""
    inputs = builder.inputs
    rows = [row for row in inputs.rows[:latest] if row.has("prompt")]
    for row in (*rows[1:], *rows[:1]):
        unit = [part for part in builder.shown(row) if part.kind == "prompt"]
        if not any(builder.held(part) for part in unit):
            yield [(part, Drop("fitted")) for part in unit]


def _cuts(builder: PlanBuilder) -> Iterator[list[Proposal]]:
    """The results of the newest step, largest first, cut to both of their ends."""
    inputs = builder.inputs
    if not inputs.steps:
        return
    returns = [
        part
        for at in inputs.step(inputs.steps[-1])
        for part in builder.shown(inputs.rows[at])
        if part.kind == "return" and not part.sealed and not builder.held(part)
    ]
    for share in (2000, _SMALLEST):
        for part in sorted(returns, key=lambda one: -one.chars):
            if part.chars > 2 * share + PER_MESSAGE + len(_MARK):
                mark = _MARK.replace("{length}", str(part.chars))
                yield [(part, Replace(share, mark, share, "fitted"))]


# After a provider refused a request for its length: old turns go, and what is long is cut hard.
#
# The latest prompt stays as it was said. What is cut stays cut in later requests.


def emergency(builder: PlanBuilder, profile: Profile, refused: int) -> Iterator[Proposal]:
    """Propose what the profile's emergency values take out or cut.

    What was refused once more keeps nothing but the latest prompt.
    """
    values, inputs = profile.emergency, builder.inputs
    if refused > 1:
        yield from _dropped(
            builder, (row for at, row in enumerate(inputs.rows) if at != inputs.prompt)
        )
        return
    if values.turns:
        yield from _older(builder, values.turns)
    if values.result_chars:
        update = {"max_chars": values.result_chars, "protect": "last", "last": 0}
        for part, change in trim(builder, profile.trim.model_copy(update=update)):
            yield part, replace(change, reason="emergency")
    if values.user_chars:
        yield from _prompts_emergency(builder, values.user_chars, profile.trim)


def untold(builder: PlanBuilder) -> list[Withdraw]:
    """What was delegated in turns that went is no longer told."""
    gone = [row.seq for row in builder.inputs.rows if builder.lost(row, "emergency")]
    last = gone[-1] if gone else 0
    told = (one for one in builder.inserts if one.reason == "delegated")
    return [Withdraw(one) for one in told if one.before <= last]


def _older(builder: PlanBuilder, turns: int) -> Iterator[tuple[Part, Drop]]:
    """All but the newest turns."""
    rows, starts = builder.inputs.rows, builder.inputs.turns
    there = [at for at in starts if any(part.kind == "prompt" for part in builder.shown(rows[at]))]
    return _dropped(builder, rows[: there[-turns]] if len(there) > turns else ())


def _dropped(builder: PlanBuilder, rows: Iterable[Row]) -> Iterator[tuple[Part, Drop]]:
    for row in rows:
        for part in row.parts:
            if not builder.held(part) and not isinstance(builder.change(part), Drop):
                yield part, Drop("emergency")


def _prompts_emergency(
    builder: PlanBuilder, most: int, values: Trim
) -> Iterator[tuple[Part, Replace]]:
    """Long prompts but the latest, cut to both of their ends."""
    latest = builder.inputs.prompt
    for at, row in enumerate(builder.inputs.rows):
        for part in row.parts if at != latest else ():
            if part.kind == "prompt" and part.chars > most and builder.free(part):
                mark = values.marker.replace("{length}", str(part.chars))
                if most + len(mark) < part.chars:
                    yield part, Replace(most - most // 2, mark, most // 2, "emergency")


# Prompts that no request could hold, each replaced by one line that says where it can be read.
#
# The latest prompt is always sent verbatim, so a request with one that is too long is refused. From
# the next prompt on it is an earlier one: without this policy it would stay in the way, because
# fitting leaves out everything else first.

_LINE = (
    "[The user's message here was too long for the context window ({chars:,} characters) and is "
    "left out. It is kept in the log as entry {seq}.]"
)


def oversized(
    builder: PlanBuilder, room: int, *, prompt_follows: bool = False
) -> Iterator[tuple[Part, Change]]:
    """Replace each earlier prompt that exceeds the room for prompts.

    With `prompt_follows` nobody asks the model to answer the latest prompt any more: it counts as
    an earlier one.
    """
    inputs = builder.inputs
    latest = None if prompt_follows else inputs.prompt
    for at, row in enumerate(inputs.rows[builder.start :], builder.start):
        if at != latest and exceeds(builder, row, room):
            yield from _replaced(builder, row)


def exceeds(builder: PlanBuilder, row: Row, room: int) -> bool:
    """Whether the prompt in this row is too long for any request with this room for messages."""
    # Most prompts are short: only a long one is worth adding up what else must be sent.
    if row.tokens <= room // 2 or not row.has("prompt"):
        return False
    tokens = sum(part.tokens for part in row.parts if part.kind == "prompt") + PER_MESSAGE
    left = room - _needed(builder, row)
    # Where not even the line would fit, something else is too large.
    return tokens > left >= builder.cost(Insert(row.seq, "prompt", _line(row), "oversized"))


def _line(row: Row) -> str:
    chars = sum(part.chars for part in row.parts if part.kind == "prompt")
    return _LINE.format(chars=chars, seq=row.seq)


def _needed(builder: PlanBuilder, row: Row) -> int:
    """The tokens of everything beside the prompt that no request may leave out."""
    inputs = builder.inputs
    held = sum(
        part.tokens
        for other in inputs.rows
        for part in other.parts
        if builder.held(part) and not (other is row and part.kind == "prompt")
    )
    quotes = (Insert(one.seq, "prompt", one.text, "pinned") for one in inputs.pinned)
    return held + sum(map(builder.cost, quotes))


def _replaced(builder: PlanBuilder, row: Row) -> Iterator[tuple[Part, Change]]:
    prompts = [part for part in row.parts if part.kind == "prompt"]
    if not all(map(builder.free, prompts)):  # pinned, or decided before
        return
    first, *rest = prompts
    yield first, Replace(0, _line(row), 0, "oversized")
    for part in rest:
        yield part, Drop("oversized")
