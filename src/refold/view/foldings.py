"""The folds that stand on a sheet, as their summaries have them shown."""

from collections.abc import Iterable
from typing import NamedTuple

from pydantic import JsonValue

from refold.log import CODEC, FoldCompleted, Folded, Visible
from refold.log.span import Span


class Folding(NamedTuple):
    """A fold that stands on the sheet: its entry, what it stands for, and what it shows."""

    seq: int
    spans: tuple[Span, ...]
    shown: tuple[tuple[str, str], ...] = ()
    """The kind and text of each message in its place."""
    merged: bool = False
    """Whether its text stands in front of the next prompt instead."""
    tokens: int = 0
    """What it stands for would cost in a request."""


def foldings(visible: Visible) -> Iterable[Folding]:
    """The folds that stand in a session, oldest first."""
    entries = {entry.seq: entry for entry in visible.entries}
    for fold in visible.outline.folds:
        if fold.seq in entries:
            match CODEC.decode(entries[fold.seq]):
                case FoldCompleted(summary=summary):
                    yield _folding(fold, summary)
                case _:
                    yield Folding(fold.seq, fold.spans)


def _folding(fold: Folded, summary: JsonValue) -> Folding:
    match summary:
        case {"shown": list(shown)}:
            told = (_told(one) for one in shown)
            merged = summary.get("placement") == "merge"
            tokens = summary.get("tokens", 0)
            size = tokens if isinstance(tokens, int) else 0
            return Folding(fold.seq, fold.spans, tuple(filter(None, told)), merged, size)
        case str(text) | {"text": str(text)}:
            count = sum(len(span) for span in fold.spans)
            marked = f"[Summary of {count} earlier messages]\n{text}"
            return Folding(fold.seq, fold.spans, (("prompt", marked),))
        case _:
            return Folding(fold.seq, fold.spans)


def _told(shown: JsonValue) -> tuple[str, str] | None:
    match shown:
        case {"kind": "prompt" | "reply" as kind, "text": str(text)}:
            return kind, text
        case _:
            return None
