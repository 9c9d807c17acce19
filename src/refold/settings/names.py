"""The names of the settings: ours, and those of the seeds."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, Literal, NamedTuple, cast

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from refold.errors import InvalidSetting
from refold.settings.serve import Serve
from refold.view.profiles import Profile

PREFIX: Final = "REFOLD_"
PROFILE: Final = "profile"
"""Which profile all values that nobody sets come from."""
MODELS: Final = "models"
"""The table of what is known better of models."""
SERVE: Final = "serve"
"""The table of what `refold serve` does."""


class Alias(NamedTuple):
    """A name that one of the seeds gives to settings of ours."""

    keys: tuple[str, ...]
    file: str | None
    """Its name in files."""
    variable: str | None
    """Its name in the environment."""
    off: tuple[str, ...] = ()
    """What 0 switches off besides, unless it is set by its own name."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.file or self.variable or ""


_AUTOMATIC: Final = (
    "trigger.soft",
    "trigger.hard",
    "trigger.turns",
    "trigger.tokens",
    "trigger.generation",
)
ALIASES: Final = (
    Alias(("trim.max_chars",), "tool_output_trim_chars", "CO_CLI_TOOL_OUTPUT_TRIM_CHARS"),
    Alias(
        ("trigger.messages", "window.max_messages"),
        "max_history_messages",
        "CO_CLI_MAX_HISTORY_MESSAGES",
        off=_AUTOMATIC,
    ),
    Alias(("summarizer",), "summarization_model", "CO_CLI_SUMMARIZATION_MODEL"),
    Alias(("trigger.tokens", "window.max_tokens"), "agent_max_context_tokens", None),
    Alias(("trigger.turns", "window.max_turns"), "agent_max_context_turns", None),
    Alias(("max_steps",), "agent_max_steps", None),
    Alias(("trigger.soft",), None, "COPILOT_BACKGROUND_COMPACTION_THRESHOLD"),
    Alias(("trigger.hard",), None, "COPILOT_BUFFER_EXHAUSTION_THRESHOLD"),
)
"""Set by such a name, a value applies in every profile."""

FILE_ALIASES: Final = {one.file: one for one in ALIASES if one.file}
VARIABLE_ALIASES: Final = {one.variable: one for one in ALIASES if one.variable}


def _fields(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _fields(kind, f"{above}{name}.")
        elif (above, name) != ("", "name"):
            yield f"{above}{name}", field


KEYS: Final[Mapping[str, FieldInfo]] = dict(_fields(Profile))
"""Every setting of a profile, by its dotted name."""
SERVE_KEYS: Final[Mapping[str, FieldInfo]] = dict(_fields(Serve, f"{SERVE}."))
"""Every setting of `refold serve`, by its dotted name."""


def variable_of(key: str) -> str:
    """The name of a setting in the environment."""
    return PREFIX + key.replace(".", "__").upper()


def nearest(name: str, known: Mapping[str, object]) -> str | None:
    """The known name that is most like this one."""
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.75)), None)


def leaves(values: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    """Nested values by their dotted names."""
    for name, value in values.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping) and key not in KEYS:
            yield from leaves(cast("Mapping[str, object]", value), f"{key}.")
        else:
            yield key, value


def nested(values: Mapping[str, object]) -> dict[str, object]:
    """Values by their dotted names, as the nested tables they stand for."""
    tables: dict[str, object] = {}
    for key, value in values.items():
        *path, name = key.split(".")
        table = tables
        for one in path:
            table = cast("dict[str, object]", table.setdefault(one, {}))
        table[name] = value
    return tables


# What somebody set, and where.

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
