"""Recorded sessions in files and folders, whatever program wrote them and however damaged.

The format is detected from a file's content. Broken lines are counted and skipped; for a file
without a session, the reason is reported. Memory is bounded by the limits in `recording`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from refold.transcripts import opencode
from refold.transcripts.exported import NAME, parse_exported
from refold.transcripts.messages import Json
from refold.transcripts.programs import READERS, files_in, parse_value, reader_of, why_unreadable
from refold.transcripts.recording import (
    MAX_LINE,
    Lines,
    Recording,
    beginning,
    newest_lines,
    trimmed,
    uncompressed,
    value_of,
    whole,
)

_MEGABYTE = 2**20
FIX: Final = (
    "Give session files of Claude Code (~/.claude/projects), Codex (~/.codex/sessions), "
    "Copilot CLI (~/.copilot/session-state), Gemini CLI (~/.gemini/tmp), Qwen Code (~/.qwen), "
    "opencode (its opencode.db) or pi, a list of OpenAI chat messages, or what `refold export` "
    "wrote."
)


@dataclass(frozen=True, slots=True)
class SessionFile:
    """The sessions in a file, or why there are none."""

    path: str
    format: str = ""
    """Which program wrote it; empty if unknown."""
    recordings: tuple[Recording, ...] = ()
    broken: int = 0
    """Lines that are no JSON object, or too long to be read."""
    older: int = 0
    """Lines and messages that were left out because there are too many."""
    why: str = ""
    """Why there is no session in it."""
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    """What is in the file and was not shown to the model: how many of each kind."""

    @property
    def messages(self) -> int:
        return sum(len(recording.messages) for recording in self.recordings)


def recordings(paths: Iterable[Path]) -> Iterator[SessionFile]:
    """Look into files and into all files in folders, those of a folder from the newest on.

    A file in a folder that holds no session is passed over; one that is named says why.
    """
    for path in paths:
        if path.is_dir():
            empty = True
            for file in map(read_session_file, reversed(files_in([path]))):
                if file.recordings or file.format:
                    empty = False
                    yield file
            if empty:
                yield SessionFile(str(path), why="no session is in this folder")
        else:
            yield read_session_file(path)


def read_session_file(path: Path) -> SessionFile:
    try:
        if opencode.is_database(path):
            found = tuple(recording for recording, _ in opencode.read_database(path))
            return _replayable(SessionFile(str(path), opencode.NAME, found))
        if why := why_unreadable(path):
            return SessionFile(str(path), why=why)
        return _as_one_value(path) or _as_lines(path)
    except OSError as error:
        return SessionFile(str(path), why=f"it cannot be read: {error.strerror or error}")
    except ValueError as error:
        return SessionFile(str(path), why=str(error))


def session_in_export(name: str, lines: Iterable[bytes]) -> SessionFile:
    """The session in lines as `refold export` writes them, which no file holds."""
    records, broken = _records(Lines(tuple(lines)))
    return _replayable(SessionFile(name, NAME, (parse_exported(records, name),), broken))


def _as_one_value(path: Path) -> SessionFile | None:
    """A file that is one JSON value. None: it is another, or no value at all."""
    data = None if path.stat().st_size > MAX_LINE else whole(path)
    if data is None:
        if beginning(path)[:1] == b"[":
            why = f"it is one list of more than {MAX_LINE // _MEGABYTE} MB"
            return SessionFile(str(path), why=why)
        return None
    try:
        value = value_of(data) if data else None
    except ValueError:
        return None
    parsed = parse_value(value, uncompressed(path).stem)
    if parsed is None:
        if isinstance(value, dict) and any(reader.knows(value) for reader in READERS):
            return None  # JSON lines with a single line
        return SessionFile(str(path), why="it is JSON, but no session that is known here")
    return _replayable(SessionFile(str(path), *parsed))


def _as_lines(path: Path) -> SessionFile:
    lines = newest_lines(path)
    records, broken = _records(lines)
    reader = reader_of(records)
    if reader is None:
        why = "no line is a record of a session that is known here"
        if lines.long and not records:
            why = f"its lines are longer than {MAX_LINE // _MEGABYTE} MB"
        return SessionFile(str(path), broken=broken, older=lines.older, why=why)
    recording = reader.parse(records, uncompressed(path).stem)
    return _replayable(SessionFile(str(path), reader.name, (recording,), broken, lines.older))


def _records(lines: Lines) -> tuple[list[Json], int]:
    records: list[Json] = []
    for line in lines.newest:
        with suppress(ValueError):
            value = value_of(line)
            if isinstance(value, dict):
                records.append(value)
    return records, lines.long + len(lines.newest) - len(records)


def _replayable(file: SessionFile) -> SessionFile:
    """The file with only those sessions that have an answer, trimmed where they are too long."""
    older = file.older
    skipped = Counter[str]()
    sessions: list[Recording] = []
    for recording in file.recordings:
        short = trimmed(recording)
        older += len(recording.messages) - len(short.messages)
        skipped.update(recording.skipped)
        if any(b'"kind":"response"' in payload for payload in short.payloads):
            sessions.append(short)
    why = "" if sessions else "it has no answer of a model"
    return replace(file, recordings=tuple(sessions), older=older, skipped=dict(skipped), why=why)
