"""The timeline of an explanation: what was said, in order, and what became of it."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, Literal, NamedTuple

from refold.view.explanation import (
    Disposition,
    Findings,
    Inserted,
    Line,
    Piece,
    Told,
    Tone,
    columns,
    first_words,
    padded,
    sentence,
)
from refold.view.plan import Gone

# The messages of a session in stretches that are told together: turns, parts of turns, gaps.

_OFF_SHEET = frozenset({"folded", "off the line", "not read"})
_WITHIN = frozenset({"unanswered", "late", "delegated"})
"""Inserts that belong to what was said around them; the others are told on lines of their own."""
_LONG = 8
"""Untouched steps in a row that are told apart from touched ones around them."""

Sort = Literal["turn", "prompt", "steps", "gap"]
"""A whole turn; the prompt that opens one; steps within one; messages of which none is sent."""


class Stretch(NamedTuple):
    """Messages that follow one another."""

    sort: Sort
    lines: tuple[Line, ...]
    inserts: tuple[Inserted, ...] = ()
    """What was put in between."""
    turns: int = 0

    @property
    def first(self) -> int:
        """Its first entry."""
        return self.lines[0].seq

    @property
    def last(self) -> int:
        """Its last entry."""
        return self.lines[-1].seq

    @property
    def before(self) -> int:
        """Its tokens."""
        return sum(line.before for line in self.lines)

    @property
    def after(self) -> int:
        """The tokens that are sent of it, and of what was put in between."""
        return sum(line.after for line in self.lines) + sum(one.tokens for one in self.inserts)


def stretches(
    lines: Sequence[Line], inserts: Iterable[Inserted], room: int
) -> list[Stretch | Inserted]:
    """The session in about `room` stretches: its steps, or else its turns, or else several turns.

    Inserts that stand for themselves come where they are sent.
    """
    turns = list(_turns(lines))
    fine = [piece for turn in turns for piece in _within(turn)]
    found = fine if len(fine) <= room else list(_fewer(turns, room))
    return list(_placed(found, inserts))


def _turns(lines: Sequence[Line]) -> Iterator[Stretch]:
    """One stretch for each turn; neighbours of which nothing is sent, for one reason, as one."""
    groups: list[list[Line]] = []
    for line in lines:
        if not groups or line.opens or _apart(groups[-1][-1], line):
            groups.append([])
        groups[-1].append(line)
    for reason, gap in groupby(groups, key=_why_gone):
        if reason:
            several = [tuple(group) for group in gap]
            turns = sum(_prompts(group) for group in several)
            yield Stretch("gap", tuple(line for group in several for line in group), turns=turns)
        else:
            yield from (Stretch("turn", tuple(group), turns=group[0].opens) for group in gap)


def _apart(before: Line, line: Line) -> bool:
    """Whether a stretch off the sheet begins or ends between them."""
    aside = [one.reason if one.reason in _OFF_SHEET else "" for one in (before, line)]
    return aside[0] != aside[1]


def _why_gone(lines: Sequence[Line]) -> str:
    reasons = {line.reason for line in lines}
    return reasons.pop() if len(reasons) == 1 else ""


def _prompts(lines: Sequence[Line]) -> int:
    return sum(any(part.kind == "prompt" for part in line.parts) for line in lines)


def _within(turn: Stretch) -> Iterator[Stretch]:
    """A turn as its prompt, its steps by fate, and its reply."""
    if turn.sort == "gap":
        yield turn
        return
    lines = turn.lines
    if lines[0].opens:
        yield Stretch("prompt", lines[:1], turns=1)
        lines = lines[1:]
    steps = [tuple(step) for _, step in groupby(lines, key=lambda line: line.step)]
    for fate, some in _evened([(_fate(step), [step]) for step in steps]):
        sort: Sort = "gap" if fate not in ("", "touched") else "steps"
        yield Stretch(sort, tuple(line for step in some for line in step))


Fated = tuple[str, list[tuple[Line, ...]]]


def _fate(step: Sequence[Line]) -> str:
    """Why nothing of a step is sent; else "touched" if not all is sent as it is, else nothing."""
    gone = _why_gone(step)
    untouched = all(part.disposition.edit == "keep" for line in step for part in line.parts)
    return gone or ("" if untouched else "touched")


def _evened(steps: list[Fated]) -> list[Fated]:
    """Neighbours of one fate as one; a few untouched steps go with the touched ones before them."""
    found: list[Fated] = []
    for fate, some in _joined(steps):
        few = len(some) < _LONG and sum(len(one) for _, one in steps) > _LONG
        if not fate and few and found and found[-1][0] == "touched":
            found.append(("touched", some))
        else:
            found.append((fate, some))
    return _joined(found)


def _joined(steps: Iterable[Fated]) -> list[Fated]:
    return [
        (fate, [step for _, some in run for step in some])
        for fate, run in groupby(steps, key=lambda one: one[0])
    ]


def _fewer(turns: Sequence[Stretch], room: int) -> Iterator[Stretch]:
    """Older turns together, several at a time; the newest alone."""
    alone = room // 3
    older, newest = turns[: len(turns) - alone], turns[len(turns) - alone :]
    size = math.ceil(len(older) / max(1, room - alone))
    numbered = enumerate(older)
    for _, some in groupby(numbered, key=lambda one: one[0] // size):
        chunk = [one for _, one in some]
        if len(chunk) == 1:
            yield chunk[0]
        else:
            lines = tuple(line for one in chunk for line in one.lines)
            sort: Sort = "gap" if _why_gone(lines) else "turn"
            yield Stretch(sort, lines, turns=sum(one.turns for one in chunk))
    yield from newest


def _placed(found: Sequence[Stretch], inserts: Iterable[Inserted]) -> Iterator[Stretch | Inserted]:
    """Each insert in front of the stretch it leads, within the one it belongs to, or after it."""
    waiting = sorted(inserts, key=_place)
    for stretch in found:
        here = [one for one in waiting if _place(one) <= stretch.last]
        waiting = waiting[len(here) :]
        within = tuple(one for one in here if one.reason in _WITHIN)
        own = [one for one in here if one.reason not in _WITHIN]
        yield from (one for one in own if one.before <= stretch.first)
        yield stretch._replace(inserts=within)
        yield from (one for one in own if one.before > stretch.first)
    yield from waiting


def _place(insert: Inserted) -> int:
    """The entry it belongs to: the one it stands in front of, but a return to its call."""
    return insert.before - 1 if insert.kind == "return" else insert.before


Fate = Literal["kept", "cut", "archived", "folded", "dropped", "inserted"]
SYMBOLS: Final[dict[Fate, str]] = {
    "kept": "●",
    "cut": "◐",
    "archived": "○",
    "folded": "≡",
    "dropped": "◌",
    "inserted": "+",
}
ROOM: Final = 80
"""Lines that a timeline takes at most, or nearly; there is a way to see everything."""

_REFERRED = frozenset({"archived", "repeated", "superseded"})
_SAID = 24
"""Columns that what was said must have, before figures give way."""
_NAMED = 3
"""Tools that are named of a stretch, the most used first, where there is little room."""


def fate_of(disposition: Disposition) -> Fate:
    """What became of something, in one word of the legend."""
    edit, reason = disposition
    if edit == "keep":
        return "kept"
    if edit == "replace":
        return "archived" if reason in _REFERRED else "cut"
    return "folded" if reason == "folded" else "dropped"


def counted(number: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many}"


def timeline(found: Findings, width: int) -> Iterator[Sequence[Piece]]:
    """The session in stretches, a line each."""
    told = [_told(one) for one in stretches(found.lines, found.inserts, ROOM)]
    told += [_unread(gone) for gone in found.unlisted]
    told.sort(key=lambda one: one.first)
    if not told:
        return
    told.insert(0, _Told(0, "entries", "what was said", "", "", (Piece("parts"),), "tokens"))
    places = max(len(one.place) for one in told)
    fates = max(_size(one.fates) for one in told)
    tokens = max(len(one.tokens) for one in told)
    room = width - places - fates - tokens - 6
    if room < _SAID:
        told = [one._replace(fates=tuple(map(_mark, one.fates))) for one in told]
        fates = max(_size(one.fates) for one in told)
        room = width - places - fates - tokens - 6
    for one in told:
        line = (
            Piece(f"{one.place:>{places}}  ", "faint"),
            *one.said(room),
            Piece("  "),
            *one.fates,
            Piece(" " * (fates - _size(one.fates))),
            Piece(f"  {one.tokens:>{tokens}}"),
        )
        yield line if one.first else [Piece(piece.text, "faint") for piece in line]


def _mark(piece: Piece) -> Piece:
    """The symbol of a fate without its number, where there is little room."""
    return Piece(piece.text.strip()[:1], piece.tone) if piece.tone else piece


def _size(pieces: Iterable[Piece]) -> int:
    return sum(columns(piece.text) for piece in pieces)


def every_part(found: Findings, width: int) -> Iterator[Sequence[Piece]]:
    """Each part of each message, a line each."""
    inserts = sorted(found.inserts, key=lambda one: one.before)
    rows = [_gone_row(gone) for gone in found.unlisted]
    for line in found.lines:
        while inserts and inserts[0].before <= line.seq:
            rows.append(_insert_row(inserts.pop(0)))
        rows += [_part_row(part) for part in line.parts] or [_blank_row(line)]
    rows += [_insert_row(one) for one in inserts]
    if not rows:
        return
    sizes = [max(columns(row[at]) for row in rows) for at in range(4)]
    free = width - sizes[0] - sizes[2] - sizes[3] - 9
    sizes[1] = min(sizes[1], free // 2)
    room = free - sizes[1]
    for row in rows:
        name, what, reason, tokens = (
            padded(row[at], sizes[at], right=at in (0, 3)) for at in range(4)
        )
        yield (
            Piece(f"{name} ", "faint"),
            Piece(f"{SYMBOLS[row.fate]} ", row.fate),
            Piece(f"{what}  "),
            Piece(f"{padded(row.words, room)}  ", _emphasis(row)),
            Piece(f"{reason}  ", row.fate),
            Piece(tokens),
        )


def _emphasis(row: "_PartRow") -> Tone:
    if row.fate in ("dropped", "folded"):
        return "faint"
    return "strong" if row.what == "prompt" else ""


class _PartRow(NamedTuple):
    name: str
    what: str
    reason: str
    tokens: str
    fate: Fate
    words: str


def _part_row(part: Told) -> _PartRow:
    what = f"{part.kind} {first_words(part.tool, 20)}" if part.tool else part.kind
    reason = "" if part.disposition.edit == "keep" else part.disposition.reason
    tokens = _change(part.before, part.after)
    name = f"{part.ref.seq}.{part.ref.index}"
    return _PartRow(name, what, reason, tokens, fate_of(part.disposition), part.words)


def _blank_row(line: Line) -> _PartRow:
    """A message without parts."""
    return _PartRow(str(line.seq), "message", line.reason, "0", "dropped", "")


def _gone_row(gone: Gone) -> _PartRow:
    """Entries that nobody read."""
    disposition = Disposition("drop", gone.reason)
    first, last = gone.span.first, gone.span.last
    name = str(first) if first == last else f"{first}-{last}"
    return _PartRow(name, "entries", gone.reason, "?", fate_of(disposition), disposition.sentence)


def _insert_row(insert: Inserted) -> _PartRow:
    return _PartRow("", insert.kind, insert.reason, f"{insert.tokens:,}", "inserted", insert.words)


class _Told(NamedTuple):
    """One line of the timeline, before its columns are known."""

    first: int
    place: str
    words: str
    """What was said, or why it is not there; it gives way to `work`."""
    work: str
    """What was done, at length."""
    brief: str
    """What was done, in short."""
    fates: tuple[Piece, ...]
    tokens: str
    tone: Tone = ""

    def said(self, room: int) -> list[Piece]:
        """What was said and done, exactly as wide as the room."""
        work = self.work
        if columns(work) > room // 2 and self.words:
            work = self.brief if columns(self.brief) <= room // 2 else ""
        if not self.words:
            return [Piece(padded(work, room), self.tone)]
        gap = 2 if work else 0
        left = padded(self.words, room - columns(work) - gap)
        return [Piece(left, self.tone), Piece(" " * gap + work, "faint")]


def _told(one: Stretch | Inserted) -> _Told:
    if isinstance(one, Inserted):
        fates = (Piece("+1", "inserted"),)
        said = f"  {one.reason}: {one.words}"
        return _Told(one.before, "", said, "", "", fates, f"{one.tokens:,}", "inserted")
    place = str(one.first) if one.first == one.last else f"{one.first}-{one.last}"
    words, tone = _words(one)
    work, brief = _work(one)
    tokens = _change(one.before, one.after)
    return _Told(one.first, place, words, work, brief, _fates(one), tokens, tone)


def _unread(gone: Gone) -> _Told:
    first, last = gone.span.first, gone.span.last
    place = str(first) if first == last else f"{first}-{last}"
    fate: Fate = fate_of(Disposition("drop", gone.reason))
    said = f"{gone.reason}: {sentence(gone.reason)}"
    return _Told(first, place, said, "", "", (Piece(SYMBOLS[fate], fate),), "?", "faint")


def _words(one: Stretch) -> tuple[str, Tone]:
    match one.sort:
        case "gap":
            return _gap(one)
        case "steps":
            return _said(one), ""
        case _:
            return _asked(one), "faint" if one.lines[0].reason else "strong"


def _said(one: Stretch) -> str:
    """The words of a single step, or of what the user said in between."""
    if len(_steps(one)) > 1:
        return ""
    asked = _beginning(one.lines, "prompt")
    said = _beginning(one.lines, "text") or (f"“{asked}”" if asked else "")
    said = said or _beginning(one.lines, "system")
    return f"  {said}" if said else ""


def _gap(one: Stretch) -> tuple[str, Tone]:
    """How much is not sent, and why."""
    reason = one.lines[0].reason
    size = counted(len(one.lines), "message", "messages")
    if one.turns > 1:
        size += f" in {one.turns:,} turns"
    return f"{size}: {sentence(reason)}", fate_of(Disposition("drop", reason))


def _asked(one: Stretch) -> str:
    """The prompt that a turn begins with."""
    if not one.lines[0].opens:
        return "(the turn goes on)"
    said = f"“{_beginning(one.lines, 'prompt') or '…'}”"
    more = one.turns - 1
    return said if more < 1 else f"{counted(more + 1, 'turn', 'turns')}, from {said}"


def _beginning(lines: Iterable[Line], kind: str) -> str:
    found = (part.words for line in lines for part in line.parts if part.kind == kind)
    return next(filter(None, found), "")


def _steps(one: Stretch) -> set[int | None]:
    return {line.step for line in one.lines if line.step and line.role in ("assistant", "tool")}


def _work(one: Stretch) -> tuple[str, str]:
    """The steps and the tools they used, at length and in short."""
    if one.sort in ("prompt", "gap"):
        return "", ""
    tools = Counter(
        first_words(part.tool, 24)
        for line in one.lines
        for part in line.parts
        if part.kind == "call" and part.tool
    ).most_common()
    names = [name if count == 1 else f"{name} {count}" for name, count in tools]
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    used = ", ".join(names[:_NAMED]) + rest
    if one.sort == "steps" and len(_steps(one)) <= 1:
        return (used, used) if _said(one) else (f"  {used}", f"  {used}")
    indent = "  " if one.sort == "steps" else ""
    if not _steps(one):
        return "", ""
    steps = indent + counted(len(_steps(one)), "step", "steps")
    return (f"{steps}: {used}" if used else steps), steps


def _fates(one: Stretch) -> tuple[Piece, ...]:
    """How many parts had which fate."""
    found = Counter(fate_of(part.disposition) for line in one.lines for part in line.parts)
    found["dropped"] += sum(not line.parts for line in one.lines)
    found["inserted"] += len(one.inserts)
    pieces: list[Piece] = []
    for fate, mark in SYMBOLS.items():
        if found[fate]:
            pieces.append(Piece(f"{' ' if pieces else ''}{mark}{found[fate]}", fate))
    return tuple(pieces)


def _change(before: int, after: int) -> str:
    return f"{before:,}" if before == after else f"{before:,} → {after:,}"
