"""What makes two messages the same, however a client writes them when it sends them again.

Clients rewrite what they send back: they move cache marks, add default arguments, strip spaces and
blank texts, clear old results, leave out thoughts, put reminders into the user's place. What they
do not change is what their provider named: a call's id and its tool. So a message has two digests:

- its *spine*: the user's own words, the model's words where it calls nothing, and calls by id and
  tool. Results are no part of it (their calls are), nor are thoughts and system messages;
- its *content*, to the letter: who speaks, texts, calls with their arguments by value, results, and
  the data of images and files. It tells apart what the spine does not, such as the calls of a
  server that names every call `call_0`.

Both are hashes of the parts that a wire describes. For the content, the message is normalized
before: key order, number formats, nulls and cache marks do not count.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple, Protocol

from pydantic import JsonValue

from refold.errors import InvalidMessage
from refold.wire.part import Described, Shape
from refold.wire.splice import Object, json_value, objects, parsed

MARK: Final = "cache_control"
"""The field of a cache mark."""
_ESCAPE: Final = b"\\u00"
_DIGEST_SIZE: Final = 16
_CONTENT_SIZE: Final = 32
_MAX_PARSED: Final = 1_000_000
"""Longer JSON is compared as it is written: parsing it would take long."""
_MAX_MESSAGES: Final = 50_000
"""How many messages a cache holds at least; twice as many at most."""
_MIN_UNIQUE: Final = 8
"""Characters that an id needs, apart from words and counters, to name one call and no other."""
_MIN_OVERLAP: Final = 2
_OWN_NAMES: Final = ("id", "encrypted_content")
_TRANSIENT: Final = frozenset({"id", "status"})
"""Clients leave them out when they send an item again."""
_ARGUMENTS: Final = frozenset({"arguments", "input"})
"""Fields in which nulls count, and any key may be a tool's own."""
_MEDIA_KEYS: Final = frozenset({"data", "file_data", "file_id", "file_url", "image_url", "url"})
"""Where message formats have the data of images and files."""
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
_WHOLE_FLOAT: Final = re.compile(r"\.0(?!\d)|\de\+")


class Fingerprint(NamedTuple):
    """What identifies a message, whoever sends it again."""

    content: bytes = b""
    """Its content, to the letter; empty if it has none that clients always send back."""
    spine: tuple[bytes, ...] = ()
    """Digests of what no client changes; empty if there is nothing."""
    names: tuple[str, ...] = ()
    """The ids in it, each after its kind: of calls, results, messages and reasoning."""
    kind: str = ""
    """Its main kind of part. A thought is one alone, which clients may leave out."""
    answers: bool = False
    """Whether it is the model's."""
    fault: str = ""
    """Why its wire rejects it; empty if it does not."""

    @property
    def blank(self) -> bool:
        """Whether clients may leave it out: a thought, or an answer of blank text."""
        return not self.content or (self.answers and not self.spine)


class _Describes(Protocol):
    def describe(self, payload: bytes, /) -> Described: ...


class FingerprintCache:
    """Computes each message's fingerprint once, as long as it is seen now and then.

    Clients send their whole history each time, so nearly every message was seen a moment ago.
    Threads may share a cache: at worst a message is looked at twice, or forgotten early.
    """

    def __init__(
        self,
        wire: _Describes,
        is_answer: Callable[[Object], bool],
        max_messages: int = _MAX_MESSAGES,
    ) -> None:
        self._wire = wire
        self._is_answer = is_answer
        self._max_messages = max_messages
        self._recent: dict[bytes, Fingerprint] = {}
        self._older: dict[bytes, Fingerprint] = {}

    def __call__(self, payload: bytes) -> Fingerprint:
        key = blake2b(payload, digest_size=16).digest()
        result = self._recent.get(key)
        if result is None:
            result = self._older.get(key) or self._compute(payload)
            if len(self._recent) >= self._max_messages:
                self._recent, self._older = {}, self._recent
            self._recent[key] = result
        return result

    def _compute(self, payload: bytes) -> Fingerprint:
        try:
            message = parsed(payload)
        except InvalidMessage as error:
            return Fingerprint(fault=error.what)
        answers = self._is_answer(message)
        normalized = _normalized(message).encode()
        try:
            described = self._wire.describe(normalized)
            content = _content(described, normalized, answers=answers)
            if any(
                shape.kind in {"call", "other"} and not shape.call for shape in described.shapes
            ):
                # These have no id: their spine is their JSON, as marks in existing logs have it.
                described = self._wire.describe(payload)
        except InvalidMessage as error:
            return Fingerprint(_content_hash(normalized), answers=answers, fault=error.what)
        spine, names, kind = _spine(described), _names(described, message), _kind(described)
        return Fingerprint(content, tuple(spine), tuple(names), kind, answers)


