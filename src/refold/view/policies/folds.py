"""Summaries in the place of what was folded."""

from collections.abc import Iterator
from typing import cast

from refold.log import PartRef
from refold.view.plan_builder import PlanBuilder, Proposal
from refold.view.view_input import Folding
from refold.wire import Insert, InsertKind, Part, Replace


def folds(builder: PlanBuilder) -> Iterator[Proposal]:
    """What each fold shows, before the first entry that it stands for."""
    for fold in builder.inputs.foldings:
        part = _next_prompt(builder, fold) if fold.merged else None
        if part is not None:
            text = "\n\n".join(text for _, text in fold.shown)
            yield part, Replace(0, f"{text}\n\n", part.chars, "summary", _sources(fold))
            continue
        for kind, text in fold.shown:
            place = cast("InsertKind", kind)
            yield Insert(fold.spans[0].first, place, text, "summary", sources=_sources(fold))


def _sources(fold: Folding) -> tuple[PartRef, ...]:
    return (PartRef(fold.seq, 0),)


def _next_prompt(builder: PlanBuilder, fold: Folding) -> Part | None:
    """The first prompt after the fold that may be edited; the latest one is sent as it was said."""
    inputs = builder.inputs
    for at in range(inputs.at(fold.spans[0].first), len(inputs.rows)):
        if at == inputs.prompt:
            return None
        for part in inputs.rows[at].parts:
            if part.kind == "prompt" and part.chars and builder.free(part):
                return part
    return None


# Pinned parts whose place is folded, quoted where they stood.


def pins(builder: PlanBuilder) -> Iterator[Insert]:
    """A quotation for each; pinned parts that are still shown simply stay."""
    for quote in builder.inputs.pinned:
        yield Insert(
            quote.seq + 1, "prompt", f"[Pinned]\n{quote.text}", "pinned", sources=quote.sources
        )


# Delegated work, told to the reader who delegated it.


def scope(builder: PlanBuilder, first: int = 0) -> Iterator[Insert]:
    """A text for each result and message of a delegation, from the `first` quote on."""
    for quote in builder.inputs.quotes[first:]:
        if quote.seq <= builder.untold:
            continue
        place = builder.inputs.after_response(quote.seq)
        yield Insert(place, "prompt", quote.text, "delegated", sources=quote.sources)
