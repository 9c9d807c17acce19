"""What providers keep of a conversation, or edit in it by themselves, and what of it is known here.

A request may name an answer instead of sending what came before it (`previous_response_id`). If the
answer came through this gateway, for the same caller, the log has all of it: such a request is one
with the whole history. Else the provider alone knows what the model sees. Then the request goes out
as it came, what passes is logged, and nothing is folded.

Where an id leads is written with the answer, in a note whose data has a digest of the id and of
whose it is. A search for that finds it again in any process, and after any restart, and no other
tenant, key or user finds an answer by its id. The id itself may be too long for an index of words.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.errors import SessionForgotten, SessionNotFound
from refold.gateway.dialects.cache_marks import without_marks
from refold.gateway.dialects.dialect import (
    MAX_ID,
    Answer,
    Bounds,
    Dialect,
    ParsedRequest,
    Reference,
    Unreadable,
    read_object,
)
from refold.gateway.dialects.events import Events, EventTooLarge
from refold.log import CODEC, MAIN_SCOPE, Entry, Log, Message, Note, Span
from refold.log.entry import seqs
from refold.log.outline import CONTROL_KINDS, replay
from refold.models.experience import Setup
from refold.view import PROFILES, ViewInput
from refold.wire.fingerprint import digest
from refold.wire.splice import Object, compact_json, objects, parsed

_MAX_KNOWN: Final = 10_000
_MAX_HITS: Final = 10
"""Entries that have a key, newest first, among which its note is looked for."""
_MAX_COMPACTION: Final = 8 * 1024 * 1024
"""Bytes of an answer that is read for a compaction in it."""
_ANSWER: Final = "provider answer"
_COMPACTION: Final = "provider compacted"
_TRIGGER: Final = "compaction_trigger"
_UNKNOWN_STATUS: Final = frozenset({400, 404})
_UNKNOWN: Final = (
    b"previous_response_not_found",
    b"previous_message_not_found",
    b"response with id",
    b"item with id",
)
"""How a provider says, in lower case, that it does not have an answer or an item (any more)."""

LogOf = Callable[[str], Log]


class KnownAnswer(NamedTuple):
    """An answer that the provider may be asked to continue from."""

    session: str
    seq: int
    """Its last message."""
    root: str
    """What came before it that the provider alone has; empty if the log has all."""
    shortened: bool = False
    """Whether its model was sent less than the log has: the provider keeps no more than that."""


class Continued(NamedTuple):
    """A request, with what the log has of the conversation behind its reference."""

    parsed_request: ParsedRequest
    root: str = ""
    """What the provider alone has of it; empty if the log has all."""
    session: str = ""
    """The session with the answer behind it, if the log has that."""
    journal: str = ""
    """The session that holds whatever passes, where nothing tells one branch from another."""


class ProviderAnswers:
    """Where the answers and compactions are that providers know by ids."""

    def __init__(self, log_of: LogOf) -> None:
        self._log_of = log_of
        self._known: OrderedDict[tuple[str, str], KnownAnswer | None] = OrderedDict()

    def remember(self, tenant: str, owner: bytes, name: str, answer: KnownAnswer) -> None:
        """Remember an answer that was logged with its note."""
        key = tenant, _key(owner, name)
        # A server may give an id twice. Then it names nothing.
        self._known[key] = answer if self._known.pop(key, answer) == answer else None
        if len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)

    async def find(self, tenant: str, owner: bytes, name: str) -> KnownAnswer | None:
        """The answer with this id, if exactly one of the caller's has it."""
        key = _key(owner, name)
        if (tenant, key) in self._known:
            return self._known[tenant, key]
        found: dict[object, KnownAnswer] = {}
        for hit in await self._log_of(tenant).search(key, limit=_MAX_HITS):
            data = _data_of(hit.entry, _ANSWER)
            if data.get("key") == key:
                root, shortened = str(data.get("root") or ""), "shortened" in data
                answer = KnownAnswer(hit.session, hit.entry.seq - 1, root, shortened)
                found.setdefault(hit.entry.id, answer)
        if len(found) != 1:
            return None
        [answer] = found.values()
        self.remember(tenant, owner, name, answer)
        return answer

    async def compacted(
        self, tenant: str, owner: bytes, dialect: Dialect, messages: Sequence[bytes]
    ) -> str | None:
        """The session that the provider's newest compaction among these messages is of."""
        for message in reversed(messages):
            if b"compaction" not in message:
                continue
            for name in dialect.state.compactions(parsed(message)):
                key = _key(owner, name)
                for hit in await self._log_of(tenant).search(key, limit=_MAX_HITS):
                    keys = _data_of(hit.entry, _COMPACTION).get("keys")
                    if isinstance(keys, list) and key in keys:
                        return hit.session
                return None
        return None

    async def continued(
        self, tenant: str, owner: bytes, dialect: Dialect, parsed_request: ParsedRequest
    ) -> Continued:
        """The request with the messages behind its reference, as far as the log has them."""
        reference = parsed_request.reference
        if reference is None:
            return Continued(parsed_request)
        log, root, session = self._log_of(tenant), str(reference), ""
        if reference.shared:
            journal = f"c-{_key(owner, root)[:20]}"
            return Continued(parsed_request, root, journal, journal)
        history: tuple[bytes, ...] = ()
        shortened = False
        with suppress(SessionForgotten, SessionNotFound):
            if answer := await self.find(tenant, owner, reference.id):
                entries = await log.read(answer.session, Span(1, answer.seq + 1))
                key = _key(owner, reference.id)
                if entries and _data_of(entries[-1], _ANSWER).get("key") == key:
                    history, whole = _history(entries, answer.seq)
                    root = answer.root or ("" if whole else "what was forgotten")
                    session, shortened = answer.session, answer.shortened
                else:  # the session was forgotten, and others may have begun it again by its name
                    self._known.pop((tenant, key), None)
        # A provider takes few cache marks in one request, and each turn may have come with its own.
        history = tuple(map(without_marks, history))
        parsed_request = dialect.continuing(parsed_request, history)
        if shortened and not root:  # a fold may have been undone since
            parsed_request = dialect.detached(parsed_request)
        return Continued(parsed_request, root, session)


