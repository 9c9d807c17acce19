"""Settings in files: our own TOML, and a `config.json` that other programs may share."""

import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, cast

from refold.errors import InvalidSetting
from refold.settings.names import (
    ALL_KEYS,
    FILE_ALIASES,
    MODELS,
    PROFILE,
    Level,
    SettingValue,
    Source,
    did_you_mean,
    expand_alias,
    keys_in_table,
    leaves,
    printable,
)
from refold.user_files import config_folder

Table = Mapping[str, object]
_MAX_BYTES: Final = 1 << 20
"""A larger file holds no settings."""
_NO_FILE: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
"""No such file, a dangling link, or a socket."""


class File(NamedTuple):
    path: Path
    level: Level
    text: str
    table: Table
    within: tuple[str, ...] = ()
    """The tables of the file that contain the settings."""
    sha256: str = ""
    """Hash of the bytes as read, once: the same bytes are judged, applied and trusted."""


def project_files(folder: Path) -> list[File]:
    """A project's files: those in the folder, or in the nearest parent that has any.

    The search ends at the root of a repository: what lies above it is another project.
    """
    for candidate in (folder, *folder.parents):
        files = [
            *_read(candidate / "refold.toml", "project"),
            *_read(candidate / "pyproject.toml", "project", within=("tool", "refold")),
            *_shared(candidate / "config.json"),
        ]
        if files or os.path.lexists(candidate / ".git"):
            return files
    return []


def user_files() -> list[File]:
    folder = config_folder()
    return [*_read(folder / "config.toml", "user"), *_read(folder / "config.json", "user")]


def values_in(file: File) -> Iterator[SettingValue]:
    """The settings that a file sets."""
    table = dict(file.table)
    for model, overrides in _model_items(file, table.pop(MODELS, {})):
        for name, value in _model_items(file, overrides):
            source = Source(file.level, _place(file, [MODELS, model, name]))
            yield SettingValue(f'{MODELS}."{model}".{name}', value, source)
    for name, value in leaves(table):
        source = Source(file.level, _place(file, name.split(".")))
        if name in FILE_ALIASES:
            yield from expand_alias(FILE_ALIASES[name], value, source._replace(alias=name))
        elif name in ALL_KEYS or name == PROFILE:
            yield SettingValue(name, value, source)
        else:
            raise _unknown(name, source)


def _model_items(file: File, value: object) -> list[tuple[str, object]]:
    if not isinstance(value, Mapping):
        raise InvalidSetting(
            f"In `models` of {printable(file.path)}, {value!r} is where a table should be.",
            'Write [models."openai:gpt-4o"] and window = 128000 below it.',
        )
    return list(cast("Table", value).items())


def _read(path: Path, level: Level, within: tuple[str, ...] = ()) -> Iterator[File]:
    content = _content(path)
    if content is None:
        return
    text = content.decode("utf-8-sig", errors="replace")
    if within and within[-1] not in text:
        return
    table: Table | None = _parse(path, text)
    for name in within:
        table = _table(table or {}, name)
    if table is not None:
        yield File(path, level, text, table, within, sha256(content).hexdigest())


def _content(path: Path) -> bytes | None:
    try:
        # Opening a pipe would otherwise block until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise InvalidSetting(
            f"{printable(path)} is larger than 1 MB, so its settings are not read.",
            "Shorten it, or run the command in another folder.",
        )
    return content


def _table(within: Table, name: str) -> Table | None:
    value = within.get(name)
    return cast("Table", value) if isinstance(value, Mapping) else None


def _shared(path: Path) -> Iterator[File]:
    """From a file that may belong to another program: the aliases, and the table `refold`."""
    content = _content(path)
    if content is None:
        return
    text = content.decode("utf-8-sig", errors="replace")
    if not any(f'"{name}"' in text for name in (*FILE_ALIASES, "refold")):
        return
    table = _parse(path, text)
    own = {name: value for name, value in table.items() if name in FILE_ALIASES}
    own |= _table(table, "refold") or {}
    if own:
        yield File(path, "project", text, own, sha256=sha256(content).hexdigest())


def _parse(path: Path, text: str) -> Table:
    try:
        value = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        kind = path.suffix.removeprefix(".").upper()
        raise InvalidSetting(
            f"{printable(path)} is not {kind}: {printable(error)}.", "Correct the file."
        ) from error
    if not isinstance(value, dict):
        raise InvalidSetting(
            f"{printable(path)} holds no settings.", "Write one JSON object into it."
        )
    return cast("Table", value)


def _unknown(name: str, source: Source) -> InvalidSetting:
    what = f"{source.place} sets {printable(name)}, which is not a setting."
    inside = keys_in_table(name)
    if inside:
        return InvalidSetting(what, f"It is a table: set {', '.join(inside[:3])}.")
    return InvalidSetting(what, did_you_mean(name, (*ALL_KEYS, *FILE_ALIASES, PROFILE, MODELS)))


def _place(file: File, path: list[str]) -> str:
    line = _line_of(file, path)
    return f"{printable(file.path)}, line {line}" if line else printable(file.path)


def _line_of(file: File, path: list[str]) -> int | None:
    """The line that sets a value, as far as can be known: `tomllib` reports no lines."""
    lines = file.text.splitlines()
    if file.path.suffix == ".json":
        name = f'"{path[-1]}"'
        return next((number for number, line in enumerate(lines, 1) if name in line), None)
    table, target = list[str](), [*file.within, *path]
    for number, line in enumerate(lines, 1):
        if header := re.fullmatch(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?", line):
            table = _toml_path(f"[{header[1]}]")
        elif "=" in line:
            key = table + _toml_path(f"{line.partition('=')[0]}= 0")
            if key == target[: len(key)] and len(key) > len(table):
                return number
    return None


def _toml_path(toml: str) -> list[str]:
    try:
        value: object = tomllib.loads(toml)
    except tomllib.TOMLDecodeError:
        return []
    names: list[str] = []
    while isinstance(value, dict) and value:
        [(name, value)] = cast("dict[str, object]", value).items()
        names.append(name)
    return names
