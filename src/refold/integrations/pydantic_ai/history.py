"""What a run brings as its message history, and what it adds to it.

A history is aligned with the session's log before the first request (`refold.wire.alignment`). Its
new messages are logged; what the log has already stays as the log has it. A history that leaves the
session's line earlier is an edit if a front end sent it: the context goes back to that place, and
the log keeps everything. From a program it is refused.

During the run, others may shorten its list of messages, or replace it by copies, before each
request. So what came since the last request is looked at before they do, and found again after.
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
from refold.log.entry import intersect, newest, spans_of, subtract, union
from refold.session import Session
from refold.view.view_input import visibility
from refold.wire import PydanticAI
from refold.wire.alignment import Alignment, Item, Piece, align, items_of

# Pydantic AI's messages to the bytes that the log keeps, and back.
#
# A message is read alone, and what this Pydantic AI does not know of it never costs the rest: parts
# of an unknown kind are set aside in the message's metadata, which no model sees. The log keeps the
# bytes as they were.

UNREAD: Final = "refold.unread"
"""Where in a message's metadata the parts are that could not be read."""


def payload_of(message: ModelMessage) -> bytes:
    """The message as the log keeps it. Half a character, which no provider takes, becomes `�`."""
    try:
        return ModelMessagesTypeAdapter.dump_json([message], fallback=str)[1:-1]
    except PydanticSerializationError:
        [raw] = ModelMessagesTypeAdapter.dump_python([message], mode="json", fallback=str)
        return _encoded(_mended(raw))


def message_of(payload: bytes) -> ModelMessage:
    """The message of a payload, as much of it as can be read."""
    try:
        return _read(payload)
    except ValidationError:
        return _partly(json.loads(payload))


class Reading:
    """Reads messages, each once as long as it is asked for again."""

    def __init__(self) -> None:
        self._read: dict[bytes, ModelMessage] = {}

    def __call__(self, payloads: Sequence[bytes]) -> list[ModelMessage]:
        """The messages of these payloads; others are no longer kept."""
        known = self._read
        self._read = {one: known.get(one) or message_of(one) for one in payloads}
        return [self._read[one] for one in payloads]


def _read(payload: bytes) -> ModelMessage:
    return ModelMessagesTypeAdapter.validate_json(b"[%b]" % payload)[0]


def _partly(raw: JsonValue) -> ModelMessage:
    message = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    parts: list[Any] = _list(message.get("parts"))
    known = [part for part in parts if _readable({**message, "parts": [part]})]
    unread = [part for part in parts if part not in known]
    if known or _readable({**message, "parts": []}):
        read = _read(_encoded({**message, "parts": known}))
        read.metadata = {**(read.metadata or {}), UNREAD: unread}
        return read
    kind = ModelResponse if message.get("kind") == "response" else ModelRequest
    return kind(parts=[], metadata={UNREAD: raw})


def _readable(message: dict[str, Any]) -> bool:
    try:
        _read(_encoded(message))
    except ValidationError:
        return False
    return True


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _mended(value: Any) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_mended(one) for one in cast("list[Any]", value)]
        case dict():
            return {key: _mended(one) for key, one in cast("dict[str, Any]", value).items()}
        case _:
            return value


def _encoded(value: object) -> bytes:
    return json.dumps(value).encode()


_WIRE: Final = PydanticAI()
_FIRST_LOOK: Final = 32
"""Messages of a history that are compared first; nearly always they are enough."""
_PAGE: Final = 64
_MAX_READ: Final = 256
"""Entries that may be read to find where a history leaves the log, and eight for each of its
messages: from the log's end back, then as many from its beginning."""

_ADAPTERS_KEY: Final = "__pydantic_ai__"
_UI_MESSAGE_ID: Final = "ui_message_id"
"""Where Pydantic AI's adapters for front ends keep the id that a message has in the browser."""
_MIN_UNIQUE: Final = 12
"""Shorter ids are counted, not drawn: the SDKs of front ends draw 16 characters and more."""

Key = tuple[str, bytes]


