"""A folder as a model may see it: nothing outside, nothing that Git is told to ignore.

`.gitignore` files are read as Git reads them, without Git. Names are compared byte by byte: each
byte is one character here. Every pattern is matched in time linear in the length of the path.
"""

import os
import re
import string
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

_MAX_ENTRIES: Final = 20_000  # of one folder
_STEP: Final = 1_000
_LOOK: Final = "list_files shows what there is."
_MAX_BYTES: Final = 1 << 20  # of a .gitignore file
_NEVER: Final = re.compile(r"(?!)")
_CLASSES: Final = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, [*range(32), 127])),
    "digit": string.digits,
    "graph": "".join(map(chr, range(33, 127))),
    "lower": string.ascii_lowercase,
    "print": "".join(map(chr, range(32, 127))),
    "punct": string.punctuation,
    "space": " \t\n\r\v\f",
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}


class Rule(NamedTuple):
    segments: tuple[str, ...]  # the pattern between its slashes
    anchored: bool  # whether it begins in the file's folder, rather than anywhere below
    folders: bool  # whether it applies to folders only
    shows: bool  # whether it shows again what an earlier one hides


class _Folder(NamedTuple):
    """A folder's rules, so that nothing above it is read again."""

    names: tuple[str, ...]  # from the top on, byte by byte
    rules: tuple[tuple[int, tuple[Rule, ...]], ...]
    """Depth of the file, and its rules: the deepest file and the last line first."""
    hidden: bool


class IgnoreRules:
    """Ignores by the folder's own files, those above it in its repository, and Git's own.

    Args:
        folder: Its resolved path.
    """

    def __init__(self, folder: Path) -> None:
        folders = (folder, *folder.parents)
        self._top = next((one for one in folders if (one / ".git").exists()), folder)
        self._above = folder.relative_to(self._top).parts
        top = _Folder((), self._rules(()), hidden=False)
        self._folders: dict[tuple[str, ...], _Folder] = {(): top}

    def hides(self, path: Sequence[str], *, folder: bool) -> bool:
        """Whether a path below the folder is hidden, or a folder above it is."""
        if any(part.lower() == ".git" for part in path):
            return True
        if not path:
            return False
        above = self._folder((*self._above, *path[:-1]))
        return above.hidden or _is_ignored(above, as_bytes(path[-1]), folder=folder)

    def _folder(self, path: tuple[str, ...]) -> _Folder:
        """Each folder is read once, after the one above it."""
        depth = len(path)
        while path[:depth] not in self._folders:
            depth -= 1
        for end in range(depth, len(path)):
            above, below = self._folders[path[:end]], path[: end + 1]
            self._folders[below] = self._read_folder(above, below)
        return self._folders[path]

    def _read_folder(self, above: _Folder, path: tuple[str, ...]) -> _Folder:
        name = as_bytes(path[-1])
        names = (*above.names, name)
        is_below = len(path) > len(self._above)  # the folder itself is shown, whatever hides it
        if above.hidden or (is_below and _is_ignored(above, name, folder=True)):
            return _Folder(names, (), hidden=True)
        return _Folder(names, (*self._rules(path), *above.rules), hidden=False)

    def _rules(self, path: Sequence[str]) -> tuple[tuple[int, tuple[Rule, ...]], ...]:
        folder = self._top.joinpath(*path)
        files = [folder / ".gitignore"]
        if not path:
            files.insert(0, folder / ".git" / "info" / "exclude")
        rules = [rule for file in files for rule in _rules_in(file)]
        return ((len(path), tuple(reversed(rules))),) if rules else ()


def _is_ignored(above: _Folder, name: str, *, folder: bool) -> bool:
    """The deepest file decides, and in it the last line."""
    names = (*above.names, name)
    for depth, rules in above.rules:
        for rule in rules:
            path = names[depth:] if rule.anchored else names[-1:]
            if (folder or not rule.folders) and matches(rule.segments, path):
                return not rule.shows
    return False


def as_bytes(name: str) -> str:
    """A name of a file with one character for each of its bytes."""
    return os.fsencode(name).decode("latin-1")


