"""Session files: which program wrote one, where programs keep theirs, and what is in a file.

The format is detected from a file's content. Files are untrusted and may be written at this moment:
broken lines are counted and skipped, and for a file without a session the reason is reported.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.transcripts import (
    claude_code,
    codex,
    copilot_cli,
    exported,
    gemini_cli,
    openai_chat,
    opencode,
    pi,
    qwen_code,
)
from refold.transcripts.messages import Json
from refold.transcripts.recording import (
    Recording,
    all_lines,
    beginning,
    uncompressed,
    value_of,
    whole,
)

MAX_LINE: Final = 256 << 20
"""Bytes of one line that an import reads, or of a file that is one JSON value."""
_SAMPLE: Final = 200  # records by which the format of a file is detected


class Reader(NamedTuple):
    """What reads the records of one program."""

    name: str
    knows: Callable[[Json], bool]
    parse: Callable[[Iterable[Json], str], Recording]


READERS: Final = (
    Reader(exported.NAME, exported.knows, exported.parse_exported),
    Reader(qwen_code.NAME, qwen_code.knows, qwen_code.parse_qwen_code),
    Reader(claude_code.NAME, claude_code.knows, claude_code.parse_claude_code),
    Reader(codex.NAME, codex.knows, codex.parse_codex),
    Reader(copilot_cli.NAME, copilot_cli.knows, copilot_cli.parse_copilot_cli),
    Reader(pi.NAME, pi.knows, pi.parse_pi_records),
    Reader(gemini_cli.NAME, gemini_cli.knows, gemini_cli.parse_gemini),
)


def reader_of(records: Sequence[Json]) -> Reader | None:
    """The reader that recognizes most of the first records; the first of equals."""
    sample = records[:_SAMPLE]
    votes = [sum(map(reader.knows, sample)) for reader in READERS]
    return READERS[votes.index(max(votes))] if any(votes) else None


def parse_value(value: JsonValue, name: str) -> tuple[str, tuple[Recording, ...]] | None:
    """The format and the sessions of a file that is one JSON value."""
    if (messages := gemini_cli.messages_of(value)) is not None:
        return gemini_cli.NAME, (gemini_cli.parse_gemini(messages, name),)
    if (contents := gemini_cli.contents_of(value)) is not None:
        return gemini_cli.NAME, (gemini_cli.parse_gemini_chat(contents, name),)
    if (items := codex.items_of(value)) is not None:
        return codex.NAME, (codex.parse_codex(items, name),)
    chats = openai_chat.chats_of(value, name)
    return (openai_chat.NAME, chats) if chats else None


def why_unreadable(path: Path) -> str:
    """Why there can be no session in the file; empty where there may be one."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return "it is no file"
        start = beginning(path)
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    except ValueError as error:  # a path with a NUL in it
        return f"it cannot be read: {error}"
    if not start:
        return "it is empty"
    return "" if start[:1] in (b"{", b"[") else "it is not JSON"


@dataclass(frozen=True, slots=True)
class SessionFile:
    """The session in a file, whole; or why there is none."""

    path: Path
    recording: Recording | None = None
    broken: int = 0
    """Lines that are no JSON object, or longer than `MAX_LINE`; not a last one that is cut off."""
    why: str = ""
    """Why there is no session in it."""
    modified: float = 0
    """When it was written last, in seconds since 1970."""


def read_sessions(path: Path) -> Iterator[SessionFile]:
    """The sessions that a file holds, each whole; a database holds many."""
    try:
        if opencode.is_database(path):
            for recording, used in opencode.read_database(path):
                yield _session(path, recording, used / 1000)
        elif opencode.is_session_file(path):
            recording, used = opencode.read_session_file(path)
            yield _session(path, recording, used / 1000)
        else:
            yield replace(read_session(path), modified=_modified(path)[0])
    except OSError as error:
        yield SessionFile(path, why=f"it cannot be read: {error.strerror or error}")
    except ValueError as error:
        yield SessionFile(path, why=str(error))


