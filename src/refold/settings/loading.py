"""The settings that apply, and where each of them comes from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from refold.errors import InvalidSetting
from refold.models import ModelSettings, Overrides
from refold.settings.files import project_files, user_files, values_in
from refold.settings.names import (
    ALIASES,
    KEYS,
    MODELS,
    PROFILE,
    SERVE,
    SERVE_KEYS,
    SettingValue,
    Source,
    did_you_mean,
    leaves,
    merge_level,
    nested,
    short_repr,
)
from refold.settings.serve import Serve
from refold.settings.trust import LeftOut, Trust, Verdict, right_of
from refold.view.profiles import Profile, ProjectRight, profile

DEFAULT_PROFILE = "balanced"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that apply: of all files, the environment and the chosen profile."""

    profile: Profile
    models: Overrides
    """Overrides of what is known about models."""
    sources: Mapping[str, Source]
    """Where each value comes from, by its dotted name."""
    serve: Serve = field(default_factory=Serve)
    """Settings of `refold serve`."""
    left_out: tuple[LeftOut, ...] = ()
    """Values in project files that do not apply, because the user does not trust the files."""

    def values(self) -> dict[str, object]:
        """Every value by its dotted name, the profile's name first."""
        policy = dict(leaves(self.profile.model_dump(exclude={"name"})))
        serve = dict(leaves({SERVE: self.serve.model_dump(mode="json")}))
        models = {
            f'{MODELS}."{model}".{name}': value
            for model, overrides in self.models.items()
            for name, value in overrides.model_dump(exclude_none=True).items()
        }
        return {PROFILE: self.profile.name, **policy, **serve, **models}

    def value(self, name: str) -> object:
        """One value, by its dotted name or an alias."""
        values = self.values()
        aliases = (alias for alias in ALIASES if name in (alias.file, alias.variable))
        key = next((alias.keys[0] for alias in aliases), name)
        if key not in values:
            raise InvalidSetting(f"There is no setting {name!r}.", did_you_mean(name, values))
        return values[key]


def load_settings(chosen: str | None = None, *, folder: Path | None = None) -> Settings:
    """The settings that apply in a folder.

    Environment variables override project files, project files override the user's files, and those
    override the profile. From project files that the user does not trust, only policy values apply;
    the rest is in `left_out`.

    Args:
        chosen: The profile, whatever is set elsewhere.
        folder: Where the upward search for project files starts; the current folder by default.
    """
    layers = _Layers.read((folder or Path.cwd()).resolve())
    values, left_out = layers.values, layers.left_out
    if chosen is not None:
        values[PROFILE] = SettingValue(PROFILE, chosen, Source("argument", "--profile"))
    named = values.get(PROFILE)
    base = _profile(named)
    default = Source("profile", f"profile {base.name}")
    sources = {PROFILE: Source("profile", "default"), **dict.fromkeys(KEYS, default)}
    if named is not None and named == layers.untrusted_profile:
        own_base = _profile(layers.user_profile)
        closed = _closed_to_projects(base, own_base)
        left_out += [
            LeftOut(key, theirs, named.source, layers.untrusted_verdict, None)
            for key, (theirs, _) in closed.items()
            if key not in values
        ]
        own_values = {key: ours for key, (_, ours) in closed.items()}
        base = Profile.model_validate(nested({**dict(leaves(base.model_dump())), **own_values}))
        sources |= dict.fromkeys(closed, Source("profile", f"profile {own_base.name}"))
    sources |= dict.fromkeys(SERVE_KEYS, sources[PROFILE])
    sources |= {key: setting.source for key, setting in values.items()}
    return Settings(
        _apply(base, {key: value for key, value in values.items() if key in KEYS}),
        _models({key: value for key, value in values.items() if key.startswith(f"{MODELS}.")}),
        sources,
        _serve({key: value for key, value in values.items() if key in SERVE_KEYS}),
        tuple(left_out),
    )


