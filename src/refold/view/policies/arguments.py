"""Long arguments of old calls, clipped value by value, so that they stay legal arguments.

Everything else in them stays as it was written: numbers above all.
"""

import json
from collections.abc import Iterator

from refold.view.desk import Desk
from refold.view.names import mentioning
from refold.view.policy_values import Arguments
from refold.wire import Part, Replace
from refold.wire.splice import Cut, Value, is_object, items, pairs, root, spliced, string


def arguments(
    desk: Desk, values: Arguments, end: int, enough: int
) -> Iterator[tuple[Part, Replace]]:
    """Clip arguments of calls before row `end`, the oldest first, until the total is low enough."""
    if not values.max_chars:
        return
    for row in desk.sheet.rows[:end]:
        for part in row.parts:
            if desk.total <= enough:
                return
            if part.kind == "call" and part.chars > values.max_chars and desk.free(part):
                change = _clipped(part, desk.sheet.text(part), values)
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
                yield Cut(where, string(clipped))
        case _:
            pass


def _clip(value: str, part: Part, values: Arguments) -> str:
    if len(value) <= values.max_chars:
        return value
    mentions = mentioning(value[values.keep :], int(values.names * len(value)))
    mark = f"[…clipped: {len(value)} chars, part {part.seq}.{part.nth}{mentions}]"
    return value[: values.keep] + mark
