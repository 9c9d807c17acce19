"""Long tool results of earlier turns, cut to their beginning, or to both ends.

A result that is JSON is measured, and cut, as the compact JSON that the model reads.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from refold.view.desk import Desk
from refold.view.policy_values import Trim
from refold.wire import Part, Replace

_DIGITS = 20
"""More than any length has."""


def trim(desk: Desk, values: Trim) -> Iterator[tuple[Part, Replace]]:
    """Cut every result over `max_chars` that is not protected and not cut already."""
    if not values.max_chars:
        return
    sheet = desk.sheet
    end = max(0, len(sheet.rows) - values.last) if values.protect == "last" else sheet.turn()
    for row in sheet.rows[:end]:
        for part in row.parts:
            if part.kind == "return" and part.chars > values.max_chars and desk.free(part):
                change = None if _marked(desk, part, values) else _cut(part, values)
                if change is not None:
                    yield part, change


def _marked(desk: Desk, part: Part, values: Trim) -> bool:
    """Whether it is what such a cut leaves: it was cut before it came to us."""
    if part.chars > values.max_chars + len(values.marker) + _DIGITS:
        return False
    end = part.chars - _ends(values)[1]
    return any(one.end() == end for one in _mark(values.marker).finditer(desk.sheet.text(part)))


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