@dataclass(slots=True)
class _Layers:
    values: dict[str, SettingValue]
    """The winning value of each setting."""
    user_profile: SettingValue | None
    """The profile that the user's own files name."""
    untrusted_profile: SettingValue | None
    """The profile that an untrusted project file names."""
    untrusted_verdict: Verdict
    left_out: list[LeftOut]

    @classmethod
    def read(cls, folder: Path) -> "_Layers":
        from refold.settings.environment import (  # noqa: PLC0415 - slow, and comes with an extra
            environment_values,
        )

        user = merge_level(setting for file in user_files() for setting in values_in(file))
        trust = Trust.load()
        project: list[SettingValue] = []
        layers = cls({}, user.get(PROFILE), None, "unknown", [])
        for file in project_files(folder):
            verdict = trust.verdict(file)
            for setting in values_in(file):
                key, value, source, _ = setting
                if not trust.admits(file, setting):
                    layers.left_out.append(LeftOut(key, value, source, verdict, file.path))
                    continue
                project.append(setting)
                if key == PROFILE and verdict != "trusted":
                    layers.untrusted_profile, layers.untrusted_verdict = setting, verdict
        environment = merge_level(environment_values())
        layers.values = user | merge_level(project) | environment
        layers.left_out = [one for one in layers.left_out if one.key not in environment]
        return layers


def _closed_to_projects(chosen: Profile, own: Profile) -> dict[str, tuple[object, object]]:
    """What a profile would change that project files may not: its value, and the user's."""
    theirs, ours = dict(leaves(chosen.model_dump())), dict(leaves(own.model_dump()))
    return {
        key: (theirs[key], ours[key])
        for key in KEYS
        if right_of(key) is ProjectRight.NONE and theirs[key] != ours[key]
    }


def _profile(named: SettingValue | None) -> Profile:
    if named is None:
        return profile(DEFAULT_PROFILE)
    try:
        return profile(str(named.value))
    except InvalidSetting as error:
        raise InvalidSetting(f"{named.source}: {error.what}", error.fix) from error


def _apply(base: Profile, own: Mapping[str, SettingValue]) -> Profile:
    default = dict(leaves(base.model_dump()))
    values = {**default, **{key: setting.value for key, setting in own.items()}}
    try:
        return Profile.model_validate(nested(values))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = next(key for key in _prefixes(first["loc"]) if key in own)
        raise InvalidSetting(
            f"{key} is {short_repr(values[key])} by {own[key].source}: {first['msg']}.",
            f"Correct it there, or remove it: profile {base.name} has {default[key]!r}.",
        ) from error
    except InvalidSetting as error:
        places = [f"{key} was set by {own[key].source}" for key in own if key in error.what]
        raise InvalidSetting(f"{error.what[:-1]}; {', '.join(places)}.", error.fix) from error


def _serve(own: Mapping[str, SettingValue]) -> Serve:
    tables = nested({key: setting.value for key, setting in own.items()})
    try:
        return Serve.model_validate(tables.get(SERVE, {}))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = next(key for key in _prefixes((SERVE, *first["loc"])) if key in own)
        index = "".join(f"[{part}]" for part in first["loc"] if isinstance(part, int))
        raise InvalidSetting(
            f"{key}{index}, set by {own[key].source}, cannot be so: {first['msg']}.",
            f"{SERVE_KEYS[key].description} Correct it there, or remove it.",
        ) from None


def _models(values: Mapping[str, SettingValue]) -> Overrides:
    tables: dict[str, dict[str, SettingValue]] = {}
    for key, setting in values.items():
        model, _, name = key.removeprefix(f'{MODELS}."').rpartition('".')
        tables.setdefault(model, {})[name] = setting
    return {model: _model(model, own) for model, own in tables.items()}


def _model(model: str, own: Mapping[str, SettingValue]) -> ModelSettings:
    try:
        return ModelSettings.model_validate({name: one.value for name, one in own.items()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        value, source = own[name].value, own[name].source
        fix = "Correct it there, or remove it."
        if name in ModelSettings.model_fields:
            what = f"{name} of model {model} is {short_repr(value)} by {source}: {first['msg']}."
        else:
            what = f"{source} sets {name} of model {model}, which is not a setting."
            fix = did_you_mean(name, ModelSettings.model_fields) or fix
        raise InvalidSetting(what, fix) from error


def _prefixes(path: Iterable[int | str]) -> Iterable[str]:
    """The dotted names that lead to a place."""
    names: list[str] = []
    for part in path:
        names.append(str(part))
        yield ".".join(names)
