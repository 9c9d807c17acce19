"""The settings that apply, and where each of them comes from."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from refold.errors import InvalidSetting
from refold.models import ModelSettings, Overrides
from refold.settings.files import given_in, project_files, user_files
from refold.settings.names import (
    ALIASES,
    FILE_ALIASES,
    KEYS,
    MODELS,
    PROFILE,
    SERVE,
    SERVE_KEYS,
    Given,
    Source,
    leaves,
    nearest,
    nested,
    settled,
    shown,
)
from refold.settings.names import (
    nested as as_tables,
)
from refold.settings.serve import Serve
from refold.settings.trust import LeftOut, Trust, Verdict, right_of
from refold.view.profiles import Profile, ProjectRight, profile

DEFAULT_PROFILE = "balanced"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that apply."""

    profile: Profile
    models: Overrides
    """What is known better of models."""
    sources: Mapping[str, Source]
    """Where each value comes from, by its dotted name."""
    serve: Serve = field(default_factory=Serve)
    """What `refold serve` does."""
    left_out: tuple[LeftOut, ...] = ()
    """What the project's files set and may not, because nobody trusts them."""

    def values(self) -> dict[str, object]:
        """Every value by its dotted name, the profile's name first."""
        own = dict(leaves(self.profile.model_dump(exclude={"name"})))
        models = {
            f'{MODELS}."{model}".{name}': value
            for model, one in self.models.items()
            for name, value in one.model_dump(exclude_none=True).items()
        }
        serve = dict(leaves({SERVE: self.serve.model_dump(mode="json")}))
        return {PROFILE: self.profile.name, **own, **serve, **models}

    def value(self, name: str) -> object:
        """One value, by its dotted name or a seed's."""
        values = self.values()
        alias = next((one.keys[0] for one in ALIASES if name in (one.file, one.variable)), name)
        if alias not in values:
            near = nearest(name, values)
            raise InvalidSetting(
                f"There is no setting {name!r}.", f"Did you mean {near}?" if near else None
            )
        return values[alias]


def load_settings(chosen: str | None = None, *, folder: Path | None = None) -> Settings:
    """The settings that apply in a folder.

    The environment goes before the project's files, those before the user's, those before what the
    profile says. Of project files that the user does not trust, only policy values count; the rest
    is in `left_out`.

    Args:
        chosen: The profile, whatever is set elsewhere.
        folder: Where the search for the project's files begins, upwards; else the current one.
    """
    found, left_out = _found((folder or Path.cwd()).resolve())
    if chosen is not None:
        found.values[PROFILE] = Given(PROFILE, chosen, Source("argument", "--profile"))
    named = found.values.get(PROFILE)
    base = _profile(named)
    default = Source("profile", f"profile {base.name}")
    sources = {PROFILE: Source("profile", "default"), **dict.fromkeys(KEYS, default)}
    if named is not None and named == found.foreign_profile:
        own_base = _profile(found.own_profile)
        closed = _closed_to_projects(base, own_base)
        left_out += tuple(
            LeftOut(key, value, named.source, found.foreign_verdict, None)
            for key, (value, _) in closed.items()
            if key not in found.values
        )
        base = _with_values(base, {key: own for key, (_, own) in closed.items()})
        sources |= dict.fromkeys(closed, Source("profile", f"profile {own_base.name}"))
    sources |= dict.fromkeys(SERVE_KEYS, sources[PROFILE])
    sources |= {key: one.source for key, one in found.values.items()}
    own = {key: one for key, one in found.values.items() if key in KEYS}
    models = {key: one for key, one in found.values.items() if key.startswith(f"{MODELS}.")}
    served = {key: one for key, one in found.values.items() if key in SERVE_KEYS}
    return Settings(
        _applied(base, own, sources), _models(models), sources, _served(served), left_out
    )


@dataclass(slots=True)
class _Found:
    """What somebody set, the strongest of each."""

    values: dict[str, Given]
    own_profile: Given | None
    """The profile that the user names, whatever a project does."""
    foreign_profile: Given | None = None
    """The profile that a project's file names which the user does not trust."""
    foreign_verdict: Verdict = "unknown"


