"""Reading what a reference stands for: an archived result, clipped arguments, an artifact."""

import re
from dataclasses import dataclass

from refold.errors import InvalidInput
from refold.log import Artifact, Log, PartRef, Span
from refold.recall.reader import Reader, outline_of
from refold.recall.telling import label, shapes_of, wire_of
from refold.recall.unfold import PAGE

_PART = re.compile(r"(?:\bpart |^\s*)(\d{1,10})\.(\d{1,6})\b")


@dataclass(frozen=True, slots=True)
class Text:
    """As much of a text as was asked for."""

    name: str
    """What it is: "return read_file", a media type."""
    text: str
    start: int
    chars: int
    """How many characters the whole has."""

    @property
    def next(self) -> int | None:
        """The character to go on with; None at the end."""
        end = self.start + len(self.text)
        return end if end < self.chars else None


def part_ref(reference: str) -> PartRef:
    """The part that a reference names: `[…archived: 9000 chars, part 12.0]`, or `12.0`."""
    found = _PART.search(reference)
    if found is None:
        raise InvalidInput("That names no part.", "Give it as in the reference, such as 12.0.")
    return PartRef(int(found[1]), int(found[2]))


async def read_part(  # noqa: PLR0913 - a place, and how much of it for whom
    log: Log,
    session: str,
    part: PartRef,
    *,
    chars: int = PAGE,
    start: int = 0,
    reader: Reader | None = None,
) -> Text:
    """The text of a part as it was before a view archived or clipped it."""
    reader = reader or Reader()
    wire = wire_of((await log.info(session)).format)
    found = await log.read(session, Span(part.seq, part.seq)) if part.seq > 0 else []
    for entry in found:
        if not reader.may_see(entry.kind, entry.scope) or entry.forgotten:
            break
        if not reader.off_line and not await _on_line(log, session, entry.seq):
            break
        shapes = shapes_of(wire, entry)[1]
        if part.index < len(shapes):
            shape = shapes[part.index]
            return _cut(label(shape), shape.text, start, chars)
    raise InvalidInput(
        f"There is no part {part.seq}.{part.index} to be read.",
        "Give it as in the reference, such as 12.0.",
    )


async def read_artifact(log: Log, hash: str, *, chars: int = PAGE, start: int = 0) -> Text:  # noqa: A002 - the glossary's word
    """The text of an artifact; for one that is no text, what it is."""
    artifact = await log.artifact(hash)
    return _cut(artifact.media_type, _text(artifact), start, chars)


def _text(artifact: Artifact) -> str:
    try:
        return artifact.data.decode()
    except UnicodeDecodeError:
        return f"({artifact.media_type}, {len(artifact.data):,} bytes)"


def _cut(name: str, text: str, start: int, chars: int) -> Text:
    if start < 0 or chars < 1:
        raise InvalidInput(f"No {chars} characters begin at {start}.")
    return Text(name, text[start : start + chars], start, len(text))


async def _on_line(log: Log, session: str, seq: int) -> bool:
    _, line = await outline_of(log, session)
    return any(seq in span for span in line)
