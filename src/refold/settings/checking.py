"""A setting that somebody names and a value that somebody types: what they are, if they are any."""

import re
import tomllib
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from refold.errors import InvalidSetting
from refold.models import ModelSettings
from refold.settings.keys import (
    ALIASES,
    FILE_ALIASES,
    KEYS,
    MODELS,
    PROFILE,
    SERVE,
    SERVE_KEYS,
    leaves,
    nearest,
)
from refold.settings.keys import nested as as_tables
from refold.settings.loading import DEFAULT_PROFILE, load_settings
from refold.settings.serve import Serve
from refold.view.profiles import Profile, profile

_GROUPED: Final = re.compile(r"-?[0-9]{1,3}(?:,[0-9]{3})+")


class Name(NamedTuple):
    """A setting as somebody names it."""

    stored: str
    """How a file names it."""
    keys: tuple[str, ...]
    """What it sets."""
    path: tuple[str, ...]
    """Where it stands in a file."""


def named(key: str) -> Name:
    """The setting of this name: ours, or a seed's."""
    alias = next((one for one in ALIASES if key in (one.file, one.variable)), None)
    if alias is not None and alias.file:
        return Name(alias.file, alias.keys, (alias.file,))
    if alias is not None:
        key = alias.keys[0]
    if key == f"{SERVE}.upstreams":
        raise InvalidSetting(
            f"{key} is a list of tables, which is set in a file.",
            "Write [[serve.upstreams]] into refold.toml, and name = … below it.",
        )
    if key in KEYS or key in SERVE_KEYS or key == PROFILE:
        return Name(key, (key,), tuple(key.split(".")))
    table, _, field = key.rpartition(".")
    model = table.removeprefix(f"{MODELS}.").strip("\"'")
    if table.startswith(f"{MODELS}.") and model and field in ModelSettings.model_fields:
        stored = f'{MODELS}."{model}".{field}'
        return Name(stored, (stored,), (MODELS, model, field))
    raise _unknown(key)


def _unknown(key: str) -> InvalidSetting:
    inside = [one for one in (*KEYS, *SERVE_KEYS) if one.startswith(f"{key}.")]
    if inside:
        return InvalidSetting(f"{key} is a table.", f"Set one of {', '.join(inside[:3])}.")
    near = nearest(key, {**KEYS, **SERVE_KEYS, **FILE_ALIASES, PROFILE: None})
    fix = f"Did you mean {near}?" if near else "`refold config` lists them."
    return InvalidSetting(f"There is no setting {key!r}.", fix)


def checked(name: Name, value: str) -> object:
    """The value as its setting takes it, by itself and beside the others."""
    if name.stored == PROFILE:
        return profile(value).name
    if name.path[0] == MODELS:
        return _of_model(name, value)
    if name.path[0] == SERVE:
        return _of_serve(name, value)
    kind: Any = KEYS[name.keys[0]].annotation
    base = _applying()
    try:
        found = TypeAdapter(kind).validate_python(value if kind is str else _read(value))
        values = dict(leaves(base.model_dump())) | dict.fromkeys(name.keys, found)
        Profile.model_validate(as_tables(values))
    except ValidationError as error:
        raise _refused(name, value, error) from error
    return found


def _of_serve(name: Name, value: str) -> object:
    kind: Any = SERVE_KEYS[name.stored].annotation
    try:
        found = TypeAdapter(kind).validate_python(value if kind is str else _read(value))
        Serve.model_validate(as_tables({name.stored: found})[SERVE])
    except ValidationError as error:
        raise _refused(name, value, error) from error
    return found


def _of_model(name: Name, value: str) -> object:
    field = name.path[-1]
    try:
        found = ModelSettings.model_validate({field: _read(value)})
    except ValidationError as error:
        raise _refused(name, value, error) from error
    return getattr(found, field)


def _refused(name: Name, value: str, error: ValidationError) -> InvalidSetting:
    first = error.errors(include_url=False)[0]
    known = {**KEYS, **SERVE_KEYS}.get(name.keys[0]) or ModelSettings.model_fields[name.path[-1]]
    usual = dict(leaves(profile(DEFAULT_PROFILE).model_dump())).get(name.keys[0])
    example = f" Profile {DEFAULT_PROFILE} has {usual!r}." if usual is not None else ""
    return InvalidSetting(
        f"{name.stored} cannot be {value!r}: {first['msg']}.", f"{known.description}{example}"
    )


def _read(value: str) -> object:
    """A number, true, false or a list as such; else the text itself."""
    bare = value.strip()
    if _GROUPED.fullmatch(bare):
        return int(bare.replace(",", ""))
    try:
        return value if "\n" in bare else tomllib.loads(f"value = {bare}")["value"]
    except tomllib.TOMLDecodeError:
        return value


def _applying() -> Profile:
    """What applies, where that can be read: this setting may be what is wrong with it."""
    try:
        return load_settings().profile
    except InvalidSetting:
        return profile(DEFAULT_PROFILE)
