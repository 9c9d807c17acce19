"""Edits JSON that a person wrote: one value is added, or taken out, and all else stays.

Comments and commas at the end of a list are allowed, as some programs allow them. An edit counts
only if the result reads back as meant; otherwise nothing is changed.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from refold.errors import InvalidInput

_SPACE: Final = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_LITERAL: Final = re.compile(r"[-+.\w]+")
_CLOSERS: Final = {"{": "}", "[": "]"}
_MAX_DEPTH: Final = 200
_CHANGED: Final = "Nothing was changed. Correct the file and try again."


@dataclass(slots=True)
class Node:
    """A value and where it stands in the text."""

    start: int
    value: Any = None
    end: int = 0
    children: list[tuple[str | int, int, "Node"]] = field(
        default_factory=list["tuple[str | int, int, Node]"]
    )
    """What is in it: the key or index, where the member begins, and its value."""

    def plain(self) -> Any:  # noqa: ANN401 - any JSON
        """The value without its places."""
        return _plain(self)

    def child(self, key: str | int) -> "Node | None":
        """The value at a key; the last one counts, as in JSON."""
        return next((node for name, _, node in reversed(self.children) if name == key), None)


def parse(text: str) -> Node:
    """The value in the text. Raises InvalidInput where it is not JSON."""
    node = _Parser(text).value(_skip(text, 0), 0)
    if _skip(text, node.end) != len(text):
        raise _invalid(text, node.end)
    return node


def with_item(text: str, path: Sequence[str], item: object) -> str:
    """The text with an item at the end of the list at a path; what is missing there is made."""
    root = parse(text)
    node, rest = root, [*path]
    while rest and (inner := node.child(rest[0])) is not None:
        node = inner
        rest.pop(0)
    if not isinstance(node.value, dict if rest else list):
        where = ".".join(path[: len(path) - len(rest)]) or "the file"
        raise InvalidInput(f"{where} does not hold what it should.", _CHANGED)
    value: object = [item] if rest else item
    for name in reversed(rest[1:]):
        value = {name: value}
    expected = _plain(root)
    _append(_at(expected, path[: len(path) - len(rest)]), rest, value)
    return _checked(_inserted(text, node, rest[0] if rest else None, value), expected)


def with_member(text: str, path: Sequence[str], value: object) -> str:
    """The text with a value at a path where there is none; objects that are missing are made."""
    root = parse(text)
    node, rest = root, [*path]
    while (inner := node.child(rest[0])) is not None and len(rest) > 1:
        node = inner
        rest.pop(0)
    where = [*path[: len(path) - len(rest)]]
    if not isinstance(node.value, dict) or inner is not None:
        raise InvalidInput(
            f"{'.'.join(where) or 'The file'} does not hold what it should.", _CHANGED
        )
    for name in reversed(rest[1:]):
        value = {name: value}
    expected = _plain(root)
    _at(expected, where)[rest[0]] = value
    return _checked(_inserted(text, node, rest[0], value), expected)


def without(text: str, path: Sequence[str | int]) -> str:
    """The text without the value at a path."""
    root = parse(text)
    parent = root
    for name in path[:-1]:
        inner = parent.child(name)
        if inner is None:
            return text
        parent = inner
    names = [name for name, _, _ in parent.children]
    if path[-1] not in names:
        return text
    expected = _plain(root)
    del _at(expected, path[:-1])[path[-1]]
    return _checked(_cut(text, parent, names.index(path[-1])), expected)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, start: int, depth: int) -> Node:
        text = self._text
        opener = text[start : start + 1]
        if depth > _MAX_DEPTH or not opener:
            raise _invalid(text, start)
        if opener in _CLOSERS:
            return self._container(start, depth)
        found = (_STRING if opener == '"' else _LITERAL).match(text, start)
        if found is None:
            raise _invalid(text, start)
        try:
            return Node(start, json.loads(found.group()), found.end())
        except ValueError as error:
            raise _invalid(text, start) from error

    def _container(self, start: int, depth: int) -> Node:
        text, closer = self._text, _CLOSERS[self._text[start]]
        is_object = closer == "}"
        node = Node(start, {} if is_object else [])
        place = _skip(text, start + 1)
        while text[place : place + 1] != closer:
            first = place
            key: str | int = len(node.children)
            if is_object:
                name = self.value(place, depth + 1) if text[place : place + 1] == '"' else None
                place = _skip(text, name.end if name else place)
                if name is None or text[place : place + 1] != ":":
                    raise _invalid(text, place)
                key, place = name.value, _skip(text, place + 1)
            inner = self.value(place, depth + 1)
            node.children.append((key, first, inner))
            place = _skip(text, inner.end)
            if text[place : place + 1] == ",":
                place = _skip(text, place + 1)
            elif text[place : place + 1] != closer:
                raise _invalid(text, place)
        node.end = place + 1
        return node


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _invalid(text: str, place: int) -> InvalidInput:
    line = text.count("\n", 0, place) + 1
    return InvalidInput(f"It is not JSON from line {line} on.", _CHANGED)


def _plain(node: Node) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(node.value, dict):
        return {name: _plain(inner) for name, _, inner in node.children}
    if isinstance(node.value, list):
        return [_plain(inner) for _, _, inner in node.children]
    return node.value


def _at(value: Any, path: Sequence[str | int]) -> Any:  # noqa: ANN401 - any JSON
    for name in path:
        value = value[name]
    return value


def _append(where: Any, rest: Sequence[str], value: object) -> None:  # noqa: ANN401 - any JSON
    if rest:
        where[rest[0]] = value
    else:
        where.append(value)


def _checked(text: str, expected: object) -> str:
    """The edit, if it reads back as meant."""
    if _plain(parse(text)) != expected:
        raise InvalidInput("It could not be edited without changing something else.", _CHANGED)
    return text


def _inserted(text: str, node: Node, key: str | None, value: object) -> str:
    """The text with one more member at the end of an object or a list."""
    unit = _unit(text)
    own = _indent(text, node.start)
    lines = "\n" in text[node.start : node.end] or not node.children
    written = json.dumps(value, indent=unit, ensure_ascii=False) if lines else json.dumps(value)
    if key is not None:
        written = f"{json.dumps(key)}: {written}"
    closer = node.end - 1
    if not node.children:
        inner = text[node.start + 1 : closer].rstrip()  # a comment, perhaps
        body = f"{inner}\n{_indented(written, own + unit)}\n{own}"
        return _ends(text, text[: node.start + 1] + body + text[closer:])
    last = node.children[-1][2].end
    after = text[last:closer]
    comma = _skip(text, last) < closer  # after the last member, too
    tail = after.rstrip()
    separator = "" if comma else ","
    if not lines:
        return f"{text[:last]}{separator}{tail} {written}{text[last + len(tail) :]}"
    indent = _indent(text, node.children[-1][1]) if "\n" in text[node.start : last] else own + unit
    new = f"{separator}{tail}\n{_indented(written, indent)}"
    return _ends(text, text[:last] + new + text[last + len(tail) :])


def _cut(text: str, parent: Node, index: int) -> str:
    """The text without one member, its comma, and the line that it leaves empty."""
    _, start, node = parent.children[index]
    end = node.end
    after = _skip(text, end)
    comma = text[after : after + 1] == ","
    if comma and text[end:after].strip() == "":
        end = after + 1
    before = len(text[:start].rstrip(" \t"))
    if text[:before].endswith("\n"):
        start = before - 1 - text[:before].endswith("\r\n")
    elif index + 1 < len(parent.children) and comma:
        end = parent.children[index + 1][1] if text[end : end + 1] == " " else end
    if index + 1 == len(parent.children) and index and not comma:
        last = parent.children[index - 1][2].end  # its comma separates it from nothing now
        place = _skip(text, last)
        text, moved = text[:place] + text[place + 1 :], 1
        start, end = max(place, start - moved), end - moved
        if "\n" not in text[last:start] and start == place:
            start = last
    if len(parent.children) == 1 and not text[parent.start + 1 : start].strip():
        closer = parent.end - 1
        if not text[end:closer].strip():
            return text[: parent.start + 1] + text[closer:]
    return text[:start] + text[end:]


def _unit(text: str) -> str:
    """One step of indentation, as the text has it."""
    found = re.search(r"[\[{]\s*\n([ \t]+)\S", text)
    return found[1] if found and len(found[1]) <= 8 else "  "  # noqa: PLR2004 - deeper is no step


def _indent(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indented(text: str, indent: str) -> str:
    return "\n".join(f"{indent}{line}" for line in text.split("\n"))


def _ends(before: str, text: str) -> str:
    """The text with the line ends that it had."""
    crlf = "\r\n" in before and before.count("\n") == before.count("\r\n")
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if crlf else text
