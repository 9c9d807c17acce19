"""What lies beneath a fold that is being made, and whether it is still all there."""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from refold.fold.job import Job
from refold.fold.material import needed
from refold.log import Entry, Log, Outline, Outlined, Running, Span
from refold.log.span import intersect, subtract


class Beneath(NamedTuple):
    """What a fold is made of, as it was before anybody read it."""

    spans: tuple[Span, ...] = ()
    forgotten: frozenset[int] = frozenset()
    """Which of these entries are tombstones already, where the start does not tell for them."""
    start: int | None = None
    """The entry that says that the fold was begun; None when it is not running."""
    head: int | None = None
    """The newest entry then."""
    revision: int | None = None
    """The session's revision before anything else was read of it: see `Outlined`."""


class Glance(NamedTuple):
    """How a session and one of its folds stand."""

    outlined: Outlined
    start: Entry | None
    """The entry that says that the fold was begun; None when it is not running."""

    @property
    def outline(self) -> Outline:
        """The session's outline."""
        return self.outlined.outline

    @property
    def head(self) -> int:
        """The newest entry."""
        return self.outlined.info.entries


async def glance(log: Log, session: str, fold: UUID) -> Glance:
    """Look at a fold."""
    outlined = await log.outlined(session)
    one = running_of(outlined, fold)
    return Glance(outlined, None if one is None else await _start(log, session, one))


def running_of(outlined: Outlined, fold: UUID) -> Running | None:
    """Where the fold was begun; None when it is not running."""
    return next((one for one in outlined.outline.running if one.fold == fold), None)


async def _start(log: Log, session: str, one: Running) -> Entry:
    (start,) = await log.read(session, Span(one.seq, one.seq))
    return start


async def look_beneath(log: Log, job: Job, seen: Glance | None = None) -> Beneath:
    """What lies beneath the job's fold now, or as it was seen.

    A fold beneath it is forgotten as soon as anything beneath that is.
    """
    seen = seen or await glance(log, job.session, job.fold)
    spans = needed(job.spans, seen.outline)
    start = seen.start
    untold = spans if start is None else subtract(spans, start.rests_on)
    forgotten = await _forgotten_of(log, job.session, untold)
    begun = None if start is None else start.seq
    return Beneath(spans, forgotten, begun, seen.head, seen.outlined.revision)


async def _forgotten_of(log: Log, session: str, spans: Iterable[Span]) -> frozenset[int]:
    """The tombstones in these spans."""
    found = [await log.read(session, span, whole=False) for span in spans]
    return frozenset(one.seq for entries in found for one in entries if one.forgotten)


async def forgotten_since(
    log: Log, job: Job, beneath: Beneath, revision: int | None = None
) -> bool:
    """Whether more of it is forgotten than there was; `revision` as it is now, if known.

    Nothing is, where the revision is what it was. Else the start tells, which goes when anything
    does that it rests on: a long span is not read again for each step.
    """
    if revision is not None and revision == beneath.revision:
        return False
    told: tuple[Span, ...] = ()
    if beneath.start is not None:
        start = await _start(log, job.session, Running(beneath.start, job.fold))
        if start.forgotten:
            return True
        told = start.rests_on
    untold = subtract(beneath.spans, told)
    before = frozenset(seq for seq in beneath.forgotten if intersect([Span(seq, seq)], untold))
    return await _forgotten_of(log, job.session, untold) != before