def _rules_in(file: Path) -> Iterator[Rule]:
    try:
        with file.open("rb") as opened:
            text = opened.read(_MAX_BYTES).decode("latin-1")
    except OSError:
        return
    for line in text.removeprefix("\xef\xbb\xbf").split("\n"):
        pattern = _without_trailing_spaces(line.removesuffix("\r"))
        if pattern.startswith("#"):
            continue
        shows = pattern.startswith("!")
        pattern = pattern[1:] if shows else pattern
        folders = pattern.endswith("/")
        pattern = pattern[:-1] if folders else pattern
        if pattern:
            segments = between_slashes(pattern.removeprefix("/"))
            yield Rule(segments, "/" in pattern, folders, shows)


def between_slashes(pattern: str) -> tuple[str, ...]:
    """The pattern's segments; a slash in brackets separates nothing, and `**/**` is one."""
    segments = [""]
    index = 0
    while index < len(pattern):
        end = index + 1
        if pattern[index] == "[":
            inside, after = _class(pattern, end)
            end = end if inside is None else after
        elif pattern[index] == "\\" and pattern[end : end + 1] != "/":
            end += 1
        if pattern[index:end] == "/":
            segments.append("")
        elif pattern[index : index + 2] != "\\/":
            segments[-1] += pattern[index:end]
        index = end
    pairs = pairwise(["", *segments])
    return tuple(this for before, this in pairs if not (_is_any(this) and _is_any(before)))


def matches(segments: Sequence[str], path: Sequence[str]) -> bool:
    """Whether a pattern, given between its slashes, matches a whole path.

    `**` stands for any number of folders, and at the end for whatever lies below.
    """
    reached = _with_next(segments, {0})
    for name in path:
        after = {then for index in reached for then in _after(segments, index, name)}
        reached = _with_next(segments, after)
        if not reached:
            return False
    return len(segments) in reached


def _after(segments: Sequence[str], index: int, name: str) -> tuple[int, ...]:
    if index == len(segments):
        return ()
    if _is_any(segments[index]):
        return (index, index + 1) if _is_below(segments, index) else (index,)
    return (index + 1,) if segment(segments[index]).fullmatch(name) else ()


def _with_next(segments: Sequence[str], reached: set[int]) -> set[int]:
    """Also those behind a `**`, which may stand for no folder at all."""
    free = (index for index in reached if index < len(segments) and _is_any(segments[index]))
    return reached | {index + 1 for index in free if not _is_below(segments, index)}


def _is_below(segments: Sequence[str], index: int) -> bool:
    """Whether a `**` is the one that stands for what lies below the others."""
    return 0 < index == len(segments) - 1


def _is_any(segment: str) -> bool:
    return len(segment) > 1 and not segment.strip("*")


@lru_cache(4_096)
def segment(pattern: str) -> re.Pattern[str]:
    pieces, valid = [""], True
    index = 0
    while index < len(pattern) and valid:
        letter = pattern[index]
        index += 1
        if letter == "*":
            pieces.append("")
            continue
        if letter == "[":
            piece, index = _class(pattern, index)
            valid = piece is not None
            pieces[-1] += piece or ""
        elif letter == "\\":
            valid = index < len(pattern)
            pieces[-1] += re.escape(pattern[index : index + 1])
            index += 1
        else:
            pieces[-1] += "[^/]" if letter == "?" else re.escape(letter)
    if not valid:
        return _NEVER
    # The pieces with anything between them; each matches once, as early as it can.
    text, *others = pieces
    if others:
        middle = "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece)
        text += f"{middle}.*{others[-1]}"
    return re.compile(text, re.DOTALL)


def _class(pattern: str, index: int) -> tuple[str | None, int]:
    """The characters that a pair of brackets stands for, and where it ends; None without an end."""
    negated = pattern[index : index + 1] in ("!", "^")
    index += negated
    members: set[str] = set()
    first, before = True, ""
    while index < len(pattern):
        letter = pattern[index]
        if letter == "]" and not first:
            chosen = set(map(chr, range(256))) - members if negated else members
            return _one_of(chosen - {"/"}), index + 1
        first = False
        if named := re.match(r"\[:(\w*):\]", pattern[index:]):
            if named[1] not in _CLASSES:
                return None, index
            members |= set(_CLASSES[named[1]])
            index, before = index + len(named[0]), ""
        elif letter == "-" and before and pattern[index + 1 : index + 2] not in ("", "]"):
            last, index = _literal(pattern, index + 1)
            members |= set(map(chr, range(ord(before), ord(last or before) + 1)))
            before = ""
        else:
            before, index = _literal(pattern, index)
            members.add(before)
    return None, index


