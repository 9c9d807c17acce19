"""The timeline of an explanation: what was said, in order, and what became of it."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, Literal, NamedTuple

from refold.log.entry import Span
from refold.terminal_text import Piece, Tone, columns, counted, first_words, padded
from refold.view.explanation import Disposition, Findings, Inserted, Line, PartLine, sentence
from refold.view.plan import Omission

Fate = Literal["kept", "cut", "archived", "folded", "dropped", "inserted"]
SYMBOLS: Final[dict[Fate, str]] = {
    "kept": "●",
    "cut": "◐",
    "archived": "○",
    "folded": "≡",
    "dropped": "◌",
    "inserted": "+",
}
MAX_LINES: Final = 80
"""Lines that a timeline takes at most, or nearly; `every_part` shows everything."""
_NOT_IN_VIEW: Final = frozenset({"folded", "off the line", "not read"})
_WITHIN: Final = frozenset({"unanswered", "late", "delegated"})
"""Inserts that belong to what was said around them; the others have lines of their own."""
_LONG: Final = 8
"""Untouched steps in a row that are shown separately from touched ones around them."""
_REFERENCES: Final = frozenset({"archived", "repeated", "superseded"})
_MIN_WORDS: Final = 24
"""Columns that the words must have, before figures give way."""
_MAX_TOOLS: Final = 3
"""Tools that are named of a stretch, the most used first, where there is little room."""

Sort = Literal["turn", "prompt", "steps", "gap"]
"""A whole turn; the prompt that opens one; steps within one; messages of which none is sent."""


class Stretch(NamedTuple):
    """Messages that follow one another and share a line of the timeline."""

    sort: Sort
    lines: tuple[Line, ...]
    inserts: tuple[Inserted, ...] = ()
    """What was inserted between them."""
    turns: int = 0

    @property
    def first(self) -> int:
        return self.lines[0].seq

    @property
    def last(self) -> int:
        return self.lines[-1].seq

    @property
    def before(self) -> int:
        return sum(line.before for line in self.lines)

    @property
    def after(self) -> int:
        return sum(line.after for line in self.lines) + sum(x.tokens for x in self.inserts)

    @property
    def steps(self) -> int:
        lines = (line for line in self.lines if line.role in ("assistant", "tool"))
        return len({line.step for line in lines if line.step})

    def words(self, kind: str) -> str:
        """The beginning of its first part of a kind."""
        words = (part.words for line in self.lines for part in line.parts if part.kind == kind)
        return next(filter(None, words), "")


def stretches(
    lines: Sequence[Line], inserts: Iterable[Inserted], room: int
) -> list[Stretch | Inserted]:
    """The session in about `room` stretches: its steps, or else its turns, or else several turns.

    Inserts with a line of their own come where they are sent.
    """
    turns = list(_turns(lines))
    fine = [stretch for turn in turns for stretch in _split_turn(turn)]
    return list(_with_inserts(fine if len(fine) <= room else list(_fewer(turns, room)), inserts))


def _turns(lines: Sequence[Line]) -> Iterator[Stretch]:
    """One stretch for each turn; neighbors of which nothing is sent, for one reason, as one."""
    turns: list[list[Line]] = []
    absent = ""
    for line in lines:
        before, absent = absent, line.reason if line.reason in _NOT_IN_VIEW else ""
        if not turns or line.opens or before != absent:
            turns.append([])
        turns[-1].append(line)
    for reason, group in groupby(turns, key=_common_reason):
        if reason:
            gap = tuple(line for turn in group for line in turn)
            prompts = sum(any(part.kind == "prompt" for part in line.parts) for line in gap)
            yield Stretch("gap", gap, turns=prompts)
        else:
            yield from (Stretch("turn", tuple(turn), turns=turn[0].opens) for turn in group)


def _common_reason(lines: Sequence[Line]) -> str:
    reasons = {line.reason for line in lines}
    return reasons.pop() if len(reasons) == 1 else ""


def _split_turn(turn: Stretch) -> Iterator[Stretch]:
    """A turn as its prompt, its steps by fate, and its reply."""
    if turn.sort == "gap":
        yield turn
        return
    lines = turn.lines
    if lines[0].opens:
        yield Stretch("prompt", lines[:1], turns=1)
        lines = lines[1:]
    steps = [tuple(step) for _, step in groupby(lines, key=lambda line: line.step)]
    for fate, group in _smooth([(_step_fate(step), [step]) for step in steps]):
        sort: Sort = "gap" if fate not in ("", "touched") else "steps"
        yield Stretch(sort, tuple(line for step in group for line in step))


_Steps = tuple[str, list[tuple[Line, ...]]]
"""Steps of one fate."""


def _step_fate(step: Sequence[Line]) -> str:
    untouched = all(part.disposition.edit == "keep" for line in step for part in line.parts)
    return _common_reason(step) or ("" if untouched else "touched")


def _smooth(steps: list[_Steps]) -> list[_Steps]:
    """Join neighbors of one fate; a few untouched steps join the touched ones before them."""
    smooth: list[_Steps] = []
    for fate, group in _join(steps):
        few = len(group) < _LONG and sum(len(x) for _, x in steps) > _LONG
        joins = not fate and few and smooth and smooth[-1][0] == "touched"
        smooth.append(("touched" if joins else fate, group))
    return _join(smooth)


def _join(steps: Iterable[_Steps]) -> list[_Steps]:
    return [
        (fate, [step for _, group in run for step in group])
        for fate, run in groupby(steps, key=lambda x: x[0])
    ]


def _fewer(turns: Sequence[Stretch], room: int) -> Iterator[Stretch]:
    """Older turns together, several at a time; the newest alone."""
    alone = room // 3
    older, newest = turns[: len(turns) - alone], turns[len(turns) - alone :]
    size = math.ceil(len(older) / max(1, room - alone))
    for start in range(0, len(older), max(1, size)):
        chunk = older[start : start + size]
        if len(chunk) == 1:
            yield chunk[0]
        else:
            lines = tuple(line for turn in chunk for line in turn.lines)
            sort: Sort = "gap" if _common_reason(lines) else "turn"
            yield Stretch(sort, lines, turns=sum(turn.turns for turn in chunk))
    yield from newest


def _with_inserts(
    ordered: Sequence[Stretch], inserts: Iterable[Inserted]
) -> Iterator[Stretch | Inserted]:
    """Each insert in front of the stretch it leads, within the one it belongs to, or after it."""
    waiting = sorted(inserts, key=_place)
    for stretch in ordered:
        here = [insert for insert in waiting if _place(insert) <= stretch.last]
        waiting = waiting[len(here) :]
        own = [insert for insert in here if insert.reason not in _WITHIN]
        yield from (insert for insert in own if insert.before <= stretch.first)
        yield stretch._replace(inserts=tuple(x for x in here if x.reason in _WITHIN))
        yield from (insert for insert in own if insert.before > stretch.first)
    yield from waiting


def _place(insert: Inserted) -> int:
    """The entry it belongs to: the one it comes before, but a return to its call."""
    return insert.before - 1 if insert.kind == "return" else insert.before


def fate_of(disposition: Disposition) -> Fate:
    edit, reason = disposition
    if edit == "keep" or reason == "rendered":
        return "kept"
    if edit == "replace":
        return "archived" if reason in _REFERENCES else "cut"
    return "folded" if reason == "folded" else "dropped"


def span_text(span: Span) -> str:
    return str(span.first) if span.first == span.last else f"{span.first}-{span.last}"


class _Row(NamedTuple):
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

    def fit(self, room: int) -> list[Piece]:
        """The words and the work, exactly as wide as the room."""
        work = self.work
        if columns(work) > room // 2 and self.words:
            work = self.brief if columns(self.brief) <= room // 2 else ""
        if not self.words:
            return [Piece(padded(work, room), self.tone)]
        gap = 2 if work else 0
        left = padded(self.words, room - columns(work) - gap)
        return [Piece(left, self.tone), Piece(" " * gap + work, "faint")]


def timeline(findings: Findings, width: int) -> Iterator[Sequence[Piece]]:
    rows = [
        _insert_row(item) if isinstance(item, Inserted) else _stretch_row(item)
        for item in stretches(findings.lines, findings.inserts, MAX_LINES)
    ]
    rows += [_unread_row(omission) for omission in findings.unlisted]
    rows.sort(key=lambda row: row.first)
    if not rows:
        return
    rows.insert(0, _Row(0, "entries", "what was said", "", "", (Piece("parts"),), "tokens"))
    places = max(len(row.place) for row in rows)
    fates = max(_size(row.fates) for row in rows)
    tokens = max(len(row.tokens) for row in rows)
    room = width - places - fates - tokens - 6
    if room < _MIN_WORDS:  # symbols without their numbers
        rows = [row._replace(fates=tuple(map(_symbol, row.fates))) for row in rows]
        fates = max(_size(row.fates) for row in rows)
        room = width - places - fates - tokens - 6
    for row in rows:
        line = (
            Piece(f"{row.place:>{places}}  ", "faint"),
            *row.fit(room),
            Piece("  "),
            *row.fates,
            Piece(" " * (fates - _size(row.fates))),
            Piece(f"  {row.tokens:>{tokens}}"),
        )
        yield line if row.first else [Piece(piece.text, "faint") for piece in line]


def _symbol(piece: Piece) -> Piece:
    return Piece(piece.text.strip()[:1], piece.tone) if piece.tone else piece


def _size(pieces: Iterable[Piece]) -> int:
    return sum(columns(piece.text) for piece in pieces)


def _insert_row(insert: Inserted) -> _Row:
    fates = (Piece("+1", "inserted"),)
    words = f"  {insert.reason}: {insert.words}"
    return _Row(insert.before, "", words, "", "", fates, f"{insert.tokens:,}", "inserted")


def _unread_row(omission: Omission) -> _Row:
    fate = fate_of(Disposition("drop", omission.reason))
    words = f"{omission.reason}: {sentence(omission.reason)}"
    symbol = (Piece(SYMBOLS[fate], fate),)
    span = omission.span
    return _Row(span.first, span_text(span), words, "", "", symbol, "?", "faint")


def _stretch_row(stretch: Stretch) -> _Row:
    place = span_text(Span(stretch.first, stretch.last))
    words, tone = _words(stretch)
    work, brief = _work(stretch)
    tokens = _token_change(stretch.before, stretch.after)
    return _Row(stretch.first, place, words, work, brief, _fates(stretch), tokens, tone)


def _words(stretch: Stretch) -> tuple[str, Tone]:
    first = stretch.lines[0]
    if stretch.sort == "gap":  # how much is not sent, and why
        size = counted(len(stretch.lines), "message", "messages")
        if stretch.turns > 1:
            size += f" in {stretch.turns:,} turns"
        fate = fate_of(Disposition("drop", first.reason))
        return f"{size}: {sentence(first.reason)}", fate
    if stretch.sort == "steps":
        return _step_words(stretch), ""
    tone: Tone = "faint" if first.reason else "strong"
    if not first.opens:
        return "(the turn goes on)", tone
    prompt = f"“{stretch.words('prompt') or '…'}”"
    if stretch.turns > 1:
        prompt = f"{counted(stretch.turns, 'turn', 'turns')}, from {prompt}"
    return prompt, tone


def _step_words(stretch: Stretch) -> str:
    """The words of a single step, or of what the user said in between."""
    if stretch.steps > 1:
        return ""
    prompt = stretch.words("prompt")
    words = stretch.words("text") or (f"“{prompt}”" if prompt else "") or stretch.words("system")
    return f"  {words}" if words else ""


def _work(stretch: Stretch) -> tuple[str, str]:
    """The steps and the tools they used, at length and in short."""
    if stretch.sort in ("prompt", "gap"):
        return "", ""
    tools = Counter(
        first_words(part.tool, 24)
        for line in stretch.lines
        for part in line.parts
        if part.kind == "call" and part.tool
    ).most_common()
    names = [name if count == 1 else f"{name} {count}" for name, count in tools]
    rest = f" and {len(names) - _MAX_TOOLS} more" if len(names) > _MAX_TOOLS else ""
    used = ", ".join(names[:_MAX_TOOLS]) + rest
    if stretch.sort == "steps" and stretch.steps <= 1:
        return (used, used) if _step_words(stretch) else (f"  {used}", f"  {used}")
    if not stretch.steps:
        return "", ""
    indent = "  " if stretch.sort == "steps" else ""
    steps = indent + counted(stretch.steps, "step", "steps")
    return (f"{steps}: {used}" if used else steps), steps


def _fates(stretch: Stretch) -> tuple[Piece, ...]:
    parts = (part for line in stretch.lines for part in line.parts)
    counts = Counter(fate_of(part.disposition) for part in parts)
    counts["dropped"] += sum(not line.parts for line in stretch.lines)
    counts["inserted"] += len(stretch.inserts)
    pieces: list[Piece] = []
    for fate, symbol in SYMBOLS.items():
        if counts[fate]:
            pieces.append(Piece(f"{' ' if pieces else ''}{symbol}{counts[fate]}", fate))
    return tuple(pieces)


def _token_change(before: int, after: int) -> str:
    return f"{before:,}" if before == after else f"{before:,} → {after:,}"


class _PartRow(NamedTuple):
    name: str
    what: str
    reason: str
    tokens: str
    fate: Fate
    words: str


def every_part(findings: Findings, width: int) -> Iterator[Sequence[Piece]]:
    rows: list[_PartRow] = []
    for span, reason in findings.unlisted:
        disposition = Disposition("drop", reason)
        fate, words = fate_of(disposition), disposition.sentence
        rows.append(_PartRow(span_text(span), "entries", reason, "?", fate, words))
    inserts = sorted(findings.inserts, key=lambda insert: insert.before)
    for line in findings.lines:
        while inserts and inserts[0].before <= line.seq:
            rows.append(_inserted_part(inserts.pop(0)))
        rows += map(_part_row, line.parts)
        if not line.parts:
            rows.append(_PartRow(str(line.seq), "message", line.reason, "0", "dropped", ""))
    rows += map(_inserted_part, inserts)
    if not rows:
        return
    sizes = [max(columns(row[index]) for row in rows) for index in range(4)]
    free = width - sizes[0] - sizes[2] - sizes[3] - 9
    sizes[1] = min(sizes[1], free // 2)
    room = free - sizes[1]
    for row in rows:
        name, what, reason, tokens = (
            padded(row[index], sizes[index], right=index in (0, 3)) for index in range(4)
        )
        faint = row.fate in ("dropped", "folded")
        emphasis: Tone = "faint" if faint else "strong" if row.what == "prompt" else ""
        yield (
            Piece(f"{name} ", "faint"),
            Piece(f"{SYMBOLS[row.fate]} ", row.fate),
            Piece(f"{what}  "),
            Piece(f"{padded(row.words, room)}  ", emphasis),
            Piece(f"{reason}  ", row.fate),
            Piece(tokens),
        )


def _part_row(part: PartLine) -> _PartRow:
    what = f"{part.kind} {first_words(part.tool, 20)}" if part.tool else part.kind
    reason = "" if part.disposition.edit == "keep" else part.disposition.reason
    tokens = _token_change(part.before, part.after)
    name = f"{part.ref.seq}.{part.ref.index}"
    return _PartRow(name, what, reason, tokens, fate_of(part.disposition), part.words)


def _inserted_part(insert: Inserted) -> _PartRow:
    return _PartRow("", insert.kind, insert.reason, f"{insert.tokens:,}", "inserted", insert.words)
