"""The lines of a file that anybody may have written: read in pieces, and never more than is said.

The newest lines are kept, as many as fit; a line that is too long is passed over without being
held. Text in UTF-16 or UTF-32 is read too, where it says so at its beginning.
"""

import codecs
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import JsonValue
from pydantic_core import from_json

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
    """The file as UTF-8, without the mark at its beginning."""
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
