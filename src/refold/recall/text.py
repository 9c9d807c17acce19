"""Messages as text for people and models, who may see them, and past requests rebuilt."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from refold.errors import InvalidInput, InvalidMessage, UnknownFormat, Unrebuildable
from refold.log import CODEC, MAIN_SCOPE, Entry, Log, Message, Note, Outline, Requested, Span
from refold.log.text import text_of
from refold.view import Plan, Previous, hashes_of, planned
from refold.view import framing as frames
from refold.view.framing import tool_name
from refold.view.record import SentMessage, rebuild_with_sources
from refold.view.view_input import visibility
from refold.wire import Shape, Wire, wire_for

FORGOTTEN = "(forgotten)"
MARK = "> "


@dataclass(frozen=True, slots=True)
class EntryText:
    """One message or note as text."""

    seq: int
    at: int
    """When it was written: milliseconds since 1970, UTC."""
    scope: str
    role: str
    """The speaker: system, user, assistant or tool; or a note."""
    text: str
    parts: tuple[str, ...] = ()
    """Its parts: "prompt", "call read_file", and so on."""


def wire_of(form: str) -> Wire | None:
    try:
        return wire_for(form)
    except UnknownFormat:
        return None


def shapes_of(wire: Wire | None, entry: Entry) -> tuple[str, tuple[Shape, ...]]:
    """The speaker of a message, and its parts; one text part if its format is unknown."""
    if wire is not None and entry.kind != Note.KIND:
        with suppress(InvalidMessage):  # the log keeps what a wire cannot read
            role, shapes, _ = wire.describe(entry.body)
            # Some formats send tool results as the user's messages.
            only_returns = bool(shapes) and all(shape.kind == "return" for shape in shapes)
            return "tool" if only_returns else role, shapes
    return entry.kind, (Shape("text", text_of(entry)),)


def entry_text(wire: Wire | None, entry: Entry) -> EntryText:
    """A whole message or note as text."""
    place = entry.seq, entry.at, entry.scope
    if entry.forgotten:
        return EntryText(*place, entry.kind, FORGOTTEN)
    role, shapes = shapes_of(wire, entry)
    text = "\n\n".join(block for shape in shapes for block in _blocks(shape))
    return EntryText(*place, role, text, tuple(map(label, shapes)))


def label(shape: Shape) -> str:
    return f"{shape.kind} {tool_name(shape.tool)}" if shape.tool else shape.kind


def _blocks(shape: Shape) -> Iterator[str]:
    if shape.kind in ("call", "return", "thought"):
        yield f"[{label(shape)}]\n{shape.text}"
    elif shape.text:
        yield shape.text
    for media in shape.media:
        yield f"[{media}]"


def quoted(text: str) -> str:
    """Mark each line, so that a quote for a model cannot pass for anything else."""
    return frames.quoted(text, MARK)


def framed(opening: str, text: str, closing: str = "") -> str:
    """A quote between the tool's own words."""
    return "\n".join(part for part in (opening, quoted(text), closing) if part)


def fitting(blocks: Iterable[str], room: int) -> list[str]:
    """As many of the blocks as fit when quoted, one below the other."""
    chosen: list[str] = []
    for block in blocks:
        room -= len(quoted(block)) + 1
        if room < 0:
            break
        chosen.append(block)
    return chosen


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: by default a person, who may see everything in the log."""

    scope: str | None = None
    """A model's scope: it sees its own work, that of its callers and of those it called."""
    off_line: bool = True
    """Whether it sees what was rewound or cleared."""
    notes: bool = True
    """Whether it sees notes, which no model does."""

    @classmethod
    def model(cls, scope: str = MAIN_SCOPE) -> "Reader":
        """A model, which does not see what was cleared."""
        return cls(scope, off_line=False, notes=False)

    def may_see(self, kind: str, scope: str) -> bool:
        return (kind == Message.KIND or (kind == Note.KIND and self.notes)) and (
            self.scope is None or visibility(scope, self.scope) != "none"
        )


async def outline_of(log: Log, session: str) -> tuple[Outline, tuple[Span, ...]]:
    """The session's outline, and the spans on its line."""
    visible = await log.visible(session, last=0)
    return visible.outline, visible.outline.on_line(visible.info.entries)


async def whole(log: Log, session: str, entry: Entry) -> Entry:
    """The entry with its large bodies."""
    if not entry.holes:
        return entry
    [entry] = await log.read(session, Span(entry.seq, entry.seq))
    return entry


async def last_record(log: Log, session: str, seq: int | None) -> Previous | None:
    """The request record at this seq with its plan, which the next request continues."""
    if seq is None:
        return None
    try:
        chain = await _chain(log, session, seq)
        plan = planned(chain, await _texts(log, chain))
    except Unrebuildable:  # the next request then starts over
        return None
    return Previous(seq, chain[-1].chain, plan)


async def plan_of(log: Log, session: str, seq: int) -> Plan:
    chain = await _chain(log, session, seq)
    return planned(chain, await _texts(log, chain))


async def model_of(log: Log, session: str, seq: int) -> str:
    return (await _record(log, session, seq)).model


async def rebuilt(log: Log, session: str, seq: int) -> tuple[bytes, ...]:
    """The messages of a past request, rebuilt from the log byte for byte.

    Raises Unrebuildable if something that they were made of is gone.
    """
    return tuple(sent.payload for sent in await rebuilt_with_sources(log, session, seq))


async def rebuilt_with_sources(log: Log, session: str, seq: int) -> tuple[SentMessage, ...]:
    """The same, each message with the entry that it is of."""
    chain = await _chain(log, session, seq)
    entries: list[Entry] = []
    for span in chain[-1].spans:
        entries += await log.read(session, span)
    return rebuild_with_sources(chain, entries, await _texts(log, chain))


async def _chain(log: Log, session: str, seq: int) -> list[Requested]:
    """The record, after those that it is a difference to."""
    last = await _record(log, session, seq)
    return [*[await _record(log, session, base) for base in last.chain], last]


async def _record(log: Log, session: str, seq: int) -> Requested:
    entries = await log.read(session, Span(seq, seq)) if seq > 0 else []
    for entry in entries:
        match CODEC.decode(entry):
            case Requested() as value:
                return value
            case _ if entry.forgotten and entry.kind == Requested.KIND:
                raise Unrebuildable("What was sent then has been forgotten.")
            case _:
                pass
    raise InvalidInput(f"Entry {seq} is not a request record.", "`refold explain` lists them.")


async def _texts(log: Log, chain: list[Requested]) -> dict[str, str]:
    return {name: (await log.artifact(name)).data.decode() for name in hashes_of(chain)}
