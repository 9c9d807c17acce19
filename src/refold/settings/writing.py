"""Writes settings for good: to the user's file, or to the project's."""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.resources import files
from itertools import chain, takewhile, zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError

from refold.errors import InvalidSetting
from refold.models import ModelSettings
from refold.settings.files import File, project_files, user_files, values_in
from refold.settings.loading import DEFAULT_PROFILE, Settings, load_settings
from refold.settings.names import (
    ALIASES,
    ALL_KEYS,
    FILE_ALIASES,
    MODELS,
    PROFILE,
    SERVE,
    did_you_mean,
    keys_in_table,
    leaves,
    merge_level,
    nested,
    printable,
)
from refold.settings.serve import Serve
from refold.settings.trust import Trust
from refold.user_files import config_folder, write_whole
from refold.view.profiles import Profile, profile

_THOUSANDS: Final = re.compile(r"-?[0-9]{1,3}(?:,[0-9]{3})+")
_SCHEMA_FILE: Final = "refold.schema.json"
SCHEMA_LINE: Final = f"#:schema ./{_SCHEMA_FILE}"
"""The first line of a settings file: editors then complete and check it by that schema."""

Names = tuple[str, ...]
"""The names that lead to a value in a file."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that was written, or removed."""

    key: str
    """Its name in the file."""
    value: object
    """The value in the file; for a removed setting, the value that applies now."""
    before: object
    """What applied before; None if unknown."""
    path: Path
    """The file."""
    instead: str | None = None
    """What overrides the value, and where; None if the value applies."""


def check_setting(key: str, value: str | None = None) -> None:
    """Refuse a name that is no setting's, and a value that its setting cannot have."""
    name = _resolve(key)
    if value is not None:
        _check_value(name, value)


def set_setting(key: str, value: str, *, project: bool = False) -> SettingChange:
    """Check a value, and write it to the user's file, or the project's; comments stay.

    Args:
        key: A setting's dotted name, `profile`, `models."provider:model".window`, or an alias.
        value: As typed: 80000, true, or a text.
        project: Write it for the project that the current folder belongs to.
    """
    name = _resolve(key)
    parsed = _check_value(name, value)
    file = _file_to_edit(name, project=project)
    before = _current_value(name)
    text = file.text or ("" if file.path.suffix == ".json" else f"{SCHEMA_LINE}\n")
    for other, displaced in _conflicts(file, name):
        text = _without(file, text, other)
        for path, old in displaced:
            text = _with(file, text, path, old)
    text = _with(file, text, name.path, parsed)
    _check_level(file, text, project=project)
    _write(file, text)
    change = SettingChange(name.stored, parsed, before, file.path)
    return replace(change, instead=_override(change, name, project=project))


def unset_setting(key: str, *, project: bool = False) -> SettingChange:
    """Remove a value from the user's file, or the project's."""
    name = _resolve(key)
    file = _file_to_edit(name, project=project)
    if not _holds(file.table, name.path):
        settings = _load()
        source = settings.sources.get(name.keys[0]) if settings else None
        fix = f"It comes from {source}." if source else "`refold config` shows where it is set."
        raise InvalidSetting(f"{name.stored} is not set in {file.path}.", fix)
    before = _current_value(name)
    _write(file, _without(file, file.text, name.path))
    return SettingChange(name.stored, _current_value(name), before, file.path)


class _Name(NamedTuple):
    """A setting as somebody names it."""

    stored: str
    """Its name in files."""
    keys: tuple[str, ...]
    """The settings it sets."""
    path: Names
    """Where it is in a file."""


