"""A run's message history: what it brings, and what it adds.

Before the first request, a history is aligned with the session's log (`refold.wire.alignment`). Its
new messages are logged; the log's own version of the others stays. If a history diverges from the
session earlier, it is an edit if a front end sent it: the context goes back to that point, and the
log keeps everything. From a program, such a history is refused.

During the run, other capabilities may shorten its list of messages, or replace messages by copies,
before each request. So new messages are collected before they do, and found again afterwards.

The log keeps the bytes of a message as they were. Each message is read on its own, and parts of a
kind that this Pydantic AI does not know go to the message's metadata, which no model sees.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from pydantic import JsonValue, ValidationError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ModelResponse
from pydantic_core import PydanticSerializationError, from_json

from refold.errors import HistoryDiffers
from refold.log import CODEC, Log, Message, Span
from refold.log.entry import intersect, spans_of, subtract, take_last, union
from refold.session import Session
from refold.view.view_input import visibility
from refold.wire import PydanticAI
from refold.wire.alignment import Alignment, Item, Piece, align, items_of

UNREAD: Final = "refold.unread"
"""The key in a message's metadata with the parts that could not be read."""
_WIRE: Final = PydanticAI()
_FIRST_LOOK: Final = 32
"""Messages of a history that are compared first; nearly always they are enough."""
_PAGE: Final = 64
_MAX_READ: Final = 256
"""Entries that may be read to find where a history diverges, in addition to eight for each of its
messages: from the log's end back, then as many from its beginning."""
_ADAPTERS_KEY: Final = "__pydantic_ai__"
_UI_MESSAGE_ID: Final = "ui_message_id"
"""Where Pydantic AI's front-end adapters store the id that a message has in the browser."""
_MIN_UNIQUE: Final = 12
"""Shorter ids are counters, not random: front-end SDKs generate 16 characters and more."""

Key = tuple[str, bytes]


def payload_of(message: ModelMessage) -> bytes:
    """The message as logged. Lone surrogates, which no provider accepts, become `�`."""
    try:
        return ModelMessagesTypeAdapter.dump_json([message], fallback=str)[1:-1]
    except PydanticSerializationError:
        [raw] = ModelMessagesTypeAdapter.dump_python([message], mode="json", fallback=str)
        return json.dumps(_without_surrogates(raw)).encode()


def _without_surrogates(value: Any) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_without_surrogates(item) for item in cast("list[Any]", value)]
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {key: _without_surrogates(item) for key, item in items}
        case _:
            return value


def message_of(payload: bytes) -> ModelMessage:
    """The message of a payload, as much of it as can be read."""
    return _decode(payload) or _decode_parts(json.loads(payload))


def _decode(payload: bytes) -> ModelMessage | None:
    try:
        return ModelMessagesTypeAdapter.validate_json(b"[%b]" % payload)[0]
    except ValidationError:
        return None


def _decode_parts(raw: JsonValue) -> ModelMessage:
    fields = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}

    def decode(parts: list[Any]) -> ModelMessage | None:
        return _decode(json.dumps({**fields, "parts": parts}).encode())

    value = fields.get("parts")
    parts = cast("list[Any]", value) if isinstance(value, list) else []
    readable = [part for part in parts if decode([part])]
    if message := decode(readable):
        unread = [part for part in parts if part not in readable]
        message.metadata = {**(message.metadata or {}), UNREAD: unread}
        return message
    kind = ModelResponse if fields.get("kind") == "response" else ModelRequest
    return kind(parts=[], metadata={UNREAD: raw})


class MessageCache:
    """Decodes payloads, and remembers the messages of the last call."""

    def __init__(self) -> None:
        self._messages: dict[bytes, ModelMessage] = {}

    def __call__(self, payloads: Sequence[bytes]) -> list[ModelMessage]:
        before = self._messages
        self._messages = {key: before.get(key) or message_of(key) for key in payloads}
        return [self._messages[key] for key in payloads]


async def adopt(
    session: Session, log: Log, history: Sequence[ModelMessage], failed: int | None = None
) -> None:
    """Log what a history adds to the session.

    `failed` is where a run began that did not succeed. Raises HistoryDiffers when a program's
    history does not continue the session, as it is now or was before that run.
    """
    from_browser = any(map(_ui_message_id, history))
    alignment = await aligned(session, log, history, thorough=not from_browser)
    start = alignment.new
    if not alignment.log:
        await session.say(*map(payload_of, history))
        return
    if from_browser and _reloaded(alignment):
        start = _after_last_response(alignment)
    elif not await _is_continuation(session, alignment, from_browser=from_browser):
        raise HistoryDiffers(
            f"The message history holds something that session {session.name!r} does not."
        )
    elif alignment.fork is not None:
        entry = alignment.log[alignment.fork].begin
        unfinished = session.answered if failed is None else failed
        if not from_browser and entry <= unfinished:
            raise HistoryDiffers(
                f"Session {session.name!r} continues after the end of the message history: "
                f"entry {entry} is not in it."
            )
        # A prompt whose run failed, or that was edited in a browser, is sent again.
        await session.rewind(entry - 1)
    if fresh := await _fresh(session, history, alignment.incoming[start:]):
        await session.say(*map(payload_of, fresh))


