"""The newest value of what changed: constants, settings, and fields of what tools return.

Only plain assignments count, where a name is unlikely to mean two things. A name that one message
gives two values is left out, as are searches, tests and shell output, which show many values of
many files at once. Each value comes with who gave it: what the user asked for need not be done.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from pydantic import JsonValue, TypeAdapter, ValidationError

from refold.fold.material import Earlier, Passage
from refold.fold.summary import Claim, Value, one_line
from refold.fold.watchdog import (
    CHANGING,
    PATH_ARGUMENTS,
    first_argument,
)
from refold.log import PartRef
from refold.view.framing import is_recall_tool, on_one_line, tool_name
from refold.wire import Shape
from refold.wire.fingerprint import users_words

_MAX_STORED = 200  # values that a fold stores
_MAX_SHOWN = 30
_MAX_SEARCHED = 20_000  # characters of a part
_MAX_SAID = 1_000  # characters of a user's message; a longer one is a pasted text
_MAX_NAME, _MAX_VALUE = 100, 60  # characters
_MAX_FIELDS = 20  # of one result

_CONSTANT = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
_SNAKE = r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+"
_DOTTED = r"[a-z_][\w-]*(?:\.[a-z_][\w-]*)+"
_KEBAB = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+"
_CAMEL = r"[a-z]+(?:[A-Z][a-z0-9]*)+"
_LITERAL = (
    r"(?P<value>\"[^\"\n]{1,60}\"|'[^'\n]{1,60}'|`[^`\n]{1,60}`"
    r"|[-+]?v?\d[\d_]*(?:[.,:]\d+)*(?i:\s?(?:%|(?:ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?"
    r"|days?|weeks?|[kmg]i?b|px|bytes?|tokens?|euros?|eur|usd|dollars?)\b))?"
    r"|(?i:true|false|yes|no|on|off|none|null|enabled|disabled)\b)"
)
_WRITTEN: Final = re.compile(
    rf"(?<![\w.$-])[\"']?(?P<name>{_CONSTANT}|{_DOTTED}|{_SNAKE}|{_KEBAB})[\"']?"
    rf"(?:[ \t]*:[ \t]*[A-Za-z_][\w.\[\]|]{{0,30}}(?=[ \t]*=))?[ \t]*(?:=(?!=)|:)[ \t]*{_LITERAL}"
    r"(?=[ \t]*(?:[,;)}\]]|\#|//|\.?[ \t]*(?:\r?\n|$)))"
)
"""An assignment in a file or a result."""
_SAID: Final = re.compile(
    rf"(?<![\w.$/-])`?(?P<name>{_CONSTANT}|{_DOTTED}|{_SNAKE}|{_CAMEL})`?\s*"
    r"(?:=|:|\bis(?: now)?\b|\b(?:should|must|has to|needs to)(?: now)? be\b"
    rf"|\b(?:from \S+ )?(?:back )?to\b|\bauf\b)\s*{_LITERAL}(?=[\s.,;!)]|$)"
    r"(?!\s*(?:→|->|–|\*|/|-|\bto\b|\bor\b|\bon\b|\d))"  # noqa: RUF001 - a dash
)
"""An assignment in a user's words."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_NOT_SET: Final = re.compile(
    r"\b(?:not|never|no longer|if|unless|would|could|might|was|were|why|how|what|whether|when"
    r"|previous(?:ly)?|used to|nicht|wenn|ob)\b|n't\b|n’t\b",  # noqa: RUF001 - an apostrophe
    re.IGNORECASE,
)
_FILE_OR_SITE: Final = re.compile(
    r"\.(?:py|[cm]?[jt]sx?|json|md|txt|toml|ya?ml|html|css|sh|go|rs|c|h|csv|log|com|org|net|io)$"
)
_EXPORT: Final = re.compile(
    rf"\b(?:export|config set)\s+(?P<name>{_CONSTANT}|{_DOTTED}|{_KEBAB})[= ]"
    r"(?P<value>\"[^\"\n]{1,60}\"|'[^'\n]{1,60}'|[\w./:%-]{1,60})(?=\s|;|&|$)"
)
_LOOKING: Final = re.compile(r"grep|search|find|glob|list|^ls$|fetch|web", re.IGNORECASE)
_SETTING: Final = re.compile(r"(?!get|read|list|show|fetch|find|search|query)", re.IGNORECASE)
_ASIDE: Final = re.compile(
    r"test|spec|example|sample|fixture|mock|node_modules|vendor|changelog|backup"
    r"|\.(?:lock|bak|orig|log)$",
    re.IGNORECASE,
)
"""Files whose values are not those in force."""
_FAILED: Final = re.compile(
    r"\s*(?:\S{1,40}: )?(?:\w*(?:error|exception)\b|fatal\b|failed\b|no such|not found|denied"
    r"|could not|cannot|can't|unable)",
    re.IGNORECASE,
)
_FLEETING: Final = re.compile(
    r"time|date|(?:^|_)at$|At$|duration|elapsed|latency|uuid|token|cursor|etag|nonce|(?:^|_)ids?$"
)
"""Fields that differ each time, and say nothing about what they belong to."""
_SECRET: Final = re.compile(
    r"api.?key|key\b|token(?!s)|secret|passw|pwd|\bauth|_auth|credential|cookie", re.IGNORECASE
)
_SETTING_NAMES: Final = ("name", "key", "setting", "option", "field", "property", "variable")
_SETTING_VALUES: Final = ("value", "new_value")
_COMMANDS = ("command", "cmd", "script")
_SCALARS = (str, int, float, bool)
_OBJECT = TypeAdapter(dict[str, JsonValue])


