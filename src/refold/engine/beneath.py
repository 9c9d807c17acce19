"""What lies beneath a fold that is being made, and whether it is still all there."""

from collections.abc import Iterable
from typing import NamedTuple

from refold.fold.job import Job
from refold.fold.material import needed
from refold.log import Log, Span
from refold.log.span import intersect, subtract


class Beneath(NamedTuple):
    """What a fold is made of, as it was before anybody read it."""

    spans: tuple[Span, ...] = ()
    forgotten: frozenset[int] = frozenset()
    """Which of these entries are tombstones already."""
    start: int | None = None
    """The entry that says that the fold was begun; None when it is not running."""


async def look_beneath(log: Log, job: Job) -> Beneath:
    """What lies beneath the job's fold now.

    A fold beneath it is forgotten as soon as anything beneath that is.
    """
    outline = (await log.visible(job.session, last=0)).outline
    spans = needed(job.spans, outline)
    start = next((one.seq for one in outline.running if one.fold == job.fold), None)
    return Beneath(spans, await forgotten_of(log, job.session, spans), start)


async def forgotten_of(log: Log, session: str, spans: Iterable[Span]) -> frozenset[int]:
    """The tombstones in these spans."""
    found = [await log.read(session, span, whole=False) for span in spans]
    return frozenset(one.seq for entries in found for one in entries if one.forgotten)


async def forgotten_since(log: Log, job: Job, beneath: Beneath) -> bool:
    """Whether more of it is forgotten than there was.

    The start goes when any of the fold's spans does. So it tells for them, and a long span is not
    read again for each step.
    """
    told: tuple[Span, ...] = ()
    if beneath.start is not None:
        start = Span(beneath.start, beneath.start)
        for entry in await log.read(job.session, start, whole=False):
            if entry.forgotten:
                return True
            told = entry.rests_on
    untold = subtract(beneath.spans, told)
    before = frozenset(seq for seq in beneath.forgotten if intersect([Span(seq, seq)], untold))
    return await forgotten_of(log, job.session, untold) != before