async def adopt(
    session: Session, log: Log, history: Sequence[ModelMessage], failed: int | None = None
) -> None:
    """Log what a history adds to the session.

    `failed` is where a run began that came to no end. Raises HistoryDiffers where a program's
    history does not continue the session, as it is or was before that run.
    """
    from_browser = any(map(_ui_message_id, history))
    alignment = await aligned(session, log, history, thorough=not from_browser)
    start = alignment.new
    if not alignment.log:
        await session.say(*map(payload_of, history))
        return
    if from_browser and _reloaded(alignment):
        start = _after_last_response(alignment)
    elif alignment.verdict != "continues" and not _placed(alignment):
        raise _differs(session)
    else:
        if not from_browser and await _contradicts(session, alignment):
            raise _differs(session)
        if alignment.fork is not None:
            entry = alignment.log[alignment.fork].begin
            unfinished = session.answered if failed is None else failed
            if not from_browser and entry <= unfinished:
                raise HistoryDiffers(
                    f"Session {session.name!r} goes on after the end of the message history: "
                    f"entry {entry} is not in it."
                )
            # What was asked of a run that failed, or edited in a browser, is asked anew.
            await session.rewind(entry - 1)
    if fresh := await _fresh(session, history, alignment.incoming[start:]):
        await session.say(*map(payload_of, fresh))


async def aligned(
    session: Session, log: Log, history: Sequence[ModelMessage], *, thorough: bool = False
) -> Alignment:
    """How the history lies on the session's log.

    Reads what the session has in memory; entries beneath folds only as long as the place is not
    sure, and a bounded number of them.

    Args:
        session: The session, which has caught up.
        log: Where its entries are.
        history: What was brought.
        thorough: Whether all that is in memory is compared, not only its end.
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
    """What identifies the parts of these messages, whoever copied them."""
    pieces = [Piece(nth, payload) for nth, payload in enumerate(payloads)]
    return {(item.kind, item.digest) for item in items_of(_WIRE, pieces, loose=True)}


def repeats_the_end(session: Session, message: ModelMessage) -> bool:
    """Whether the session ends with this message, or with requests that say all that it says."""
    keys = keys_of([payload_of(message)])
    said = session.inputs.rows
    first = next((at for at in range(len(said), 0, -1) if said[at - 1].role == "assistant"), 0)
    return bool(keys) and keys <= keys_of(row.payload for row in said[first:])


class _LogTail:
    """What is known of a session's log, from its end back."""

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
        """The items that are known, oldest first."""
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
        """Read more, from the end back and at last from the beginning; whether there was more."""
        if not self._unread or self._read >= 2 * self._max_read:
            return False
        if self._read < self._max_read:
            page = newest(self._unread, min(self._page, self._max_read - self._read))
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
    kept: list[Span] = []
    for span in spans:
        if count > 0:
            kept.append(Span(span.first, min(span.last, span.first + count - 1)))
            count -= len(kept[-1])
    return tuple(kept)


def _piece(source: int, payload: bytes, *, gap: bool = False) -> Piece:
    """A message, with the ids that the framework gives its parts.

    A time names a part together with its content: a copy that a program keeps has both. Front ends
    have other times, which then name nothing.
    """
    message: dict[str, Any] = from_json(payload)
    parts: list[dict[str, Any]] = message.get("parts") or []
    prompts = [nth for nth, part in enumerate(parts) if part.get("part_kind") == "user-prompt"]
    shown_as = _nested(message.get("metadata"), _ADAPTERS_KEY, _UI_MESSAGE_ID)

    def ids(nth: int, digest: bytes) -> tuple[str, ...]:
        time = parts[nth].get("timestamp") or message.get("timestamp")
        named = f"ui {shown_as}" if prompts[-1:] == [nth] and _is_unique(shown_as) else None
        timed = f"at {time} {digest.hex()}" if time else None
        return tuple(filter(None, (named, timed)))

    return Piece(source, payload, ids, gap)


def _ui_message_id(message: ModelMessage) -> str | None:
    return _nested(message.metadata, _ADAPTERS_KEY, _UI_MESSAGE_ID)


def _is_unique(name: str | None) -> bool:
    """Whether an id is made to be unique. A page that counts begins anew when it is loaded."""
    return name is not None and len(name) >= _MIN_UNIQUE


def _nested(value: object, *path: str) -> str | None:
    for key in path:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def _placed(alignment: Alignment) -> bool:
    """Whether it is sure where the history leaves the log."""
    return alignment.verdict == "diverges" and alignment.settled


def _differs(session: Session) -> HistoryDiffers:
    return HistoryDiffers(
        f"The message history holds something that session {session.name!r} does not."
    )


