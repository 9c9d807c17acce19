"""Setting a value for good: in the user's file, or in the project's."""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain, takewhile, zip_longest
from pathlib import Path as PathWriting
from typing import Any, cast

from refold.errors import InvalidSetting
from refold.settings.files import File, given_in, project_files, user_files
from refold.settings.loading import Name, Settings, checked, load_settings, named
from refold.settings.names import FILE_ALIASES, printable, settled
from refold.settings.trust import Trust
from refold.user_files import config_folder, write_whole

# Edits one value of a TOML file that a person wrote. Comments and order stay.
#
# tomlkit reads and spells TOML; where a new line goes is decided here, because tomlkit puts it
# below
# the comment that introduces the next table. An edit counts only if `tomllib` reads it back as the
# same file with that one value changed, and if every line of comments is still there, in its order.
# Otherwise nothing is changed, and the caller gets None.

Path = tuple[str, ...]
"""The names that lead to a value."""


def with_value(text: str, path: Path, value: object) -> str | None:
    """The text with the value set; None if that cannot be done safely."""
    end = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += end
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))
        held = _holds_toml_editing(tomllib.loads(text), path)
    except ValueError:
        return None
    edits = () if held else _new_lines(text, path, plain, end)
    every = chain(edits, _by_tomlkit(text, path, plain))
    return next((edit for edit in every if _is_safe(text, edit, path, plain)), None)


def without_value(text: str, path: Path) -> str | None:
    """The text without the value; None if that cannot be done safely."""
    try:
        held = _holds_toml_editing(tomllib.loads(text), path)
    except tomllib.TOMLDecodeError:
        return None
    edits = _by_tomlkit(text, path, None) if held else [text]
    return next((edit for edit in edits if _is_safe(text, edit, path, None)), None)


def _by_tomlkit(text: str, path: Path, value: object) -> Iterator[str]:
    """The edit that tomlkit makes, if it can; None as value removes it."""
    import tomlkit  # noqa: PLC0415 - needed by few, and slow to import
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document = tomlkit.parse(text)
        inner: Any = document
        for part in path[:-1]:
            inner = inner.setdefault(part, tomlkit.table())
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


def _new_lines(text: str, path: Path, value: object, end: str) -> Iterator[str]:
    """Places for a line that sets the value, the best first; each must still be checked."""
    import tomlkit  # noqa: PLC0415 - needed by few, and slow to import

    *table, name = path
    line = f"{tomlkit.key(name).as_string()} = {tomlkit.item(value).as_string()}{end}"
    yield from _in_its_table(text, line)
    if table:
        gap = end if text.strip() else ""
        yield f"{text}{gap}[{tomlkit.key(table).as_string()}]{end}{line}"
    else:
        yield _before_tables(text, line, end)


def _in_its_table(text: str, line: str) -> Iterator[str]:
    """The line behind the last statement of each table; only its own table passes the check."""
    lines = _lines(text)
    statements = [at for at, each in enumerate(lines) if each.strip() and not _is_comment(each)]
    for at, live in reversed(list(zip_longest(statements, statements[1:]))):
        if live is None or lines[live].lstrip().startswith("["):
            yield "".join((*lines[: at + 1], line, *lines[at + 1 :]))


def _before_tables(text: str, line: str, end: str) -> str:
    """The line above the first header and the comment that introduces it."""
    lines = _lines(text)
    header = next((at for at, each in enumerate(lines) if each.lstrip().startswith("[")), None)
    if header is None:
        return text + line
    introduction = list(takewhile(str.strip, reversed(lines[:header])))
    at = header - len(introduction)
    return "".join((*lines[:at], line, end, *lines[at:]))


def _lines(text: str) -> list[str]:
    """Lines as TOML has them, with their ends; `splitlines` knows more kinds of ends."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _holds_toml_editing(table: object, path: Path) -> bool:
    for part in path:
        if not isinstance(table, dict) or part not in table:
            return False
        table = cast("dict[str, object]", table)[part]
    return True


def _is_safe(before: str, after: str, path: Path, value: object) -> bool:
    """Whether the texts differ in this one value alone, and its lines of comments stay."""
    try:
        old, new = tomllib.loads(before), tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        return False
    live = iter(_lines(after))
    comments_stay = all(line in live for line in _lines(before) if _is_comment(line))
    return comments_stay and _pruned(_changed(old, path, value)) == _pruned(new)


def _changed(table: dict[str, Any], path: Path, value: object) -> dict[str, Any]:
    changed = deepcopy(table)
    inner: Any = changed
    for one in path[:-1]:
        inner = cast("Any", inner).setdefault(one, {}) if isinstance(inner, dict) else None
    if not isinstance(inner, dict):
        return {"": "another value stands where a table should"}
    last = cast("dict[str, Any]", inner)
    if value is None:
        last.pop(path[-1], None)
    else:
        last[path[-1]] = value
    return changed


def _pruned(table: dict[str, Any]) -> dict[str, Any]:
    """Without tables that hold nothing."""
    pruned = {
        name: _pruned(cast("dict[str, Any]", one)) if isinstance(one, dict) else one
        for name, one in table.items()
    }
    return {name: one for name, one in pruned.items() if one != {}}


Names = tuple[str, ...]
"""The names that lead to a value in a file."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A setting that was written, or taken out."""

    key: str
    """Its name as it stands in the file."""
    value: object
    """What it is there; when it was taken out, what applies now."""
    before: object
    """What applied before; None if that could not be told."""
    path: PathWriting
    """The file."""
    instead: str | None = None
    """What goes before it, and where that stands: this value does not apply here."""


