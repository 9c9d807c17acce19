"""Finding recorded sessions in files and folders: whoever wrote them, whatever state they are in.

The format is found by looking into a file. What is broken is counted and passed over; a file that
holds no session says why. Memory is bounded: see `lines`, and `MOST_MESSAGES` and `MOST_BYTES`
for what is kept of one session.
"""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.lab.importers import claude_code, codex, exported, gemini_cli, openai_chat, pi
from refold.lab.messages import Json
from refold.lab.recording import (
    LONGEST_LINE,
    Lines,
    Recorded,
    Recording,
    beginning,
    newest_lines,
    trimmed,
    value_of,
    whole,
)

_LOOKED_AT = 200
_MEGABYTE = 2**20
FIX: Final = (
    "Give session files of Claude Code (~/.claude/projects), Codex (~/.codex/sessions), Gemini CLI "
    "(~/.gemini/tmp) or pi, a list of OpenAI chat messages, or what `refold export` wrote."
)


@dataclass(frozen=True, slots=True)
class Found:
    """A file that was looked into: the sessions in it, or why there are none."""

    path: str
    format: str = ""
    """Which program wrote it; empty where nobody can tell."""
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
        return sum(len(one.messages) for one in self.recordings)


class _Importer(NamedTuple):
    name: str
    knows: Callable[[Json], bool]
    parse: Callable[[Sequence[Json], str], Recording]


_IMPORTERS = (
    _Importer(exported.NAME, exported.knows, exported.parse_exported),
    _Importer(claude_code.NAME, claude_code.knows, claude_code.parse_claude_code),
    _Importer(codex.NAME, codex.knows, codex.parse_codex),
    _Importer(pi.NAME, pi.knows, pi.parse_pi_records),
    _Importer(gemini_cli.NAME, gemini_cli.knows, gemini_cli.parse_gemini),
)


def recordings(paths: Iterable[Path]) -> Iterator[Found]:
    """Look into files and into all files in folders, those of a folder from the newest on.

    A file in a folder that holds no session is passed over; one that is named says why.
    """
    for path in paths:
        if path.is_dir():
            found = filter(_worth_telling, map(look_into, _files(path)))
            first = next(found, None)
            if first is None:
                yield Found(str(path), why="no session is in this folder")
                continue
            yield first
            yield from found
        else:
            yield look_into(path)


def look_into(path: Path) -> Found:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return Found(str(path), why="it is no file")
        return _found(path)
    except OSError as error:
        return Found(str(path), why=f"it cannot be read: {error.strerror or error}")
    except ValueError as error:  # a path with a NUL in it
        return Found(str(path), why=f"it cannot be read: {error}")


def _worth_telling(found: Found) -> bool:
    return bool(found.recordings or found.format)


def _files(folder: Path) -> list[Path]:
    """The files in a folder, however deep, from the newest on; links to folders are left alone."""
    found = [Path(where, name) for where, _, names in os.walk(folder) for name in names]
    return sorted(found, key=_written, reverse=True)


def _written(path: Path) -> tuple[float, str]:
    try:
        return path.stat().st_mtime, str(path)
    except OSError:
        return 0, str(path)


def _found(path: Path) -> Found:
    start = beginning(path)
    if not start:
        return Found(str(path), why="it is empty")
    if start[:1] not in (b"{", b"["):
        return Found(str(path), why="it is no JSON")
    return _as_one_value(path, start) or _as_lines(path)


def _as_one_value(path: Path, start: bytes) -> Found | None:
    """A file that is one JSON value. None: it is another, or no value at all."""
    size = path.stat().st_size
    if size > LONGEST_LINE:
        if start[:1] == b"[":
            most = f"{LONGEST_LINE // _MEGABYTE} MB"
            return Found(str(path), why=f"it is one list of {size:,} bytes: more than {most}")
        return None
    data = whole(path)
    try:
        value = value_of(data) if data else None
    except ValueError:
        return None
    name = path.stem
    found = _value(value, name)
    if found is None:
        if isinstance(value, dict) and any(one.knows(value) for one in _IMPORTERS):
            return None  # JSON lines with a single line
        return Found(str(path), why="it is JSON, but no session that is known here")
    return _told(Found(str(path), *found))


def _value(value: JsonValue, name: str) -> tuple[str, tuple[Recording, ...]] | None:
    if (messages := gemini_cli.messages_of(value)) is not None:
        return gemini_cli.NAME, (gemini_cli.parse_gemini(messages, name),)
    if (contents := gemini_cli.contents_of(value)) is not None:
        return gemini_cli.NAME, (gemini_cli.parse_gemini_chat(contents, name),)
    if (items := codex.items_of(value)) is not None:
        return codex.NAME, (codex.parse_codex(items, name),)
    chats = openai_chat.chats_of(value, name)
    return (openai_chat.NAME, chats) if chats else None


def _as_lines(path: Path) -> Found:
    lines = newest_lines(path)
    records, broken = _records(lines)
    importer = _importer(records)
    if importer is None:
        why = "no line is a record of a session that is known here"
        if lines.long and not records:
            why = f"its lines are longer than {LONGEST_LINE // _MEGABYTE} MB"
        return Found(str(path), broken=broken, older=lines.older, why=why)
    recording = importer.parse(records, path.stem)
    return _told(Found(str(path), importer.name, (recording,), broken, lines.older))


def _records(lines: Lines) -> tuple[list[Json], int]:
    found: list[Json] = []
    broken = lines.long
    for line in lines.newest:
        try:
            value = value_of(line)
        except ValueError:
            broken += 1
            continue
        if isinstance(value, dict):
            found.append(value)
        else:
            broken += 1
    return found, broken


def _importer(records: Sequence[Json]) -> _Importer | None:
    """Whose records these are: of whom most of the first ones are."""
    votes = Counter[int]()
    for record in records[:_LOOKED_AT]:
        votes.update(at for at, one in enumerate(_IMPORTERS) if one.knows(record))
    return _IMPORTERS[min(votes, key=lambda at: (-votes[at], at))] if votes else None


def _told(found: Found) -> Found:
    """What was found, with sessions that can be replayed only, none too long."""
    short = [trimmed(one) for one in found.recordings]
    older = sum(
        len(a.messages) - len(b.messages) for a, b in zip(found.recordings, short, strict=True)
    )
    skipped = Counter[str]()
    for one in found.recordings:
        skipped.update(one.skipped)
    kept = tuple(one for one in short if any(map(_answers, one.messages)))
    why = "" if kept else "it holds no answer of a model"
    return replace(
        found, recordings=kept, older=found.older + older, skipped=dict(skipped), why=why
    )


def _answers(one: Recorded) -> bool:
    return b'"kind":"response"' in one.payload