def _resolve(key: str) -> _Name:
    alias = next((alias for alias in ALIASES if key in (alias.file, alias.variable)), None)
    if alias is not None and alias.file:
        return _Name(alias.file, alias.keys, (alias.file,))
    if alias is not None:
        key = alias.keys[0]
    if key == f"{SERVE}.upstreams":
        raise InvalidSetting(
            f"{key} is a list of tables, which is set in a file.",
            "Write [[serve.upstreams]] into refold.toml, and name = … below it.",
        )
    if key in ALL_KEYS or key == PROFILE:
        return _Name(key, (key,), tuple(key.split(".")))
    table, _, field = key.rpartition(".")
    model = table.removeprefix(f"{MODELS}.").strip("\"'")
    if table.startswith(f"{MODELS}.") and model and field in ModelSettings.model_fields:
        stored = f'{MODELS}."{model}".{field}'
        return _Name(stored, (stored,), (MODELS, model, field))
    if inside := keys_in_table(key):
        raise InvalidSetting(f"{key} is a table.", f"Set one of {', '.join(inside[:3])}.")
    fix = did_you_mean(key, (*ALL_KEYS, *FILE_ALIASES, PROFILE)) or "`refold config` lists them."
    raise InvalidSetting(f"There is no setting {key!r}.", fix)


def _check_value(name: _Name, value: str) -> object:
    """The value as its setting takes it, valid by itself and with the others."""
    if name.stored == PROFILE:
        return profile(value).name
    table, field = name.path[0], name.path[-1]
    try:
        if table == MODELS:
            return getattr(ModelSettings.model_validate({field: _parse(value)}), field)
        kind: Any = ALL_KEYS[name.keys[0]].annotation
        parsed = TypeAdapter(kind).validate_python(value if kind is str else _parse(value))
        if table == SERVE:
            Serve.model_validate(nested({name.stored: parsed})[SERVE])
        else:
            settings = _load()
            base = settings.profile if settings else profile(DEFAULT_PROFILE)
            values = dict(leaves(base.model_dump())) | dict.fromkeys(name.keys, parsed)
            Profile.model_validate(nested(values))
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"]
        about = ALL_KEYS.get(name.keys[0]) or ModelSettings.model_fields[field]
        default = dict(leaves(profile(DEFAULT_PROFILE).model_dump())).get(name.keys[0])
        example = f" Profile {DEFAULT_PROFILE} has {default!r}." if default is not None else ""
        raise InvalidSetting(
            f"{name.stored} cannot be {value!r}: {message}.", f"{about.description}{example}"
        ) from error
    return parsed


def _parse(value: str) -> object:
    """A number, true, false or a list as such; else the text itself."""
    bare = value.strip()
    if _THOUSANDS.fullmatch(bare):
        return int(bare.replace(",", ""))
    try:
        return value if "\n" in bare else tomllib.loads(f"value = {bare}")["value"]
    except tomllib.TOMLDecodeError:
        return value


def _load() -> Settings | None:
    """The settings that apply; None if they are invalid, which this change may be about to fix."""
    try:
        return load_settings()
    except InvalidSetting:
        return None


def _current_value(name: _Name) -> object:
    settings = _load()
    return settings.values().get(name.keys[0]) if settings else None


def _override(change: SettingChange, name: _Name, *, project: bool) -> str | None:
    """Why the new value does not apply, if it does not."""
    settings = _load()
    if settings is None:
        return None
    key = name.keys[0]
    if any(one.key == key and one.file == change.path for one in settings.left_out):
        return f"{printable(change.path)} is not trusted (`refold trust` asks)"
    source = settings.sources.get(key)
    if source is None or source.level == ("project" if project else "user"):
        return None
    return f"{source} sets it to {settings.values().get(key)!r}"


def _files(*, project: bool) -> list[File]:
    return project_files(_here()) if project else user_files()


def _here() -> Path:
    return Path.cwd().resolve()


def _check_level(file: File, text: str, *, project: bool) -> None:
    """Refuse what would contradict another file of the same level."""
    table: Any = json.loads(text) if file.path.suffix == ".json" else tomllib.loads(text)
    for name in file.within:
        table = table[name]
    others = [other for other in _files(project=project) if other.path != file.path]
    changed = file._replace(text=text, table=table)
    merge_level(setting for each in (*others, changed) for setting in values_in(each))


def _file_to_edit(name: _Name, *, project: bool) -> File:
    """The file that sets it already, else the one that should."""
    files = _files(project=project)
    ours = [file for file in files if not project or file.path.suffix == ".toml"]
    holding = [file for file in files if _holds(file.table, name.path)]
    for file in holding:
        if file not in ours:
            raise InvalidSetting(
                f"{file.path} sets {name.stored}, and may belong to another program.",
                "Change it there.",
            )
    toml = [file for file in ours if file.path.suffix == ".toml"]
    for file in (*holding, *toml):
        content = file.path.read_bytes()
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise InvalidSetting(
                f"{printable(file.path)} is not UTF-8 text.", "Save it as UTF-8."
            ) from error
        return file._replace(text=text, sha256=sha256(content).hexdigest())
    folder = files[0].path.parent if files else _here()
    path = folder / "refold.toml" if project else config_folder() / "config.toml"
    return File(path, "project" if project else "user", "", {})


