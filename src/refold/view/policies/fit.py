"""What a request leaves out when it would not fit otherwise.

First what the model and the tools said before the latest prompt, the oldest first; then older
prompts; then earlier steps of the current turn; then the newest results are cut; then summaries
go; last the newest results. System content, pins and the latest prompt never.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from refold.view.budget import PER_MESSAGE
from refold.view.plan_builder import Desk, Proposal, Withdraw
from refold.view.policies.tool_output import trim
from refold.view.profiles import Profile, Trim
from refold.view.view_input import Row
from refold.wire import Change, Drop, Insert, Part, Replace

_TOLD = ("delegated", "late")
_SMALLEST = 200
"""Characters to which the newest results are cut before they are left out."""
_MARK = "\n[…{length} chars, cut to fit]\n"
_NO_SUMMARY = "[Earlier conversation left out to stay within context budget]"


def fit(desk: Desk, room: int, aim: int) -> Iterator[Proposal]:
    """Propose, one unit after the other, what to leave out until the total is at most `aim`.

    What only the room demands (the current turn) stops as soon as there is room.
    """
    if desk.total <= room:
        return
    sheet = desk.sheet
    prompt = len(sheet.rows) if sheet.prompt is None else sheet.prompt
    current = _current(desk, prompt)
    for stage, enough in (
        (_told(desk), aim),
        (_steps(desk, 0, current), aim),
        (_prompts(desk, prompt), aim),
        (_steps(desk, current, _last_step(desk)), aim),
        (_cuts(desk), room),
        (_summaries(desk), room),
        (_steps(desk, 0, len(sheet.rows)), room),
    ):
        for unit in stage:
            if desk.total <= enough:
                return
            yield from unit


def marked(desk: Desk, marker: str) -> Iterator[Insert]:
    """One marker where fitting first left a message out."""
    gone = [row.seq for row in desk.sheet.rows if desk.lost(row, "fitted")]
    if gone and marker:
        yield Insert(gone[0], "prompt", marker.replace("{count}", str(len(gone))), "fitted")


def _told(desk: Desk) -> Iterator[list[Proposal]]:
    """What is told as text in the user's place and was never the user's, the oldest first."""
    told = [one for one in desk.inserts if one.reason in _TOLD and not _pinned(desk, one)]
    for _, same in groupby(sorted(told, key=_place), key=_place):
        yield [Withdraw(insert) for insert in same]


def _summaries(desk: Desk) -> Iterator[list[Proposal]]:
    """What folds show, the oldest first; recall still finds what they stand for."""
    shown = [one for one in desk.inserts if one.reason == "summary"]
    for sources, same in groupby(sorted(shown, key=_place), key=lambda one: one.sources):
        gone = list(same)
        mark = Insert(gone[0].before, "prompt", _NO_SUMMARY, "fitted", sources=sources)
        yield [*map(Withdraw, gone), mark] if desk.cost(mark) < sum(map(desk.cost, gone)) else []


def _pinned(desk: Desk, insert: Insert) -> bool:
    return any((one.seq, one.index) in desk.pinned for one in insert.sources)


def _place(insert: Insert) -> int:
    return insert.before


def _current(desk: Desk, prompt: int) -> int:
    """The row that the latest prompt's step begins with: it may come with the newest results."""
    steps = desk.sheet.steps
    return steps[prompt] if prompt < len(steps) else prompt


def _last_step(desk: Desk) -> int:
    sheet = desk.sheet
    return sheet.steps[-1] if sheet.steps else 0


def _steps(desk: Desk, start: int, end: int) -> Iterator[list[Proposal]]:
    """Responses with what answers them, and whatever else is no prompt, the oldest first."""
    sheet = desk.sheet
    at = start
    while at < end:
        step = sheet.step(at)
        unit = [
            part
            for one in step
            for part in desk.shown(sheet.rows[one])
            if part.kind != "prompt" and not (part.kind == "system" and part.fixed)
        ]
        if unit and not any(desk.held(part) for part in unit):
            yield [(part, Drop("fitted")) for part in unit]
        at = step.stop


def _prompts(desk: Desk, latest: int) -> Iterator[list[Proposal]]:
    """Earlier prompts, the oldest first; but the very first, which states the task, last."""
    sheet = desk.sheet
    rows = [row for row in sheet.rows[:latest] if row.has("prompt")]
    for row in (*rows[1:], *rows[:1]):
        unit = [part for part in desk.shown(row) if part.kind == "prompt"]
        if not any(desk.held(part) for part in unit):
            yield [(part, Drop("fitted")) for part in unit]