def _data_of(entry: Entry, kind: str) -> Mapping[str, JsonValue]:
    """The data of a note of this kind; empty for any other entry."""
    match CODEC.decode(entry):
        case Note(data=dict(data)) if data.get("gateway") == kind:
            return data
        case _:
            return {}


def _history(entries: Sequence[Entry], seq: int) -> tuple[tuple[bytes, ...], bool]:
    """The messages of a conversation up to an answer, and whether none of them was forgotten."""
    outline = replay(entry for entry in entries if entry.kind in CONTROL_KINDS)
    line = {*seqs(outline.on_line(seq))}
    own = [
        entry
        for entry in entries
        if entry.seq in line and entry.kind == Message.KIND and entry.scope == MAIN_SCOPE
    ]
    left = tuple(entry.body for entry in own if not entry.forgotten)
    return left, len(left) == len(own)


def _key(owner: bytes, name: str) -> str:
    return digest(owner.hex(), name).hex()


# What the log says of it, for people and for later requests.


def answer_notes(  # noqa: PLR0913 - what is not known is left out
    owner: bytes,
    dialect: Dialect,
    answer: Answer,
    *,
    is_kept: bool,
    root: str = "",
    is_shortened: bool = False,
    signal: str = "",
) -> list[Note]:
    """What the provider keeps of an answer, and what it did with the context by itself.

    By the first, a later request finds the answer; it is the entry right after its last message.
    """
    notes = [
        _answer_note(owner, answer.id, root, is_shortened=is_shortened) if is_kept else None,
        compaction_note(owner, dialect, answer.payloads, signal),
        context_note(", ".join(answer.edits), cleared=True) if answer.edits else None,
    ]
    return [note for note in notes if note is not None]


def _answer_note(owner: bytes, name: str, root: str, *, is_shortened: bool) -> Note | None:
    if not name.isprintable() or not 0 < len(name) <= MAX_ID:
        return None
    before = f", and what came before ({root}), which is not in this log" if root else ""
    words = f"The provider keeps this answer as {name}{before}."
    data: dict[str, JsonValue] = {"gateway": _ANSWER, "key": _key(owner, name)}
    data |= {"root": root} if root else {"internal": True}
    data |= {"shortened": True} if is_shortened else {}
    return Note(words, data)


