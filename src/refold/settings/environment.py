"""Settings in environment variables: `REFOLD_TRIM__MAX_CHARS`, and the names of the seeds."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from pydantic import create_model
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError

from refold.errors import InvalidSetting
from refold.settings.names import (
    KEYS,
    MODELS,
    PREFIX,
    PROFILE,
    SERVE,
    SERVE_KEYS,
    VARIABLE_ALIASES,
    Given,
    Source,
    expanded,
    leaves,
    nearest,
    variable_of,
)
from refold.settings.serve import Serve
from refold.view.profiles import Profile


class _Variables(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", env_ignore_empty=True
    )


def _variables() -> type[BaseSettings]:
    """What the variables may set: each field of a profile, its name, and models."""
    fields: dict[str, Any] = {
        name: (field.annotation, None)
        for name, field in Profile.model_fields.items()
        if name != "name"
    }
    models = (dict[str, dict[str, float]], None)
    fields[SERVE] = (Serve, None)
    return create_model(
        "Variables", __base__=_Variables, profile=(str, None), models=models, **fields
    )


_VARIABLES: Final = _variables()
_NAMES: Final = {variable_of(key): key for key in (*KEYS, *SERVE_KEYS, PROFILE, MODELS)}


def _table(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidSetting(
            f"{variable_of(MODELS)} holds {value!r} where it needs a JSON object.",
            'Write it like {"openai:gpt-4o": {"window": 128000}}.',
        )
    return cast("Mapping[str, object]", value)


def given_in_environment() -> Iterator[Given]:
    """What environment variables set."""
    _check_names()
    values = dict(_values())
    source = Source("environment", variable_of(MODELS))
    for model, own in _table(values.pop(MODELS, {})).items():
        for name, value in _table(own).items():
            yield Given(f'{MODELS}."{model}".{name}', value, source)
    for key, value in leaves(values):
        if key not in KEYS and key not in SERVE_KEYS and key != PROFILE:
            raise InvalidSetting(f"{_variable(key)} sets {key}, which is no setting.", _near(key))
        yield Given(key, value, Source("environment", _variable(key)))
    for name, alias in VARIABLE_ALIASES.items():
        if value := os.environ.get(name):
            yield from expanded(alias, value, Source("environment", name))


def _values() -> Mapping[str, Any]:
    try:
        return EnvSettingsSource(_VARIABLES)()
    except SettingsError as error:
        field = next((name for name in _VARIABLES.model_fields if f'"{name}"' in str(error)), "")
        raise InvalidSetting(
            f"{variable_of(field)}, or a variable that begins so, is no JSON.",
            "Write it as JSON, or set its parts one by one.",
        ) from error


def _variable(key: str) -> str:
    """The variable that sets it: its own, or that of the whole table."""
    own = variable_of(key)
    known = {name.upper() for name in os.environ}
    return own if own in known else variable_of(key.partition(".")[0])


_ELSEWHERE = {"MASTER_KEY", "MODEL", "STORE"}
"""What is no setting, but read by itself."""


def _check_names() -> None:
    """A variable that looks like one of ours but is none."""
    tables = {variable_of(key.partition(".")[0]): "" for key in (*KEYS, *SERVE_KEYS)}
    known = {name.removeprefix(PREFIX): "" for name in (*_NAMES, *tables)}
    for name in os.environ:
        bare = name.upper().removeprefix(PREFIX)
        if not name.upper().startswith(PREFIX) or bare in known or bare in _ELSEWHERE:
            continue
        near = nearest(bare, known)
        if near or "__" in bare:
            fix = f"Did you mean {PREFIX}{near}?" if near else None
            raise InvalidSetting(f"The environment variable {name} is no setting.", fix)


def _near(key: str) -> str | None:
    inside = [one for one in (*KEYS, *SERVE_KEYS) if one.startswith(f"{key}.")]
    if inside:
        return f"Set one of its parts: {', '.join(map(variable_of, inside[:2]))}."
    near = nearest(key, {**KEYS, **SERVE_KEYS})
    return f"Did you mean {near}?" if near else None
