"""The body of a past request beside its messages: what is kept of it, and the whole made again.

A record rebuilds the messages. What else was sent is kept once under its hash: instructions, tools
and parameters, the order of the fields, some headers, and the client's own forms of messages. So
the whole body can be made again, and its hash says whether it is the one that was sent.
"""

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from refold.errors import ArtifactNotFound, InvalidInput
from refold.gateway.dialects import DIALECTS
from refold.gateway.dialects.cache_marks import Spot, with_marks, without_marks
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.history import AS_LOGGED, MAX_DEPTH
from refold.log import CODEC, Log, Requested, Span
from refold.recall.text import rebuilt_with_sources
from refold.wire.splice import array, compact_json

_EMPTY: Final = b"[]"
_SHOWN: Final = ("instructions", "tools", "settings")
_EXTRAS: Final = (*_SHOWN, "fields", "headers", "marks")

State = Literal["exact", "respelled", "incomplete"]


@dataclass(frozen=True, slots=True)
class SentBody:
    """What a request sent, as far as it was kept."""

    messages: tuple[bytes, ...]
    extras: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Instructions, tools and parameters, as JSON, as far as they were kept."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    path: str = ""
    """Where it was sent to; empty if it did not come through the gateway."""
    body: bytes = b""
    """The whole body; empty if too little of it was kept."""
    state: State = "incomplete"
    """Exact: its hash is that of what was sent. Respelled: its values are, as far as they are
    known; spaces, escapes or what the client rewrote may differ."""


async def sent_body(log: Log, session: str, seq: int) -> SentBody:
    """What a past request sent. Raises Unrebuildable if its messages cannot be made again."""
    sent = await rebuilt_with_sources(log, session, seq)
    messages = tuple(payload for payload, _ in sent)
    hashes = await _hashes_of(log, session, seq)
    extras = {name: data async for name, data in _stored(log, hashes, _EXTRAS)}
    dialect = _dialect_of((await log.info(session)).format)
    shown = {name: extras[name] for name in _SHOWN if name in extras}
    headers = _strings(extras.get("headers"))
    if dialect is None or "settings" not in extras:
        return SentBody(messages, shown, headers)
    as_sent = {source: payload for payload, source in sent if source is not None}
    marks = extras.get("marks")
    candidates = [_marked(messages, marks)]
    ordered = await _ordered(log, session, seq, as_sent)
    if ordered is not None:
        candidates.insert(0, _marked(ordered, marks))
    held = hashes.get("held", "")
    count = int(held) if held.isdigit() else 0
    settings = _object(from_json(extras["settings"]))
    if not count and dialect.state.reference(settings) is not None:
        settings = dialect.state.detached(settings)
    unedited = dialect.state.unedited(settings)
    variants = [settings, *([unedited] if unedited != settings else [])]
    for each, fields in product(candidates, variants):
        body = _assembled(dialect, each[count:], extras, fields)
        for spelled in _spellings(body):
            if sha256(spelled).hexdigest() == hashes.get("sent"):
                return SentBody(each, shown, headers, dialect.path, spelled, "exact")
    body = _assembled(dialect, candidates[0][count:], extras, settings)
    return SentBody(candidates[0], shown, headers, dialect.path, body, "respelled")


async def _hashes_of(log: Log, session: str, seq: int) -> Mapping[str, str]:
    """The artifacts of a request record, by their names."""
    for entry in await log.read(session, Span(seq, seq)):
        match CODEC.decode(entry):
            case Requested(plan={"settings": dict(hashes)}):
                return {name: x for name, x in hashes.items() if isinstance(x, str)}
            case Requested():
                return {}
            case _:
                pass
    raise InvalidInput("That is not a request record.")


async def _stored(
    log: Log, hashes: Mapping[str, str], names: Iterable[str]
) -> AsyncIterator[tuple[str, bytes]]:
    for name in names:
        if name in hashes and not hashes[name].startswith("{"):
            with suppress(ArtifactNotFound):  # its hash alone was kept
                yield name, (await log.artifact(hashes[name])).data


def _dialect_of(form: str) -> Dialect | None:
    return next((dialect for dialect in DIALECTS.values() if dialect.name == form), None)


# The client's forms of messages.


class _Form(NamedTuple):
    seq: int
    form: bytes | None
    """None: as the log has it."""


class _Order(NamedTuple):
    """What one record says of the messages of its request."""

    base: int
    same: int
    edited: bool
    then: list[_Form]


