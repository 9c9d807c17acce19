"""Sessions that are folded: step by step in memory, or through a store as an engine does it."""

import json
from typing import Any
from uuid import UUID, uuid4

from sessions import Quarter, Session

from refold.engine import LocalSteps
from refold.fold.compactor import Compactor, context
from refold.fold.extractive import extractive_summary
from refold.fold.job import Job
from refold.fold.material import Boundary, boundary, gather, needed
from refold.fold.replace import render_summary
from refold.log import Author, FoldCompleted, FoldStarted, Message, Opened
from refold.stores import MemoryStore
from refold.testing.wire import SPELLINGS
from refold.view.profiles import BALANCED, Fold, Keep
from refold.view.view_input import ViewInput
from refold.wire import wire_for

TIGHT = Fold(keep=Keep(head="first run", unit="messages", amount=2), max_tokens=2_000)
"""Folds nearly everything, in sessions of a few messages."""


def spelled(format, *said):  # noqa: A002 - the glossary's word
    """What is said, as payloads."""
    native = (message for one in said for message in SPELLINGS[format].spell(one))
    return [json.dumps(message, ensure_ascii=False).encode() for message in native]


def session_of(*said, format="pydantic-ai"):  # noqa: A002 - as above
    """A session in which this is said."""
    session = Session(format)
    for payload in spelled(format, *said):
        session.add(Message(payload))
    return session


def sheet_of(session, wire=None):
    """Its view input."""
    return ViewInput.of(session.visible(), wire or wire_for(session.format), Quarter())


def material_of(session, spans, wire=None):
    """What a fold over the spans is made of."""
    outline = session.outline()
    read = needed(spans, outline)
    entries = [one for one in session.entries if any(one.seq in span for span in read)]
    return gather(entries, spans, outline, wire or wire_for(session.format))


def fold(session, values=TIGHT, *, spans=None, wire=None, **how) -> tuple[Boundary, Any]:
    """Fold it, if there is something to fold; the boundary and the summary."""
    where = boundary(sheet_of(session, wire), values.keep)
    spans = spans or where.spans
    if not spans:
        return where, None
    material = material_of(session, spans, wire)
    summary = render_summary(extractive_summary(material), values, Quarter(), **how)
    name = UUID(int=session.head + 1_000)
    session.add(FoldStarted(name, spans, "test"))
    session.add(FoldCompleted(name, spans, summary.as_json()))
    return where, summary


class Kept:
    """A session in a store, folded as a profile folds it."""

    def __init__(self, values=TIGHT, format="pydantic-ai"):  # noqa: A002 - as above
        self.values = values
        self.format = format
        self.log = MemoryStore().log()
        self.author = Author()

    @classmethod
    async def of(cls, *said, **how):
        kept = cls(**how)
        await kept.append(Opened(kept.format, BALANCED.name))
        await kept.say(*said)
        return kept

    async def append(self, *values):
        drafts = [self.author.draft(one) for one in values]
        first = values[0].KIND == Opened.KIND
        return await self.log.append("s", drafts, expected=0 if first else None)

    async def say(self, *said):
        if said:
            await self.append(*map(Message, spelled(self.format, *said)))

    async def visible(self):
        return await self.log.visible("s")

    async def outline(self):
        return (await self.visible()).outline

    async def inputs(self):
        return ViewInput.of(await self.visible(), wire_for(self.format), Quarter())

    async def seen(self):
        """The entries whose messages the view shows."""
        return [row.seq for row in (await self.inputs()).rows]

    async def fold(self, *, spans=None, trigger="soft", host=None, meanwhile=None):
        """Fold what the profile would; the fold. `meanwhile` is done before it is completed."""
        where = boundary(await self.inputs(), self.values.keep)
        spans, name = spans or where.spans, uuid4()
        given = context(self.values, host or {}, where.whole)
        job = Job("s", name, spans, trigger, context=given)
        await self.append(job.started())
        summary = await Compactor(self.log, Quarter())(job, LocalSteps())
        if meanwhile is not None:
            await meanwhile()
        await self.append(FoldCompleted(name, spans, summary))
        return name
