"""Long tool results of earlier turns, cut to their beginning, or to both ends.

A result that is JSON is measured, and cut, as the compact JSON that the model reads.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from refold.view.framing import tool_name
from refold.view.plan_builder import PlanBuilder
from refold.view.profiles import Archive, Arguments, Trim
from refold.wire import Part, Replace
from refold.wire.splice import Cut, Value, compact_json, is_object, items, pairs, root, spliced

# The names that a text mentions: what a model needs to know that it has seen something.

_RUN = re.compile(r"[\w./~-]++")
_TELLING = re.compile(r"\w[/._]\w|[a-z][A-Z]|\d{4}")
_SHORTEST, _LONGEST = 4, 80


def names(text: str, room: int) -> str:
    """The names a text mentions, the most frequent first, as far as there is room."""
    if not room:
        return ""
    chosen: list[str] = []
    for name, _ in Counter(_RUN.findall(text)).most_common():
        if not _telling(name):
            continue
        room -= len(name) + 2
        if room < 0:
            break
        chosen.append(name)
    return ", ".join(chosen)


def mentioning(text: str, room: int) -> str:
    """The names as the end of a sentence; nothing when there are none."""
    known = names(text, room)
    return f"; mentions {known}" if known else ""


def _telling(word: str) -> bool:
    """Whether a word is a path, an identifier or a number, rather than prose."""
    return _SHORTEST <= len(word) <= _LONGEST and _TELLING.search(word) is not None


_DIGITS = 20
"""More than any length has."""


def trim(builder: PlanBuilder, values: Trim) -> Iterator[tuple[Part, Replace]]:
    """Cut every result over `max_chars` that is not protected and not cut already."""
    if not values.max_chars:
        return
    inputs = builder.inputs
    end = max(0, len(inputs.rows) - values.last) if values.protect == "last" else inputs.turn()
    for row in inputs.rows[:end]:
        for part in row.parts:
            if part.kind == "return" and part.chars > values.max_chars and builder.free(part):
                change = None if _marked(builder, part, values) else _cut(part, values)
                if change is not None:
                    yield part, change


def _marked(builder: PlanBuilder, part: Part, values: Trim) -> bool:
    """Whether it is what such a cut leaves: it was cut before it came to us."""
    if part.chars > values.max_chars + len(values.marker) + _DIGITS:
        return False
    end = part.chars - _ends(values)[1]
    return any(one.end() == end for one in _mark(values.marker).finditer(builder.inputs.text(part)))


def _cut(part: Part, values: Trim) -> Replace | None:
    marker = values.marker.replace("{length}", str(part.chars))
    head, tail = _ends(values)
    if head + len(marker) + tail >= part.chars and not values.inflate:
        return None
    return Replace(head, marker, tail, "trimmed")


def _ends(values: Trim) -> tuple[int, int]:
    """How much is kept of the beginning and of the end."""
    tail = values.max_chars // 2 if values.style == "head-tail" else 0
    return values.max_chars - tail, tail


@lru_cache(16)
def _mark(marker: str) -> re.Pattern[str]:
    return re.compile(re.escape(marker).replace(re.escape("{length}"), r"\d+"))


# Large tool results of earlier turns, replaced by a short reference.
#
# The reference names the part, so that recall can read it back, and the names that it mentioned
# most,
# so that a model still knows what it has seen. What was itself read back is told to be read again:
# a
# reference to a copy would lead away from what was said.

READ_BACK = "recall_"
"""How the names of tools begin that read back what the log holds."""
_AGAIN = "[…read back earlier, and left out: call {tool} again if it is needed]"


def archive(
    builder: PlanBuilder, values: Archive, end: int, enough: int, start: int = 0
) -> Iterator[tuple[Part, Replace]]:
    """Archive results before row `end`, the oldest first, until the total is low enough."""
    if not values.min_chars:
        return
    for row in builder.inputs.rows[start:end]:
        for part in row.parts:
            if builder.total <= enough:
                return
            if part.kind == "return" and part.chars > values.min_chars and builder.free(part):
                text = builder.inputs.text(part)
                change = reference(part, text, values)
                if len(change.applied(text)) < len(text):
                    yield part, change


def reference(part: Part, text: str, values: Archive) -> Replace:
    """What stands for an archived result."""
    if part.tool and part.tool.startswith(READ_BACK):
        return Replace(0, _AGAIN.replace("{tool}", tool_name(part.tool)), 0, "archived")
    mentions = mentioning(text[values.excerpt :], values.names)
    mark = f"[…archived: {part.chars} chars, part {part.seq}.{part.nth}{mentions}]"
    lead = "\n" if values.excerpt else ""
    return Replace(values.excerpt, lead + mark, 0, "archived")


# Long arguments of old calls, clipped value by value, so that they stay legal arguments.
#
# Everything else in them stays as it was written: numbers above all.


def arguments(
    builder: PlanBuilder, values: Arguments, end: int, enough: int
) -> Iterator[tuple[Part, Replace]]:
    """Clip arguments of calls before row `end`, the oldest first, until the total is low enough."""
    if not values.max_chars:
        return
    for row in builder.inputs.rows[:end]:
        for part in row.parts:
            if builder.total <= enough:
                return
            if part.kind == "call" and part.chars > values.max_chars and builder.free(part):
                change = _clipped(part, builder.inputs.text(part), values)
                if change is not None:
                    yield part, change


def _clipped(part: Part, text: str, values: Arguments) -> Replace | None:
    if not is_object(text):  # what is no JSON cannot be made shorter JSON
        return None
    raw = text.encode()
    clipped = spliced(raw, _cuts(raw, root(raw), part, values)).decode()
    return Replace(0, clipped, 0, "arguments") if len(clipped) < len(text) else None


def _cuts(raw: bytes, where: Value, part: Part, values: Arguments) -> Iterator[Cut]:
    match raw[where.start : where.start + 1]:
        case b"{":
            for pair in pairs(raw, where):
                yield from _cuts(raw, pair.value, part, values)
        case b"[":
            for one in items(raw, where):
                yield from _cuts(raw, one, part, values)
        case b'"':
            value: str = json.loads(raw[where.start : where.end])
            clipped = _clip(value, part, values)
            if len(clipped) < len(value):
                yield Cut(where, compact_json(clipped))
        case _:
            pass


def _clip(value: str, part: Part, values: Arguments) -> str:
    if len(value) <= values.max_chars:
        return value
    mentions = mentioning(value[values.keep :], int(values.names * len(value)))
    mark = f"[…clipped: {len(value)} chars, part {part.seq}.{part.nth}{mentions}]"
    return value[: values.keep] + mark


# Results that a later one repeats or replaces.

_WORTH = 200
"""Characters below which a reference would be no shorter."""


def dedupe(builder: PlanBuilder, end: int) -> Iterator[tuple[Part, Replace]]:
    """Refer to the later result, from results before row `end`."""
    by_content: dict[int, Part] = {}
    by_call: dict[int, Part] = {}
    calls: dict[str | None, Part] = {}
    older: list[tuple[Part, int | None]] = []
    for at, row in enumerate(builder.inputs.rows):
        for part in row.parts:
            if part.kind == "call":
                calls[part.call] = part
            elif part.kind == "return" and part.chars > _WORTH:
                asked = calls.get(part.call)
                question = asked.content if asked else None
                by_content[part.content] = part
                if question is not None:
                    by_call[question] = part
                if at < end and builder.free(part):
                    older.append((part, question))
    for part, question in older:
        again = by_content[part.content]
        if again is not part:
            yield part, _reference(again, "repeated", "the same result comes again")
        elif question is not None and by_call[question] is not part:
            yield part, _reference(by_call[question], "superseded", "the same call is made again")


def _reference(later: Part, reason: str, why: str) -> Replace:
    return Replace(0, f"[…{why}: part {later.seq}.{later.nth}]", 0, reason, (later.ref,))
