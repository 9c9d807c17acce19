"""The names of settings, their aliases, and values together with where they were set."""

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
"""Names the profile that supplies every value nobody sets."""
MODELS: Final = "models"
"""The table of model overrides."""
SERVE: Final = "serve"
"""The table of settings for `refold serve`."""
STORE: Final = "store"
"""The table of settings for the store."""
_MAX_SHOWN: Final = 60


class Alias(NamedTuple):
    """Another program's name for settings of ours."""

    keys: tuple[str, ...]
    file: str | None
    """Its name in files."""
    variable: str | None
    """Its name in the environment."""
    off: tuple[str, ...] = ()
    """Settings that 0 also switches off, unless they are set by their own names."""

    @property
    def name(self) -> str:
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
    Alias(("hooks.pre_compact",), "hooks.preCompact", None),
    Alias(("hooks.pre_compact",), "hooks.PreCompact", None),
    Alias(("trigger.soft",), None, "COPILOT_BACKGROUND_COMPACTION_THRESHOLD"),
    Alias(("trigger.hard",), None, "COPILOT_BUFFER_EXHAUSTION_THRESHOLD"),
)
"""A value set by such a name applies in every profile."""
FILE_ALIASES: Final = {alias.file: alias for alias in ALIASES if alias.file}
VARIABLE_ALIASES: Final = {alias.variable: alias for alias in ALIASES if alias.variable}


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
ALL_KEYS: Final[Mapping[str, FieldInfo]] = {**KEYS, **SERVE_KEYS}


def variable_of(key: str) -> str:
    """The environment variable that sets a setting."""
    return PREFIX + key.replace(".", "__").upper()


def closest(name: str, candidates: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(name, list(candidates), n=1, cutoff=0.75)), None)


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    match = closest(name, candidates)
    return f"Did you mean {match}?" if match else None


def keys_in_table(name: str) -> list[str]:
    return [key for key in ALL_KEYS if key.startswith(f"{name}.")]


def leaves(values: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    """Nested values by their dotted names."""
    for name, value in values.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping) and key not in KEYS:
            yield from leaves(cast("Mapping[str, object]", value), f"{key}.")
        else:
            yield key, value


def nested(values: Mapping[str, object]) -> dict[str, object]:
    tables: dict[str, object] = {}
    for key, value in values.items():
        *path, name = key.split(".")
        table = tables
        for part in path:
            table = cast("dict[str, object]", table.setdefault(part, {}))
        table[name] = value
    return tables


Level = Literal["profile", "user", "project", "environment", "argument"]
"""Who set a value; later levels win."""


class Source(NamedTuple):
    """Where a value comes from."""

    level: Level
    place: str
    """The profile, the file and line, or the variable."""
    alias: str | None = None
    """The alias, if a file used one."""

    def __str__(self) -> str:
        return f"{self.place} ({self.alias})" if self.alias else self.place


class SettingValue(NamedTuple):
    """A value that somebody set, and where."""

    key: str
    value: object
    source: Source
    weak: bool = False
    """It only follows from an alias: a value set by the setting's own name wins."""


def expand_alias(alias: Alias, value: object, source: Source) -> Iterable[SettingValue]:
    """The settings that a value under an alias sets."""
    for key in alias.keys:
        yield SettingValue(key, value, source)
    if str(value).strip() == "0":
        for key in alias.off:
            yield SettingValue(key, () if key == "trigger.generation" else 0, source, weak=True)


def merge_level(values: Iterable[SettingValue]) -> dict[str, SettingValue]:
    """The values of one level by name; two that differ are an error."""
    merged: dict[str, SettingValue] = {}
    for setting in sorted(values, key=lambda each: (each.weak, bool(each.source.alias))):
        first = merged.setdefault(setting.key, setting)
        if not setting.weak and setting.value != first.value:
            raise InvalidSetting(
                f"{setting.key} is set twice: to {short_repr(first.value)} by {first.source}, "
                f"and to {short_repr(setting.value)} by {setting.source}.",
                "Keep one of them.",
            )
    return merged


def short_repr(value: object, max_chars: int = _MAX_SHOWN) -> str:
    text = repr(value)
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def printable(name: object) -> str:
    """A name from somebody else's folder or file, with terminal control characters escaped."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(name)
    )
