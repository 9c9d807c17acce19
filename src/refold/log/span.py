"""Where things are in a session: one part, a run of entries, a set of runs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from refold.errors import InvalidInput


@dataclass(frozen=True, slots=True, order=True)
class PartRef:
    """One part of one entry: its seq, and its index among the entry's parts."""

    seq: int
    index: int

    def __post_init__(self) -> None:
        if self.seq < 1 or self.index < 0:
            raise InvalidInput(f"No part is at seq {self.seq}, index {self.index}.")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A run of entries, both ends included; seqs count from 1."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last:
            raise InvalidInput(f"No span runs from {self.first} to {self.last}.")

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __contains__(self, seq: int) -> bool:
        return self.first <= seq <= self.last


def up_to(last: int) -> tuple[Span, ...]:
    """The span from the first entry to `last`, or nothing when `last` is 0."""
    return (Span(1, last),) if last else ()


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same entries in as few spans as possible, in order."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.first <= merged[-1].last + 1:
            merged[-1] = Span(merged[-1].first, max(merged[-1].last, span.last))
        else:
            merged.append(span)
    return tuple(merged)


def intersect(left: Iterable[Span], right: Iterable[Span]) -> tuple[Span, ...]:
    """The entries that are in both sets."""
    others = tuple(right)
    return union(
        Span(max(a.first, b.first), min(a.last, b.last))
        for a in left
        for b in others
        if a.first <= b.last and b.first <= a.last
    )


def subtract(spans: Iterable[Span], gone: Iterable[Span]) -> tuple[Span, ...]:
    """The entries of `spans` that are not in `gone`."""
    holes = union(gone)
    return tuple(piece for span in union(spans) for piece in _outside(span, holes))


def seqs(spans: Iterable[Span]) -> Iterator[int]:
    """Each seq of the spans, in their order."""
    for span in spans:
        yield from range(span.first, span.last + 1)


def spans_of(numbers: Iterable[int]) -> tuple[Span, ...]:
    """The seqs as spans."""
    found: list[Span] = []
    for number in sorted(numbers):
        if found and number <= found[-1].last + 1:
            found[-1] = Span(found[-1].first, number)
        else:
            found.append(Span(number, number))
    return tuple(found)


def newest(spans: Iterable[Span], count: int) -> tuple[Span, ...]:
    """The last `count` entries of the spans."""
    kept: list[Span] = []
    for span in sorted(spans, reverse=True):
        if count <= 0:
            break
        first = max(span.first, span.last - count + 1)
        kept.append(Span(first, span.last))
        count -= span.last - first + 1
    return tuple(reversed(kept))


def _outside(span: Span, holes: tuple[Span, ...]) -> Iterator[Span]:
    start = span.first
    for hole in holes:
        if hole.last < start:
            continue
        if hole.first > span.last:
            break
        if hole.first > start:
            yield Span(start, hole.first - 1)
        start = hole.last + 1
    if start <= span.last:
        yield Span(start, span.last)
