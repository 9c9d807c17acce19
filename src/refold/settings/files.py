"""Settings in files: TOML of ours, and a `config.json` that other programs may share."""

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
    FILE_ALIASES,
    KEYS,
    MODELS,
    PROFILE,
    SERVE_KEYS,
    Given,
    Level,
    Source,
    expanded,
    leaves,
    nearest,
    printable,
)
from refold.user_files import config_folder

Table = Mapping[str, object]
_MAX_BYTES: Final = 1 << 20
"""A larger file is no file of settings."""
_NO_FILE: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
"""There is none, or a link leads nowhere, or it is a socket."""


class File(NamedTuple):
    """A file with settings."""

    path: Path
    level: Level
    text: str
    table: Table
    within: tuple[str, ...] = ()
    """The tables of the file that the settings stand in."""
    sha256: str = ""
    """Of the bytes that were read, once: they are what is judged, applied and trusted."""


def project_files(folder: Path) -> list[File]:
    """The files of a project: those of the folder, or of the nearest one above that has any.

    The search ends with the folder that holds a repository: what lies above is another project.
    """
    for candidate in (folder, *folder.parents):
        found = [
            *_read(candidate / "refold.toml", "project"),
            *_read(candidate / "pyproject.toml", "project", within=("tool", "refold")),
            *_shared(candidate / "config.json"),
        ]
        if found or os.path.lexists(candidate / ".git"):
            return found
    return []


def user_files() -> list[File]:
    """The user's own files."""
    folder = config_folder()
    return [*_read(folder / "config.toml", "user"), *_read(folder / "config.json", "user")]


def given_in(file: File) -> Iterator[Given]:
    """What the file sets."""
    table = dict(file.table)
    yield from _models_in(file, table.pop(MODELS, {}))
    for name, value in leaves(table):
        source = Source(file.level, _place(file, name.split(".")))
        if name in FILE_ALIASES:
            yield from expanded(FILE_ALIASES[name], value, source._replace(alias=name))
        elif name in KEYS or name in SERVE_KEYS or name == PROFILE:
            yield Given(name, value, source)
        else:
            raise _unknown(name, source)


def _models_in(file: File, models: object) -> Iterator[Given]:
    for model, values in _tables(file, models):
        for name, value in _tables(file, values):
            source = Source(file.level, _place(file, [MODELS, model, name]))
            yield Given(f'{MODELS}."{model}".{name}', value, source)


def _tables(file: File, value: object) -> list[tuple[str, object]]:
    if not isinstance(value, Mapping):
        raise InvalidSetting(
            f"In `models` of {printable(file.path)}, {value!r} stands where a table should.",
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
    table: Table | None = _parsed(path, text)
    for name in within:
        table = _table(table or {}, name)
    if table is not None:
        yield File(path, level, text, table, within, sha256(content).hexdigest())


def _content(path: Path) -> bytes | None:
    """The bytes of a regular file, read once; None if there is none."""
    try:
        # A pipe would wait for somebody to write to it.
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
            "Make it smaller, or run this in another folder.",
        )
    return content


def _table(within: Table, name: str) -> Table | None:
    value = within.get(name)
    return cast("Table", value) if isinstance(value, Mapping) else None


def _shared(path: Path) -> Iterator[File]:
    """Of a file that may belong to another program: the seeds' names, and the table `refold`."""
    content = _content(path)
    if content is None:
        return
    text = content.decode("utf-8-sig", errors="replace")
    if not any(f'"{name}"' in text for name in (*FILE_ALIASES, "refold")):
        return
    table = _parsed(path, text)
    known = {name: value for name, value in table.items() if name in FILE_ALIASES}
    known |= _table(table, "refold") or {}
    if known:
        yield File(path, "project", text, known, sha256=sha256(content).hexdigest())


def _parsed(path: Path, text: str) -> Table:
    try:
        value = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        kind = path.suffix.removeprefix(".").upper()
        raise InvalidSetting(
            f"{printable(path)} is no {kind}: {printable(error)}.", "Correct the file."
        ) from error
    if not isinstance(value, dict):
        raise InvalidSetting(
            f"{printable(path)} holds no settings.", "Write one JSON object into it."
        )
    return cast("Table", value)


def _unknown(name: str, source: Source) -> InvalidSetting:
    what = f"{source.place} sets {printable(name)}, which is no setting."
    inside = [key for key in (*KEYS, *SERVE_KEYS) if key.startswith(f"{name}.")]
    if inside:
        return InvalidSetting(what, f"It is a table: set {', '.join(inside[:3])}.")
    near = nearest(name, {**KEYS, **SERVE_KEYS, **FILE_ALIASES, PROFILE: None, MODELS: None})
    return InvalidSetting(what, f"Did you mean {near}?" if near else None)


def _place(file: File, path: list[str]) -> str:
    line = _line_of(file, path)
    shown = printable(file.path)
    return f"{shown}, line {line}" if line else shown


def _line_of(file: File, path: list[str]) -> int | None:
    """The line that sets a value, as far as it can be told without a parser that keeps lines."""
    lines = file.text.splitlines()
    if file.path.suffix == ".json":
        wanted = f'"{path[-1]}"'
        return next((number for number, one in enumerate(lines, 1) if wanted in one), None)
    table, wanted = list[str](), [*file.within, *path]
    for number, line in enumerate(lines, 1):
        if header := re.fullmatch(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?", line):
            table = _path(f"[{header[1]}]")
        elif "=" in line:
            key = table + _path(f"{line.partition('=')[0]}= 0")
            if key == wanted[: len(key)] and len(key) > len(table):
                return number
    return None


def _path(toml: str) -> list[str]:
    """The names of the one thing that the line sets."""
    try:
        value: object = tomllib.loads(toml)
    except tomllib.TOMLDecodeError:
        return []
    names: list[str] = []
    while isinstance(value, dict) and value:
        [(name, value)] = cast("dict[str, object]", value).items()
        names.append(name)
    return names
