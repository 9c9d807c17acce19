"""After a provider refused a request for its length: old turns go, and what is long is cut hard.

The latest prompt stays as it was said. What is cut stays cut in later requests.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from refold.view.desk import Desk, Proposal, Withdraw
from refold.view.policies.trim import trim
from refold.view.policy_values import Trim
from refold.view.profiles import Profile
from refold.view.row import Row
from refold.wire import Drop, Part, Replace


def emergency(desk: Desk, profile: Profile, refused: int) -> Iterator[Proposal]:
    """Propose what the profile's emergency values take out or cut.

    What was refused once more keeps nothing but the latest prompt.
    """
    values, sheet = profile.emergency, desk.sheet
    if refused > 1:
        yield from _dropped(desk, (row for at, row in enumerate(sheet.rows) if at != sheet.prompt))
        return
    if values.turns:
        yield from _older(desk, values.turns)
    if values.result_chars:
        update = {"max_chars": values.result_chars, "protect": "last", "last": 0}
        for part, change in trim(desk, profile.trim.model_copy(update=update)):
            yield part, replace(change, reason="emergency")
    if values.user_chars:
        yield from _prompts(desk, values.user_chars, profile.trim)


def untold(desk: Desk) -> list[Withdraw]:
    """What was delegated in turns that went is no longer told."""
    gone = [row.seq for row in desk.sheet.rows if desk.lost(row, "emergency")]
    last = gone[-1] if gone else 0
    told = (one for one in desk.inserts if one.reason == "delegated")
    return [Withdraw(one) for one in told if one.before <= last]


def _older(desk: Desk, turns: int) -> Iterator[tuple[Part, Drop]]:
    """All but the newest turns."""
    rows, starts = desk.sheet.rows, desk.sheet.turns
    there = [at for at in starts if any(part.kind == "prompt" for part in desk.shown(rows[at]))]
    return _dropped(desk, rows[: there[-turns]] if len(there) > turns else ())


def _dropped(desk: Desk, rows: Iterable[Row]) -> Iterator[tuple[Part, Drop]]:
    for row in rows:
        for part in row.parts:
            if not desk.held(part) and not isinstance(desk.change(part), Drop):
                yield part, Drop("emergency")


def _prompts(desk: Desk, most: int, values: Trim) -> Iterator[tuple[Part, Replace]]:
    """Long prompts but the latest, cut to both of their ends."""
    latest = desk.sheet.prompt
    for at, row in enumerate(desk.sheet.rows):
        for part in row.parts if at != latest else ():
            if part.kind == "prompt" and part.chars > most and desk.free(part):
                mark = values.marker.replace("{length}", str(part.chars))
                if most + len(mark) < part.chars:
                    yield part, Replace(most - most // 2, mark, most // 2, "emergency")
