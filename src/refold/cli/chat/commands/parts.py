"""The parts of the view, to be picked and opened."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from refold.cli.chat.commands.output import Talk, clean, counted, share, shortened, words
from refold.cli.chat.surface import Row
from refold.fold.trigger import while_folding
from refold.log import Entry, Log, PartRef, SessionInfo, Visible
from refold.log.entry import spans_of, subtract, up_to
from refold.models.experience import Setup
from refold.recall.text import last_record
from refold.view import Explanation, Plan, Profile, ViewInput, explain, project
from refold.view.explanation import Told, sentence
from refold.view.view import assemble
from refold.wire import Described, Replace, Shape, wire_for

# What the model would be sent now, read for people; nothing is sent, folded or written.


@dataclass(frozen=True)
class Seen:
    """A session as its next request would show it."""

    info: SessionInfo
    setup: Setup
    inputs: ViewInput
    plan: Plan
    entries: tuple[Entry, ...]
    """Those that were read for it."""

    @cached_property
    def explanation(self) -> Explanation:
        """What becomes of each part, and why."""
        return explain(
            self.inputs,
            self.plan,
            self.setup.budget,
            info=self.info,
            model=self.setup.model,
            entries=self.entries,
        )

    @cached_property
    def messages(self) -> Sequence[Described]:
        """The messages that would be sent, as parts."""
        made = assemble(self.inputs.wire, self.inputs.rows, self.plan.layout, {})
        return [self.inputs.wire.describe(payload) for payload in made]


async def seen(talk: Talk, *, every: bool = False) -> Seen | None:
    """What the next request would show; None before anything was said.

    With `every`, also what the view does not need is read, to be told of.
    """
    session = await talk.session()
    if session is None:
        return None
    log, name, setup = talk.log, session.name, session.setup
    visible = await log.visible(name, last=setup.profile.window.read or None)
    before = await last_record(log, name, visible.outline.record)
    wire = wire_for(visible.info.format)
    apart = setup.profile.delegates == "apart"
    inputs = ViewInput.of(visible, wire, setup.counter, apart=apart)
    values = _followed(setup.profile)
    plan = project(inputs, values, setup.budget, before and before.plan)
    others = await _others(log, visible) if every else []
    return Seen(visible.info, setup, inputs, plan, (*visible.entries, *others))


def _followed(values: Profile) -> Profile:
    """The values by which a session is planned that can fold."""
    folds = values.summarizer or values.fold.writer == "model" or values.fold.breadcrumb
    return while_folding(values) if folds else values


async def _others(log: Log, visible: Visible) -> list[Entry]:
    known = spans_of(entry.seq for entry in visible.entries)
    missing = subtract(up_to(visible.info.entries), known)
    return [entry for span in missing for entry in await log.read(visible.info.session, span)]


PREVIEW: Final = 2_000
"""Characters of a part that are shown beside a list."""
_WORDS: Final = 60
_WHO: Final = {
    "system": "system",
    "prompt": "you",
    "text": "answer",
    "thought": "thought",
    "call": "call",
    "return": "result",
}


class Shown(NamedTuple):
    """A part that the model is sent."""

    who: str
    seq: int
    """The entry it comes from, or stands in front of."""
    tokens: int
    why: str
    text: str
    """What is sent of it."""
    ref: PartRef | None = None
    """Its name; None where it is not in the log."""
    chars: int = 0
    """How many characters it has in the log."""

    @property
    def where(self) -> str:
        """Its place, for people."""
        return f"entry {self.seq}" if self.ref else "not in the log"

    def row(self, whole: int) -> Row:
        """It, to be picked."""
        of = f"{counted(self.tokens, 'token')}, {share(self.tokens, whole)}"
        told = clean(shortened(self.text, PREVIEW))
        return Row(f"{self.who}: {words(self.text, _WORDS)}", f"{self.where} · {of}", told)


def parts_shown(found: Seen) -> list[Shown]:
    """What the next request would send, in order."""
    told = [*_instructions(found), *_said(found), *_added(found)]
    return sorted(told, key=lambda one: (one.seq, one.ref is not None))


def _instructions(found: Seen) -> Iterator[Shown]:
    inputs = found.inputs
    row = next((row for row in reversed(inputs.rows) if row.instructions), None)
    if row is not None:
        text = inputs.wire.describe(row.payload).instructions or ""
        yield Shown("system instructions", 0, row.instructions, "sent with each request", text)


def _said(found: Seen) -> Iterator[Shown]:
    inputs = found.inputs
    for line in found.explanation.lines:
        sent = [part for part in line.parts if part.after]
        if sent:
            shapes = inputs.wire.describe(inputs.rows[inputs.at(line.seq)].payload).shapes
            yield from (_part(found, part, shapes[part.ref.index]) for part in sent)


def _part(found: Seen, part: Told, shape: Shape) -> Shown:
    change = found.plan.layout.changes.get(part.ref)
    text = shape.text
    if isinstance(change, Replace):
        text = change.text if part.kind == "call" else change.applied(text)
    who = _WHO.get(part.kind, "other") + (f" {words(part.tool, 30)}" if part.tool else "")
    why = part.disposition.sentence
    return Shown(who, part.ref.seq, part.after, why, text, part.ref, len(shape.text))


def _added(found: Seen) -> Iterator[Shown]:
    told = found.explanation.inserts
    for one, insert in zip(told, found.plan.layout.inserts, strict=True):
        who = "fold" if one.reason == "summary" else "added"
        why = sentence(one.reason, added=True)
        yield Shown(who, one.before, one.tokens, why, insert.text)
