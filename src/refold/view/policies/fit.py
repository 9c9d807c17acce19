"""What a request leaves out when it would not fit otherwise.

First what the model and the tools said before the latest prompt, the oldest first; then older
prompts; then earlier steps of the current turn; then the newest results are cut; then summaries
go; last the newest results. System content, pins and the latest prompt never.
"""

from collections.abc import Iterator
from itertools import groupby

from refold.view.budget import PER_MESSAGE
from refold.view.desk import Desk, Proposal, Withdraw
from refold.wire import Drop, Insert, Replace

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