def _reloaded(alignment: Alignment) -> bool:
    """Whether a browser shows nothing yet of the conversation, because its page was just loaded.

    Then it sends a prompt without any before it, at most after a greeting of its own. The ids of
    front ends tell this from a first prompt that was edited.
    """
    if alignment.verdict == "continues" or alignment.evidence == "ids":
        return False
    start = _after_last_response(alignment)
    return all(item.kind in {"text", "call"} for item in alignment.incoming[:start])


def _after_last_response(alignment: Alignment) -> int:
    incoming = alignment.incoming
    said = (index for index, item in enumerate(incoming) if item.kind in {"text", "call"})
    return max(said, default=-1) + 1


async def _contradicts(session: Session, alignment: Alignment) -> bool:
    """Whether the history has a prompt that the log does not, where the log could be seen.

    What the context shows in place of messages, such as the work of sub-agents, is no prompt.
    """
    prompts = [alignment.incoming[index] for index in alignment.unknown]
    prompts = [item for item in prompts if item.kind == "prompt"]
    if not prompts:
        return False
    shown = keys_of(await session.next_messages())
    return any((item.kind, item.digest) not in shown for item in prompts)


async def _fresh(
    session: Session, history: Sequence[ModelMessage], new: Sequence[Item]
) -> list[ModelMessage]:
    """The messages of these items, without parts that the session has or shows already."""
    if not new:
        return []
    stand_ins: dict[int, set[int]] = {}
    if any(item.kind == "return" for item in new):
        # The context closes calls that were interrupted; that is not something a tool returned.
        shown = keys_of(await session.next_messages())
        for item in new:
            if item.kind == "return" and (item.kind, item.digest) in shown:
                stand_ins.setdefault(item.source, set()).add(item.part)
    first = new[0]
    before = history[first.begin].parts[: first.part]
    partly = any(keys_of([payload_of(replace(history[first.begin], parts=cast("Any", before)))]))
    fresh: list[ModelMessage] = []
    for index in range(first.begin, len(history)):
        message = history[index]
        gone = stand_ins.get(index, set())
        if index == first.begin and partly:
            gone = gone | set(range(first.part))
        kept: Any = [part for nth, part in enumerate(message.parts) if nth not in gone]
        if kept or not gone:
            fresh.append(replace(message, parts=kept) if gone else message)
    return fresh


class History:
    """The history of one run, and how far it was taken note of."""

    def __init__(self, messages: list[ModelMessage], run_id: str | None) -> None:
        self._messages = messages
        self._run_id = run_id
        self._noted: int | None = None
        """How long the list was when all of it had been taken note of."""
        self._since: list[ModelMessage] | None = None
        """What came since, before others saw it."""
        self._earlier = len(self._own())
        """Messages of an earlier run with the same id."""

    def is_now(self, messages: list[ModelMessage]) -> None:
        """The list is another one once the run's prompt was read."""
        self._messages = messages

    def step(self) -> None:
        """A request is about to be prepared."""
        self._since = self._new()

    def take(self) -> list[ModelMessage]:
        """What is new; it is not new again."""
        new = self._found() if self._since else self._new()
        self._noted, self._since = len(self._messages), None
        return new

    def _new(self) -> list[ModelMessage]:
        if self._noted is None:
            return self._own()[self._earlier :]
        return self._messages[self._noted :]

    def _own(self) -> list[ModelMessage]:
        """The newest messages, as far as they are the run's."""
        first = len(self._messages)
        for at in range(len(self._messages) - 1, -1, -1):
            run_id = self._messages[at].run_id
            if run_id == self._run_id:
                first = at
            elif run_id is not None:
                break
        return self._messages[first:]

    def _found(self) -> list[ModelMessage]:
        """What was new before others saw it, with what they made of its end and put behind it."""
        since = self._since or []
        at = self._place(since[-1])
        return since if at is None else [*since[:-1], *self._messages[at:]]

    def _place(self, step: ModelMessage) -> int | None:
        """Where the message is now: itself, or a copy that has something of it."""
        newest_first = range(len(self._messages) - 1, -1, -1)
        for at in newest_first:
            if self._messages[at] is step:
                return at
        parts = keys_of([payload_of(step)])
        for at in newest_first:
            if parts & keys_of([payload_of(self._messages[at])]):
                return at
        return None