def set_setting(key: str, value: str, *, project: bool = False) -> Kept:
    """Check a value, and keep it in the user's file, or the project's; comments there stay.

    Args:
        key: A setting's dotted name, `profile`, `models."provider:model".window`, or a seed's name.
        value: As one would type it: 80000, true, or a text.
        project: Write it for the project that the current folder belongs to.
    """
    name = named(key)
    found = checked(name, value)
    file = _file(name, project=project)
    before = _applying(name)
    text = file.text
    for other, kept in _in_the_way(file, name):
        text = _without(file, text, other)
        for path, old in kept:
            text = _with(file, text, path, old)
    text = _with(file, text, name.path, found)
    _check(file, text, project=project)
    _write(file, text)
    return _told(Kept(name.stored, found, before, file.path), name, project=project)


def unset_setting(key: str, *, project: bool = False) -> Kept:
    """Take a value out of the user's file, or the project's."""
    name = named(key)
    file = _file(name, project=project)
    if not _holds(file.table, name.path):
        raise InvalidSetting(f"{name.stored} is not set in {file.path}.", _where_it_is(name))
    before = _applying(name)
    _write(file, _without(file, file.text, name.path))
    return Kept(name.stored, _applying(name), before, file.path)


def _loaded() -> Settings | None:
    try:
        return load_settings()
    except InvalidSetting:
        return None


def _applying(name: Name) -> object:
    settings = _loaded()
    return settings.values().get(name.keys[0]) if settings else None


def _told(kept: Kept, name: Name, *, project: bool) -> Kept:
    """With what goes before it, if anything does."""
    settings = _loaded()
    if settings is None:
        return kept
    if any(one.key == name.keys[0] and one.file == kept.path for one in settings.left_out):
        where = printable(kept.path)
        return replace(kept, instead=f"{where} is not trusted (`refold trust` asks)")
    source = settings.sources.get(name.keys[0])
    level = "project" if project else "user"
    if source is None or source.level == level:
        return kept
    value = settings.values().get(name.keys[0])
    return replace(kept, instead=f"{source} sets it to {value!r}")


def _check(file: File, text: str, *, project: bool) -> None:
    """Refuse what would contradict another file of the same level."""
    table: Any = json.loads(text) if file.path.suffix == ".json" else tomllib.loads(text)
    for one in file.within:
        table = table[one]
    files = project_files(_here()) if project else user_files()
    others = [one for one in files if one.path != file.path]
    new = file._replace(text=text, table=table)
    settled(given for one in (*others, new) for given in given_in(one))


def _here() -> PathWriting:
    return PathWriting.cwd().resolve()


def _file(name: Name, *, project: bool) -> File:
    """The file to write to: the one that has it, else the one that should."""
    files = project_files(_here()) if project else user_files()
    ours = [file for file in files if not project or file.path.suffix == ".toml"]
    holding = [file for file in files if _holds(file.table, name.path)]
    for file in holding:
        if file not in ours:
            raise InvalidSetting(
                f"{file.path} sets {name.stored}, and may belong to another program.",
                "Change it there.",
            )
    toml = [file for file in ours if file.path.suffix == ".toml"]
    chosen = next(iter((*holding, *toml)), None)
    if chosen is not None:
        content = chosen.path.read_bytes()
        digest = sha256(content).hexdigest()
        return chosen._replace(text=_exactly(chosen.path, content), sha256=digest)
    folder = files[0].path.parent if files else _here()
    path = folder / "refold.toml" if project else config_folder() / "config.toml"
    return File(path, "project" if project else "user", "", {})


def _exactly(path: PathWriting, content: bytes) -> str:
    """The text as it is; a file that is not text is not for us to edit."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidSetting(
            f"{printable(path)} is not UTF-8 text.", "Save it as UTF-8."
        ) from error


def _holds(table: Mapping[str, object], path: Names) -> bool:
    here: Mapping[str, object] = table
    for at, one in enumerate(path, 1):
        if one not in here:
            return False
        inner = here[one]
        if not isinstance(inner, Mapping):
            return at == len(path)
        here = cast("Mapping[str, object]", inner)
    return True


def _in_the_way(file: File, name: Name) -> Iterator[tuple[Names, list[tuple[Names, object]]]]:
    """What the file says of the same under another name, and what of that must be said anew."""
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
        return _as_json(text, path, value)
    return _edited(file, with_value(text.removeprefix("\ufeff"), (*file.within, *path), value))


def _without(file: File, text: str, path: Names) -> str:
    if file.path.suffix == ".json":
        return _as_json(text, path, None)
    return _edited(file, without_value(text.removeprefix("\ufeff"), (*file.within, *path)))


def _edited(file: File, text: str | None) -> str:
    if text is None:
        raise InvalidSetting(
            f"{file.path} is written in a way that cannot be changed safely from here.",
            "Nothing was changed: edit the file yourself.",
        )
    return text


def _as_json(text: str, path: Names, value: object) -> str:
    table: dict[str, Any] = json.loads(text.removeprefix("\ufeff"))
    inner = table
    for one in path[:-1]:
        inner = inner.setdefault(one, {})
    if value is None:
        inner.pop(path[-1], None)
    else:
        inner[path[-1]] = value
    return json.dumps(table, ensure_ascii=False, indent=2) + "\n"


def _where_it_is(name: Name) -> str:
    settings = _loaded()
    source = settings.sources.get(name.keys[0]) if settings else None
    return f"It comes from {source}." if source else "`refold config` shows where it is set."


def _write(file: File, text: str) -> None:
    """Write the file. One that was trusted, or did not exist, is the user's own work also now."""
    path = PathWriting(os.path.realpath(file.path))
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
    if file.level == "project" and own:
        with suppress(InvalidSetting):  # it is written, and `refold config` says what is left out
            trust.grant([file._replace(sha256=sha256(content).hexdigest())])