def _content(described: Described, normalized: bytes, *, answers: bool) -> bytes:
    parts = [
        [
            shape.kind,
            shape.tool,
            shape.call,
            _arguments(shape) if shape.kind == "call" else shape.text,
        ]
        for shape in described.shapes
        if shape.kind != "thought"
        if shape.text or shape.media or shape.kind in {"call", "return", "other"}
    ]
    if answers and not parts:
        return b""
    message = parsed(normalized)
    role = message.get("role")
    if role is None and any(shape.sealed for shape in described.shapes):
        return _content_hash(normalized)  # an item of the provider's own, which counts whole
    name = None if described.role == "assistant" else message.get("name")
    blocks = objects(message.get("content"))
    failed = [block.get("tool_use_id") for block in blocks if block.get("is_error") is True]
    media = [*media_of(message)] if any(shape.media for shape in described.shapes) else []
    return _content_hash(json.dumps([role or described.role, name, parts, failed, media]).encode())


def _arguments(shape: Shape) -> str:
    """The arguments of a call by value; as text where they are not JSON."""
    if not shape.text.strip():
        return "{}"
    try:
        if len(shape.text) <= _MAX_PARSED:
            return canonical(json_value(shape.text.encode()))
    except ValueError:
        pass
    return shape.text


def _normalized(message: Object) -> str:
    fields: Object = {key: value for key, value in message.items() if key not in _TRANSIENT}
    if isinstance(calls := fields.get("tool_calls"), list):
        fields["tool_calls"] = [
            {key: value for key, value in call.items() if key != "index"}
            if isinstance(call, dict)
            else call
            for call in calls
        ]
    text = canonical(fields)
    if len(text) <= _MAX_PARSED and ("null" in text or MARK in text):
        text = canonical(without_marks(fields))
    return text


def _content_hash(identity: bytes) -> bytes:
    return blake2b(identity, digest_size=_CONTENT_SIZE).digest()


def _spine(described: Described) -> Iterator[bytes]:
    if described.role == "system":
        return
    calls = [shape for shape in described.shapes if shape.kind == "call"]
    for shape in calls:
        yield digest("call", shape.tool or "", shape.call or shape.text)
    for shape in described.shapes if not calls else ():
        if shape.kind in {"thought", "return", "system"}:
            continue
        words = single_spaced(users_words(shape.text) if shape.kind == "prompt" else shape.text)
        if words or shape.media:
            yield digest(shape.kind, words, *shape.media)


def _names(described: Described, message: Mapping[str, JsonValue]) -> Iterator[str]:
    shapes = described.shapes
    yield from (f"{shape.kind} {shape.call}" for shape in shapes if shape.call)
    yield from (f"{key} {value}" for key in _OWN_NAMES if (value := message.get(key)))
    if described.role == "user" and not any(_spine(described)):  # then it is a harness's, if any
        tags = (tag for shape in shapes for tag in harness_elements(shape.text))
        yield from (f"element {tag}" for tag in tags)


def _kind(described: Described) -> str:
    kinds = [shape.kind for shape in described.shapes]
    main = (kind for kind in ("call", "return", "prompt", "text") if kind in kinds)
    return next(main, kinds[0] if kinds else "")


