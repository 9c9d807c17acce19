"""Calls and returns in pairs, as the strictest provider wants them; on every request.

A call that nothing answers gets a placeholder. A return whose call is missing is dropped; one that
came after its call was closed is quoted as text where it came. Where a response is several
messages, the ones that may not be sent without another are dropped first.
"""

from collections.abc import Container, Iterator

from refold.log import MAIN_SCOPE
from refold.view.plan_builder import PlanBuilder, Proposal
from refold.view.view_input import groups, responses
from refold.wire import Drop, Insert, Part

INTERRUPTED = "Interrupted by user."
UNFINISHED = "Not finished yet."
OPENING = "[The conversation begins here.]"
_LATE_CHARS = 2000


def pair(builder: PlanBuilder, start: int = 0) -> Iterator[Proposal]:
    """Repair what is shown from row `start` on, which begins a step."""
    inputs = builder.inputs
    if inputs.wire.itemized:
        yield from _drop_incomplete(builder, start)
    waiting: dict[str | None, Part] = {}
    response, step = 0, -1
    for index, row in enumerate(inputs.rows[start:], start):
        parts = builder.visible_parts(row)
        returns = [part for part in parts if part.kind == "return"]
        within = inputs.steps[index] == step  # what was said between may be dropped
        answers = within and (row.goes_on or (row.role != "assistant" and returns))
        if parts and not answers:
            yield from _placeholders(builder, waiting, response)
            waiting = {}
        for part in returns:
            if waiting.pop(part.call, None) is None:
                yield from _unmatched(builder, part, index)
        if row.role == "assistant" and parts:
            response, step = row.seq, inputs.steps[index]
            used = _used_ids(builder, index)
            for part in (part for part in parts if part.kind == "call"):
                if part.call in waiting or part.call in used:
                    yield part, Drop("orphan")
                else:
                    waiting[part.call] = part
    yield from _placeholders(builder, waiting, response)


def opening(builder: PlanBuilder) -> Iterator[Insert]:
    """Words in the user's place where the model would seem to speak first."""
    first = next(
        (
            row
            for row in builder.visible_rows()
            if any(part.kind != "system" for part in builder.visible_parts(row))
        ),
        None,
    )
    if first is None or first.role != "assistant":
        return
    if not any(x.kind == "prompt" and x.before <= first.seq for x in builder.inserts):
        yield Insert(first.seq, "prompt", OPENING, "opening")


def _drop_incomplete(builder: PlanBuilder, start: int) -> Iterator[Proposal]:
    """What may not be sent because something else of its response is not, or cannot be."""
    rows = builder.inputs.rows
    for response in responses(builder.inputs, start):
        unsendable = _unsendable_calls(builder, response)
        for group in groups([rows[index] for index in response]):
            # Reasoning that led to nothing is not sent either.
            complete = not group[-1].has("thought") and all(
                builder.visible_parts(row) and row.seq not in unsendable for row in group
            )
            if not complete:
                for row in group:
                    yield from ((part, Drop("parted")) for part in builder.visible_parts(row))


def _unsendable_calls(builder: PlanBuilder, response: range) -> set[int]:
    """Calls with the id of another, and those whose answer cannot be a placeholder."""
    inputs = builder.inputs
    step = (inputs.rows[index] for index in inputs.step(inputs.steps[response[0]]))
    parts = (part for row in step for part in builder.visible_parts(row))
    answered = {part.call for part in parts if part.kind == "return"}
    unsendable: set[int] = set()
    ids: set[str | None] = set()
    for part in (x for index in response for x in builder.visible_parts(inputs.rows[index])):
        if part.kind == "call":
            insert = Insert(1, "return", "", "", part.tool, part.call)
            unanswerable = part.call not in answered and not inputs.wire.make([insert])
            if part.call in ids or unanswerable:
                unsendable.add(part.seq)
            ids.add(part.call)
    return unsendable


def _used_ids(builder: PlanBuilder, index: int) -> Container[str | None]:
    """The call ids that a call in this row may not have again."""
    inputs = builder.inputs
    if not inputs.wire.unique_calls:
        return ()
    parts = inputs.rows[index].parts
    return {part.call for part in parts if inputs.calls.get(part.call, index) < index}


def _placeholders(
    builder: PlanBuilder, waiting: dict[str | None, Part], response: int
) -> Iterator[Insert]:
    text = INTERRUPTED if builder.inputs.scope == MAIN_SCOPE else UNFINISHED
    for call, part in waiting.items():
        yield Insert(response + 1, "return", text, "unanswered", part.tool, call, (part.ref,))


def _unmatched(builder: PlanBuilder, part: Part, index: int) -> Iterator[Proposal]:
    """A return that answers nothing here; where it once had a call, its text is worth quoting."""
    inputs = builder.inputs
    closed = inputs.unanswered.get(part.call, index) < index
    if not (closed or part.call in _used_ids(builder, index)):
        yield part, Drop("orphan")
        return
    yield part, Drop("late")
    tool = part.tool or inputs.tools.get(part.call)
    text = f"[Late result of {tool} ({part.call})]\n{inputs.text(part)[:_LATE_CHARS]}"
    yield Insert(part.seq, "prompt", text, "late", sources=(part.ref,))
