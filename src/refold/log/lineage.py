"""Whose entries a session reads: a fork copies nothing, it points.

A session that was forked reads its first entries from other sessions, one segment each, and the
rest from itself. Segments are flat: a fork of a fork points straight at the sessions that hold the
entries, so reading through forty forks costs what reading one does. To keep the list short, a fork
that would point at more than `MOST_SEGMENTS` copies the cheapest neighbours into itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from refold.log.span import Span

MOST_SEGMENTS = 32


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of entries and the session that holds them, by the key its store knows it under."""

    source: int
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Fork:
    """What a new fork points at, and what it must first copy into itself."""

    segments: tuple[Segment, ...]
    copies: tuple[Segment, ...] = ()


def within(segments: Sequence[Segment], span: Span) -> tuple[Segment, ...]:
    """The pieces of the segments that lie in the span."""
    return tuple(
        Segment(segment.source, max(segment.first, span.first), min(segment.last, span.last))
        for segment in segments
        if segment.first <= span.last and span.first <= segment.last
    )


def plan_fork(segments: Sequence[Segment], at: int, child: int) -> Fork:
    """How a new session `child` reads the first `at` entries of a session with these segments."""
    kept = list(within(segments, Span(1, at)))
    copies: list[Segment] = []
    while len(kept) > MOST_SEGMENTS:
        at_pair = min(
            range(len(kept) - 1), key=lambda i: _cost(kept[i], child) + _cost(kept[i + 1], child)
        )
        pair = kept[at_pair : at_pair + 2]
        copies += [segment for segment in pair if segment.source != child]
        kept[at_pair : at_pair + 2] = [replace(pair[0], source=child, last=pair[1].last)]
    return Fork(tuple(kept), tuple(copies))


def _cost(segment: Segment, child: int) -> int:
    return 0 if segment.source == child else len(segment)