def _found(folder: Path) -> tuple[_Found, tuple[LeftOut, ...]]:
    from refold.settings.environment import (  # noqa: PLC0415 - slow, and comes with an extra
        given_in_environment,
    )

    values = settled(one for file in user_files() for one in given_in(file))
    found = _Found(values, values.get(PROFILE))
    trust = Trust.load()
    admitted: list[Given] = []
    left_out: list[LeftOut] = []
    for file in project_files(folder):
        verdict = trust.verdict(file)
        for one in given_in(file):
            if not trust.admits(file, one):
                left_out.append(LeftOut(one.key, one.value, one.source, verdict, file.path))
                continue
            admitted.append(one)
            if one.key == PROFILE and verdict != "trusted":
                found.foreign_profile, found.foreign_verdict = one, verdict
    environment = settled(given_in_environment())
    found.values = values | settled(admitted) | environment
    return found, tuple(one for one in left_out if one.key not in environment)


def _closed_to_projects(chosen: Profile, own: Profile) -> dict[str, tuple[object, object]]:
    """What a profile would change that a project's file may not: its value, and the user's."""
    theirs, ours = dict(leaves(chosen.model_dump())), dict(leaves(own.model_dump()))
    return {
        key: (theirs[key], ours[key])
        for key in KEYS
        if right_of(key) is ProjectRight.NONE and theirs[key] != ours[key]
    }


def _with_values(base: Profile, values: Mapping[str, object]) -> Profile:
    return Profile.model_validate(nested({**dict(leaves(base.model_dump())), **values}))


def _profile(given: Given | None) -> Profile:
    if given is None:
        return profile(DEFAULT_PROFILE)
    try:
        return profile(str(given.value))
    except InvalidSetting as error:
        raise InvalidSetting(f"{given.source}: {error.what}", error.fix) from error


def _applied(base: Profile, own: Mapping[str, Given], sources: Mapping[str, Source]) -> Profile:
    default = dict(leaves(base.model_dump()))
    values = {**default, **{key: one.value for key, one in own.items()}}
    try:
        return Profile.model_validate(nested(values))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = next(key for key in _prefixes(first["loc"]) if key in own)
        raise InvalidSetting(
            f"{key} is {shown(values[key])} by {sources[key]}: {first['msg']}.",
            f"Correct it there, or remove it: profile {base.name} has {default[key]!r}.",
        ) from error
    except InvalidSetting as error:
        named = [key for key in own if key in error.what]
        where = ", ".join(f"{key} was set by {sources[key]}" for key in named)
        raise InvalidSetting(f"{error.what[:-1]}; {where}.", error.fix) from error


def _served(own: Mapping[str, Given]) -> Serve:
    tables = nested({key: one.value for key, one in own.items()})
    try:
        return Serve.model_validate(tables.get(SERVE, {}))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = next(key for key in _prefixes((SERVE, *first["loc"])) if key in own)
        where = "".join(f"[{one}]" for one in first["loc"] if isinstance(one, int))
        raise InvalidSetting(
            f"{key}{where}, set by {own[key].source}, cannot be so: {first['msg']}.",
            f"{SERVE_KEYS[key].description} Correct it there, or remove it.",
        ) from None


def _models(given: Mapping[str, Given]) -> Overrides:
    tables: dict[str, dict[str, Given]] = {}
    for key, one in given.items():
        model, _, name = key.removeprefix(f'{MODELS}."').rpartition('".')
        tables.setdefault(model, {})[name] = one
    return {model: _model(model, own) for model, own in tables.items()}


def _model(model: str, own: Mapping[str, Given]) -> ModelSettings:
    try:
        return ModelSettings.model_validate({name: one.value for name, one in own.items()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        one = own[name]
        near = nearest(name, ModelSettings.model_fields)
        known = name in ModelSettings.model_fields
        raise InvalidSetting(
            f"{name} of model {model} is {shown(one.value)} by {one.source}: {first['msg']}."
            if known
            else f"{one.source} sets {name} of model {model}, which is no setting.",
            f"Did you mean {near}?" if near and not known else "Correct it there, or remove it.",
        ) from error


def _prefixes(path: Iterable[int | str]) -> Iterable[str]:
    """The dotted names that lead to a place."""
    names: list[str] = []
    for one in path:
        names.append(str(one))
        yield ".".join(names)


# A setting that somebody names and a value that somebody types: what they are, if they are any.

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
