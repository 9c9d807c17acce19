"""The parts of the view, to be picked and opened."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from refold.cli.chat.commands.saying import clean, counted, share, shortened, words
from refold.cli.chat.commands.seeing import Seen
from refold.cli.chat.surface import Row
from refold.log import PartRef
from refold.view.explained import Told, sentence
from refold.wire import Replace, Shape

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
    sheet = found.sheet
    row = next((row for row in reversed(sheet.rows) if row.instructions), None)
    if row is not None:
        text = sheet.wire.describe(row.payload).instructions or ""
        yield Shown("system instructions", 0, row.instructions, "sent with each request", text)


def _said(found: Seen) -> Iterator[Shown]:
    sheet = found.sheet
    for line in found.explanation.lines:
        sent = [part for part in line.parts if part.after]
        if sent:
            shapes = sheet.wire.describe(sheet.rows[sheet.at(line.seq)].payload).shapes
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
