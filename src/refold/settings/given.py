"""What somebody set, and where."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from refold.errors import InvalidSetting
from refold.settings.keys import Alias

Level = Literal["profile", "user", "project", "environment", "argument"]
"""Who set it; the later goes before the earlier."""

_SHOWN = 60


class Source(NamedTuple):
    """Where a value comes from."""

    level: Level
    place: str
    """The profile, the file and line, or the variable."""
    alias: str | None = None
    """The seed's name for it, where that was used in a file."""

    def __str__(self) -> str:
        """For people."""
        return f"{self.place} ({self.alias})" if self.alias else self.place


class Given(NamedTuple):
    """A value that somebody set."""

    key: str
    value: object
    source: Source
    weak: bool = False
    """It only follows from another: its own name goes before it."""


def expanded(alias: Alias, value: object, source: Source) -> Iterable[Given]:
    """What a value under a seed's name sets."""
    for key in alias.keys:
        yield Given(key, value, source)
    if str(value).strip() == "0":
        for key in alias.off:
            yield Given(key, () if key == "trigger.generation" else 0, source, weak=True)


def settled(level: Iterable[Given]) -> dict[str, Given]:
    """The values of one level by name; two that differ are an error."""
    found: dict[str, Given] = {}
    for one in sorted(level, key=lambda given: (given.weak, bool(given.source.alias))):
        first = found.setdefault(one.key, one)
        if not one.weak and one.value != first.value:
            raise InvalidSetting(
                f"{one.key} is set twice: to {shown(first.value)} by {first.source}, "
                f"and to {shown(one.value)} by {one.source}.",
                "Keep one of them.",
            )
    return found


def shown(value: object, max_chars: int = _SHOWN) -> str:
    """A value, not too long to read."""
    text = repr(value)
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def printable(name: object) -> str:
    """A name from a folder or file of somebody else, with what a terminal would obey escaped."""
    text = str(name)
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )
