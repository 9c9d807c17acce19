"""Recorded sessions: what an importer reads and a replay plays."""

import codecs
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import JsonValue, TypeAdapter
from pydantic_core import from_json

from refold.lab import messages as make
from refold.lab.messages import Json
from refold.log import Author, Draft, Log, Message, Opened, wall_clock

FORMAT = "pydantic-ai"
"""The format of a recording's messages."""

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Usage:
    """What a provider said a request used, in tokens, and what it cost in dollars."""

    input: int
    """All that was sent, cached or not."""
    output: int
    cache_read: int = 0
    cache_write: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """One message, as raw JSON, and what is known of it."""

    payload: bytes
    at: int | None = None
    """Milliseconds since 1970, UTC."""
    usage: Usage | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded session: the messages that were said, in order."""

    name: str
    messages: tuple[Recorded, ...]
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the importer left out because no model was shown it: how many of each kind."""

    @property
    def payloads(self) -> tuple[bytes, ...]:
        return tuple(one.payload for one in self.messages)


async def write(recording: Recording, log: Log, session: str, *, profile: str = "balanced") -> int:
    """Append the recording to a log as a new session, with its own times; the head it has then.

    Raises Conflict when a session of that name is there already.
    """
    drafts = _drafts(recording, profile)
    head = 0
    for first in range(0, len(drafts), _BATCH):
        batch = drafts[first : first + _BATCH]
        head = (await log.append(session, batch, expected=head)).last
    return head


def _drafts(recording: Recording, profile: str) -> list[Draft]:
    """Written by an author whose clock shows when each message was said."""
    times = [one.at for one in recording.messages if one.at is not None]
    moment = _moment(times[0]) if times else wall_clock()
    author = Author(clock=lambda: moment)
    drafts = [author.draft(Opened(format=FORMAT, profile=profile, title=recording.name))]
    for one in recording.messages:
        moment = moment if one.at is None else _moment(one.at)
        drafts.append(author.draft(Message(one.payload)))
    return drafts


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)


# The lines of a file that anybody may have written: read in pieces, and never more than is said.
#
# The newest lines are kept, as many as fit; a line that is too long is passed over without being
# held. Text in UTF-16 or UTF-32 is read too, where it says so at its beginning.

LONGEST_LINE: Final = 32 * 2**20
"""Bytes of one line, or of a file that is one JSON value."""
NEWEST: Final = 64 * 2**20
"""Bytes of lines that are kept of one file."""

_PIECE = 2**20
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_AROUND = b" \t\r\n\0"  # after a crash, files end with NUL bytes


@dataclass(frozen=True, slots=True)
class Lines:
    """The newest lines of a file, and how many others it has."""

    newest: tuple[bytes, ...]
    long: int = 0
    """Lines that are too long to be read."""
    older: int = 0
    """Lines before the newest."""


def newest_lines(path: Path, *, longest: int = LONGEST_LINE, most: int = NEWEST) -> Lines:
    """The newest lines of a file that are not empty."""
    kept = deque[bytes]()
    size = long = older = 0
    with path.open("rb") as file:
        for line in _lines(_pieces(file), longest):
            if line is None:
                long += 1
                continue
            kept.append(line)
            size += len(line)
            while size > most:
                size -= len(kept.popleft())
                older += 1
    return Lines(tuple(kept), long, older)


def beginning(path: Path) -> bytes:
    """The first characters of a file, as UTF-8."""
    with path.open("rb") as file:
        return next(_pieces(file, 4096), b"").lstrip(_AROUND)


def whole(path: Path, *, longest: int = LONGEST_LINE) -> bytes | None:
    """All of a file as UTF-8, without the white space around it; None where it is too long."""
    data = bytearray()
    with path.open("rb") as file:
        for piece in _pieces(file):
            data += piece
            if len(data) > longest:
                return None
    return bytes(data).strip(_AROUND)


def value_of(data: bytes) -> JsonValue:
    """The value that JSON says. Raises ValueError where it is none."""
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError:
        return from_json(_as_utf8(data), allow_inf_nan=False)


def _as_utf8(data: bytes) -> bytes:
    """What is no UTF-8 is taken for Latin-1. Raises ValueError where it is UTF-8 already."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1").encode()
    raise ValueError("No JSON.")


def _lines(pieces: Iterable[bytes], longest: int) -> Iterator[bytes | None]:
    """The lines that hold anything; None for one that is too long."""
    rest = bytearray()
    passing = False
    for piece in pieces:
        first, *others = piece.split(b"\n")
        rest += b"" if passing else first
        for other in others:
            yield from _line(rest, longest, passing=passing)
            rest, passing = bytearray(other), False
        if len(rest) > longest:
            rest, passing = bytearray(), True
    yield from _line(rest, longest, passing=passing)


def _line(data: bytearray, longest: int, *, passing: bool) -> Iterator[bytes | None]:
    if passing or len(data) > longest:
        yield None
    elif line := bytes(data).strip(_AROUND):
        yield line


def _pieces(file: BinaryIO, size: int = _PIECE) -> Iterator[bytes]:
    data = file.read(size)
    mark, encoding = next((one for one in _MARKS if data.startswith(one[0])), (b"", ""))
    if not encoding:
        yield data.removeprefix(codecs.BOM_UTF8)
        while data := file.read(size):
            yield data
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    data = data.removeprefix(mark)
    while data:
        yield decoder.decode(data).encode(errors="replace")
        data = file.read(size)


# Recordings that are too long to be replayed, cut to their newest part.

MOST_MESSAGES: Final = 6_000
"""What a replay takes of one session; its time grows with the square of it."""
MOST_BYTES: Final = 16 * 2**20
"""About four million tokens."""

_MESSAGE = TypeAdapter(dict[str, JsonValue])


def trimmed(
    recording: Recording, *, messages: int = MOST_MESSAGES, size: int = MOST_BYTES
) -> Recording:
    """The newest messages, from a prompt on; results whose call is gone are gone with it."""
    first = _first(recording, messages, size)
    if not first:
        return recording
    calls: set[JsonValue] = set()
    kept: list[Recorded] = []
    for one in recording.messages[first:]:
        message = _MESSAGE.validate_json(one.payload)
        parts = _parts(message)
        calls.update(_calls(parts, "tool-call"))
        if kept or any(part.get("part_kind") == "user-prompt" for part in parts):
            whole: list[JsonValue] = [
                part for part in parts if _calls([part], "tool-return") <= calls
            ]
            if len(whole) == len(parts):
                kept.append(one)
            elif whole:
                kept.append(replace(one, payload=make.dump({**message, "parts": [*whole]})))
    return replace(recording, messages=tuple(kept))


def _first(recording: Recording, messages: int, size: int) -> int:
    left = size
    for nth, one in enumerate(reversed(recording.messages), 1):
        left -= len(one.payload)
        if nth > messages or left < 0:
            return len(recording.messages) - nth + 1
    return 0


def _parts(message: Json) -> list[Json]:
    parts = message.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _calls(parts: list[Json], kind: str) -> set[JsonValue]:
    found = (part.get("tool_call_id") for part in parts if part.get("part_kind") == kind)
    return {call for call in found if isinstance(call, str)}
