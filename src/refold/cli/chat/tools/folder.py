"""A folder as a model may see it: nothing outside, nothing that Git is told to ignore."""

import os
import re
import string
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

# What `.gitignore` files hide, as Git reads them, without Git.
#
# Names are compared byte by byte, as Git does: each byte stands here as one character. Every
# pattern
# is matched in time that grows with the length of the path only, whoever wrote it.

_FILE: Final = ".gitignore"
_LARGEST: Final = 1 << 20  # bytes of a file that are read
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
    folders: bool  # whether it is about folders only
    shows: bool  # whether it shows again what an earlier one hides

    def matches(self, path: Sequence[str]) -> bool:
        """Whether the path, below the file's folder, is meant."""
        return matches(self.segments, path if self.anchored else path[-1:])


class _Folder(NamedTuple):
    """What is known of a folder, so that nothing above it is looked at again."""

    names: tuple[str, ...]  # from the top on, byte by byte
    rules: tuple[tuple[int, tuple[Rule, ...]], ...]
    """Those that apply in it, the deepest file and the last line first, and how deep it lies."""
    hidden: bool


class IgnoreRules:
    """What is hidden in a folder: by its own files, those above it in its repository, and Git's."""

    def __init__(self, folder: Path) -> None:
        """Look at this folder, which is resolved already."""
        self._top = next(
            (one for one in (folder, *folder.parents) if (one / ".git").exists()), folder
        )
        self._above = folder.relative_to(self._top).parts
        top = _Folder((), self._rules(()), hidden=False)
        self._known: dict[tuple[str, ...], _Folder] = {(): top}

    def hides(self, path: Sequence[str], *, folder: bool) -> bool:
        """Whether a path below the folder is hidden, or lies in one that is."""
        if any(part.lower() == ".git" for part in path):
            return True
        if not path:
            return False
        above = self._folder((*self._above, *path[:-1]))
        return above.hidden or _named(above, as_bytes(path[-1]), folder=folder)

    def _folder(self, path: tuple[str, ...]) -> _Folder:
        """What is known of a folder; each is looked at once, and after the one above it."""
        known = len(path)
        while path[:known] not in self._known:
            known -= 1
        for end in range(known, len(path)):
            self._known[path[: end + 1]] = self._below(self._known[path[:end]], path[: end + 1])
        return self._known[path]

    def _below(self, above: _Folder, path: tuple[str, ...]) -> _Folder:
        name = as_bytes(path[-1])
        names = (*above.names, name)
        asked = len(path) > len(self._above)  # the folder itself is shown, whatever hides it
        if above.hidden or (asked and _named(above, name, folder=True)):
            return _Folder(names, (), hidden=True)
        return _Folder(names, (*self._rules(path), *above.rules), hidden=False)

    def _rules(self, path: Sequence[str]) -> tuple[tuple[int, tuple[Rule, ...]], ...]:
        folder = self._top.joinpath(*path)
        files = [folder / _FILE]
        if not path:
            files.insert(0, folder / ".git" / "info" / "exclude")
        found = [rule for file in files for rule in rules(_text(file))]
        return ((len(path), tuple(reversed(found))),) if found else ()


def _named(above: _Folder, name: str, *, folder: bool) -> bool:
    """Whether rules name it: the deepest file decides, and in it the last line."""
    names = (*above.names, name)
    for depth, found in above.rules:
        below = names[depth:]
        for rule in found:
            if (folder or not rule.folders) and rule.matches(below):
                return not rule.shows
    return False


def as_bytes(name: str) -> str:
    """A name of a file with one character for each of its bytes."""
    return os.fsencode(name).decode("latin-1")


def rules(text: str) -> Iterator[Rule]:
    """The rules of a file, given with one character for each byte."""
    for line in text.removeprefix("\xef\xbb\xbf").split("\n"):
        rule = rule_of(line.removesuffix("\r"))
        if rule is not None:
            yield rule


def rule_of(line: str) -> Rule | None:
    """The rule of one line, if it has any."""
    pattern = _without_trailing_spaces(line)
    if pattern.startswith("#"):
        return None
    shows = pattern.startswith("!")
    pattern = pattern[1:] if shows else pattern
    folders = pattern.endswith("/")
    pattern = pattern[:-1] if folders else pattern
    if not pattern:
        return None
    anchored = "/" in pattern
    return Rule(between_slashes(pattern.removeprefix("/")), anchored, folders, shows)


def between_slashes(pattern: str) -> tuple[str, ...]:
    """The pattern's segments; a slash in brackets parts nothing."""
    segments = [""]
    at = 0
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "[":
            inside, after = _class(pattern, end)
            end = end if inside is None else after
        elif pattern[at] == "\\" and pattern[end : end + 1] != "/":
            end += 1
        if pattern[at:end] == "/":
            segments.append("")
        elif pattern[at : at + 2] != "\\/":
            segments[-1] += pattern[at:end]
        at = end
    alike = [_is_any(one) and _is_any(before) for before, one in pairwise(["", *segments])]
    return tuple(one for one, again in zip(segments, alike, strict=True) if not again)