async def _ordered(
    log: Log, session: str, seq: int, as_sent: Mapping[int, bytes]
) -> list[bytes] | None:
    """The messages in the client's forms, without marks; None if these were not kept."""
    forms = await _forms(log, session, seq)
    if forms is None:
        return None
    edited, items = forms
    messages: list[bytes] = []
    for source, form in items:
        if form is not None:
            messages.append(form)
        elif edited and source in as_sent:
            messages.append(as_sent[source])
        else:
            entries = await log.read(session, Span(source, source))
            if not entries or entries[0].forgotten:
                return None
            messages.append(entries[0].body)
    return messages


async def _forms(log: Log, session: str, seq: int) -> tuple[bool, list[_Form]] | None:
    """Which entry each message is of, and its form: from this record, and those it builds on."""
    found: list[_Form] = []
    order = last = await _order(log, session, seq)
    if order is None or last is None:
        return None
    need = order.same
    found = [*order.then]
    for _ in range(MAX_DEPTH):
        if not need:
            return last.edited, found
        order = await _order(log, session, order.base)
        if order is None:
            return None
        own = order.then[: max(0, need - order.same)]
        found = [*own, *found]
        need = min(need, order.same)
    return None


async def _order(log: Log, session: str, seq: int) -> _Order | None:
    try:
        hashes: Mapping[str, str] = await _hashes_of(log, session, seq) if seq else {}
    except InvalidInput:  # forgotten
        return None
    stored = {name: data async for name, data in _stored(log, hashes, ("order", "forms"))}
    inline = hashes.get("order", "")
    if inline.startswith("{"):  # it was short
        stored["order"] = inline.encode()
    if len(stored) < 2:  # noqa: PLR2004 - both
        return None
    forms: JsonValue = from_json(stored["forms"])
    payloads = [compact_json(form) for form in forms] if isinstance(forms, list) else []
    about: JsonValue = from_json(stored["order"])
    match about:
        case {"base": int(base), "same": int(same), "edited": bool(edited), "then": list(then)}:
            return _Order(base, same, edited, [*_then(then, payloads)])
        case _:
            return None


def _then(items: list[JsonValue], forms: Sequence[bytes]) -> Iterator[_Form]:
    for item in items:
        match item:
            case [int(seq), int(nth)]:
                yield _Form(seq, None if nth == AS_LOGGED else forms[nth])
            case _:
                pass


class _Mark(NamedTuple):
    message: int
    spot: Spot
    mark: bytes


def _marked(messages: Sequence[bytes], dumped: bytes | None) -> tuple[bytes, ...]:
    """The messages with the marks that they were sent with; as they are if nobody kept those."""
    if dumped is None:
        return tuple(messages)
    marks: dict[int, dict[Spot, bytes]] = {}
    for nth, spot, mark in _marks_in(dumped):
        marks.setdefault(nth, {})[spot] = mark
    return tuple(
        with_marks(payload, marks[nth]) if nth in marks else without_marks(payload)
        for nth, payload in enumerate(messages)
    )


def _marks_in(dumped: bytes) -> Iterator[_Mark]:
    value: JsonValue = from_json(dumped)
    for each in value if isinstance(value, list) else ():
        match each:
            case [int(nth), list(spot), mark]:
                places = tuple(place for place in spot if isinstance(place, int))
                yield _Mark(nth, places, compact_json(mark))
            case _:
                pass


# The whole body.


def _assembled(
    dialect: Dialect,
    messages: Sequence[bytes],
    extras: Mapping[str, bytes],
    settings: Mapping[str, JsonValue],
) -> bytes:
    values = {name: compact_json(x) for name, x in settings.items()}
    instructions: JsonValue = from_json(extras.get("instructions", b"null"))
    if dialect.instructions is None:
        lead = instructions if isinstance(instructions, list) else []
        values[dialect.conversation] = array([*map(compact_json, lead), *messages])
    else:
        values[dialect.conversation] = array(messages)
        if "instructions" in extras:
            values[dialect.instructions] = compact_json(instructions)
    if "tools" in extras:
        values[dialect.tools[0]] = extras["tools"]
    order: JsonValue = from_json(extras.get("fields", _EMPTY))
    names = [name for name in order if isinstance(name, str)] if isinstance(order, list) else []
    named = [name for name in names if name in values]
    rest = [name for name in values if name not in named]
    pairs = (compact_json(name) + b":" + values[name] for name in (*named, *rest))
    return b"{" + b",".join(pairs) + b"}"


def _spellings(body: bytes) -> Iterator[bytes]:
    """The same JSON as clients write it: without spaces, with them, with escapes."""
    yield body
    value = json.loads(body)
    for ascii_only in (False, True):
        for separators in ((",", ":"), (", ", ": ")):
            text = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
            yield text.encode(errors="surrogatepass")


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _strings(dumped: bytes | None) -> dict[str, str]:
    value: JsonValue = from_json(dumped or b"{}")
    return {name: x for name, x in _object(value).items() if isinstance(x, str)}