def _session(path: Path, recording: Recording, modified: float = 0) -> SessionFile:
    why = "" if recording.messages else "it holds no message"
    return SessionFile(path, recording, why=why, modified=modified)


def read_session(path: Path) -> SessionFile:
    """The session in a file of JSON, from its first message to its last."""
    if why := why_unreadable(path):
        return SessionFile(path, why=why)
    name = uncompressed(path).stem
    name = path.parent.name if name == "events" else name
    lines = _Lines(path)
    try:
        records = iter(lines)
        sample = [*islice(records, _SAMPLE)]
        value: JsonValue = sample[0] if len(sample) == 1 else None
        if not sample or lines.broken:  # it may be one value over many lines
            with suppress(ValueError):
                value = value_of(whole(path, max_size=MAX_LINE) or b"")
        if value is not None and (parsed := parse_value(value, name)) is not None:
            recordings = parsed[1]
            if len(recordings) == 1 and recordings[0].origin is not None:
                return SessionFile(path, recordings[0])
            return SessionFile(path, why="it says nothing of the program that wrote it")
        reader = reader_of(sample)
        if reader is None or reader.name == exported.NAME:
            return SessionFile(path, broken=lines.broken, why="no line is a record of a session")
        recording = reader.parse(chain(sample, records), name)
    except OSError as error:
        return SessionFile(path, why=f"it cannot be read: {error.strerror or error}")
    return replace(_session(path, recording), broken=lines.broken)


class _Lines:
    """The records of a file, and how many of its lines are none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.broken = 0

    def __iter__(self) -> Iterator[Json]:
        cut = False
        for line in all_lines(self._path, max_line=MAX_LINE):
            self.broken += cut
            cut = True
            with suppress(ValueError):
                value = value_of(line or b"")
                if isinstance(value, dict):
                    cut = False
                    yield value
        # The program may be writing the last line, or have died while it did.


class Program(NamedTuple):
    """A program whose sessions can be imported, and where it keeps them."""

    name: str
    variable: str
    """The environment variable that moves its folder."""
    home: str
    """What that variable says where it is not set, below the user's home."""
    places: tuple[str, ...]
    """Where sessions are in that folder."""

    def paths(self) -> list[Path]:
        """The folders and files with its sessions that exist here."""
        moved = os.environ.get(self.variable, "")
        home = Path(moved).expanduser() if moved else Path.home() / self.home
        return [home / place for place in self.places if (home / place).exists()]


PROGRAMS: Final = {
    claude_code.PROGRAM: Program(claude_code.NAME, "CLAUDE_CONFIG_DIR", ".claude", ("projects",)),
    codex.PROGRAM: Program(codex.NAME, "CODEX_HOME", ".codex", ("sessions", "archived_sessions")),
    copilot_cli.PROGRAM: Program(
        copilot_cli.NAME, "COPILOT_HOME", ".copilot", ("session-state", "history-session-state")
    ),
    gemini_cli.PROGRAM: Program(gemini_cli.NAME, "GEMINI_CLI_HOME", "", (".gemini/tmp",)),
    opencode.PROGRAM: Program(
        opencode.NAME,
        "XDG_DATA_HOME",
        ".local/share",
        ("opencode/opencode.db", "opencode/storage/session"),
    ),
    pi.PROGRAM: Program(pi.NAME, "PI_CODING_AGENT_DIR", ".pi/agent", ("sessions",)),
    qwen_code.PROGRAM: Program(qwen_code.NAME, "QWEN_HOME", ".qwen", ("projects",)),
}
"""By the name that the command line and a session's origin have for it."""


def files_in(paths: Iterable[Path]) -> list[Path]:
    """The files, and those in folders however deep, oldest first.

    Links to folders are not followed.
    """
    files: set[Path] = set()
    for path in paths:
        if path.is_dir():
            files |= {Path(where, name) for where, _, names in os.walk(path) for name in names}
        else:
            files.add(path)
    return sorted(files, key=_modified)


def _modified(path: Path) -> tuple[float, str]:
    try:
        return path.stat().st_mtime, str(path)
    except OSError:
        return 0, str(path)
