"""A folder as a model may see it: nothing outside, nothing that Git is told to ignore."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from refold.cli.chat.tools.gitignore import Hidden

_CROWDED = 20_000
"""Entries of one folder that are looked at."""
_STEP = 1_000
_LOOK = "list_files shows what there is."


class Entry(NamedTuple):
    """A file or folder that is shown."""

    path: tuple[str, ...]
    """Below the folder."""
    is_folder: bool
    size: int


class Refused(Exception):
    """What a path cannot be used for, in words for the model."""


class Walked:
    """What a walk has left out."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self.deeper = False
        """Folders lie deeper than was asked for."""
        self.crowded = False
        """A folder has too many entries."""
        self.late = False
        """The time was up."""
        self.closed = 0
        """Folders that could not be read."""

    @property
    def closed_note(self) -> str:
        """How many folders could not be read, in words."""
        return f"Folders that could not be read: {self.closed:,}."

    def in_time(self) -> bool:
        """Whether there is time left."""
        self.late = self.late or time.monotonic() > self._until
        return not self.late


class ShownFolder:
    """One folder, looked at once: make a new one for each question."""

    def __init__(self, folder: Path) -> None:
        self.root = folder.resolve()
        self._hidden = Hidden(self.root)

    def find(self, path: str) -> Path:
        """What lies at a path, wherever links lead, if it may be seen."""
        outside = Refused(
            f"{shown(path)!r} lies outside the folder. Only paths within it can be seen: "
            'list_files(".") shows them.'
        )
        try:
            given = Path(os.path.normpath(self.root / path))
            if not given.is_relative_to(self.root):
                raise outside
            found = given.resolve(strict=True)
        except FileNotFoundError:
            raise Refused(f"There is nothing at {shown(path)!r}. {_LOOK}") from None
        except (OSError, ValueError, RuntimeError):
            raise Refused(f"{shown(path)!r} cannot be read. {_LOOK}") from None
        if not found.is_relative_to(self.root):
            raise outside
        for one in (given, found):
            if self.hides(one, folder=found.is_dir()):
                raise Refused(f"{shown(path)!r} is not shown: Git is told to ignore it.")
        return found

    def hides(self, path: Path, *, folder: bool) -> bool:
        """Whether something below the folder is hidden."""
        return self._hidden.hides(path.relative_to(self.root).parts, folder=folder)

    def walk(self, top: Path, depth: int, walked: Walked) -> Iterator[Entry]:
        """What lies below, level by level, each in the order of its names. No link is followed."""
        level: list[tuple[str, ...]] = [top.relative_to(self.root).parts]
        for _ in range(max(1, depth)):
            below: list[tuple[str, ...]] = []
            for folder in level:
                for entry in self._in(folder, walked):
                    yield entry
                    below += [entry.path] if entry.is_folder else []
            level = below
            if not level:
                return
        walked.deeper = True

    def _in(self, folder: Sequence[str], walked: Walked) -> list[Entry]:
        found: list[Entry] = []
        if not walked.in_time():
            return found
        try:
            with os.scandir(self.root.joinpath(*folder)) as entries:
                for nth, one in enumerate(entries):
                    if nth >= _CROWDED or not walked.in_time():
                        walked.crowded = walked.crowded or nth >= _CROWDED
                        break
                    found += self._entry(folder, one)
        except OSError:
            walked.closed += 1
        return sorted(found)

    def _entry(self, folder: Sequence[str], one: "os.DirEntry[str]") -> Iterator[Entry]:
        path = (*folder, one.name)
        is_folder = one.is_dir(follow_symlinks=False)
        if self._hidden.hides(path, folder=is_folder):
            return
        try:
            if one.is_symlink():
                self.find(os.path.join(*path))  # noqa: PTH118 - a name may end in spaces
            elif not is_folder and not one.is_file(follow_symlinks=False):
                return
            yield Entry(path, is_folder, 0 if is_folder else one.stat().st_size)
        except (OSError, Refused):
            return


def shown(name: str) -> str:
    """A path with anything that is no plain character escaped."""
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in name
    )


def size_of(size: int) -> str:
    """For people and models: 512 B, 14 kB, 3 MB."""
    for unit in ("B", "kB", "MB"):
        if size < _STEP:
            return f"{size} {unit}"
        size //= _STEP
    return f"{size} GB"


def with_notes(text: str, notes: Sequence[str]) -> str:
    """What a tool found, and below it what it left out and how to get it."""
    return "\n".join([text, *(f"[{note}]" for note in notes)])
