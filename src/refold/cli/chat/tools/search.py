"""A search through files, made by a process that can be ended."""

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
from refold.cli.chat.tools.folder import WalkState, shown, size_of, with_notes
from refold.cli.chat.tools.line_search import HEAD, LONGEST, encoding_of, lines_of, opened

_WHY: Final = {
    "binary": "binary",
    "large": f"larger than {size_of(line_search.LARGEST)}",
    "link": "behind a link",
    "special": "not regular",
    "unreadable": "unreadable",
}
_END: Final = "end"  # of a line that was searched in part


class Search:
    """One search, and what it has found so far."""

    def __init__(self, pattern: str, *, ignore_case: bool, most: int, seconds: float) -> None:
        self._asked = {"pattern": pattern, "ignore_case": ignore_case, "most": most}
        self._most = most
        self._seconds = seconds
        self._found: list[tuple[int, int, str]] = []
        self._told: dict[str, object] = {}
        self._skipped = Counter[str]()

    async def through(self, files: Sequence[str], root: Path, walked: WalkState) -> str:
        """What the files hold, named from the root on."""
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
            walked.late = True
        finally:
            await _stopped(process)
        return self._text(files, root, walked)

    async def _listen(self, process: asyncio.subprocess.Process, files: Sequence[str]) -> None:
        assert process.stdin is not None  # noqa: S101 - it was asked for
        assert process.stdout is not None  # noqa: S101 - it was asked for
        process.stdin.write(json.dumps(self._asked | {"files": files}).encode())
        process.stdin.write_eof()
        async for line in process.stdout:
            value: object = json.loads(line)
            if isinstance(value, dict):
                self._hear(cast("dict[str, object]", value))
            else:
                at, number, text = cast("list[Any]", value)
                self._found.append((at, number, text))

    def _hear(self, told: dict[str, object]) -> None:
        if "skipped" in told:
            self._skipped[str(told["skipped"])] += 1
        else:
            self._told |= told

    def _text(self, files: Sequence[str], root: Path, walked: WalkState) -> str:
        rows = [
            f"{shown(str(Path(files[at]).relative_to(root)))}:{number}: {text}"
            for at, number, text in sorted(self._found)
        ]
        full = len(rows) >= self._most
        late = walked.late or not (full or "done" in self._told)
        left_out = {
            f"Only the first {len(rows)} matches are shown: narrow it with path or files.": full,
            "That is no regular expression, so it was looked for as it stands.": self._told.get(
                "literal"
            ),
            "Not all files were looked into: narrow it with path or files.": walked.crowded,
            "It took too long and was stopped: use a simpler pattern, or narrow it.": late,
        }
        notes = [note for note, so in left_out.items() if so]
        none = "No match so far." if late else f"No match in {_files(self._searched(files))}."
        return with_notes("\n".join(rows) or none, [*notes, *self._not_searched(walked)])

    def _searched(self, files: Sequence[str]) -> int:
        return len(files) - sum(self._skipped[why] for why in _WHY)

    def _not_searched(self, walked: WalkState) -> list[str]:
        """What was not looked at, so that nobody takes it for looked through."""
        why = [f"{self._skipped[one]:,} {said}" for one, said in _WHY.items() if self._skipped[one]]
        count, ends = sum(self._skipped[one] for one in _WHY), self._skipped[_END]
        were = "was" if count == 1 else "were"
        notes = {
            f"{_files(count)} {were} not searched: {', '.join(why)}.": count,
            f"Of very long lines ({ends:,}) only the first {line_search.WHOLE:,} characters "
            "were searched.": ends,
            walked.closed_note: walked.closed,
        }
        return [note for note, so in notes.items() if so]


async def _stopped(process: asyncio.subprocess.Process) -> None:
    """End it, unless it ended: to kill what is ending takes its end away from who waits for it."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


# A page of a text file, for a model.


class Page:
    """Lines that are taken one by one, until there are enough or the time is up."""

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
        """What the file at the path, known by this name, has on the page."""
        called = shown(name)
        file = opened(str(path))
        if file is None:
            return f"{called!r} is no regular file and cannot be read."
        with file:
            encoding = encoding_of(file.peek(HEAD)[:HEAD])
            size = os.fstat(file.fileno()).st_size
            if encoding is None:
                return f"{called!r} is a binary file of {size_of(size)}: it cannot be shown."
            if not size:
                return f"{called!r} is empty."
            with closing(lines_of(file, encoding)) as lines:
                self._take(lines)
        return self._text(called)

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
            return f"{name} has {self._reached:,} lines: there is no line {first:,}."
        goes_on = f"There is more: read_file({name!r}, first_line={last + 1}) goes on."
        cut = f"Long lines ({self._cut}) were cut to {LONGEST:,} characters."
        notes = [goes_on] * self._more + [cut] * bool(self._cut)
        of = "" if self._more else f" of {self._reached:,}"
        head = f"[{name}, lines {first:,} to {last:,}{of}]"
        return with_notes("\n".join([head, *self._taken]), notes)
