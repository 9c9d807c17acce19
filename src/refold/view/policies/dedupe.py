"""Results that a later one repeats or replaces."""

from collections.abc import Iterator

from refold.view.desk import Desk
from refold.wire import Part, Replace

_WORTH = 200
"""Characters below which a reference would be no shorter."""


def dedupe(desk: Desk, end: int) -> Iterator[tuple[Part, Replace]]:
    """Refer to the later result, from results before row `end`."""
    by_content: dict[int, Part] = {}
    by_call: dict[int, Part] = {}
    calls: dict[str | None, Part] = {}
    older: list[tuple[Part, int | None]] = []
    for at, row in enumerate(desk.sheet.rows):
        for part in row.parts:
            if part.kind == "call":
                calls[part.call] = part
            elif part.kind == "return" and part.chars > _WORTH:
                asked = calls.get(part.call)
                question = asked.content if asked else None
                by_content[part.content] = part
                if question is not None:
                    by_call[question] = part
                if at < end and desk.free(part):
                    older.append((part, question))
    for part, question in older:
        again = by_content[part.content]
        if again is not part:
            yield part, _reference(again, "repeated", "the same result comes again")
        elif question is not None and by_call[question] is not part:
            yield part, _reference(by_call[question], "superseded", "the same call is made again")


def _reference(later: Part, reason: str, why: str) -> Replace:
    return Replace(0, f"[…{why}: part {later.seq}.{later.nth}]", 0, reason, (later.ref,))
