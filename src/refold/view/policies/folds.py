"""What the log inserts into the view: summaries, pinned parts that are folded, delegated work."""

from collections.abc import Iterator
from typing import cast

from refold.log import PartRef
from refold.view.plan_builder import PlanBuilder, Proposal
from refold.view.view_input import Folding
from refold.wire import Insert, InsertKind, Part, Replace


def folds(builder: PlanBuilder) -> Iterator[Proposal]:
    """What each fold shows, before the first entry that it stands for."""
    for fold in builder.inputs.foldings:
        sources = (PartRef(fold.seq, 0),)
        part = _next_prompt(builder, fold) if fold.merged else None
        if part is not None:
            text = "\n\n".join(text for _, text in fold.shown)
            yield part, Replace(0, f"{text}\n\n", part.chars, "summary", sources)
            continue
        for kind, text in fold.shown:
            role = cast("InsertKind", kind)
            yield Insert(fold.spans[0].first, role, text, "summary", sources=sources)


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
