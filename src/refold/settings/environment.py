"""Settings in environment variables: `REFOLD_TRIM__MAX_CHARS`, and the aliases."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from pydantic import create_model
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError

from refold.errors import InvalidSetting
from refold.settings.names import (
    ALL_KEYS,
    MODELS,
    PREFIX,
    PROFILE,
    SERVE,
    STORE,
    VARIABLE_ALIASES,
    SettingValue,
    Source,
    closest,
    did_you_mean,
    expand_alias,
    keys_in_table,
    leaves,
    variable_of,
)
from refold.settings.serve import Serve
from refold.view.profiles import Profile

_ELSEWHERE: Final = {"MASTER_KEY", "MODEL", "STORE"}
"""Variables that are read elsewhere, and are no settings."""


class _Variables(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", env_ignore_empty=True
    )


def _variables_model() -> type[BaseSettings]:
    policy = {name: field.annotation for name, field in Profile.model_fields.items()}
    policy.pop("name")
    policy.pop(STORE)
    kinds = {PROFILE: str, MODELS: dict[str, dict[str, float]], **policy, SERVE: Serve}
    fields: dict[str, Any] = {name: (kind, None) for name, kind in kinds.items()}
    return create_model("Variables", __base__=_Variables, **fields)


_VARIABLES: Final = _variables_model()


def environment_values() -> Iterator[SettingValue]:
    """The settings that environment variables set."""
    _check_names()
    values = dict(_read_variables())
    source = Source("environment", variable_of(MODELS))
    for model, overrides in _table(values.pop(MODELS, {})).items():
        for name, value in _table(overrides).items():
            yield SettingValue(f'{MODELS}."{model}".{name}', value, source)
    for key, value in leaves(values):
        variable = _variable_that_sets(key)
        if key not in ALL_KEYS and key != PROFILE:
            parts = ", ".join(map(variable_of, keys_in_table(key)[:2]))
            fix = f"Set one of its parts: {parts}." if parts else did_you_mean(key, ALL_KEYS)
            raise InvalidSetting(f"{variable} sets {key}, which is not a setting.", fix)
        yield SettingValue(key, value, Source("environment", variable))
    for key in keys_in_table(STORE):  # REFOLD_STORE is the store's address, and no table
        if value := os.environ.get(variable_of(key)):
            yield SettingValue(key, value, Source("environment", variable_of(key)))
    for name, alias in VARIABLE_ALIASES.items():
        if value := os.environ.get(name):
            yield from expand_alias(alias, value, Source("environment", name))


def _read_variables() -> Mapping[str, Any]:
    try:
        return EnvSettingsSource(_VARIABLES)()
    except SettingsError as error:
        field = next((name for name in _VARIABLES.model_fields if f'"{name}"' in str(error)), "")
        raise InvalidSetting(
            f"{variable_of(field)}, or a variable that begins so, is not JSON.",
            "Write it as JSON, or set its parts one by one.",
        ) from error


def _table(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidSetting(
            f"{variable_of(MODELS)} holds {value!r} where it needs a JSON object.",
            'Write it like {"openai:gpt-4o": {"window": 128000}}.',
        )
    return cast("Mapping[str, object]", value)


def _variable_that_sets(key: str) -> str:
    """The setting's own variable, or that of its whole table."""
    own = variable_of(key)
    return own if own in {name.upper() for name in os.environ} else _table_variable(key)


def _table_variable(key: str) -> str:
    return variable_of(key.partition(".")[0])


def _check_names() -> None:
    """Refuse a variable that looks like a misspelled setting."""
    keys = (*ALL_KEYS, PROFILE, MODELS)
    variables = (*map(variable_of, keys), *map(_table_variable, ALL_KEYS))
    names = [variable.removeprefix(PREFIX) for variable in variables]
    for variable in os.environ:
        bare = variable.upper().removeprefix(PREFIX)
        if not variable.upper().startswith(PREFIX) or bare in names or bare in _ELSEWHERE:
            continue
        match = closest(bare, names)
        if match or "__" in bare:
            fix = f"Did you mean {PREFIX}{match}?" if match else None
            raise InvalidSetting(f"The environment variable {variable} is not a setting.", fix)