def matches(segments: Sequence[str], path: Sequence[str]) -> bool:
    """Whether a pattern, given between its slashes, matches a whole path.

    `**` stands for any number of folders, and at the end for whatever lies below.
    """
    reached = _with_next(segments, {0})
    for name in path:
        after = {then for at in reached for then in _after(segments, at, name)}
        reached = _with_next(segments, after)
        if not reached:
            return False
    return len(segments) in reached


def _after(segments: Sequence[str], at: int, name: str) -> tuple[int, ...]:
    if at == len(segments):
        return ()
    if _is_any(segments[at]):
        return (at, at + 1) if _is_below(segments, at) else (at,)
    return (at + 1,) if segment(segments[at]).fullmatch(name) else ()


def _with_next(segments: Sequence[str], reached: set[int]) -> set[int]:
    """Also those behind a `**`, which may stand for no folder at all."""
    free = (at for at in reached if at < len(segments) and _is_any(segments[at]))
    return reached | {at + 1 for at in free if not _is_below(segments, at)}


def _is_below(segments: Sequence[str], at: int) -> bool:
    """Whether a `**` is the one that stands for what lies below the others."""
    return 0 < at == len(segments) - 1


def _is_any(segment: str) -> bool:
    return len(segment) > 1 and not segment.strip("*")


@lru_cache(4_096)
def segment(pattern: str) -> re.Pattern[str]:
    """What one name between slashes must look like."""
    pieces, found = [""], True
    at = 0
    while at < len(pattern) and found:
        letter = pattern[at]
        at += 1
        if letter == "*":
            pieces.append("")
            continue
        if letter == "[":
            piece, at = _class(pattern, at)
            found = piece is not None
            pieces[-1] += piece or ""
        elif letter == "\\":
            found = at < len(pattern)
            pieces[-1] += re.escape(pattern[at : at + 1])
            at += 1
        else:
            pieces[-1] += "[^/]" if letter == "?" else re.escape(letter)
    return re.compile(_joined(pieces), re.DOTALL) if found else _NEVER


def _joined(pieces: Sequence[str]) -> str:
    """The pieces with anything between them; each is found once, as early as it can be."""
    first, *others = pieces
    if not others:
        return first
    middle = "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece)
    return f"{first}{middle}.*{others[-1]}"


def _class(pattern: str, at: int) -> tuple[str | None, int]:
    """The characters that a pair of brackets stands for, and where it ends; None without an end."""
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    members: set[str] = set()
    first, before = True, ""
    while at < len(pattern):
        letter = pattern[at]
        if letter == "]" and not first:
            chosen = {chr(one) for one in range(256)} - members if negated else members
            return _one_of(chosen - {"/"}), at + 1
        first = False
        if named := re.match(r"\[:(\w*):\]", pattern[at:]):
            if named[1] not in _CLASSES:
                return None, at
            members |= set(_CLASSES[named[1]])
            at, before = at + len(named[0]), ""
        elif letter == "-" and before and pattern[at + 1 : at + 2] not in ("", "]"):
            last, at = _literal(pattern, at + 1)
            members |= {chr(one) for one in range(ord(before), ord(last or before) + 1)}
            before = ""
        else:
            before, at = _literal(pattern, at)
            members.add(before)
    return None, at


def _literal(pattern: str, at: int) -> tuple[str, int]:
    escaped = pattern[at] == "\\"
    return pattern[at + escaped : at + escaped + 1], at + escaped + 1


def _one_of(members: set[str]) -> str:
    return f"[{''.join(map(re.escape, sorted(members)))}]" if members else "(?!)"


def _without_trailing_spaces(line: str) -> str:
    bare = line.rstrip(" ")
    escapes = len(bare) - len(bare.rstrip("\\"))
    return line[: len(bare) + 1] if escapes % 2 else bare


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_LARGEST).decode("latin-1")
    except OSError:
        return ""


_CROWDED = 20_000  # entries of one folder that are looked at
_STEP = 1_000
_LOOK = "list_files shows what there is."


class Entry(NamedTuple):
    """A file or folder that is shown."""

    path: tuple[str, ...]  # below the folder
    is_folder: bool
    size: int


class Refused(Exception):
    """What a path cannot be used for, in words for the model."""


class WalkState:
    """What a walk has left out."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self.deeper = False  # folders lie deeper than was asked for
        self.crowded = False  # A folder has too many entries
        self.late = False  # the time was up
        self.closed = 0  # folders that could not be read

    @property
    def closed_note(self) -> str:
        """How many folders could not be read, in words."""
        return f"Folders that could not be read: {self.closed:,}."

    def in_time(self) -> bool:
        self.late = self.late or time.monotonic() > self._until
        return not self.late


class VisibleFolder:
    """One folder, looked at once: make a new one for each question."""

    def __init__(self, folder: Path) -> None:
        self.root = folder.resolve()
        self._hidden = IgnoreRules(self.root)

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
        return self._hidden.hides(path.relative_to(self.root).parts, folder=folder)

    def walk(self, top: Path, depth: int, walked: WalkState) -> Iterator[Entry]:
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

    def _in(self, folder: Sequence[str], walked: WalkState) -> list[Entry]:
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
