"""The text that an edit will need: regions of the files that are being worked on.

An agent edits a file by quoting the text that it replaces. What it has read of the file is folded
with the message that shows it, and without it the agent must read the file again. So a fold shows
regions of files, letter by letter, as they were read or written last, with the edits made since.

Which ones, out of far more than there is room for, was measured on recorded sessions. Agents first
read all that they are going to change, and then change it: until a few files are changed, a file
that was read is the likeliest to be needed. Later it is the lines that the model wrote itself, and
those next to them. A file of which only a part was read is seldom needed, and one that was not
touched for some folds hardly ever. Within files, those lines are needed that speak of what the user
and the model speak of.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from math import log1p, sqrt
from statistics import fmean
from typing import Final, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from refold.fold.facts import CHANGED, CallResult, call_results
from refold.fold.identifiers import strings
from refold.fold.material import Earlier, Material, Passage
from refold.fold.summary import Region
from refold.fold.watchdog import SUBJECT_ARGUMENTS, first_argument
from refold.log import PartRef
from refold.view import Counter as TokenCounter
from refold.view.framing import is_recall_tool, lines_of, on_one_line
from refold.wire.fingerprint import users_words

_MAX_STORED: Final = 160_000  # characters of all regions that a fold stores
_MAX_FILE: Final = 400_000  # characters of a file; a longer one is data
_MAX_BLOCK, _MIN_BLOCK, _MAX_GAP = 12, 4, 6  # lines
_MAX_TEXT: Final = 20_000  # characters of a message in which words are looked for
_HALF_LIFE: Final = 60  # messages

# How often a block is needed, against the others: uses for 10,000 tokens in recorded sessions.
_CHANGED, _READ, _EDITED = 4.0, 0.7, 0.3
_EARLY, _IN_PART, _STALE = 4.0, 0.1, 0.05
_FEW_FILES: Final = 4  # changed: until then, agents are about to change what they read
_NEAR: Final = 10  # lines from one that was changed
_LATELY: Final = 1  # folds ago; what was touched before is seldom needed
_ANY_LINE: Final = 0.5  # for lines that speak of nothing in particular
_MAX_FIT: Final = 1.5
_NEEDED: Final = 0.5
"""Blocks that are needed less often are not worth their tokens."""

_NUMBERED: Final = re.compile(r"^[ ]*\d+(?:\N{RIGHTWARDS ARROW}|\t|[ ]?\|[ ]?)", re.MULTILINE)
_ATTACHED: Final = re.compile(
    r"(?m)^(\S[^\n]*\.\w{1,10})\n(?=[ ]*1(?:\N{RIGHTWARDS ARROW}|\t))"
    r"|(?<=<system-reminder>\n)(\S*[/\\]\S*\.\w{1,10})\n"
)
_NOTE: Final = re.compile(r"\n+<system-reminder>[\s\S]*\Z|\n</system-reminder>[\s\S]*\Z")
_OUTPUT: Final = re.compile(r"\A(?:[A-Z][^\n:]*:[^\n]*\n|[A-Z][^\n]*\n){1,6}?Output:\n")
"""What Codex puts before the output of a command."""
_SHOWS: Final = re.compile(
    r"\b(?:cat|nl|head|tail|sed\s+-n)\s+(?:-\S+\s+|\d+\s+|['\"]?[\d,$]+p['\"]?\s+)*"
    r"['\"]?([\w@~./\\-]+\.[A-Za-z]\w{0,9})\b"
)
_FROM_START: Final = re.compile(
    r"\A(?:cd\s+\S+\s*&&\s*)?(?:cat|sed\s+-n\s+['\"]?1,(\d+)p['\"]?)\s+[^\s|&;]+\s*\Z"
)
_OLD: Final = ("old_string", "old_str", "old_text", "oldText", "oldString", "old")
_NEW: Final = ("new_string", "new_str", "new_text", "newText", "newString", "new")
_WHOLE: Final = ("content", "file_text", "contents", "text")
_RANGE: Final = ("offset", "limit", "view_range", "start_line", "end_line", "ranges")
_PATCH_FILE: Final = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.*)$")
_WORD: Final = re.compile(r"[A-Za-z_]\w{2,}")
_PIECE: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_FENCE: Final = re.compile(r"^\s*(`{3,})", re.MULTILINE)

HEADING: Final = "Regions of files that are being worked on, as read or written last"
_LEFT_OUT: Final = "[…]"


@dataclass
class _Segment:
    """Lines of a file that stand one after the other."""

    lines: list[str]
    source: PartRef
    start: int = 0
    changed: list[bool] = field(default_factory=list[bool])
    """For each line, whether the model wrote it."""

    def __post_init__(self) -> None:
        self.changed = self.changed or [False] * len(self.lines)

    def near_change(self, first: int, end: int) -> bool:
        """Whether one of these lines, or of those next to them, was changed."""
        return any(self.changed[max(0, first - _NEAR) : end + _NEAR])


@dataclass
class _File:
    path: str
    segments: list[_Segment] = field(default_factory=list[_Segment])
    edited: bool = False
    whole: bool = False
    age: int = 0
    """How many folds ago it was last read or changed."""

    def show(self, text: str, source: PartRef, *, whole: bool) -> None:
        lines = text.splitlines()
        written = {
            line
            for one in self.segments
            for line, changed in zip(one.lines, one.changed, strict=True)
            if changed and line.strip()
        }
        self.age = 0
        self.whole = whole or self.whole
        new = {line for line in lines if line.strip()}
        left = [one for one in self.segments if not (whole or _is_within(one.lines, new))]
        changed = [line in written for line in lines]
        self.segments = [*left, _Segment(lines, source, _end(left), changed)]

    def write(self, text: str, source: PartRef) -> None:
        self.edited = self.whole = True
        lines = text.splitlines()
        self.segments, self.age = [_Segment(lines, source, 0, [True] * len(lines))], 0

    def edit(self, old: str, new: str, source: PartRef) -> None:
        """Text of the file was replaced."""
        self.edited, self.age = True, 0
        old, new = old.strip("\n"), new.strip("\n")
        for segment in self.segments:
            text = "\n".join(segment.lines)
            if old and old in text:
                before, _, after = text.partition(old)
                segment.lines = f"{before}{new}{after}".split("\n")
                first, rest = before.count("\n"), after.count("\n")
                count = len(segment.lines) - first - rest
                end = len(segment.changed) - rest
                segment.changed[first:end] = [True] * count
                segment.source = source
                return
        if new.strip():
            lines = new.splitlines()
            self.segments.append(_Segment(lines, source, _end(self.segments), [True] * len(lines)))


class _Block(NamedTuple):
    file: _File
    start: int
    text: str
    source: PartRef
    changed: bool
    near_change: bool
    words: tuple[str, ...]
    """Each once. A set of them would take up far more than the text itself."""


def regions(material: Material) -> tuple[Region, ...]:
    """What a fold of this material may show of files, the likeliest to be needed first."""
    own = [passage for passage in material.passages if not passage.delegated]
    last = max((passage.seq for passage in own), default=0)
    after = [one for one in material.kept if not one.delegated and one.seq > last]
    files = _Files(material.earlier)
    files.take(own)
    files.take(after, shown=True)
    blocks = [block for file in files.known.values() for block in _blocks(file)]
    if not blocks:
        return ()
    words = _words_in_use([*own, *after])
    common = Counter(word for block in blocks for word in block.words)
    rarity = {word: log1p(len(blocks) / count) for word, count in common.items()}
    fits = [_relevance(block.words, words, rarity) for block in blocks]
    weights = {id(file): files.weight(file) for file in files.known.values()}
    values = [
        files.weight(block.file, _CHANGED)
        if block.near_change
        else weights[id(block.file)] * (_ANY_LINE + fit)
        for block, fit in zip(blocks, _with_files(blocks, fits), strict=True)
    ]
    found: list[tuple[float, int, Region]] = []
    for nth, (block, value) in enumerate(zip(blocks, _bridged(blocks, values), strict=True)):
        if value >= _NEEDED:
            file = block.file
            region = Region(
                file.path,
                block.start,
                block.text,
                block.source,
                file.age,
                file.edited,
                file.whole,
                block.changed,
            )
            found.append((-value, nth, region))
    room = _MAX_STORED
    chosen: list[Region] = []
    for _, _, region in sorted(found):
        room -= len(region.text)
        if room < 0:
            break
        chosen.append(region)
    return tuple(chosen)


def _with_files(blocks: Sequence[_Block], fits: Sequence[float]) -> Iterator[float]:
    """How much blocks and their files are about the words in use: on average, 0.5."""
    files = defaultdict[int, list[float]](list)
    for block, fit in zip(blocks, fits, strict=True):
        files[id(block.file)].append(fit)
    mean = fmean(fits) or 1.0
    means = {file: fmean(its) for file, its in files.items()}
    for block, fit in zip(blocks, fits, strict=True):
        yield min(_MAX_FIT, (fit + means[id(block.file)]) / (4 * mean))


def _bridged(blocks: Sequence[_Block], values: list[float]) -> list[float]:
    """The values, with those of a few lines between two blocks that are needed.

    An edit quotes lines that follow one another, so a gap within them would make it impossible.
    """
    bridged = [*values]
    before: int | None = None
    for nth, block in enumerate(blocks):
        if values[nth] < _NEEDED:
            continue
        if before is not None and blocks[before].file is block.file:
            gap = block.start - blocks[before].start - blocks[before].text.count("\n") - 1
            if 0 < gap <= _MAX_GAP:
                value = min(values[before], values[nth])
                bridged[before + 1 : nth] = [max(value, x) for x in values[before + 1 : nth]]
        before = nth
    return bridged


class _Files:
    """What is known of files, from earlier folds and from calls, in order."""

    def __init__(self, earlier: Sequence[Earlier]) -> None:
        self.known: dict[str, _File] = {}
        self._changed = {
            _clean(claim.text) for fold in earlier for claim in fold.summary.section(CHANGED)
        }
        """The files that were changed."""
        for fold in earlier:
            stored = sorted(fold.summary.regions, key=lambda one: (one.path, one.start))
            for region in stored:
                self._add_earlier(region)

    def _add_earlier(self, region: Region) -> None:
        file = self.known.get(region.path)
        if file is None:
            file = self.known[region.path] = _File(
                region.path, edited=region.edited, whole=region.whole
            )
        file.age = region.age + 1
        lines = region.text.split("\n")
        changed = [region.changed] * len(lines)
        newest = file.segments[-1] if file.segments else None
        if newest and newest.start + len(newest.lines) == region.start:
            newest.lines += lines
            newest.changed += changed
        else:
            file.segments.append(_Segment(lines, region.source, region.start, changed))

    def take(self, passages: Sequence[Passage], *, shown: bool = False) -> None:
        """Take in messages; of those that requests go on showing, only what they change."""
        results = {result.ref: result for result in call_results(passages)}
        for passage in passages:
            for index, shape in enumerate(passage.shapes):
                ref = passage.ref(index)
                if shape.kind == "prompt":
                    for path, text in _attached(shape.text):
                        self._show(path, text, ref, shown=shown, whole=True)
                elif shape.kind == "return" and ref in results:
                    self._take(results[ref], shown=shown)

    def weight(self, file: _File, changed: float = 0) -> float:
        """How likely a block of this file is to be needed, at or away from what was `changed`."""
        weight = changed or (_EDITED if file.edited else _READ)
        if not changed and len(self._changed) <= _FEW_FILES:
            weight *= _EARLY
        if not (changed or file.whole):
            weight *= _IN_PART
        return weight * (_STALE if file.age > _LATELY else 1)

    def _take(self, result: CallResult, *, shown: bool) -> None:
        if is_recall_tool(result.call.tool) or result.error:
            return
        arguments = _arguments(result.call.text)
        source = result.made or result.ref
        changes = [*_changes(arguments, result.path)]
        for path, old, new in changes:
            file = self._file(path)
            self._changed.add(file.path)
            if old is None:
                file.write(new, source)
            else:
                file.edit(old, new, source)
            if shown and old is None:
                self.known.pop(file.path, None)
        if changes or result.changes:
            return
        text = _NOTE.sub("", result.result)
        if result.command:
            paths = {*_SHOWS.findall(result.command)}
            if len(paths) == 1:
                text = _OUTPUT.sub("", text)
                whole = _shows_all(result.command, text)
                self._show(paths.pop(), text, result.ref, shown=shown, whole=whole)
        elif result.path and not first_argument(result.call.text, SUBJECT_ARGUMENTS):
            asked = arguments if isinstance(arguments, dict) else {}
            whole = not any(asked.get(key) for key in _RANGE)
            self._show(result.path, text, result.ref, shown=shown, whole=whole)

    def _show(self, path: str, text: str, source: PartRef, *, shown: bool, whole: bool) -> None:
        if len(text) > _MAX_FILE:
            return
        if shown and whole:
            self.known.pop(_clean(path), None)
        elif not shown:
            self._file(path).show(_unnumbered(text), source, whole=whole)

    def _file(self, path: str) -> _File:
        return self.known.setdefault(_clean(path), _File(_clean(path)))


def _blocks(file: _File) -> Iterator[_Block]:
    """The file in pieces of a few lines, cut at blank lines where there are any."""
    for segment in file.segments:
        first = 0
        for nth, line in enumerate(segment.lines):
            size = nth + 1 - first
            blank = not line.strip() and size >= _MIN_BLOCK
            if blank or size >= _MAX_BLOCK or nth == len(segment.lines) - 1:
                text = "\n".join(segment.lines[first : nth + 1])
                if text.strip():
                    yield _Block(
                        file,
                        segment.start + first,
                        text,
                        segment.source,
                        any(segment.changed[first : nth + 1]),
                        segment.near_change(first, nth + 1),
                        tuple(_words(text)),
                    )
                first = nth + 1


def _relevance(
    words: Sequence[str], in_use: Mapping[str, float], rarity: Mapping[str, float]
) -> float:
    """How much the words of a block are those in use; rare ones count more."""
    shared = sum(log1p(in_use[word]) * rarity[word] for word in words if word in in_use)
    return shared / sqrt(10 + sum(rarity[word] for word in words))


def _words_in_use(passages: Sequence[Passage]) -> dict[str, float]:
    """The words of the user, of the model, and of what it wrote into files, the newest more."""
    found = defaultdict[str, float](float)
    for age, passage in enumerate(reversed(passages)):
        fresh = 0.5 ** (age / _HALF_LIFE)
        for shape in passage.shapes:
            if shape.kind == "prompt":
                text, weight = users_words(shape.text), 1.0  # what is asked for stays in force
            elif shape.kind in ("text", "thought"):
                text, weight = shape.text, fresh
            elif shape.kind == "call":
                text, weight = "\n".join(strings(_arguments(shape.text), keys=False)), fresh
            else:
                continue
            for word, times in _words(text[:_MAX_TEXT]).items():
                found[word] += weight * sqrt(min(3, times))
    return found


def _words(text: str) -> Counter[str]:
    """The words of a text and of its names, in lower case: targetAgent, target, agent."""
    found = Counter[str]()
    for word in _WORD.findall(text):
        found.update(_pieces(word))
    return found


@lru_cache(maxsize=20_000)
def _pieces(word: str) -> tuple[str, ...]:
    pieces = [piece.lower() for piece in _PIECE.findall(word) if len(piece) > 2]  # noqa: PLR2004
    return tuple(dict.fromkeys([*pieces, word] if len(pieces) > 1 else pieces))


def _changes(arguments: JsonValue, path: str | None) -> Iterator[tuple[str, str | None, str]]:
    """What a call changes: the path, the old text (none where all is written) and the new."""
    if not isinstance(arguments, dict):
        return
    for text in strings(arguments, keys=False):
        if "*** Begin Patch" in text or "*** Update File:" in text:
            yield from _patched(text)
            return
    if path is None:
        return
    edits = [*_edits(arguments)]
    for old, new in edits:
        yield path, old, new
    if not edits:
        whole = next((x for key in _WHOLE if isinstance(x := arguments.get(key), str)), None)
        if whole is not None:
            yield path, None, whole


def _edits(value: JsonValue) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for item in value:
            yield from _edits(item)
    elif isinstance(value, dict):
        old, new = (
            next((x for key in keys if isinstance(x := value.get(key), str)), None)
            for keys in (_OLD, _NEW)
        )
        if old is not None and new is not None:
            yield old, new
        else:
            for item in value.values():
                if isinstance(item, list | dict):
                    yield from _edits(item)


def _patched(patch: str) -> Iterator[tuple[str, str | None, str]]:
    """The hunks of a patch as Codex writes it."""
    path, action = "", ""
    old: list[str] = []
    new: list[str] = []

    def hunk() -> Iterator[tuple[str, str | None, str]]:
        if path and action == "Add" and new:
            yield path, None, "\n".join(new)
        elif path and action == "Update" and (old or new):
            yield path, "\n".join(old), "\n".join(new)
        old.clear()
        new.clear()

    for line in patch.splitlines():
        if line.startswith(("@@", "***")):
            yield from hunk()
            if match := _PATCH_FILE.match(line):
                action, path = match[1], match[2].strip()
            continue
        if line[:1] != "+":
            old.append(line[1:])
        if line[:1] != "-":
            new.append(line[1:])
    yield from hunk()


def _attached(text: str) -> Iterator[tuple[str, str]]:
    """Files that an agent's harness put into the user's message."""
    starts = [*_ATTACHED.finditer(text)] if "<" in text else []
    for nth, match in enumerate(starts):
        end = starts[nth + 1].start() if nth + 1 < len(starts) else len(text)
        yield (match[1] or match[2]).strip(), _NOTE.sub("", text[match.end() : end])


def _shows_all(command: str, output: str) -> bool:
    start = _FROM_START.search(command)
    return bool(start) and (not start[1] or len(output.splitlines()) < int(start[1]))


def _unnumbered(text: str) -> str:
    """The text of a file without the numbers that a tool put before its lines."""
    lines = text.count("\n") + 1
    return _NUMBERED.sub("", text) if 2 * len(_NUMBERED.findall(text)) >= lines else text


def _arguments(text: str) -> JsonValue:
    with suppress(ValueError):
        return from_json(text)
    return text


def _end(segments: Sequence[_Segment]) -> int:
    """Where lines stand of which no more is known than that they are in the file."""
    return max((one.start + len(one.lines) + 1 for one in segments), default=0)


def _is_within(lines: Sequence[str], others: set[str]) -> bool:
    said = [line for line in lines if line.strip()]
    return 2 * sum(line in others for line in said) >= len(said)


def _clean(path: str) -> str:
    return on_one_line(path.replace("\\", "/"))


# What is shown of them.


def region_block(found: Iterable[Region], counter: TokenCounter, room: int) -> str:
    """The regions that fit, file by file; empty if none does."""
    room -= counter.text(f"## {HEADING}\n")
    files: dict[str, list[Region]] = {}
    for region in found:
        cost = counter.text(f"{region.text}\n")
        if region.path not in files:
            cost += counter.text(_head(region)) + counter.text(f"```\n{_LEFT_OUT}\n```\n")
        if cost <= room:
            room -= cost
            files.setdefault(region.path, []).append(region)
    shown = [_file_text(sorted(each, key=lambda one: one.start)) for each in files.values()]
    return "\n".join((f"## {HEADING}", *shown)) if shown else ""


def _head(region: Region) -> str:
    return f"### {region.path} (entry {region.source.seq})"


def _file_text(shown: Sequence[Region]) -> str:
    lines: list[str] = []
    end = 0
    for region in shown:
        if region.start != end:
            lines.append(_LEFT_OUT)
        lines += lines_of(f"{region.text}\n")  # with the last line, where it is blank
        end = region.start + region.text.count("\n") + 1
    text = "\n".join(lines)
    # A fence that is longer than any in the text ends where we say so.
    fence = "`" * max((len(one) + 1 for one in _FENCE.findall(text)), default=3)
    newest = max(shown, key=lambda one: one.source)
    return f"{_head(newest)}\n{fence}\n{text}\n{fence}"
