"""Messages as text for people and models to read, whatever their format."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from refold.errors import InvalidInput, InvalidMessage, UnknownFormat, Unrebuildable
from refold.log import CODEC, MAIN_SCOPE, Entry, Log, Message, Note, Outline, Requested, Span
from refold.log.text import text_of
from refold.view import Plan, Previous, hashes_of, planned, rebuild
from refold.view import framing as frames
from refold.view.framing import tool_name
from refold.view.view_input import seen
from refold.wire import Described, Shape, Wire, wire_for

FORGOTTEN = "(forgotten)"


@dataclass(frozen=True, slots=True)
class EntryText:
    """One message or note as text."""

    seq: int
    at: int
    """When it was written: milliseconds since 1970, UTC."""
    scope: str
    role: str
    """Who speaks: system, user, assistant or tool; or a note."""
    text: str
    parts: tuple[str, ...] = ()
    """What it is made of: "prompt", "call read_file", and so on."""


def wire_of(form: str) -> Wire | None:
    """The wire of a format, if there is one."""
    try:
        return wire_for(form)
    except UnknownFormat:
        return None


def shapes_of(wire: Wire | None, entry: Entry) -> tuple[str, tuple[Shape, ...]]:
    """Whom a message speaks for, and its parts; one part of text where its format is unknown."""
    if wire is not None and entry.kind != Note.KIND:
        try:
            described = wire.describe(entry.body)
        except InvalidMessage:  # the log keeps what a wire cannot read
            pass
        else:
            return _speaker(described), described.shapes
    return entry.kind, (Shape("text", text_of(entry)),)


def _speaker(described: Described) -> str:
    """Whom it speaks for; some formats send what tools returned in the user's name."""
    shapes = described.shapes
    only_returns = bool(shapes) and all(shape.kind == "return" for shape in shapes)
    return "tool" if only_returns else described.role


def entry_text(wire: Wire | None, entry: Entry) -> EntryText:
    """A whole message or note as text."""
    place = entry.seq, entry.at, entry.scope
    if entry.forgotten:
        return EntryText(*place, entry.kind, FORGOTTEN)
    role, shapes = shapes_of(wire, entry)
    text = "\n\n".join(block for shape in shapes for block in _blocks(shape))
    return EntryText(*place, role, text, tuple(map(label, shapes)))


def label(shape: Shape) -> str:
    """What a part is."""
    return f"{shape.kind} {tool_name(shape.tool)}" if shape.tool else shape.kind


def _blocks(shape: Shape) -> Iterator[str]:
    if shape.kind in ("call", "return", "thought"):
        yield f"[{label(shape)}]\n{shape.text}"
    elif shape.text:
        yield shape.text
    for media in shape.media:
        yield f"[{media}]"


# Quoting for a model: each line marked, so that what is quoted cannot pass for anything else.

MARK = "> "


def quoted(text: str) -> str:
    """The text with a mark before each of its lines."""
    return frames.quoted(text, MARK)


def framed(opening: str, text: str, closing: str = "") -> str:
    """A quotation with what the tool itself says before and after it."""
    return "\n".join(part for part in (opening, quoted(text), closing) if part)


def fitting(blocks: Iterable[str], room: int) -> list[str]:
    """As many of the blocks as have room when quoted, one below the other."""
    kept: list[str] = []
    for block in blocks:
        room -= len(quoted(block)) + 1
        if room < 0:
            break
        kept.append(block)
    return kept


# Who reads, and so what may be shown of a session.


@dataclass(frozen=True, slots=True)
class Reader:
    """Whose eyes to read with: by default a person's, who may see all that the log keeps."""

    scope: str | None = None
    """A model's scope: it sees its own work, its callers' and that of those it called."""
    off_line: bool = True
    """Whether it sees what was rewound or cleared."""
    notes: bool = True
    """Whether it sees notes, which no model does."""

    @classmethod
    def model(cls, scope: str = MAIN_SCOPE) -> "Reader":
        """A model, which has forgotten what was cleared."""
        return cls(scope, off_line=False, notes=False)

    def may_see(self, kind: str, scope: str) -> bool:
        """Whether entries of this kind and scope are for this reader."""
        return (kind == Message.KIND or (kind == Note.KIND and self.notes)) and (
            self.scope is None or seen(scope, self.scope) != "none"
        )


async def outline_of(log: Log, session: str) -> tuple[Outline, tuple[Span, ...]]:
    """The session's outline, and what is on its line."""
    visible = await log.visible(session, last=0)
    return visible.outline, visible.outline.on_line(visible.info.entries)


async def whole(log: Log, session: str, entry: Entry) -> Entry:
    """The entry with its large bodies put back."""
    if not entry.holes:
        return entry
    [entry] = await log.read(session, Span(entry.seq, entry.seq))
    return entry


# Request records, read back from the log.


async def last_record(log: Log, session: str, seq: int | None) -> Previous | None:
    """The record at this seq with its plan, for the next request to go on from."""
    if seq is None:
        return None
    try:
        chain = await _chain(log, session, seq)
        plan = planned(chain, await _texts(log, chain))
    except Unrebuildable:  # then the next request begins anew
        return None
    return Previous(seq, chain[-1].chain, plan)


async def plan_of(log: Log, session: str, seq: int) -> Plan:
    """The plan of a past request."""
    chain = await _chain(log, session, seq)
    return planned(chain, await _texts(log, chain))


async def model_of(log: Log, session: str, seq: int) -> str:
    """The model that a past request was for."""
    return (await _record(log, session, seq)).model


async def rebuilt(log: Log, session: str, seq: int) -> tuple[bytes, ...]:
    """The messages of a past request, byte for byte, made again from the log.

    Raises Unrebuildable when something they were made of is gone.
    """
    chain = await _chain(log, session, seq)
    entries: list[Entry] = []
    for span in chain[-1].spans:
        entries += await log.read(session, span)
    return rebuild(chain, entries, await _texts(log, chain))


async def _chain(log: Log, session: str, seq: int) -> list[Requested]:
    """The record, after those it is a difference to."""
    last = await _record(log, session, seq)
    return [*[await _record(log, session, at) for at in last.chain], last]


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
    raise InvalidInput(f"Entry {seq} is no request record.", "`refold explain` lists them.")


async def _texts(log: Log, chain: list[Requested]) -> dict[str, str]:
    return {name: (await log.artifact(name)).data.decode() for name in hashes_of(chain)}