def assignments(text: str) -> dict[str, str]:
    """The values that a user's message gives to names; not what it only asks or rules out."""
    found: dict[str, set[str]] = {}
    for sentence in _SENTENCE_END.split(text) if len(text) <= _MAX_SAID else ():
        if sentence.rstrip().endswith("?"):
            continue
        for match in _SAID.finditer(sentence):
            before = sentence[: match.start()]
            if not _NOT_SET.search(before) and not _FILE_OR_SITE.search(match["name"]):
                found.setdefault(match["name"], set()).add(_value_text(match["value"]))
    return _unambiguous(found)


def newest_values(passages: Iterable[Passage], earlier: Iterable[Earlier]) -> tuple[Value, ...]:
    """The newest value of each name, with the one before it: those that changed, then the others.

    A name with one value so far is stored too, because the next fold may see it change.
    """
    newest: dict[str, Value] = {}
    seen = sorted(
        (value for fold in earlier for value in fold.summary.values), key=lambda one: one.source
    )
    for value in (*seen, *_values(passages)):
        if not _SECRET.search(value.name):
            _put(newest, value)
    order = sorted(newest.values(), key=lambda one: (bool(one.before), one.source))
    return tuple(sorted(order[-_MAX_STORED:], key=lambda one: one.source))


def changed_values(values: Iterable[Value]) -> list[Claim]:
    """What a fold says of the names that had another value before."""
    return [
        Claim(
            f"{one.name}: {one.value} ({one.speaker} {one.source.seq}), before: {one.before} "
            f"({one.before_speaker} {one.before_source.seq})",
            (one.source,),
            key=one.name,
        )
        for one in values
        if one.before and one.before_source
    ][-_MAX_SHOWN:]


def _put(newest: dict[str, Value], value: Value) -> None:
    before = newest.pop(value.name, None)
    if before is not None and not value.before:
        if before.value.casefold() == value.value.casefold():
            value = value._replace(
                before=before.before,
                before_source=before.before_source,
                before_speaker=before.before_speaker,
            )
        else:
            value = value._replace(
                before=before.value, before_source=before.source, before_speaker=before.speaker
            )
    newest[value.name] = value


def _values(passages: Iterable[Passage]) -> Iterator[Value]:
    calls: dict[str | None, tuple[Shape, PartRef]] = {}
    for passage in passages:
        for index, shape in enumerate(passage.shapes):
            ref = passage.ref(index)
            if shape.kind == "prompt":
                for name, value in assignments(users_words(shape.text)).items():
                    yield Value(name, value, ref, "user")
            elif shape.kind == "call":
                calls[shape.call] = shape, ref
            elif shape.kind == "return" and (made := calls.pop(shape.call, None)):
                call, where = made
                if _FAILED.match(shape.text) or is_recall_tool(call.tool):
                    continue  # a call that failed set nothing, and what is recalled is the past
                for name, value in _values_set_by(call).items():
                    yield Value(name, value, where, "assistant")
                for name, value in _values_in_result(call, shape.text).items():
                    yield Value(name, value, ref, "tool")