def _holds(table: object, path: Names) -> bool:
    for name in path:
        if not isinstance(table, Mapping) or name not in table:
            return False
        table = cast("Mapping[str, object]", table)[name]
    return True


def _conflicts(file: File, name: _Name) -> Iterator[tuple[Names, list[tuple[Names, object]]]]:
    """Other names in the file for the same setting, and what else they set, to be written anew."""
    if name.stored in FILE_ALIASES:
        paths = (tuple(key.split(".")) for key in name.keys)
        yield from ((path, []) for path in paths if _holds(file.table, path))
        return
    for other, alias in FILE_ALIASES.items():
        if other in file.table and name.keys[0] in alias.keys:
            paths = (tuple(key.split(".")) for key in alias.keys if key != name.keys[0])
            yield (other,), [(path, file.table[other]) for path in paths]


def _with(file: File, text: str, path: Names, value: object) -> str:
    if file.path.suffix == ".json":
        return _edit_json(text, path, value)
    return _checked(file, with_value(text.removeprefix("\ufeff"), (*file.within, *path), value))


def _without(file: File, text: str, path: Names) -> str:
    if file.path.suffix == ".json":
        return _edit_json(text, path, None)
    return _checked(file, without_value(text.removeprefix("\ufeff"), (*file.within, *path)))


def _checked(file: File, text: str | None) -> str:
    if text is None:
        raise InvalidSetting(
            f"{file.path} is written in a way that cannot be changed safely from here.",
            "Nothing was changed: edit the file yourself.",
        )
    return text


def _edit_json(text: str, path: Names, value: object) -> str:
    table: dict[str, Any] = json.loads(text.removeprefix("\ufeff"))
    inner = table
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    _assign(inner, path[-1], value)
    return json.dumps(table, ensure_ascii=False, indent=2) + "\n"


def _assign(table: dict[str, Any], name: str, value: object) -> None:
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value


def settings_schema() -> str:
    """The JSON Schema of refold.toml."""
    return (files("refold.settings") / _SCHEMA_FILE).read_text(encoding="utf-8")


def _write_schema(folder: Path) -> None:
    """Write the schema beside a file that names it, or renew one that another version wrote."""
    path, schema = folder / _SCHEMA_FILE, settings_schema()
    title = schema.partition('"title"')[2].partition("\n")[0]
    # A link could lead out of a cloned project, and another schema isn't ours to replace.
    with suppress(OSError, UnicodeDecodeError):
        before = path.read_text(encoding="utf-8") if os.path.lexists(path) else title
        if not path.is_symlink() and title in before and before != schema:
            write_whole(path, schema.encode())


def _write(file: File, text: str) -> None:
    """Write the file. One that was trusted, or is new, stays trusted: the user wrote it."""
    path = Path(os.path.realpath(file.path))
    if file.level == "project" and path.parent != file.path.parent:
        raise InvalidSetting(
            f"{printable(file.path)} is a link to {printable(path)}, outside its folder.",
            "Nothing was changed: edit that file yourself, or replace the link by a file.",
        )
    trust = Trust.load()
    own = not file.text or trust.verdict(file) == "trusted"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    write_whole(path, content)
    if text.startswith(SCHEMA_LINE):
        _write_schema(path.parent)
    if file.level == "project" and own:
        with suppress(InvalidSetting):  # it is written, and `refold config` shows what is left out
            trust.grant([file._replace(sha256=sha256(content).hexdigest())])


# Edits one value of a TOML file that a person wrote. Comments and order stay.
#
# tomlkit reads and spells TOML; where a new line goes is decided here, because tomlkit puts it
# below the comment that introduces the next table. An edit counts only if `tomllib` reads it back
# as the same file with that one value changed, and if every comment line is still there, in order.
# Otherwise nothing is changed, and the caller gets None.


