"""Searching files, in a process that can be killed, and reading pages of them, for a model."""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, cast

from refold.cli.chat.tools import line_search
from refold.cli.chat.tools.folder import WalkState, printable, size_of, with_notes
from refold.cli.chat.tools.line_search import HEAD, LONGEST, encoding_of, lines_of, opened
from refold.exports.moments import counted

_WHY: Final = {
    "binary": "binary",
    "large": f"larger than {size_of(line_search.LARGEST)}",
    "link": "behind a link",
    "special": "not regular",
    "unreadable": "unreadable",
}
_END: Final = "end"  # of a line that was searched in part


class Search:
    def __init__(
        self, pattern: str, *, ignore_case: bool, max_matches: int, seconds: float
    ) -> None:
        self._request = {"pattern": pattern, "ignore_case": ignore_case, "most": max_matches}
        self._max_matches = max_matches
        self._seconds = seconds
        self._matches: list[tuple[int, int, str]] = []
        self._state: dict[str, object] = {}
        self._skipped = Counter[str]()

    async def through(self, files: Sequence[str], root: Path, walk: WalkState) -> str:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-IS",
            line_search.__file__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(self._seconds):
                await self._listen(process, files)
                await process.wait()
        except (TimeoutError, ConnectionError):
            walk.late = True
        finally:
            await _stop(process)
        return self._text(files, root, walk)

    async def _listen(self, process: asyncio.subprocess.Process, files: Sequence[str]) -> None:
        assert process.stdin is not None  # noqa: S101 - it was asked for
        assert process.stdout is not None  # noqa: S101 - it was asked for
        process.stdin.write(json.dumps(self._request | {"files": files}).encode())
        process.stdin.write_eof()
        async for line in process.stdout:
            value: object = json.loads(line)
            if not isinstance(value, dict):
                index, number, text = cast("list[Any]", value)
                self._matches.append((index, number, text))
                continue
            report = cast("dict[str, object]", value)
            if "skipped" in report:
                self._skipped[str(report["skipped"])] += 1
            else:
                self._state |= report

    def _text(self, files: Sequence[str], root: Path, walk: WalkState) -> str:
        rows = [
            f"{printable(str(Path(files[index]).relative_to(root)))}:{number}: {text}"
            for index, number, text in sorted(self._matches)
        ]
        full = len(rows) >= self._max_matches
        late = walk.late or not (full or "done" in self._state)
        left_out = {
            f"Only the first {len(rows)} matches are shown: narrow it with path or files.": full,
            "That is no regular expression, so it was looked for as it stands.": self._state.get(
                "literal"
            ),
            "Not all files were looked into: narrow it with path or files.": walk.crowded,
            "It took too long and was stopped: use a simpler pattern, or narrow it.": late,
        }
        notes = [note for note, applies in left_out.items() if applies]
        searched = len(files) - sum(self._skipped[why] for why in _WHY)
        none = "No match so far." if late else f"No match in {_files(searched)}."
        return with_notes("\n".join(rows) or none, [*notes, *self._not_searched(walk)])

    def _not_searched(self, walk: WalkState) -> list[str]:
        reasons = [(self._skipped[why], text) for why, text in _WHY.items() if self._skipped[why]]
        why = [f"{count:,} {text}" for count, text in reasons]
        count, ends = sum(count for count, _ in reasons), self._skipped[_END]
        were = "was" if count == 1 else "were"
        notes = {
            f"{_files(count)} {were} not searched: {', '.join(why)}.": count,
            f"Of very long lines ({ends:,}) only the first {line_search.WHOLE:,} characters "
            "were searched.": ends,
            walk.closed_note: walk.closed,
        }
        return [note for note, applies in notes.items() if applies]


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Kill it unless it ended: killing an ending process would take its exit from the waiter."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


class Page:
    """Part of a text file: lines until there are enough or the time is up."""

    def __init__(self, first: int, lines: int, *, characters: int, seconds: float) -> None:
        self._first = first
        self._lines = lines
        self._room = characters
        self._until = time.monotonic() + seconds
        self._taken: list[str] = []
        self._reached = 0
        self._cut = 0
        self._more = False

    def of(self, path: Path, name: str) -> str:
        """The page of the file at a path; the model knows the file by this name."""
        shown = printable(name)
        file = opened(str(path))
        if file is None:
            return f"{shown!r} is no regular file and cannot be read."
        with file:
            encoding = encoding_of(file.peek(HEAD)[:HEAD])
            size = os.fstat(file.fileno()).st_size
            if encoding is None:
                return f"{shown!r} is a binary file of {size_of(size)}: it cannot be shown."
            if not size:
                return f"{shown!r} is empty."
            with closing(lines_of(file, encoding)) as lines:
                self._take(lines)
        return self._text(shown)

    def _take(self, lines: Iterable[tuple[str, bool]]) -> None:
        for line, cut in lines:
            if self._reached + 1 < self._first:
                self._more = time.monotonic() > self._until
            else:
                self._room -= len(line) + 1
                full = len(self._taken) >= self._lines or (self._room < 0 and bool(self._taken))
                self._more = full or time.monotonic() > self._until
                if not self._more:
                    self._taken.append(line)
                    self._cut += cut
            if self._more:
                return
            self._reached += 1

    def _text(self, name: str) -> str:
        first, last = self._first, self._first + len(self._taken) - 1
        if not self._taken and self._more:
            return (
                f"Line {first:,} of {name} is too far down: search_files finds lines by their text."
            )
        if not self._taken:
            return f"{name} has {counted(self._reached, 'line')}: there is no line {first:,}."
        goes_on = f"There is more: read_file({name!r}, first_line={last + 1}) goes on."
        cut = f"Long lines ({self._cut}) were cut to {LONGEST:,} characters."
        notes = [goes_on] * self._more + [cut] * bool(self._cut)
        of = "" if self._more else f" of {self._reached:,}"
        head = f"[{name}, lines {first:,} to {last:,}{of}]"
        return with_notes("\n".join([head, *self._taken]), notes)
