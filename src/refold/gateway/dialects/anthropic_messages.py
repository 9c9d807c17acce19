"""Anthropic's Messages API, and servers that speak it.

A block of a streamed answer is made of its start and its deltas. Its input comes as pieces of JSON;
if the model had to end in the middle of it, the input is what can be read of it, as in the
provider's own clients.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue
from pydantic_core import from_json

from refold.gateway.dialects.dialect import (
    COMPACTS,
    MAX_ID,
    Answer,
    Dialect,
    ProviderState,
    Reference,
    anthropic_refusal,
    anthropic_usage,
    join_text,
    read_object,
    without_nulls,
)
from refold.gateway.dialects.events import Event
from refold.wire import wire_for
from refold.wire.fingerprint import FingerprintCache
from refold.wire.splice import Object, encoded, is_object, objects, str_or_empty

_NAME: Final = "anthropic-messages"
_DELTAS: Final = {"text_delta": "text", "thinking_delta": "thinking"}
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_CLEARED: Final = "clear_thinking"
"""How the kinds of edits begin that clear thoughts alone."""


def answer(body: bytes) -> Answer | None:
    """The answer in a whole response; None if there is none."""
    message = read_object(body)
    if message is None or message.get("role") != "assistant":
        return None
    if not isinstance(message.get("content"), list):
        return None
    usage = message.get("usage")
    return Answer(
        (_message([without_nulls(block) for block in objects(message["content"])]),),
        anthropic_usage(usage) if isinstance(usage, dict) else None,
        str_or_empty(message.get("stop_reason")),
        complete=True,
        id=str_or_empty(message.get("id")),
        edits=_applied(message),
    )


class MessagesAssembler:
    """Makes one message of a stream's events."""

    def __init__(self) -> None:
        self.failed = False
        self._stopped = False
        self._finish = ""
        self._id = ""
        self._edits: tuple[str, ...] = ()
        self._usage: Object = {}
        self._blocks: dict[int, _Block] = {}

    def take(self, event: Event) -> bool:
        """Take one event in; from the reason for ending on, they are held back."""
        if not event.data or event.name == "ping":
            return False
        data = read_object(event.data)
        kind = (data or {}).get("type") or event.name
        if kind == "error" or event.name == "error":
            self.failed = True
        if data is None or self.failed:
            return False
        match kind:
            case "content_block_start":
                self._start(data)
            case "content_block_delta":
                self._grow(data)
            case "content_block_stop":
                self._stop(data)
            case "message_start":
                self._start_message(data)
            case "message_delta":
                self._count(data)
                self._edits = _applied(data) or self._edits
                delta = data.get("delta")
                finish = str_or_empty(delta.get("stop_reason")) if isinstance(delta, dict) else ""
                self._finish = finish or self._finish
                return bool(finish)
            case "message_stop":
                self._stopped = True
                return True
            case _:
                pass
        return False

    def answer(self) -> Answer:
        """The message so far, or whole."""
        complete = bool(self._finish or self._stopped) and not self.failed
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        content = [block.fields() for block in blocks] if complete else _usable(blocks)
        payloads = (_message(content),) if complete or content else ()
        usage = anthropic_usage(self._usage)
        return Answer(payloads, usage, self._finish, complete, self._id, self._edits)

    def _start_message(self, data: Object) -> None:
        message = data.get("message")
        if isinstance(message, dict):
            self._count(message)
            self._id = str_or_empty(message.get("id"))
            for block in objects(message.get("content")):
                self._blocks[len(self._blocks)] = _Block(block)

    def _start(self, data: Object) -> None:
        block, index = data.get("content_block"), data.get("index")
        if isinstance(block, dict):
            self._blocks[index if isinstance(index, int) else len(self._blocks)] = _Block(block)

    def _stop(self, data: Object) -> None:
        index = data.get("index")
        if isinstance(index, int) and index in self._blocks:
            self._blocks[index].stopped = True

    def _grow(self, data: Object) -> None:
        delta, index = data.get("delta"), data.get("index")
        if not isinstance(delta, dict):
            return
        index = index if isinstance(index, int) else max(self._blocks, default=0)
        block = self._blocks.get(index)
        if block is None:
            kind = _DELTAS.get(str_or_empty(delta.get("type")))
            if kind is None:
                return
            block = self._blocks[index] = _Block({"type": kind, kind: ""})
        block.add(delta)

    def _count(self, data: Object) -> None:
        """Counts are totals: later ones replace earlier ones, and those not repeated stay."""
        usage = data.get("usage")
        if isinstance(usage, dict):
            self._usage |= without_nulls(usage)