def with_value(text: str, path: Names, value: object) -> str | None:
    """The text with the value set; None if that cannot be done safely."""
    end = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += end
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))
        held = _holds(tomllib.loads(text), path)
    except ValueError:
        return None
    edits = () if held else _new_lines(text, path, plain, end)
    every = chain(edits, _by_tomlkit(text, path, plain))
    return next((edit for edit in every if _is_safe(text, edit, path, plain)), None)


def without_value(text: str, path: Names) -> str | None:
    """The text without the value; None if that cannot be done safely."""
    try:
        held = _holds(tomllib.loads(text), path)
    except tomllib.TOMLDecodeError:
        return None
    edits = _by_tomlkit(text, path, None) if held else [text]
    return next((edit for edit in edits if _is_safe(text, edit, path, None)), None)


def _by_tomlkit(text: str, path: Names, value: object) -> Iterator[str]:
    """The edit that tomlkit makes, if it can; None as value removes it."""
    import tomlkit  # noqa: PLC0415 - needed by few, and slow to import
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document = tomlkit.parse(text)
        inner: Any = document
        for name in path[:-1]:
            inner = inner.setdefault(name, tomlkit.table())
        if value is None:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value
        edit = tomlkit.dumps(document)
        # tomlkit ends new lines with a line feed alone.
        crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
        yield edit.replace("\r\n", "\n").replace("\n", "\r\n") if crlf else edit
    except (TOMLKitError, AttributeError, LookupError, TypeError, ValueError):
        # A value where a table should be, or a layout that tomlkit cannot edit.
        return


def _new_lines(text: str, path: Names, value: object, end: str) -> Iterator[str]:
    """Places for a line that sets the value, the best first; each must still be checked."""
    import tomlkit  # noqa: PLC0415 - needed by few, and slow to import

    *table, name = path
    line = f"{tomlkit.key(name).as_string()} = {tomlkit.item(value).as_string()}{end}"
    lines = _lines(text)
    # Behind the last statement of each table; only the setting's own table passes the check.
    statements = [
        index for index, each in enumerate(lines) if each.strip() and not _is_comment(each)
    ]
    for index, following in reversed(list(zip_longest(statements, statements[1:]))):
        if following is None or lines[following].lstrip().startswith("["):
            yield "".join((*lines[: index + 1], line, *lines[index + 1 :]))
    if table:
        gap = end if text.strip() else ""
        yield f"{text}{gap}[{tomlkit.key(table).as_string()}]{end}{line}"
        return
    # Above the first table's header and the comment that introduces it.
    header = next((at for at, each in enumerate(lines) if each.lstrip().startswith("[")), None)
    if header is None:
        yield text + line
        return
    index = header - len(list(takewhile(str.strip, reversed(lines[:header]))))
    yield "".join((*lines[:index], line, end, *lines[index:]))


def _lines(text: str) -> list[str]:
    """Lines as TOML has them, with their ends; `splitlines` knows more kinds of ends."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _is_safe(before: str, after: str, path: Names, value: object) -> bool:
    """Whether the texts differ in this one value alone, and every comment line stays."""
    try:
        old, new = tomllib.loads(before), tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        return False
    live = iter(_lines(after))
    comments_stay = all(line in live for line in _lines(before) if _is_comment(line))
    expected = _changed(old, path, value)
    return comments_stay and expected is not None and _pruned(expected) == _pruned(new)


def _changed(table: dict[str, Any], path: Names, value: object) -> dict[str, Any] | None:
    """The table with the value set; None where another value is in a table's place."""
    changed = deepcopy(table)
    inner: Any = changed
    for name in path[:-1]:
        inner = cast("Any", inner).setdefault(name, {}) if isinstance(inner, dict) else None
    if not isinstance(inner, dict):
        return None
    _assign(cast("dict[str, Any]", inner), path[-1], value)
    return changed


def _pruned(table: dict[str, Any]) -> dict[str, Any]:
    """Without tables that hold nothing."""
    pruned = {
        name: _pruned(cast("dict[str, Any]", value)) if isinstance(value, dict) else value
        for name, value in table.items()
    }
    return {name: value for name, value in pruned.items() if value != {}}