def _values_set_by(call: Shape) -> dict[str, str]:
    """What a call sets: a setting by name, an exported variable, or what it writes to a file."""
    arguments, tool = _object(call.text), call.tool or ""
    path = first_argument(call.text, PATH_ARGUMENTS)
    name, value = (
        next((arguments[key] for key in keys if isinstance(arguments.get(key), _SCALARS)), None)
        for keys in (_SETTING_NAMES, _SETTING_VALUES)
    )
    if isinstance(name, str) and value is not None and _SETTING.match(tool) and not path:
        others = {
            key: item
            for key, item in arguments.items()
            if key not in (*_SETTING_NAMES, *_SETTING_VALUES)
        }
        label = f"{name} ({_arguments_text(others)})" if others else name
        return {label: _value_text(_scalar_text(value))} if len(label) <= _MAX_NAME else {}
    if CHANGING.search(tool):
        written = "\n".join(
            text
            for key, text in _texts(arguments)
            if not key.lower().startswith("old") and text != path
        )
        return {} if path and _ASIDE.search(path) else _assignments_in(written, path or "")
    command = first_argument(call.text, _COMMANDS)
    found = _EXPORT.finditer(command[:_MAX_SEARCHED]) if command else ()
    return {match["name"]: _value_text(match["value"]) for match in found}


def _values_in_result(call: Shape, result: str) -> dict[str, str]:
    """The values in what a file, or a tool that looks one thing up, has."""
    tool, path = call.tool or "", first_argument(call.text, PATH_ARGUMENTS)
    if CHANGING.search(tool) or first_argument(call.text, _COMMANDS):
        return {}
    if path:
        return {} if _ASIDE.search(path) else _assignments_in(result, path)
    fields = _object(result) if result.lstrip().startswith("{") else {}
    if not fields:
        return {} if _LOOKING.search(tool) else _assignments_in(result, "")
    # Only the answers to one and the same call speak of the same thing.
    asked = f"{tool_name(tool)}({_arguments_text(_object(call.text))})"
    if len(asked) > _MAX_NAME:
        return {}
    scalars = (
        (one_line(f"{asked} {key}", 2 * _MAX_NAME), _value_text(_scalar_text(value)))
        for key, value in fields.items()
        if isinstance(value, _SCALARS) and 0 < len(_scalar_text(value)) <= _MAX_VALUE
        if not _FLEETING.search(key)
    )
    return dict(islice(scalars, _MAX_FIELDS))


def _arguments_text(arguments: Mapping[str, JsonValue]) -> str:
    """All arguments of a call, on one line."""
    if len(arguments) == 1:
        (value,) = arguments.values()
        return on_one_line(_scalar_text(value))
    return on_one_line(", ".join(f"{key} {_scalar_text(item)}" for key, item in arguments.items()))


def _assignments_in(text: str, path: str) -> dict[str, str]:
    """The assignments of a file or a result. Only constants mean the same in all files."""
    text = text[:_MAX_SEARCHED]
    diff = bool(re.search(r"^(?:@@|\+)", text, re.MULTILINE))
    found: dict[str, set[str]] = {}
    for match in _WRITTEN.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        line = re.sub(r"^\s*\d+\s*[→|:\t]", "", text[start : match.start()]).lstrip()
        if line.startswith(("#", "//", "*", "--")) or (diff and line.startswith("-")):
            continue  # a comment, or what was taken out
        constant = re.fullmatch(_CONSTANT, match["name"])
        if constant or (path and not _FILE_OR_SITE.search(match["name"])):
            name = match["name"] if constant else f"{match['name']} in {path}"
            found.setdefault(one_line(name, _MAX_NAME), set()).add(_value_text(match["value"]))
    return _unambiguous(found)


def _unambiguous(found: Mapping[str, set[str]]) -> dict[str, str]:
    return {name: next(iter(values)) for name, values in found.items() if len(values) == 1}


def _value_text(value: str) -> str:
    return one_line(value.strip("\"'` "), _MAX_VALUE)


def _scalar_text(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _texts(arguments: Mapping[str, JsonValue], depth: int = 3) -> Iterator[tuple[str, str]]:
    """The texts of a call's arguments, each with the key that it stands under."""
    for key, value in arguments.items():
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, dict) and depth:
            yield from _texts(value, depth - 1)
        elif isinstance(value, list) and depth:
            for item in value:
                yield from _texts(item if isinstance(item, dict) else {key: item}, depth - 1)


def _object(text: str) -> dict[str, JsonValue]:
    try:
        return _OBJECT.validate_json(text)
    except ValidationError:
        return {}
