"""The timeline of an explanation: what was said, in order, and what became of it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from refold.view.columns import Piece, Tone, columns, first_words, padded
from refold.view.explained import Disposition, Findings, Inserted, Line, Told, sentence
from refold.view.reasons import Gone
from refold.view.stretches import Stretch, stretches

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