def digest(*values: str, size: int = _DIGEST_SIZE) -> bytes:
    """A hash of these strings in this order; no other strings have it when joined."""
    result = blake2b(digest_size=size)
    for value in values:
        data = value.encode(errors="surrogatepass")
        result.update(len(data).to_bytes(8, "big") + data)
    return result.digest()


def prefix_keys(seed: bytes, digests: Iterable[bytes], size: int = _DIGEST_SIZE) -> list[bytes]:
    """A key for each beginning of a history, chained.

    An index of such keys finds the longest beginning that a log has without reading any log. A
    message that identifies nothing has the key of the message before it.
    """
    keys: list[bytes] = []
    for item in digests:
        if item:
            seed = blake2b(seed + item, digest_size=size).digest()
        keys.append(seed)
    return keys


def canonical(value: JsonValue) -> str:
    """The value as JSON that is the same however it was written: 1.0 is 1, keys are sorted."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    if len(text) <= _MAX_PARSED and _WHOLE_FLOAT.search(text):
        value = json.loads(text, parse_float=_int_or_float)
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text


def _int_or_float(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def may_have_marks(payload: bytes) -> bool:
    """Whether a message's JSON may have cache marks: a key may be written with escapes."""
    return MARK.encode() in payload or _ESCAPE in payload


def without_marks(value: JsonValue) -> JsonValue:
    """The value without nulls and cache marks, except in the arguments of calls."""
    match value:
        case dict():
            return {
                key: inner if key in _ARGUMENTS else without_marks(inner)
                for key, inner in value.items()
                if inner is not None and key != MARK
            }
        case list():
            return [without_marks(inner) for inner in value]
        case _:
            return value


def media_of(value: JsonValue) -> Iterator[str]:
    """The data of images and files, wherever a format has it."""
    match value:
        case {"type": str() as kind} if kind in _THOUGHTS:
            return
        case dict():
            for key in sorted(value):
                inner = value[key]
                if key in _MEDIA_KEYS and isinstance(inner, str):
                    yield inner
                elif key == "audio" and isinstance(inner, dict) and inner.get("id"):
                    yield str(inner["id"])
                else:
                    yield from media_of(inner)
        case list():
            for inner in value:
                yield from media_of(inner)
        case _:
            pass


def single_spaced(text: str) -> str:
    return " ".join(text.split())


# Names and arguments that may be those of one call, rewritten by a client.


_ALPHANUMERIC: Final = re.compile(r"[^\W_]+")


def is_unique(name: str) -> bool:
    """Whether an id can name one call among all conversations.

    Some servers count (`call_0`, `functions.read:3`): such an id is shared by every conversation.
    Words and counters say nothing; what is left must be long enough to be random.
    """
    pieces = _ALPHANUMERIC.findall(name)
    return sum(len(piece) for piece in pieces if _is_random(piece)) >= _MIN_UNIQUE


def _is_random(piece: str) -> bool:
    if piece.isdigit():
        return len(piece) >= _MIN_UNIQUE
    # Random letters are seldom lower case, upper case or capitalized throughout.
    return not piece.isalpha() or piece not in {piece.lower(), piece.upper(), piece.capitalize()}


def similar_arguments(first: str, second: str) -> bool:
    """Whether two calls' arguments may be one call's, rewritten by a client.

    Where ids do not tell: values that both have must agree for the most part, but for spaces and
    for what was cut off at either end.
    """
    ours, theirs = _fields(first), _fields(second)
    if not ours or not theirs:
        return single_spaced(first) == single_spaced(second) or ours == theirs
    balance = 0
    for key in ours.keys() & theirs.keys():
        value = ours[key]
        weight = len(value) + 1 if isinstance(value, str) else 1
        balance += weight if _agree(value, theirs[key]) else -weight
    return balance > 0


