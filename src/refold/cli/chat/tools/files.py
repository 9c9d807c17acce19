"""Tools that let a model read the files of a folder, and change nothing.

Errors are returned as the tool's result: an exception would end the turn.
"""

import asyncio
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from pydantic_ai import FunctionToolset

from refold.cli.chat.tools.folder import (
    PathRefused,
    VisibleFolder,
    WalkState,
    as_bytes,
    between_slashes,
    matches,
    printable,
    size_of,
    with_notes,
)
from refold.cli.chat.tools.search import Page, Search

Count = Annotated[int, Field(ge=1)]


class Limits(NamedTuple):
    """How much one call may return, and how long it may take."""

    entries: int = 300
    lines: int = 1_000
    characters: int = 40_000
    matches: int = 100
    files: int = 20_000  # files that one search looks into
    seconds: float = 8.0


def file_tools(folder: Path, limits: Limits = Limits()) -> FunctionToolset[Any]:  # noqa: B008 - a constant
    tools = _Tools(folder, limits)
    return FunctionToolset(
        [tools.list_files, tools.read_file, tools.search_files],
        id="files",
        max_retries=3,
        instructions="You can look at the files of the folder that the person works in "
        "(list_files, read_file, search_files), and cannot change them.",
    )


class _Tools:
    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits

    def list_files(self, path: str = ".", pattern: str = "*", depth: Count = 3) -> str:
        """List files and folders. What Git is told to ignore is not shown.

        Args:
            path: The folder to begin in.
            pattern: Which files to list: "*.py" by their name, "src/**/*.py" by their path.
            depth: How many levels to look down.
        """
        try:
            return self._list(path, pattern, depth)
        except PathRefused as refused:
            return str(refused)

    def read_file(self, path: str, first_line: Count = 1, lines: Count = 300) -> str:
        """Read a text file, or a part of it.

        Args:
            path: The file.
            first_line: The line to begin with.
            lines: How many lines to read.
        """
        try:
            found = VisibleFolder(self._folder).find(path)
            if found.is_dir():
                return f"{printable(path)!r} is a folder: list_files lists it."
            page = Page(
                first_line,
                min(lines, self._limits.lines),
                characters=self._limits.characters,
                seconds=self._limits.seconds,
            )
            return page.of(found, path)
        except PathRefused as refused:
            return str(refused)
        except OSError as error:
            return f"{printable(path)!r} cannot be read: {error.strerror or 'it failed'}."

    async def search_files(
        self, pattern: str, path: str = ".", files: str = "*", *, ignore_case: bool = True
    ) -> str:
        """Find the lines of files that match a regular expression.

        Args:
            pattern: What to look for.
            path: The file or folder to look in.
            files: Which files to look in: "*.py" by their name, "src/**/*.py" by their path.
            ignore_case: Whether large and small letters are the same.
        """
        if not pattern:
            return "Say what to look for: pattern is empty."
        walk = WalkState(self._limits.seconds)
        try:
            names = await asyncio.to_thread(self._files_to_search, path, files, walk)
        except PathRefused as refused:
            return str(refused)
        search = Search(
            pattern,
            ignore_case=ignore_case,
            max_matches=self._limits.matches,
            seconds=self._limits.seconds,
        )
        return await search.through(names, self._folder.resolve(), walk)

    def _list(self, path: str, pattern: str, depth: int) -> str:
        folder = VisibleFolder(self._folder)
        top = folder.find(path)
        if not top.is_dir():
            return f"{printable(path)!r} is a file: read_file reads it."
        walk = WalkState(self._limits.seconds)
        matcher = _matcher(pattern, len(top.relative_to(folder.root).parts))
        entries = (entry for entry in folder.walk(top, depth, walk) if matcher(entry.path))
        rows: list[str] = []
        for entry in islice(entries, self._limits.entries):
            name = printable("/".join(entry.path))
            rows.append(f"{name}/" if entry.is_folder else f"{name}  {size_of(entry.size)}")
        left_out = {
            f"Only the first {len(rows)} are listed: look into one folder, or use a pattern.": next(
                entries, None
            ),
            "Deeper folders were not looked into: raise depth, or list one of them.": walk.deeper,
            "A folder with very many entries is listed in part.": walk.crowded,
            "It took too long and was stopped: look into one folder.": walk.late,
            walk.closed_note: walk.closed,
        }
        text = "\n".join(rows) or f"Nothing here matches {printable(pattern)!r}."
        return with_notes(text, [note for note, applies in left_out.items() if applies])

    def _files_to_search(self, path: str, files: str, walk: WalkState) -> list[str]:
        folder = VisibleFolder(self._folder)
        top = folder.find(path)
        if not top.is_dir():
            return [str(top)]
        matcher = _matcher(files, len(top.relative_to(folder.root).parts))
        names: list[str] = []
        for entry in folder.walk(top, sys.maxsize, walk):
            if not entry.is_folder and matcher(entry.path):
                names.append(str(folder.root.joinpath(*entry.path)))
            if len(names) >= self._limits.files:
                walk.crowded = True
                break
        return names


def _matcher(pattern: str, above: int) -> Callable[[tuple[str, ...]], bool]:
    """Tells whether a path matches; a pattern with a slash is relative to the start folder."""
    bare = pattern.strip().removeprefix("./")
    segments = between_slashes(as_bytes(bare.strip("/") or "*"))
    anchored = "/" in bare.strip("/")
    return lambda path: matches(
        segments, [as_bytes(name) for name in (path[above:] if anchored else path[-1:])]
    )
