"""Recorded sessions: read from files of any origin within bounded memory, and written to a log."""

import codecs
import errno
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from gzip import BadGzipFile, GzipFile
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import JsonValue
from pydantic_core import from_json

from refold.log import Author, Draft, Log, Message, Opened, Origin, wall_clock
from refold.models import Prices, Usage
from refold.transcripts import messages as make
from refold.transcripts.messages import Json

FORMAT = "pydantic-ai"
"""The format of a recording's messages."""
MAX_LINE: Final = 32 * 2**20
"""Bytes of one line, or of a file that is one JSON value."""
MAX_LINES: Final = 64 * 2**20
"""Bytes of lines that are read from the end of one file."""
MAX_MESSAGES: Final = 6_000
"""Messages of one session; the time of a replay grows with their square."""
MAX_BYTES: Final = 16 * 2**20
"""Bytes of one session's messages: about four million tokens."""
MAX_UNPACKED: Final = 4 * 2**30
"""Bytes that a compressed file may unpack to: a bomb takes seconds, not a day."""

_BATCH = 200
_CHUNK = 2**20
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PADDING = b" \t\r\n\0"  # after a crash, files end with NUL bytes
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """One message, as raw JSON, and what its file says about it."""

    payload: bytes
    at: int | None = None
    """Milliseconds since 1970, UTC."""
    usage: Usage | None = None
    model: str | None = None
    cost: float | None = None
    """Dollars, where the file has them."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded session: the messages that were said, in order."""

    name: str
    messages: tuple[RecordedMessage, ...]
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the importer left out because no model was shown it: how many of each kind."""
    origin: Origin | None = None
    """None where the file says nothing of it."""
    title: str = ""
    """What the program calls the session, if it does."""
    prices: Prices | None = None
    """Those of its newest request, where the file has them; as for `limit`."""
    limit: int = 0
    """Maximum tokens of a request; 0 where the file does not say."""

    @property
    def payloads(self) -> tuple[bytes, ...]:
        return tuple(message.payload for message in self.messages)


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
    # The author's clock shows when each message was recorded.
    times = [message.at for message in recording.messages if message.at is not None]
    moment = _moment(times[0]) if times else wall_clock()
    author = Author(clock=lambda: moment)
    drafts = [author.draft(Opened(format=FORMAT, profile=profile, title=recording.name))]
    for message in recording.messages:
        moment = moment if message.at is None else _moment(message.at)
        drafts.append(author.draft(Message(message.payload)))
    return drafts


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


# Files are untrusted, so they are read in chunks, and a line that is too long is skipped without
# being held. The lab reads the newest lines that fit, an import all of
# them. UTF-16 and UTF-32 need a byte order mark.


class _Unpacked(GzipFile):
    """A compressed file: its faults are OSErrors, and what it unpacks to is bounded."""

    def read(self, size: int | None = -1) -> bytes:
        # Not `read`, which loses what comes before a missing end: the program may be writing it.
        try:
            return self._bounded(super().read1, size)
        except EOFError:
            return b""

    def readline(self, size: int | None = -1) -> bytes:
        try:
            return self._bounded(super().readline, size)
        except EOFError as error:
            raise self._fault("its end is missing") from error

    def _bounded(self, read: Callable[[int], bytes], size: int | None) -> bytes:
        if self.tell() > MAX_UNPACKED:
            raise self._fault(f"it unpacks to more than {MAX_UNPACKED >> 30} GB")
        try:
            return read(-1 if size is None else size)
        except zlib.error as error:
            raise self._fault("its compressed data is damaged") from error

    def _fault(self, why: str) -> OSError:
        return BadGzipFile(errno.EINVAL, why, self.name)


@contextmanager
def opened(path: Path) -> Generator[BinaryIO | GzipFile]:
    """The file to read; one that is compressed with gzip is unpacked on the way."""
    with path.open("rb") as file:
        if file.peek(len(_GZIP)).startswith(_GZIP):
            with _Unpacked(str(path), fileobj=file) as unpacked:
                yield unpacked
        else:
            yield file


def uncompressed(path: Path) -> Path:
    """The path without the ending that gzip adds to a name."""
    return path.with_suffix("") if path.suffix == ".gz" else path


@dataclass(frozen=True, slots=True)
class Lines:
    """The newest lines of a file, and how many others it has."""

    newest: tuple[bytes, ...]
    long: int = 0
    """Lines that are too long to be read."""
    older: int = 0
    """Lines before the newest."""


def newest_lines(path: Path, *, max_line: int = MAX_LINE, max_size: int = MAX_LINES) -> Lines:
    """The newest lines of a file that are not empty."""
    lines = deque[bytes]()
    size = long = older = 0
    with opened(path) as file:
        for line in _lines(_chunks(file), max_line):
            if line is None:
                long += 1
                continue
            lines.append(line)
            size += len(line)
            while size > max_size:
                size -= len(lines.popleft())
                older += 1
    return Lines(tuple(lines), long, older)


def all_lines(path: Path, *, max_line: int) -> Iterator[bytes | None]:
    """The lines of a file that are not empty, in order; None for one that is too long."""
    with opened(path) as file:
        yield from _lines(_chunks(file), max_line)


def beginning(path: Path) -> bytes:
    """The first characters of a file, as UTF-8."""
    with opened(path) as file:
        return next(_chunks(file, 4096), b"").lstrip(_PADDING)


def whole(path: Path, *, max_size: int = MAX_LINE) -> bytes | None:
    """All of a file as UTF-8, without the white space around it; None where it is too long."""
    data = bytearray()
    with opened(path) as file:
        for chunk in _chunks(file):
            data += chunk
            if len(data) > max_size:
                return None
    return bytes(data).strip(_PADDING)


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


def _lines(chunks: Iterable[bytes], max_line: int) -> Iterator[bytes | None]:
    """The lines that are not blank; None for one that is too long."""
    rest = bytearray()
    too_long = False
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest += b"" if too_long else first
        for other in others:
            yield from _line(rest, max_line, too_long=too_long)
            rest, too_long = bytearray(other), False
        if len(rest) > max_line:
            rest, too_long = bytearray(), True
    yield from _line(rest, max_line, too_long=too_long)


def _line(data: bytearray, max_line: int, *, too_long: bool) -> Iterator[bytes | None]:
    if too_long or len(data) > max_line:
        yield None
    elif line := bytes(data).strip(_PADDING):
        yield line


def _chunks(file: BinaryIO | GzipFile, size: int = _CHUNK) -> Iterator[bytes]:
    """The file as UTF-8, without its byte order mark."""
    data = file.read(size)
    marks = (pair for pair in _BYTE_ORDER_MARKS if data.startswith(pair[0]))
    mark, encoding = next(marks, (b"", ""))
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


def trimmed(
    recording: Recording, *, messages: int = MAX_MESSAGES, size: int = MAX_BYTES
) -> Recording:
    """The newest messages, from a prompt on; a result whose call was cut off is cut off, too."""
    first = _first(recording, messages, size)
    if not first:
        return recording
    calls: set[JsonValue] = set()
    newest: list[RecordedMessage] = []
    for recorded in recording.messages[first:]:
        message = make.parse(recorded.payload)
        parts = make.parts_of(message)
        calls.update(_calls(parts, "tool-call"))
        if newest or any(part.get("part_kind") == "user-prompt" for part in parts):
            paired = [part for part in parts if _calls([part], "tool-return") <= calls]
            if len(paired) == len(parts):
                newest.append(recorded)
            elif paired:
                payload = make.dump({**message, "parts": [*paired]})
                newest.append(replace(recorded, payload=payload))
    return replace(recording, messages=tuple(newest))


def _first(recording: Recording, messages: int, size: int) -> int:
    for nth, message in enumerate(reversed(recording.messages), 1):
        size -= len(message.payload)
        if nth > messages or size < 0:
            return len(recording.messages) - nth + 1
    return 0


def _calls(parts: list[Json], kind: str) -> set[JsonValue]:
    ids = (part.get("tool_call_id") for part in parts if part.get("part_kind") == kind)
    return {call for call in ids if isinstance(call, str)}