def compaction_note(
    owner: bytes, dialect: Dialect, payloads: Sequence[bytes], signal: str = ""
) -> Note | None:
    """By which a history that begins with the provider's compaction is recognized."""
    names = [
        name
        for payload in payloads
        if b"compaction" in payload
        for name in dialect.state.compactions(parsed(payload))
    ]
    if not names and not signal:
        return None
    keys = [_key(owner, name) for name in names]
    words = "The provider compacted its own context. What is kept here is unchanged."
    data: dict[str, JsonValue] = {"gateway": _COMPACTION}
    data |= {"signal": signal} if signal else {}
    data |= {"keys": list[JsonValue](keys)} if keys else {}
    return Note(words, data)


def context_note(by: str, *, cleared: bool = False) -> Note:
    """What the model sees is not what the log has: the provider manages the context."""
    if cleared:
        words = f"The provider cleared parts of what it was sent ({by}). They are all kept here."
        return Note(words, {"gateway": "provider cleared", "by": by})
    words = (
        f"The provider manages the context from here on ({by}): what the model sees may differ "
        f"from what is kept here. Refold compacts nothing meanwhile."
    )
    return Note(words, {"gateway": "provider context", "by": by})


def lost_note(reference: Reference) -> Note:
    words = (
        f"The provider does not have {reference} (any more). The whole conversation was sent "
        f"instead, from this log."
    )
    return Note(words, {"gateway": "provider lost", "reference": str(reference)})


# While the provider manages the context.


def left_alone(setup: Setup, inputs: ViewInput) -> Setup:
    """The setup of a request that is sent as it came: no limit leaves anything out."""
    tokens = inputs.system_tokens + sum(part.tokens for row in inputs.rows for part in row.parts)
    budget, needed = setup.budget, 2 * (tokens + setup.budget.floor)
    if needed > budget.limit:
        window = needed + budget.reserve
        budget = budget._replace(window=window, learned=None, configured=None, guessed=None)
    return replace(setup, budget=budget, profile=PROFILES["balanced"])


def is_unknown(status: int, error: bytes) -> bool:
    """Whether a provider refuses a request because it does not have the answer that it names."""
    lower = error.lower()
    return status in _UNKNOWN_STATUS and any(words in lower for words in _UNKNOWN)


def conversation_in(dialect: Dialect, raw: bytes, bounds: Bounds) -> ParsedRequest | None:
    """The conversation that a client wants the provider to compact; None if there is none."""
    body = read_object(raw) or {}
    items = [x for x in objects(body.get(dialect.conversation)) if x.get("type") != _TRIGGER]
    fields: Object = {name: value for name, value in body.items() if name != "compaction"}
    if items:
        fields[dialect.conversation] = list[JsonValue](items)
    elif dialect.state.reference(body) is None:
        return None
    elif not body.get(dialect.conversation):  # all of it is behind the reference
        fields[dialect.conversation] = [{"role": "user", "content": ""}]
    try:
        parsed_request = dialect.read(compact_json(fields), bounds)
    except Unreadable:
        return None
    return None if parsed_request.unmanaged else parsed_request


class CompactionReader:
    """Reads the provider's compaction in an answer that is passed on."""

    def __init__(self, dialect: Dialect, *, stream: bool) -> None:
        self._dialect = dialect
        self._stream = stream
        self._body = bytearray()

    def take(self, chunk: bytes) -> None:
        if len(self._body) <= _MAX_COMPACTION:
            self._body += chunk

    def payloads(self) -> tuple[bytes, ...]:
        """The messages that a client continues with; none if they cannot be read."""
        if len(self._body) > _MAX_COMPACTION:
            return ()
        body = bytes(self._body)
        answer: Answer | None
        if self._stream:
            assembler = self._dialect.assembler()
            with suppress(EventTooLarge):
                for event in Events().feed(body):
                    assembler.take(event)
            answer = assembler.answer()
        else:
            value = read_object(body) or {}
            output = objects(value.get("output"))
            if output:  # of /v1/responses/compact, which has no status
                return tuple(json.dumps(item).encode() for item in output)
            answer = self._dialect.answer(body)
        return answer.payloads if answer is not None else ()
