"""A session as lines to read, with tool calls and folds as one line each, or as JSON."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from refold.cli.chat.clean import cleaned
from refold.cli.output import Line
from refold.exports.as_json import fold_json, removed_span_json
from refold.exports.moments import (
    Closes,
    Compacted,
    Marked,
    MessageMoment,
    Moment,
    Opens,
    RemovedSpan,
    Tools,
    call_line,
    day_and_time,
)
from refold.terminal_text import Piece, Tone, clipped, counted, first_words
from refold.wire import Shape

_INDENT = "  "
_DEEPER = "│ "


@dataclass(frozen=True, slots=True)
class Placed:
    """A moment, and in how many open groups it lies."""

    moment: Moment
    depth: int = 0


def readable(found: Iterable[Moment], *, every: bool) -> list[Placed]:
    """What to show: with `every`, also what was folded, rewound or cleared."""
    shown: list[Placed] = []
    depth = 0
    for moment in found:
        if isinstance(moment, Closes):
            depth -= 1
            continue
        if every or not depth:
            shown.append(Placed(moment, depth))
        depth += isinstance(moment, Opens)
    return shown


def last_messages(shown: Sequence[Placed], count: int) -> list[Placed]:
    messages = [i for i, placed in enumerate(shown) if isinstance(placed.moment, MessageMoment)]
    return list(shown[messages[-count] :] if len(messages) > count else shown)


def lines_of(
    shown: Sequence[Placed], every: Iterable[Moment], width: int, when: Callable[[int], str]
) -> Iterator[Line]:
    """The lines; `every` moment of the session is needed to know the tool of a result."""
    writer = _LineWriter(every, width, when)
    for placed in shown:
        indent = Piece(_DEEPER * placed.depth, "faint")
        for line in writer.lines(placed.moment):
            yield [indent, *line]


class _LineWriter:
    def __init__(self, every: Iterable[Moment], width: int, when: Callable[[int], str]) -> None:
        self._width = width
        self._when = when
        self._tools = Tools()
        self._results: dict[str, Shape] = {}
        self._answered: set[str] = set()
        """Calls that were shown together with their result."""
        for moment in every:
            for shape in moment.shapes if isinstance(moment, MessageMoment) else ():
                self._tools.note(shape)
                if shape.kind == "return" and shape.call:
                    self._results[shape.call] = shape

    def lines(self, moment: Moment) -> Iterator[Line]:
        match moment:
            case MessageMoment():
                yield from self._message(moment)
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

    def _message(self, message: MessageMoment) -> Iterator[Line]:
        body = [line for shape in message.shapes for line in self._part(shape)]
        if message.forgotten:
            body = [[Piece("(forgotten)", "faint")]]
        if not body:
            return  # results that are shown with their calls
        where = f" in {first_words(message.scope, 40)}" if message.scope != "/" else ""
        yield [
            Piece(f"{message.role}{where}", "strong"),
            Piece(f"  {self._when(message.at)}  [{message.seq}]", "faint"),
        ]
        for line in body:
            yield [Piece(_INDENT), *line]
        yield []

    def _part(self, shape: Shape) -> Iterator[Line]:
        if shape.kind == "call":
            yield self._call(shape)
        elif shape.kind == "return":
            if shape.call not in self._answered:
                yield self._one_line(f"← {self._tools.of(shape)}: {_size(shape)}", "tools")
        elif shape.kind == "thought":
            yield self._one_line(f"(thought: {_size(shape)})", "faint")
        elif shape.text.strip():
            for line in cleaned(shape.text.strip("\n")).split("\n"):
                yield [Piece(line)]
        for media in shape.media:
            yield self._one_line(f"[{media}]", "faint")

    def _call(self, shape: Shape) -> Line:
        result = self._results.get(shape.call or "")
        size = f" ← {_size(result)}" if result else " ← no result"
        if shape.call:
            self._answered.add(shape.call)
        call = first_words(call_line(shape), self._width - len(_INDENT) - len(size) - 2)
        return [Piece(f"→ {call}", "tools"), Piece(size, "faint")]

    def _one_line(self, text: str, tone: Tone) -> Line:
        return [Piece(first_words(text, self._width - len(_INDENT)), tone)]


def _size(shape: Shape) -> str:
    return counted(len(shape.text), "character")


def as_json(placed: Placed) -> dict[str, object]:
    match placed.moment:
        case MessageMoment() as message:
            return {
                "type": "message" if message.body or message.forgotten else "note",
                "seq": message.seq,
                "at": day_and_time(message.at),
                "role": message.role,
                "scope": message.scope,
                "depth": placed.depth,
                "parts": [_part_json(shape) for shape in message.shapes],
            }
        case Marked(seq=seq, at=at, text=text):
            return {"type": "mark", "seq": seq, "at": day_and_time(at), "text": text}
        case Compacted() as group:
            pass
        case Opens(group) | Closes(group):
            if isinstance(group, RemovedSpan):
                return {"type": "aside", **removed_span_json(group)}
    return {"type": "fold", **fold_json(group)}


def _part_json(shape: Shape) -> dict[str, object]:
    optional = {"tool": shape.tool, "call": shape.call, "media": list(shape.media)}
    present = {name: value for name, value in optional.items() if value}
    return {"kind": shape.kind, "text": shape.text, **present}