def _cuts(desk: Desk) -> Iterator[list[Proposal]]:
    """The results of the newest step, largest first, cut to both of their ends."""
    sheet = desk.sheet
    if not sheet.steps:
        return
    returns = [
        part
        for at in sheet.step(sheet.steps[-1])
        for part in desk.shown(sheet.rows[at])
        if part.kind == "return" and not part.sealed and not desk.held(part)
    ]
    for share in (2000, _SMALLEST):
        for part in sorted(returns, key=lambda one: -one.chars):
            if part.chars > 2 * share + PER_MESSAGE + len(_MARK):
                mark = _MARK.replace("{length}", str(part.chars))
                yield [(part, Replace(share, mark, share, "fitted"))]


# After a provider refused a request for its length: old turns go, and what is long is cut hard.
#
# The latest prompt stays as it was said. What is cut stays cut in later requests.


def emergency(desk: Desk, profile: Profile, refused: int) -> Iterator[Proposal]:
    """Propose what the profile's emergency values take out or cut.

    What was refused once more keeps nothing but the latest prompt.
    """
    values, sheet = profile.emergency, desk.sheet
    if refused > 1:
        yield from _dropped(desk, (row for at, row in enumerate(sheet.rows) if at != sheet.prompt))
        return
    if values.turns:
        yield from _older(desk, values.turns)
    if values.result_chars:
        update = {"max_chars": values.result_chars, "protect": "last", "last": 0}
        for part, change in trim(desk, profile.trim.model_copy(update=update)):
            yield part, replace(change, reason="emergency")
    if values.user_chars:
        yield from _prompts_emergency(desk, values.user_chars, profile.trim)


def untold(desk: Desk) -> list[Withdraw]:
    """What was delegated in turns that went is no longer told."""
    gone = [row.seq for row in desk.sheet.rows if desk.lost(row, "emergency")]
    last = gone[-1] if gone else 0
    told = (one for one in desk.inserts if one.reason == "delegated")
    return [Withdraw(one) for one in told if one.before <= last]


def _older(desk: Desk, turns: int) -> Iterator[tuple[Part, Drop]]:
    """All but the newest turns."""
    rows, starts = desk.sheet.rows, desk.sheet.turns
    there = [at for at in starts if any(part.kind == "prompt" for part in desk.shown(rows[at]))]
    return _dropped(desk, rows[: there[-turns]] if len(there) > turns else ())


def _dropped(desk: Desk, rows: Iterable[Row]) -> Iterator[tuple[Part, Drop]]:
    for row in rows:
        for part in row.parts:
            if not desk.held(part) and not isinstance(desk.change(part), Drop):
                yield part, Drop("emergency")


def _prompts_emergency(desk: Desk, most: int, values: Trim) -> Iterator[tuple[Part, Replace]]:
    """Long prompts but the latest, cut to both of their ends."""
    latest = desk.sheet.prompt
    for at, row in enumerate(desk.sheet.rows):
        for part in row.parts if at != latest else ():
            if part.kind == "prompt" and part.chars > most and desk.free(part):
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
    desk: Desk, room: int, *, prompt_follows: bool = False
) -> Iterator[tuple[Part, Change]]:
    """Replace each earlier prompt that exceeds the room for prompts.

    With `prompt_follows` nobody asks the model to answer the latest prompt any more: it counts as
    an earlier one.
    """
    sheet = desk.sheet
    latest = None if prompt_follows else sheet.prompt
    for at, row in enumerate(sheet.rows[desk.start :], desk.start):
        if at != latest and exceeds(desk, row, room):
            yield from _replaced(desk, row)


def exceeds(desk: Desk, row: Row, room: int) -> bool:
    """Whether the prompt in this row is too long for any request with this room for messages."""
    # Most prompts are short: only a long one is worth adding up what else must be sent.
    if row.tokens <= room // 2 or not row.has("prompt"):
        return False
    tokens = sum(part.tokens for part in row.parts if part.kind == "prompt") + PER_MESSAGE
    left = room - _needed(desk, row)
    # Where not even the line would fit, something else is too large.
    return tokens > left >= desk.cost(Insert(row.seq, "prompt", _line(row), "oversized"))


def _line(row: Row) -> str:
    chars = sum(part.chars for part in row.parts if part.kind == "prompt")
    return _LINE.format(chars=chars, seq=row.seq)


def _needed(desk: Desk, row: Row) -> int:
    """The tokens of everything beside the prompt that no request may leave out."""
    sheet = desk.sheet
    held = sum(
        part.tokens
        for other in sheet.rows
        for part in other.parts
        if desk.held(part) and not (other is row and part.kind == "prompt")
    )
    quotes = (Insert(one.seq, "prompt", one.text, "pinned") for one in sheet.pinned)
    return held + sum(map(desk.cost, quotes))


def _replaced(desk: Desk, row: Row) -> Iterator[tuple[Part, Change]]:
    prompts = [part for part in row.parts if part.kind == "prompt"]
    if not all(map(desk.free, prompts)):  # pinned, or decided before
        return
    first, *rest = prompts
    yield first, Replace(0, _line(row), 0, "oversized")
    for part in rest:
        yield part, Drop("oversized")
