"""Values as others wrote them: taken where they make sense, else nothing.

Nothing here raises an error, whatever it is given.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from refold.lab import messages as make
from refold.lab.messages import Json

_LAST_MOMENT = 4_102_444_800_000  # the year 2100, in milliseconds
_MOST_TOKENS = 10**9
_LONGEST_NAME = 100
_DOT: Final = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="  # a GIF of one pixel


def string(of: JsonValue, name: str) -> str:
    """The text of that name in an object, or none."""
    value = of.get(name) if isinstance(of, dict) else None
    return value if isinstance(value, str) else ""


def name_of(of: JsonValue, name: str) -> str:
    """The same, as short as a name is."""
    return string(of, name)[:_LONGEST_NAME]


def child(of: JsonValue, name: str) -> Json:
    """The object of that name in an object, or an empty one."""
    value = of.get(name) if isinstance(of, dict) else None
    return value if isinstance(value, dict) else {}


def items(of: JsonValue, name: str) -> list[JsonValue]:
    """The list of that name in an object, or an empty one."""
    value = of.get(name) if isinstance(of, dict) else None
    return value if isinstance(value, list) else []


def tokens(of: JsonValue, name: str) -> int:
    """A count of tokens that can be one, else 0."""
    value = of.get(name) if isinstance(of, dict) else None
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 <= value <= _MOST_TOKENS else 0


def moment(value: JsonValue) -> int | None:
    """Milliseconds since 1970, from a number of them or a date; None where it is neither."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value).timestamp() * 1000
        except (ValueError, OverflowError, OSError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 < value < _LAST_MOMENT else None


def picture() -> Json:
    """A dot for a picture: pictures are not measured, and a session may hold very many."""
    return make.image(_DOT, "image/gif")


def content(parts: Iterator[JsonValue]) -> JsonValue:
    """What was said: one text where there are only texts."""
    found: list[JsonValue] = [part for part in parts if part not in ("", None)]
    texts = [part for part in found if isinstance(part, str)]
    return "\n".join(texts) if len(texts) == len(found) else found