async def aligned(
    session: Session, log: Log, history: Sequence[ModelMessage], *, thorough: bool = False
) -> Alignment:
    """How the history matches the session's log.

    Reads what the session has in memory. Entries that are folded are read only until the point of
    divergence is certain, and only a bounded number of them.

    Args:
        session: The session, which has caught up.
        log: Where its entries are.
        history: The history that the run brought.
        thorough: Whether everything in memory is compared, not only its end.
    """
    tail = _LogTail(session, log, max_read=_MAX_READ + 8 * len(history))
    count = _FIRST_LOOK + (len(tail) if thorough else 0)
    while True:
        recent = range(max(0, len(history) - count), len(history))
        pieces = [_piece(index, payload_of(history[index])) for index in recent]
        alignment = align(items_of(_WIRE, pieces), tail.items, partial=recent.start > 0)
        if alignment.settled:
            return alignment
        if recent.start > 0:
            count *= 4
        elif not await tail.read():
            return alignment


def keys_of(payloads: Iterable[bytes]) -> set[Key]:
    """Keys that identify the parts of these messages, in copies too."""
    pieces = [Piece(nth, payload) for nth, payload in enumerate(payloads)]
    return {(item.kind, item.digest) for item in items_of(_WIRE, pieces, loose=True)}


def repeats_the_end(session: Session, message: ModelMessage) -> bool:
    """Whether the session ends with this message, or with requests that contain all its parts."""
    keys = keys_of([payload_of(message)])
    rows = session.inputs.rows
    first = next((end for end in range(len(rows), 0, -1) if rows[end - 1].role == "assistant"), 0)
    return bool(keys) and keys <= keys_of(row.payload for row in rows[first:])


class _LogTail:
    def __init__(self, session: Session, log: Log, max_read: int) -> None:
        inputs = session.inputs
        self._session, self._log, self._max_read = session, log, max_read
        self._scope = inputs.scope
        self._payloads = {row.seq: row.payload for row in inputs.rows}
        folded = [span for fold in inputs.outline.folds for span in fold.spans]
        on_line = intersect(folded, inputs.outline.on_line(inputs.head))
        self._unread = union((*on_line, *inputs.unread))
        hidden = inputs.hidden.items()
        self._gone = spans_of(
            sorted(seq for seq, why in hidden if why in {"forgotten", "unreadable"})
        )
        self._read, self._page = 0, _PAGE
        self._items: list[Item] | None = None

    def __len__(self) -> int:
        return len(self._payloads)

    @property
    def items(self) -> list[Item]:
        if self._items is None:
            pieces: list[Piece] = []
            before = 0
            for seq in sorted(self._payloads):
                between = (Span(before + 1, seq - 1),) if seq > before + 1 else ()
                gap = bool(intersect((*self._unread, *self._gone), between))
                pieces.append(_piece(seq, self._payloads[seq], gap=gap))
                before = seq
            self._items = items_of(_WIRE, pieces)
        return self._items

    async def read(self) -> bool:
        """Read more, from the end back and finally from the beginning; False if nothing is left."""
        if not self._unread or self._read >= 2 * self._max_read:
            return False
        if self._read < self._max_read:
            page = take_last(self._unread, min(self._page, self._max_read - self._read))
        else:
            page = _oldest(self._unread, self._max_read)
        for span in page:
            for entry in await self._log.read(self._session.name, span):
                if entry.kind != Message.KIND or entry.forgotten:
                    continue
                match CODEC.decode(entry):
                    case Message(payload) if visibility(entry.scope, self._scope) == "native":
                        self._payloads[entry.seq] = payload
                    case _:
                        pass
            self._read += len(span)
        self._unread = subtract(self._unread, page)
        self._page *= 2
        self._items = None
        return True


def _oldest(spans: Sequence[Span], count: int) -> tuple[Span, ...]:
    oldest: list[Span] = []
    for span in spans:
        if count > 0:
            oldest.append(Span(span.first, min(span.last, span.first + count - 1)))
            count -= len(oldest[-1])
    return tuple(oldest)


def _piece(source: int, payload: bytes, *, gap: bool = False) -> Piece:
    """A message with ids of its parts.

    A timestamp identifies a part together with its content: a program's copy has both. Front ends
    have other timestamps, which then match nothing.
    """
    message: dict[str, Any] = from_json(payload)
    parts: list[dict[str, Any]] = message.get("parts") or []
    prompts = [nth for nth, part in enumerate(parts) if part.get("part_kind") == "user-prompt"]
    ui_id = _ui_id(message.get("metadata")) or ""

    def ids(nth: int, digest: bytes) -> tuple[str, ...]:
        time = parts[nth].get("timestamp") or message.get("timestamp")
        # A page that counts its messages starts over when it is reloaded: short ids say nothing.
        is_unique = len(ui_id) >= _MIN_UNIQUE and prompts[-1:] == [nth]
        by_time = f"at {time} {digest.hex()}" if time else None
        return tuple(filter(None, (f"ui {ui_id}" if is_unique else None, by_time)))

    return Piece(source, payload, ids, gap)