def _fields(text: str) -> Object:
    try:
        value: JsonValue = json.loads(text) if len(text) <= _MAX_PARSED else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _agree(first: JsonValue, second: JsonValue) -> bool:
    if not isinstance(first, str) or not isinstance(second, str):
        return first == second
    short, long = sorted((single_spaced(first), single_spaced(second)), key=len)
    cut = len(short) >= _MIN_OVERLAP and (long.startswith(short) or long.endswith(short))
    return short == long or cut


# Which words of a user message are the user's, and which an agent's harness put there.
#
# Coding agents send reminders, environments, file lists and the output of hooks in the user's
# place. All that were looked at put such text into elements of their own, with names that HTML does
# not have (`<system-reminder>`, `<environment_context>`, `<current_datetime>`), and change it from
# request to request. The user's words are what is left. Some agents wrap the user's words instead
# (`<task>`, `<user_query>`, `<command-args>`); those are unwrapped.

_MAX_SCANNED: Final = 200_000
"""Longer texts are taken as they are: nobody types them, and scanning would take long."""
_MAX_ELEMENTS: Final = 200
_TAG: Final = re.compile(r"[ \t]*<([A-Za-z][\w.-]*)(?:\s[^<>\n]*)?>")
_OPENING_TAG: Final = re.compile(rf"(?m)^{_TAG.pattern}")
_WRAPPERS: Final = frozenset(
    {
        *("answer", "feedback", "prompt", "query", "question", "request", "task", "userrequest"),
        *("user_input", "user_message", "user_prompt", "user_query", "user_request", "user_task"),
        "command_args",
    }
)
"""Elements around the user's own words, in lower case and with underscores."""
_ONE_WORD_ELEMENTS: Final = frozenset(
    {"attachments", "context", "environment", "env", "instructions", "reminder", "skills", "tools"}
)
"""Harness elements with one word for a name, which somebody may also write by hand."""
_HARNESS_OPENING: Final = re.compile(
    r"\s*(?:\[Request interrupted by user[^\]\n]*\]\s*\Z|Base directory for this skill: )"
)
"""How messages begin that Claude Code writes in the user's place, in no element."""
_AGENTS_HEADING: Final = re.compile(r"\A#+ AGENTS\.md instructions[^\n]*\n\s*\Z")
"""What Codex puts before the element with a project's instructions."""


def users_words(text: str) -> str:
    """The text without what a harness put into it; empty if nothing of it is the user's."""
    if _HARNESS_OPENING.match(text):
        return ""
    if "<" not in text or len(text) > _MAX_SCANNED:
        return text.strip()
    pieces: list[str] = []
    start = 0
    beside = None  # an element right behind one of a harness's, on the same line
    for _ in range(_MAX_ELEMENTS):
        if (tag := beside or _OPENING_TAG.search(text, start)) is None:
            break
        end = text.find(f"</{tag[1]}>", tag.end())
        if end < 0 or not _is_harness(tag[1]):
            pieces.append(text[start : tag.end()])
            start, beside = tag.end(), None
            continue
        pieces.append(text[start : tag.start()])
        if _element_name(tag[1]) in _WRAPPERS:
            pieces.append(text[tag.end() : end])
        start = end + len(tag[1]) + 3
        beside = _TAG.match(text, start)
    pieces.append(text[start:])
    words = "".join(pieces).strip()
    return "" if start and _AGENTS_HEADING.match(f"{words}\n") else words


def harness_elements(text: str) -> tuple[str, ...]:
    """The names of the elements at the beginnings of lines that a harness may have put there."""
    if "<" not in text or len(text) > _MAX_SCANNED:
        return ()
    tags = dict.fromkeys(tag[1] for tag in islice(_OPENING_TAG.finditer(text), _MAX_ELEMENTS))
    return tuple(filter(_is_harness, tags))


def _element_name(tag: str) -> str:
    return tag.lower().replace("-", "_")


def _is_harness(tag: str) -> bool:
    name = _element_name(tag)
    camel = tag not in {tag.lower(), tag.upper(), tag.capitalize()}
    return "_" in name or name in _WRAPPERS or name in _ONE_WORD_ELEMENTS or camel
