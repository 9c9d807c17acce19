"""What the log inserts into the view: summaries, pinned parts that are folded, delegated work."""

from collections.abc import Iterator
from typing import cast

from refold.log import PartRef
from refold.view.plan_builder import PlanBuilder, Proposal
from refold.view.policies.tool_output import reference
from refold.view.profiles import Archive
from refold.view.view_input import Folding
from refold.wire import Insert, InsertKind, Part, Replace


def folds(builder: PlanBuilder) -> Iterator[Proposal]:
    """What each fold shows, before the first entry that it stands for."""
    for fold in builder.inputs.foldings:
        sources = (PartRef(fold.seq, 0),)
        first = fold.spans[0].first
        state = [Insert(first, "state", note, "summary", sources=sources) for note in fold.state]
        part = _next_prompt(builder, fold) if fold.merged else None
        if part is not None:
            text = "\n\n".join(text for _, text in fold.shown)
            yield part, Replace(0, f"{text}\n\n", part.chars, "summary", sources)
            yield from state
            continue
        for kind, text in fold.shown:
            role = cast("InsertKind", kind)
            yield Insert(first, role, text, "summary", sources=sources)
        yield from state


def _next_prompt(builder: PlanBuilder, fold: Folding) -> Part | None:
    """The first prompt after the fold that may be edited; the latest one is sent as it was said."""
    inputs = builder.inputs
    for index in range(inputs.at(fold.spans[0].first), len(inputs.rows)):
        if index == inputs.prompt:
            return None
        for part in inputs.rows[index].parts:
            if part.kind == "prompt" and part.chars and builder.free(part):
                return part
    return None


def findings(builder: PlanBuilder) -> Iterator[Proposal]:
    """References for the results that a delegated agent's findings cover, and the findings."""
    for newest in builder.inputs.findings.values():
        for row in builder.inputs.rows:
            for part in row.parts if any(row.seq in span for span in newest.spans) else ():
                if part.kind == "return" and builder.free(part):
                    text = builder.inputs.text(part)
                    change = reference(part, text, Archive())
                    if len(change.text) < len(text):
                        yield part, change
        for _, text in newest.shown:
            sources = (PartRef(newest.seq, 0),)
            yield Insert(newest.spans[-1].last + 1, "prompt", text, "summary", sources=sources)


def pins(builder: PlanBuilder) -> Iterator[Insert]:
    """A quotation for each pinned part that is folded; the others simply stay."""
    for quote in builder.inputs.pinned:
        text = f"[Pinned]\n{quote.text}"
        yield Insert(quote.seq + 1, "prompt", text, "pinned", sources=quote.sources)


def scope(builder: PlanBuilder, first: int = 0) -> Iterator[Insert]:
    """A text for each result and message of a delegation, from the `first` quote on."""
    for quote in builder.inputs.quotes[first:]:
        if quote.seq > builder.hidden_until:
            place = builder.inputs.after_response(quote.seq)
            yield Insert(place, "prompt", quote.text, "delegated", sources=quote.sources)