def _ui_message_id(message: ModelMessage) -> str | None:
    return _ui_id(message.metadata)


def _ui_id(value: object) -> str | None:
    for key in (_ADAPTERS_KEY, _UI_MESSAGE_ID):
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def _reloaded(alignment: Alignment) -> bool:
    """Whether a browser shows nothing of the conversation because its page was just loaded.

    It then sends a prompt with no prompt before it, at most a greeting of its own. Front-end ids
    distinguish this from a first prompt that was edited.
    """
    if alignment.verdict == "continues" or alignment.evidence == "ids":
        return False
    start = _after_last_response(alignment)
    return all(item.kind in {"text", "call"} for item in alignment.incoming[:start])


def _after_last_response(alignment: Alignment) -> int:
    incoming = alignment.incoming
    answers = (index for index, item in enumerate(incoming) if item.kind in {"text", "call"})
    return max(answers, default=-1) + 1


async def _is_continuation(session: Session, alignment: Alignment, *, from_browser: bool) -> bool:
    if alignment.verdict != "continues" and not (
        alignment.verdict == "diverges" and alignment.settled
    ):
        return False
    # A program's history may have no prompt that the log does not, where the log was read.
    unknown = [alignment.incoming[index] for index in alignment.unknown]
    prompts = [item for item in unknown if item.kind == "prompt"]
    if from_browser or not prompts:
        return True
    # What the context shows in place of messages, such as the work of sub-agents, is no prompt.
    shown = keys_of(await session.next_messages())
    return all((item.kind, item.digest) in shown for item in prompts)


async def _fresh(
    session: Session, history: Sequence[ModelMessage], new: Sequence[Item]
) -> list[ModelMessage]:
    """The messages of these items, without parts that the session has or shows already."""
    if not new:
        return []
    placeholders: dict[int, set[int]] = {}
    if any(item.kind == "return" for item in new):
        # The context closes interrupted calls; those returns come from no tool.
        shown = keys_of(await session.next_messages())
        for item in new:
            if item.kind == "return" and (item.kind, item.digest) in shown:
                placeholders.setdefault(item.source, set()).add(item.part)
    first = new[0]
    before = history[first.begin].parts[: first.part]
    partly = any(keys_of([payload_of(replace(history[first.begin], parts=cast("Any", before)))]))
    fresh: list[ModelMessage] = []
    for index in range(first.begin, len(history)):
        message = history[index]
        gone = placeholders.get(index, set())
        if index == first.begin and partly:
            gone = gone | set(range(first.part))
        parts: Any = [part for nth, part in enumerate(message.parts) if nth not in gone]
        if parts or not gone:
            fresh.append(replace(message, parts=parts) if gone else message)
    return fresh


class History:
    """The history of one run, and which of its messages were taken."""

    def __init__(self, messages: list[ModelMessage], run_id: str | None) -> None:
        self.messages = messages
        """The run's list, which is replaced once the run's prompt was read."""
        self._run_id = run_id
        self._taken: int | None = None
        """The list's length when everything in it was taken."""
        self._step: list[ModelMessage] | None = None
        """The new messages, before other capabilities saw them."""
        self._earlier = len(self._own())
        """The number of messages of an earlier run with the same id."""

    def start_step(self) -> None:
        self._step = self._new()

    def take(self) -> list[ModelMessage]:
        """The messages that are new since the last call."""
        if self._step:
            # Others may have changed the step's last message, and added messages after it.
            index = self._find(self._step[-1])
            new = self._step if index is None else [*self._step[:-1], *self.messages[index:]]
        else:
            new = self._new()
        self._taken, self._step = len(self.messages), None
        return new

    def _new(self) -> list[ModelMessage]:
        if self._taken is None:
            return self._own()[self._earlier :]
        return self.messages[self._taken :]

    def _own(self) -> list[ModelMessage]:
        first = len(self.messages)
        for index in range(len(self.messages) - 1, -1, -1):
            run_id = self.messages[index].run_id
            if run_id == self._run_id:
                first = index
            elif run_id is not None:
                break
        return self.messages[first:]

    def _find(self, message: ModelMessage) -> int | None:
        """The index of the message, or of a copy with any of its parts."""
        newest_first = range(len(self.messages) - 1, -1, -1)
        for index in newest_first:
            if self.messages[index] is message:
                return index
        parts = keys_of([payload_of(message)])
        for index in newest_first:
            if parts & keys_of([payload_of(self.messages[index])]):
                return index
        return None
