"""A session as lines to read: who said what, calls of tools and folds as one line each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from refold.cli.chat.clean import cleaned
from refold.cli.output import Line
from refold.exports.as_json import aside_json, fold_json
from refold.exports.moments import (
    Aside,
    Closes,
    Compacted,
    Marked,
    Moment,
    Opens,
    Said,
    Tools,
    call_line,
    counted,
    day_and_time,
)
from refold.view.explanation import Piece, clipped, first_words
from refold.wire import Shape

_INDENT = "  "
_DEEPER = "│ "


@dataclass(frozen=True, slots=True)
class Placed:
    """A moment, and in how many open groups it lies."""

    moment: Moment
    depth: int = 0


def readable(found: Iterable[Moment], *, every: bool) -> list[Placed]:
    """What is to be read: with `every`, also what folds stand for, and what was rewound."""
    shown: list[Placed] = []
    depth = 0
    for one in found:
        if isinstance(one, Closes):
            depth -= 1
            continue
        if every or not depth:
            shown.append(Placed(one, depth))
        depth += isinstance(one, Opens)
    return shown


def newest(shown: Sequence[Placed], messages: int) -> list[Placed]:
    """The newest of them, from the first of so many messages on."""
    places = [at for at, one in enumerate(shown) if isinstance(one.moment, Said)]
    return list(shown[places[-messages] :] if len(places) > messages else shown)


def lines_of(
    shown: Sequence[Placed], every: Iterable[Moment], width: int, when: Callable[[int], str]
) -> Iterator[Line]:
    """The lines; `every` moment of the session says which tool a result is of."""
    telling = _Telling(every, width, when)
    for one in shown:
        before = Piece(_DEEPER * one.depth, "faint")
        for line in telling.lines(one.moment):
            yield [before, *line]


class _Telling:
    def __init__(self, every: Iterable[Moment], width: int, when: Callable[[int], str]) -> None:
        self._width = width
        self._when = when
        self._tools = Tools()
        self._results: dict[str, Shape] = {}
        self._told: set[str] = set()
        for one in every:
            for shape in one.shapes if isinstance(one, Said) else ():
                self._tools.note(shape)
                if shape.kind == "return" and shape.call:
                    self._results[shape.call] = shape

    def lines(self, one: Moment) -> Iterator[Line]:
        match one:
            case Said():
                yield from self._said(one)
            case Marked(text=text):
                yield from self._rule(text)
            case Opens(group):
                yield from self._rule(group.sentence, folded=isinstance(group, Compacted))
            case Compacted() as fold:
                yield from self._rule(f"{fold.sentence} (taken back later)")
            case Closes():
                pass

    def _rule(self, text: str, *, folded: bool = False) -> Iterator[Line]:
        line = clipped(f"── {first_words(text, self._width)}", self._width)
        yield [Piece(line, "folded" if folded else "faint")]
        yield []

    def _said(self, said: Said) -> Iterator[Line]:
        inside = [line for shape in said.shapes for line in self._part(shape)]
        if said.forgotten:
            inside = [[Piece("(forgotten)", "faint")]]
        if not inside:
            return  # results that stand with their calls
        where = f" in {first_words(said.scope, 40)}" if said.scope != "/" else ""
        yield [
            Piece(f"{said.role}{where}", "strong"),
            Piece(f"  {self._when(said.at)}  [{said.seq}]", "faint"),
        ]
        for line in inside:
            yield [Piece(_INDENT), *line]
        yield []

    def _part(self, shape: Shape) -> Iterator[Line]:
        if shape.kind == "call":
            yield self._call(shape)
        elif shape.kind == "return":
            if shape.call not in self._told:
                yield self._one_line(f"← {self._tools.of(shape)}: {_size(shape)}")
        elif shape.kind == "thought":
            yield self._one_line(f"(thought: {_size(shape)})", "faint")
        elif shape.text.strip():
            for line in cleaned(shape.text.strip("\n")).split("\n"):
                yield [Piece(line)]
        for media in shape.media:
            yield self._one_line(f"[{media}]", "faint")

    def _call(self, shape: Shape) -> Line:
        result = self._results.get(shape.call or "")
        came = f" ← {_size(result)}" if result else " ← no result"
        if shape.call:
            self._told.add(shape.call)
        room = self._width - len(_INDENT) - len(came)
        return [
            Piece(f"→ {first_words(call_line(shape), room - 2)}", "tools"),
            Piece(came, "faint"),
        ]

    def _one_line(self, text: str, tone: str = "tools") -> Line:
        shown = first_words(text, self._width - len(_INDENT))
        return [Piece(shown, "faint" if tone == "faint" else "tools")]


def _size(shape: Shape) -> str:
    return counted(len(shape.text), "character")


def as_json(one: Placed) -> dict[str, object]:
    match one.moment:
        case Said() as said:
            return {
                "type": "message" if said.body or said.forgotten else "note",
                "seq": said.seq,
                "at": day_and_time(said.at),
                "role": said.role,
                "scope": said.scope,
                "depth": one.depth,
                "parts": [_part_json(shape) for shape in said.shapes],
            }
        case Marked(seq=seq, at=at, text=text):
            return {"type": "mark", "seq": seq, "at": day_and_time(at), "text": text}
        case Compacted() as fold:
            return {"type": "fold", **fold_json(fold)}
        case Opens(group) | Closes(group):
            return _group_json(group)


def _group_json(group: Compacted | Aside) -> dict[str, object]:
    if isinstance(group, Aside):
        return {"type": "aside", **aside_json(group)}
    return {"type": "fold", **fold_json(group)}


def _part_json(shape: Shape) -> dict[str, object]:
    known: dict[str, object] = {"tool": shape.tool, "call": shape.call, "media": list(shape.media)}
    there = {name: one for name, one in known.items() if one}
    return {"kind": shape.kind, "text": shape.text, **there}
