"""Edits one value of a TOML file that a person wrote. Comments and order stay.

tomlkit reads and spells TOML; where a new line goes is decided here, because tomlkit puts it below
the comment that introduces the next table. An edit counts only if `tomllib` reads it back as the
same file with that one value changed, and if every line of comments is still there, in its order.
Otherwise nothing is changed, and the caller gets None.
"""

import json
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from itertools import chain, takewhile, zip_longest
from typing import Any, cast

Path = tuple[str, ...]
"""The names that lead to a value."""


def with_value(text: str, path: Path, value: object) -> str | None:
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


def without_value(text: str, path: Path) -> str | None:
    """The text without the value; None if that cannot be done safely."""
    try:
        held = _holds(tomllib.loads(text), path)
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
    for at, following in reversed(list(zip_longest(statements, statements[1:]))):
        if following is None or lines[following].lstrip().startswith("["):
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


def _holds(table: object, path: Path) -> bool:
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
    following = iter(_lines(after))
    comments_stay = all(line in following for line in _lines(before) if _is_comment(line))
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
