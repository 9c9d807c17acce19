"""How long ago something was, in words."""

from collections.abc import Iterator

from refold.exports.moments import counted, day_and_time

_STEPS = (("minute", 60), ("hour", 60), ("day", 24))
_SHOWN_DAYS = 30


def ago(at: int, now: int) -> str:
    """The time between two moments, in milliseconds since 1970; what is long ago, as its day."""
    *_, (unit, amount) = _amounts(max(0, now - at) // 1000)
    if unit == "second":
        return "just now"
    if unit == "day" and amount > _SHOWN_DAYS:
        return day_and_time(at)[:10]
    return f"{counted(amount, unit)} ago"


def _amounts(seconds: int) -> Iterator[tuple[str, int]]:
    """The time in ever larger units, as long as there is one of them."""
    amount = seconds
    yield "second", amount
    for unit, size in _STEPS:
        amount //= size
        if not amount:
            return
        yield unit, amount
