"""The messages of a session in stretches that are told together: turns, parts of turns, gaps."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from refold.view.explained import Inserted, Line

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
