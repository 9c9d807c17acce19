"""Small, safe edits of TOML files that people write: comments and order stay.

The text is read as statements: a header, a key with its value, or lines that say nothing. Whatever
is done to them, the result is parsed again and must differ from what was there in that one value;
else nothing is changed, and None is given.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final, NamedTuple, cast

Path = tuple[str, ...]
"""The names that lead to a value."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_LONGEST: Final = 400
"""A value that spans more lines is not read: the file is for its author to edit."""


class _Statement(NamedTuple):
    """Lines that belong together."""

    text: str
    """With their line ends."""
    table: Path
    """The table that it stands in; of a header, the one that it opens."""
    key: Path = ()
    """What it sets, from the table on; none: it is a header, or says nothing."""
    header: bool = False


def with_value(text: str, path: Path, value: object) -> str | None:
    """The text with the value set; None if that cannot be done safely."""
    end = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += end
    try:
        there = _statements(text)
        changed = _replaced(there, path, value, end) or _inserted(there, path, value, end)
    except ValueError:
        return None
    return changed if _is_so(text, changed, path, value) else None


def without_value(text: str, path: Path) -> str | None:
    """The text without the value; None if that cannot be done safely."""
    try:
        there = _statements(text)
    except ValueError:
        return None
    changed = "".join(one.text for one in there if (*one.table, *one.key) != path or not one.key)
    return changed if _is_so(text, changed, path, None) else None


def written(value: object) -> str:
    """A value as TOML spells it."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(written, cast('Sequence[object]', value)))}]"
    if isinstance(value, str):
        plain = json.dumps(value, ensure_ascii=False)
        return plain.replace("\x7f", "\\u007f")
    return json.dumps(value)


def _statements(text: str) -> list[_Statement]:
    found: list[_Statement] = []
    table: Path = ()
    lines = _LINE.findall(text)
    at = 0
    while at < len(lines):
        some, parsed = _next(lines, at)
        joined = "".join(some)
        at += len(some)
        if joined.lstrip().startswith("["):
            table = _names(parsed)
            found.append(_Statement(joined, table, header=True))
        else:
            found.append(_Statement(joined, table, _names(parsed)))
    return found


def _next(lines: list[str], at: int) -> tuple[list[str], dict[str, Any]]:
    """The fewest lines that are TOML by themselves."""
    for more in range(1, min(_LONGEST, len(lines) - at) + 1):
        some = lines[at : at + more]
        try:
            return some, tomllib.loads("".join(some))
        except tomllib.TOMLDecodeError:
            pass
    raise ValueError("no statement begins here")


def _names(parsed: object) -> Path:
    """The names that a statement holds, as far as there is one alone."""
    names: list[str] = []
    while True:
        if isinstance(parsed, list) and len(cast("list[object]", parsed)) == 1:
            parsed = cast("list[object]", parsed)[0]  # of a header with two brackets
        if not isinstance(parsed, dict) or len(cast("dict[str, object]", parsed)) != 1:
            return tuple(names)
        [(name, parsed)] = cast("dict[str, object]", parsed).items()
        names.append(name)


def _replaced(there: list[_Statement], path: Path, value: object, end: str) -> str | None:
    """With the value that is there replaced."""
    for at, one in enumerate(there):
        if one.key and (*one.table, *one.key) == path:
            key = one.text.partition("=")[0].rstrip()
            new = f"{key} = {written(value)}{_comment(one.text)}{end}"
            return "".join((*(s.text for s in there[:at]), new, *(s.text for s in there[at + 1 :])))
    return None


def _comment(text: str) -> str:
    """The comment behind a value, with the space before it."""
    line = text.rstrip("\r\n")
    for at in (at for at, char in enumerate(line) if char == "#"):
        try:
            same = tomllib.loads(line[:at]) == tomllib.loads(line)
        except tomllib.TOMLDecodeError:
            continue
        if same:
            bare = line[:at].rstrip()
            return line[len(bare) :]
    return ""


def _inserted(there: list[_Statement], path: Path, value: object, end: str) -> str:
    """With the value as a new line: in its table, beside one like it, or in a table of its own."""
    table, name = path[:-1], path[-1]
    line = f"{_key(name)} = {written(value)}{end}"
    for at in reversed(range(len(there))):
        one = there[at]
        if one.table == table and (one.key or one.header):
            return _after(there, at, line)
    for at, one in enumerate(there):
        full = (*one.table, *one.key)
        if one.key and len(one.table) < len(table) < len(full) and full[: len(table)] == table:
            beside = ".".join(_key(part) for part in path[len(one.table) :])
            return _after(there, at, f"{beside} = {written(value)}{end}")
    if not table:
        return _before_tables(there, line, end)
    text = "".join(one.text for one in there)
    gap = end if text.strip() else ""
    return f"{text}{gap}[{'.'.join(map(_key, table))}]{end}{line}"


def _before_tables(there: list[_Statement], line: str, end: str) -> str:
    """At the end of what stands before the first header, or of the comments at the top."""
    first = next((at for at, one in enumerate(there) if one.header), len(there))
    if first == len(there):
        return "".join(one.text for one in there) + line
    # What is written right above a header belongs to it.
    while first and there[first - 1].text.strip():
        first -= 1
    above, below = there[:first], there[first:]
    return "".join((*(one.text for one in above), line, end, *(one.text for one in below)))


def _after(there: list[_Statement], at: int, line: str) -> str:
    return "".join((*(s.text for s in there[: at + 1]), line, *(s.text for s in there[at + 1 :])))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else written(name)


def _is_so(before: str, after: str, path: Path, value: object) -> bool:
    """Whether the texts differ in this one value, and in no other."""
    try:
        old, new = tomllib.loads(before), tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        return False
    return _pruned(_changed(old, path, value)) == _pruned(new)


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
        last[path[-1]] = json.loads(json.dumps(value))
    return changed


def _pruned(table: dict[str, Any]) -> dict[str, Any]:
    """Without tables that hold nothing."""
    pruned = {
        name: _pruned(cast("dict[str, Any]", one)) if isinstance(one, dict) else one
        for name, one in table.items()
    }
    return {name: one for name, one in pruned.items() if one != {}}
