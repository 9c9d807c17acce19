"""What shortens tool calls and results: `trim`, `archive`, `arguments` and `dedupe`.

A result that is JSON is measured, and cut, as the compact JSON that the model reads.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from refold.view.framing import is_recall_tool, tool_name
from refold.view.plan_builder import PlanBuilder
from refold.view.profiles import Archive, Arguments, Trim
from refold.wire import Part, Replace
from refold.wire.splice import Cut, Value, compact_json, is_object, items, pairs, root, spliced

_RUN = re.compile(r"[\w./~-]++")
_IDENTIFIER = re.compile(r"\w[/._]\w|[a-z][A-Z]|\d{4}")
"""Marks a path, an identifier or a number, rather than prose."""
_SHORTEST, _LONGEST = 4, 80
_MAX_DIGITS = 20
"""More than any length has."""
_AGAIN = "[…read back earlier, and left out: call {tool} again if it is needed]"
_MIN_DUPLICATE_CHARS = 200
"""Characters below which a reference would be no shorter."""


def trim(builder: PlanBuilder, values: Trim) -> Iterator[tuple[Part, Replace]]:
    """Cut every result over `max_chars` that is not protected and not cut already."""
    if not values.max_chars:
        return
    inputs = builder.inputs
    end = max(0, len(inputs.rows) - values.last) if values.protect == "last" else inputs.turn()
    for row in inputs.rows[:end]:
        for part in row.parts:
            if part.kind == "return" and part.chars > values.max_chars and builder.free(part):
                change = None if _is_cut(builder, part, values) else _cut(part, values)
                if change is not None:
                    yield part, change


def _is_cut(builder: PlanBuilder, part: Part, values: Trim) -> bool:
    """Whether it looks like such a cut: it was cut before it came to us."""
    if part.chars > values.max_chars + len(values.marker) + _MAX_DIGITS:
        return False
    end = part.chars - _ends(values)[1]
    marks = _marker_pattern(values.marker).finditer(builder.inputs.text(part))
    return any(mark.end() == end for mark in marks)


def _cut(part: Part, values: Trim) -> Replace | None:
    marker = values.marker.replace("{length}", str(part.chars))
    head, tail = _ends(values)
    if head + len(marker) + tail >= part.chars and not values.inflate:
        return None
    return Replace(head, marker, tail, "trimmed")


def _ends(values: Trim) -> tuple[int, int]:
    tail = values.max_chars // 2 if values.style == "head-tail" else 0
    return values.max_chars - tail, tail


@lru_cache(16)
def _marker_pattern(marker: str) -> re.Pattern[str]:
    return re.compile(re.escape(marker).replace(re.escape("{length}"), r"\d+"))


def archive(
    builder: PlanBuilder, values: Archive, end: int, enough: int, start: int = 0
) -> Iterator[tuple[Part, Replace]]:
    """Replace large results before row `end` by references, until the total is low enough.

    The oldest go first. A reference names the part, so that recall can read it back, and the names
    that it mentioned most, so that a model still knows what it has seen.
    """
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
    # A reference to a result of recall would lead to a copy, away from the original.
    if part.tool and is_recall_tool(part.tool):
        return Replace(0, _AGAIN.replace("{tool}", tool_name(part.tool)), 0, "archived")
    mentions = _mentions(text[values.excerpt :], values.names)
    mark = f"[…archived: {part.chars} chars, part {part.seq}.{part.nth}{mentions}]"
    lead = "\n" if values.excerpt else ""
    return Replace(values.excerpt, lead + mark, 0, "archived")


def rendered(builder: PlanBuilder) -> Iterator[tuple[Part, Replace]]:
    """The results of earlier turns as Markdown, each with its tool's name and input."""
    inputs = builder.inputs
    calls: dict[str | None, Part] = {}
    for row in inputs.rows[: inputs.turn()]:
        for part in row.parts:
            if part.kind == "call":
                calls[part.call] = part
            elif part.kind == "return" and builder.free(part):
                text = inputs.markdown(part, calls.get(part.call))
                if text is not None:
                    yield part, Replace(0, text, 0, "rendered")


def arguments(
    builder: PlanBuilder, values: Arguments, end: int, enough: int
) -> Iterator[tuple[Part, Replace]]:
    """Clip long argument values of calls before row `end`, until the total is low enough.

    The oldest go first. Everything else in the arguments, numbers above all, stays as written.
    """
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
            for item in items(raw, where):
                yield from _cuts(raw, item, part, values)
        case b'"':
            value: str = json.loads(raw[where.start : where.end])
            if len(value) > values.max_chars:
                mentions = _mentions(value[values.keep :], int(values.names * len(value)))
                mark = f"[…clipped: {len(value)} chars, part {part.seq}.{part.nth}{mentions}]"
                clipped = value[: values.keep] + mark
                if len(clipped) < len(value):
                    yield Cut(where, compact_json(clipped))
        case _:
            pass


def dedupe(builder: PlanBuilder, end: int) -> Iterator[tuple[Part, Replace]]:
    """Replace results before row `end` that a later one repeats or supersedes by references."""
    by_content: dict[int, Part] = {}
    by_call: dict[int, Part] = {}
    calls: dict[str | None, Part] = {}
    older: list[tuple[Part, int | None]] = []
    for index, row in enumerate(builder.inputs.rows):
        for part in row.parts:
            if part.kind == "call":
                calls[part.call] = part
            elif part.kind == "return" and part.chars > _MIN_DUPLICATE_CHARS:
                call = calls.get(part.call)
                question = call.content if call else None
                by_content[part.content] = part
                if question is not None:
                    by_call[question] = part
                if index < end and builder.free(part):
                    older.append((part, question))
    for part, question in older:
        again = by_content[part.content]
        if again is not part:
            yield part, _reference(again, "repeated", "the same result comes again")
        elif question is not None and by_call[question] is not part:
            yield part, _reference(by_call[question], "superseded", "the same call is made again")


def _reference(later: Part, reason: str, why: str) -> Replace:
    return Replace(0, f"[…{why}: part {later.seq}.{later.nth}]", 0, reason, (later.ref,))


def _mentions(text: str, room: int) -> str:
    """The names that a text mentions, as the end of a sentence, the most frequent first."""
    chosen: list[str] = []
    for name, _ in Counter(_RUN.findall(text)).most_common() if room else ():
        if _SHORTEST <= len(name) <= _LONGEST and _IDENTIFIER.search(name):
            room -= len(name) + 2
            if room < 0:
                break
            chosen.append(name)
    return f"; mentions {', '.join(chosen)}" if chosen else ""