def _literal(pattern: str, index: int) -> tuple[str, int]:
    escaped = pattern[index] == "\\"
    return pattern[index + escaped : index + escaped + 1], index + escaped + 1


def _one_of(members: set[str]) -> str:
    return f"[{''.join(map(re.escape, sorted(members)))}]" if members else "(?!)"


def _without_trailing_spaces(line: str) -> str:
    bare = line.rstrip(" ")
    escapes = len(bare) - len(bare.rstrip("\\"))
    return line[: len(bare) + 1] if escapes % 2 else bare


class Entry(NamedTuple):
    path: tuple[str, ...]  # below the folder
    is_folder: bool
    size: int


class PathRefused(Exception):
    """What a path cannot be used for, in words for the model."""


class WalkState:
    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self.deeper = False  # folders are deeper than the limit
        self.crowded = False  # A folder has too many entries
        self.late = False  # the time was up
        self.closed = 0  # folders that could not be read

    @property
    def closed_note(self) -> str:
        return f"Folders that could not be read: {self.closed:,}."

    def in_time(self) -> bool:
        self.late = self.late or time.monotonic() > self._until
        return not self.late


class VisibleFolder:
    """One folder, looked at once: make a new one for each question."""

    def __init__(self, folder: Path) -> None:
        self.root = folder.resolve()
        self._ignored = IgnoreRules(self.root)

    def find(self, path: str) -> Path:
        """The target of a path, wherever links lead. Raises PathRefused."""
        outside = PathRefused(
            f"{printable(path)!r} lies outside the folder. Only paths within it can be seen: "
            'list_files(".") shows them.'
        )
        try:
            given = Path(os.path.normpath(self.root / path))
            if not given.is_relative_to(self.root):
                raise outside
            target = given.resolve(strict=True)
        except FileNotFoundError:
            raise PathRefused(f"There is nothing at {printable(path)!r}. {_LOOK}") from None
        except (OSError, ValueError, RuntimeError):
            raise PathRefused(f"{printable(path)!r} cannot be read. {_LOOK}") from None
        if not target.is_relative_to(self.root):
            raise outside
        for one in (given, target):
            if self._ignored.hides(one.relative_to(self.root).parts, folder=target.is_dir()):
                raise PathRefused(f"{printable(path)!r} is not shown: Git is told to ignore it.")
        return target

    def walk(self, top: Path, depth: int, state: WalkState) -> Iterator[Entry]:
        """What lies below, level by level, each in the order of its names. No link is followed."""
        level: list[tuple[str, ...]] = [top.relative_to(self.root).parts]
        for _ in range(max(1, depth)):
            below: list[tuple[str, ...]] = []
            for folder in level:
                for entry in self._in(folder, state):
                    yield entry
                    below += [entry.path] if entry.is_folder else []
            level = below
            if not level:
                return
        state.deeper = True

    def _in(self, folder: Sequence[str], state: WalkState) -> list[Entry]:
        found: list[Entry] = []
        if not state.in_time():
            return found
        try:
            with os.scandir(self.root.joinpath(*folder)) as entries:
                for nth, one in enumerate(entries):
                    if nth >= _MAX_ENTRIES or not state.in_time():
                        state.crowded = state.crowded or nth >= _MAX_ENTRIES
                        break
                    found += self._entry(folder, one)
        except OSError:
            state.closed += 1
        return sorted(found)

    def _entry(self, folder: Sequence[str], one: "os.DirEntry[str]") -> Iterator[Entry]:
        path = (*folder, one.name)
        is_folder = one.is_dir(follow_symlinks=False)
        if self._ignored.hides(path, folder=is_folder):
            return
        try:
            if one.is_symlink():
                self.find(os.path.join(*path))  # noqa: PTH118 - a name may end in spaces
            elif not is_folder and not one.is_file(follow_symlinks=False):
                return
            yield Entry(path, is_folder, 0 if is_folder else one.stat().st_size)
        except (OSError, PathRefused):
            return


def printable(name: str) -> str:
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
