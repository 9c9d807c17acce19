"""Reading a summary that a model wrote as JSON, whatever it called the fields."""

import json
from collections.abc import Iterator
from typing import cast

from pydantic_core import from_json

from refold.fold.write.citations import cited, numbers
from refold.fold.write.reading_markdown import Found
from refold.fold.write.subjects import Subject, known

_TEXTS = ("text", "claim", "point", "statement", "content", "description", "summary", "fact")
_CITES = ("entries", "entry", "cites", "citations", "cite", "sources", "source", "refs", "seqs")


class _Pairs(list[tuple[str, object]]):
    """An object, with every field that was written, also where two have one name."""


def read_json(text: str) -> tuple[Found, str] | None:
    """What the JSON at the beginning of a text says, and the text after it, if there is any."""
    found = Found()
    try:
        value, rest = _decoded(text)
        if isinstance(value, _Pairs):
            _read_fields(value, found)
        elif isinstance(value, list):
            _read_items(cast("list[object]", value), "notes", "", found)
    except RecursionError:  # no summary is nested so deep
        return None
    return (found, rest) if found.claims or found.title or found.obsolete else None


def _decoded(text: str) -> tuple[object, str]:
    try:
        value, end = json.JSONDecoder(object_pairs_hook=_Pairs).raw_decode(text)
        return cast("object", value), text[end:]
    except ValueError:
        pass
    try:  # it was cut off
        return _as_pairs(from_json(text, allow_partial="trailing-strings")), ""
    except ValueError:
        return None, text


def _as_pairs(value: object) -> object:
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return _Pairs((key, _as_pairs(one)) for key, one in fields.items())
    if isinstance(value, list):
        return [_as_pairs(one) for one in cast("list[object]", value)]
    return value


def _read_fields(fields: _Pairs, found: Found, subject: Subject = "notes") -> None:
    for name, value in fields:
        heading = known(name.replace("_", " "))
        slot = heading.slot if heading else subject
        label = "" if heading and heading.exact else name
        if slot == "title" and isinstance(value, str) and not found.title:
            found.title = " ".join(value.split())
        elif slot == "obsolete" and (given := _numbers(value)):
            found.obsolete += given
        elif slot in {"title", "obsolete", "summary"}:
            _read_items(value, subject, label, found)
        else:
            _read_items(value, cast("Subject", slot), label, found)


def _read_items(value: object, subject: Subject, label: str, found: Found) -> None:
    """Claims on one subject; a label that says more than the subject goes before the first."""
    match value:
        case _Pairs() if value:
            point = _point(value)
            if point:
                found.add(subject, _labelled(label, point[0]), point[1])
            else:
                if label:
                    found.add(subject, f"{label}:")
                _read_fields(value, found, subject)
        case None | []:
            found.add(subject, label)
        case list():
            for one in cast("list[object]", value):
                _read_items(one, subject, label, found)
                label = ""
        case _:
            text = value if isinstance(value, str) else json.dumps(value)
            for line in [line for line in text.splitlines() if line.strip()] or [""]:
                found.add(subject, *cited(_labelled(label, line)))
                label = ""


def _labelled(label: str, text: str) -> str:
    return f"{label}: {text}" if label else text


def _point(fields: _Pairs) -> tuple[str, tuple[int, ...]] | None:
    """An object that is one claim: a text, perhaps with the entries it rests on, and no more."""
    texts = [value for name, value in fields if name.lower() in _TEXTS]
    cites = [value for name, value in fields if name.lower() in _CITES]
    if len(texts) != 1 or len(texts) + len(cites) != len(fields):
        return None
    if not isinstance(texts[0], str):
        return None
    text, named = cited(" ".join(texts[0].split()))
    return text, tuple(dict.fromkeys((*(n for one in cites for n in _numbers(one)), *named)))


def _numbers(value: object) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_each_number(value)))


def _each_number(value: object) -> Iterator[int]:
    match value:
        case bool() | None:
            return
        case int():
            if value > 0:
                yield value
        case str():
            yield from numbers(value[:1_000])
        case list():
            for one in cast("list[object]", value):
                yield from _each_number(one)
        case _:
            return