class _Block:
    def __init__(self, start: Object) -> None:
        self.stopped = False
        self._fields = without_nulls(start)
        self._pieces: dict[str, list[str]] = {}
        self._input: list[str] = []

    @property
    def _is_call(self) -> bool:
        return str_or_empty(self._fields.get("type")).endswith("tool_use")

    def add(self, delta: Object) -> None:
        kind = str_or_empty(delta.get("type"))
        key = _DELTAS.get(kind)
        if key is not None:
            if isinstance(piece := delta.get(key), str):
                self._pieces.setdefault(key, []).append(piece)
        elif kind == "input_json_delta":
            if isinstance(piece := delta.get("partial_json"), str):
                self._input.append(piece)
        elif kind == "citations_delta":
            citations = self._fields.setdefault("citations", [])
            if isinstance(citations, list):
                citations.append(delta.get("citation"))
        elif kind in {"signature_delta", "compaction_delta"}:
            self._fields |= {k: v for k, v in without_nulls(delta).items() if k != "type"}

    def fields(self) -> Object:
        fields = dict(self._fields)
        for key, pieces in self._pieces.items():
            fields[key] = join_text([str_or_empty(fields.get(key)), *pieces])
        if self._is_call:
            text = join_text(self._input)
            fields["input"] = _partial_json(text) if text else fields.get("input", {})
        return fields

    def is_usable(self) -> bool:
        """Whether it can be sent back although the answer was cut off."""
        if self._is_call:
            text = join_text(self._input)
            return is_object(text) if text else self.stopped or bool(self._fields.get("input"))
        if self._fields.get("type") == "text":
            return bool(self.fields().get("text"))
        return self.stopped


def _usable(blocks: Sequence[_Block]) -> list[Object]:
    """What can be sent back of an answer that was cut off; thoughts alone cannot.

    Calls of the provider's own tools go with their result or not at all.
    """
    content = [block.fields() for block in blocks if block.is_usable()]
    results = {str_or_empty(block.get("tool_use_id")) for block in content}
    content = [
        block
        for block in content
        if not str_or_empty(block.get("type")).endswith("_tool_use")
        or str_or_empty(block.get("id")) in results
    ]
    return content if any(block.get("type") not in _THOUGHTS for block in content) else []


def _message(content: Sequence[Object]) -> bytes:
    return encoded({"role": "assistant", "content": list[JsonValue](content)})


def _partial_json(text: str) -> JsonValue:
    """The input, or as much of it as came."""
    try:
        return from_json(text, allow_partial=True)
    except ValueError:
        return read_object(text.encode(errors="replace")) or {}


def _identifiers(body: Object) -> tuple[JsonValue, ...]:
    metadata = body.get("metadata")
    if metadata is None or isinstance(metadata, dict):
        return (metadata and metadata.get("user_id"),)
    return ([metadata],)  # that is nobody


def _unsupported(body: Object) -> str:
    thread = body.get("thread")
    if body.get("compaction"):
        return COMPACTS
    if thread and not isinstance(thread, dict):
        return "its thread is no object"
    continues = isinstance(thread, dict) and "previous_message_id" in thread
    return "its thread names no message" if continues and _reference(body) is None else ""


# What the provider edits, if it is asked to: tool results, and turns that it summarizes. Cleared
# thoughts need no mention, as clients may leave them out too. And threads, which it keeps.


def _reference(body: Object) -> Reference | None:
    thread = body.get("thread")
    name = thread.get("previous_message_id") if isinstance(thread, dict) else None
    if not isinstance(name, str) or not name or len(name) > MAX_ID or not name.isprintable():
        return None
    return Reference("thread", name)


def _names(body: Object) -> Iterator[str]:
    thread = body.get("thread")
    if thread and (not isinstance(thread, dict) or thread.get("previous_message_id")):
        reference = _reference(body)
        yield reference.id if reference else ""


def _edits(body: Object) -> tuple[str, ...]:
    return tuple(name for name in map(_kind, _edits_in(body)) if not name.startswith(_CLEARED))


def _edits_in(body: Object) -> list[Object]:
    management = body.get("context_management")
    return objects(management.get("edits")) if isinstance(management, dict) else []


def _kind(edit: Object) -> str:
    return str_or_empty(edit.get("type")) or "context_management"


def _applied(answer: Object) -> tuple[str, ...]:
    """The edits that an answer says were made; all but those of thoughts."""
    management = answer.get("context_management")
    applied = management.get("applied_edits") if isinstance(management, dict) else None
    return tuple(name for name in map(_kind, objects(applied)) if not name.startswith(_CLEARED))


def _compactions(message: Object) -> tuple[str, ...]:
    return tuple(
        name
        for block in objects(message.get("content"))
        if block.get("type") == "compaction"
        if (name := _compaction_name(block))
    )


def _compaction_name(block: Object) -> str:
    names = (str_or_empty(block.get(key)) for key in ("signature", "encrypted_content", "content"))
    return next(filter(None, names), "")


def _detached(body: Object) -> Object:
    return {**body, "thread": {"type": "create"}}


def _unedited(body: Object) -> Object:
    management = body.get("context_management")
    if not isinstance(management, dict):
        return body
    left: list[JsonValue] = [edit for edit in _edits_in(body) if _kind(edit).startswith(_CLEARED)]
    if left:
        return {**body, "context_management": {**management, "edits": left}}
    return {name: value for name, value in body.items() if name != "context_management"}


STATE: Final = ProviderState(
    reference=_reference,
    names=_names,
    keeps=lambda body: bool(body.get("thread")),
    edits=_edits,
    compactions=_compactions,
    detached=_detached,
    unedited=_unedited,
)

ANTHROPIC_MESSAGES: Final = Dialect(
    name=_NAME,
    path="/v1/messages",
    conversation="messages",
    instructions="system",
    tools=("tools",),
    unsupported=_unsupported,
    identifiers=_identifiers,
    fingerprint=FingerprintCache(
        wire_for(_NAME), lambda message: message.get("role") == "assistant"
    ),
    answer=answer,
    assembler=MessagesAssembler,
    refusal=anthropic_refusal,
    state=STATE,
)
