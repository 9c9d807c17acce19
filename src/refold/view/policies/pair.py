"""Calls and returns in pairs, as the strictest provider wants them; on every request.

A call that nothing answers gets a stand-in. A return whose call is not there goes; one that came
after its call was closed is told as text where it came. Where a response is several messages,
first goes what may not stand there without another.
"""

from collections.abc import Container, Iterator, Sequence

from refold.log import MAIN_SCOPE
from refold.view.plan_builder import PlanBuilder, Proposal
from refold.view.view_input import Row, groups, responses
from refold.wire import Drop, Insert, Part

INTERRUPTED = "Interrupted by user."
UNFINISHED = "Not finished yet."
OPENING = "[The conversation begins here.]"
_LATE_CHARS = 2000


def pair(builder: PlanBuilder, start: int = 0) -> Iterator[Proposal]:
    """Repair what is shown from row `start` on, which begins a step."""
    if builder.inputs.wire.itemized:
        yield from _parted(builder, start)
    waiting: dict[str | None, Part] = {}
    asked, step = 0, -1
    for at, row in enumerate(builder.inputs.rows[start:], start):
        shown = builder.shown(row)
        returns = [part for part in shown if part.kind == "return"]
        within = builder.inputs.steps[at] == step  # what was said between may be gone
        answers = within and (row.goes_on or (row.role != "assistant" and returns))
        if shown and not answers:
            yield from _stand_ins(builder, waiting, asked)
            waiting = {}
        for part in returns:
            if waiting.pop(part.call, None) is None:
                yield from _unasked(builder, part, at)
        if row.role == "assistant" and shown:
            asked, step = row.seq, builder.inputs.steps[at]
            calls = [part for part in shown if part.kind == "call"]
            yield from _asked(calls, waiting, _used(builder, at))
    yield from _stand_ins(builder, waiting, asked)


def opening(builder: PlanBuilder) -> Iterator[Insert]:
    """Words in the user's place where the model would seem to speak first."""
    first = next((row for row in builder.shown_rows() if not _system(builder, row)), None)
    if first is None or first.role != "assistant":
        return
    if not any(one.kind == "prompt" and one.before <= first.seq for one in builder.inserts):
        yield Insert(first.seq, "prompt", OPENING, "opening")


def _system(builder: PlanBuilder, row: Row) -> bool:
    return all(part.kind == "system" for part in builder.shown(row))


def _parted(builder: PlanBuilder, start: int) -> Iterator[Proposal]:
    """What may not be sent because something else of its response is not, or cannot be."""
    rows = builder.inputs.rows
    for response in responses(builder.inputs, start):
        refused = _refused(builder, response)
        for group in groups([rows[at] for at in response]):
            if _whole(builder, group, refused):
                continue
            for row in group:
                yield from ((part, Drop("parted")) for part in builder.shown(row))


def _whole(builder: PlanBuilder, group: Sequence[Row], refused: Container[int]) -> bool:
    """Whether all of a group can be sent, and reasoning has led to something."""
    led = not group[-1].has("thought")
    return led and all(builder.shown(row) and row.seq not in refused for row in group)


def _refused(builder: PlanBuilder, response: range) -> set[int]:
    """The calls with the id of another, and those that want an answer which words cannot be."""
    inputs = builder.inputs
    step = (inputs.rows[at] for at in inputs.step(inputs.steps[response[0]]))
    told = {part.call for row in step for part in builder.shown(row) if part.kind == "return"}
    found: set[int] = set()
    seen: set[str | None] = set()
    for part in (part for at in response for part in builder.shown(inputs.rows[at])):
        if part.kind == "call":
            insert = Insert(1, "return", "", "", part.tool, part.call)
            unanswerable = part.call not in told and not inputs.wire.make([insert])
            if part.call in seen or unanswerable:
                found.add(part.seq)
            seen.add(part.call)
    return found


def _used(builder: PlanBuilder, at: int) -> Container[str | None]:
    """The call ids that a call in this row may not have again."""
    if not builder.inputs.wire.unique_calls:
        return ()
    first = builder.inputs.calls
    return {part.call for part in builder.inputs.rows[at].parts if first.get(part.call, at) < at}


def _asked(
    calls: list[Part], waiting: dict[str | None, Part], used: Container[str | None]
) -> Iterator[Proposal]:
    for part in calls:
        if part.call in waiting or part.call in used:
            yield part, Drop("orphan")
        else:
            waiting[part.call] = part


def _stand_ins(
    builder: PlanBuilder, waiting: dict[str | None, Part], asked: int
) -> Iterator[Insert]:
    text = INTERRUPTED if builder.inputs.scope == MAIN_SCOPE else UNFINISHED
    for call, part in waiting.items():
        yield Insert(asked + 1, "return", text, "unanswered", part.tool, call, (part.ref,))


def _unasked(builder: PlanBuilder, part: Part, at: int) -> Iterator[Proposal]:
    """A return that answers nothing here; where it once had a call, its text is worth telling."""
    inputs = builder.inputs
    told = inputs.unanswered.get(part.call, at) < at or part.call in _used(builder, at)
    if not told:
        yield part, Drop("orphan")
        return
    yield part, Drop("late")
    text = inputs.text(part)[:_LATE_CHARS]
    tool = part.tool or inputs.tools.get(part.call)
    told = f"[Late result of {tool} ({part.call})]\n{text}"
    yield Insert(part.seq, "prompt", told, "late", sources=(part.ref,))
