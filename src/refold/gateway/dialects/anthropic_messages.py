"""Anthropic's messages."""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue
from pydantic_core import from_json

from refold.gateway.dialects.dialect import (
    Answer,
    Dialect,
    Form,
    anthropic_refusal,
    anthropic_usage,
    joined,
    read,
    without_nulls,
)
from refold.gateway.dialects.events import Event
from refold.gateway.dialects.fingerprint import (
    FingerprintCache,
    Told,
    alike,
    arguments,
    contents,
    item,
    named,
)
from refold.wire import wire_for
from refold.wire.splice import Object, encoded, is_object, objects

# Answers of Anthropic's Messages API, and of servers that speak it.
#
# A block is made of its start and its deltas. Its input comes as pieces of JSON; if the model had
# to
# end in the middle of it, what can be read of it is the input, as in the provider's own clients.

_BEGUN_BY: Final = {"text_delta": "text", "thinking_delta": "thinking"}
_GROWING: Final = {"text_delta": "text", "thinking_delta": "thinking"}


def answer(body: bytes) -> Answer | None:
    """The answer in a whole response; None if there is none."""
    told = read(body)
    if told is None or told.get("role") != "assistant":
        return None
    if not isinstance(told.get("content"), list):
        return None
    usage = told.get("usage")
    return Answer(
        (_message([without_nulls(block) for block in objects(told["content"])]),),
        anthropic_usage(usage) if isinstance(usage, dict) else None,
        _str(told.get("stop_reason")),
        complete=True,
    )


class AssemblingMessages:
    """Makes one message of a stream's events."""

    def __init__(self) -> None:
        self.failed = False
        self._stopped = False
        self._finish = ""
        self._usage: Object = {}
        self._blocks: dict[int, _Block] = {}

    def take(self, event: Event) -> bool:
        """Take one event in; from the reason for ending on, they are held back."""
        if not event.data or event.name == "ping":
            return False
        told = read(event.data)
        kind = (told or {}).get("type") or event.name
        if kind == "error" or event.name == "error":
            self.failed = True
        if told is None or self.failed:
            return False
        match kind:
            case "content_block_delta":
                self._grow(told)
            case "content_block_start" | "content_block_stop":
                self._bound(told, begins=kind == "content_block_start")
            case "message_start":
                self._begin(told)
            case "message_delta":
                return self._end(told)
            case "message_stop":
                self._stopped = True
                return True
            case _:
                pass
        return False

    def answer(self) -> Answer:
        """The message so far, or whole."""
        complete = bool(self._finish or self._stopped) and not self.failed
        blocks = [self._blocks[at] for at in sorted(self._blocks)]
        content = [one.block() for one in blocks] if complete else _whole(blocks)
        payloads = (_message(content),) if complete or content else ()
        return Answer(payloads, anthropic_usage(self._usage), self._finish, complete)

    def _begin(self, told: Object) -> None:
        message = told.get("message")
        if not isinstance(message, dict):
            return
        self._count(message)
        for block in objects(message.get("content")):
            self._blocks[len(self._blocks)] = _Block(block)

    def _bound(self, told: Object, *, begins: bool) -> None:
        index, block = told.get("index"), told.get("content_block")
        if begins and isinstance(block, dict):
            self._blocks[index if isinstance(index, int) else len(self._blocks)] = _Block(block)
        elif not begins and isinstance(index, int) and index in self._blocks:
            self._blocks[index].stopped = True

    def _grow(self, told: Object) -> None:
        delta, index = told.get("delta"), told.get("index")
        if not isinstance(delta, dict):
            return
        at = index if isinstance(index, int) else max(self._blocks, default=0)
        block = self._blocks.get(at)
        if block is None:
            kind = _BEGUN_BY.get(_str(delta.get("type")))
            if kind is None:
                return
            block = self._blocks[at] = _Block({"type": kind, kind: ""})
        block.add(delta)

    def _end(self, told: Object) -> bool:
        self._count(told)
        delta = told.get("delta")
        finish = _str(delta.get("stop_reason")) if isinstance(delta, dict) else ""
        self._finish = finish or self._finish
        return bool(finish)

    def _count(self, told: Object) -> None:
        """The counts are totals: later ones stand, those that are not told again stay."""
        usage = told.get("usage")
        if isinstance(usage, dict):
            self._usage |= without_nulls(usage)


class _Block:
    def __init__(self, begun: Object) -> None:
        self.stopped = False
        self._fields = without_nulls(begun)
        self._pieces: dict[str, list[str]] = {}
        self._input: list[str] = []

    @property
    def _called(self) -> bool:
        return _str(self._fields.get("type")).endswith("tool_use")

    def add(self, delta: Object) -> None:
        kind = _str(delta.get("type"))
        key = _GROWING.get(kind)
        if key is not None:
            if isinstance(piece := delta.get(key), str):
                self._pieces.setdefault(key, []).append(piece)
        elif kind == "input_json_delta":
            if isinstance(piece := delta.get("partial_json"), str):
                self._input.append(piece)
        elif kind == "citations_delta":
            cited = self._fields.setdefault("citations", [])
            if isinstance(cited, list):
                cited.append(delta.get("citation"))
        elif kind in {"signature_delta", "compaction_delta"}:
            self._fields |= {k: v for k, v in without_nulls(delta).items() if k != "type"}

    def block(self) -> Object:
        fields = dict(self._fields)
        for key, pieces in self._pieces.items():
            fields[key] = joined([_str(fields.get(key)), *pieces])
        if self._called:
            text = joined(self._input)
            fields["input"] = _read(text) if text else fields.get("input", {})
        return fields

    def whole(self) -> bool:
        """Whether it can be sent back although the answer was cut off."""
        if self._called:
            text = joined(self._input)
            return is_object(text) if text else self.stopped or bool(self._fields.get("input"))
        if self._fields.get("type") == "text":
            return bool(self.block().get("text"))
        return self.stopped


def _whole(blocks: Sequence[_Block]) -> list[Object]:
    """What is whole of an answer that was cut off; thoughts alone are none."""
    content = list(_answered([one.block() for one in blocks if one.whole()]))
    thought = {"thinking", "redacted_thinking"}
    return content if any(block.get("type") not in thought for block in content) else []


def _answered(content: Sequence[Object]) -> Iterator[Object]:
    """All but the calls of the provider's own tools that have no result."""
    results = {_str(block.get("tool_use_id")) for block in content}
    for block in content:
        its_own = _str(block.get("type")).endswith("_tool_use")
        if not its_own or _str(block.get("id")) in results:
            yield block


def _message(content: Sequence[Object]) -> bytes:
    return encoded({"role": "assistant", "content": list[JsonValue](content)})


def _read(text: str) -> JsonValue:
    """The input, or as much of it as came."""
    try:
        return from_json(text, allow_partial=True)
    except ValueError:
        return read(text.encode(errors="replace")) or {}


def _str(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _elsewhere(body: Object) -> str:  # noqa: ARG001 - the conversation is always in the request
    return ""


def _identifiers(body: Object) -> tuple[JsonValue, ...]:
    metadata = body.get("metadata")
    if metadata is None or isinstance(metadata, dict):
        return (metadata and metadata.get("user_id"),)
    return ([metadata],)  # that is nobody


def _looked(message: Object) -> tuple[bytes, bool]:
    answers = message.get("role") == "assistant"
    told = contents(message.get("content"), _block)
    if answers and not told:
        return b"", True
    return alike((named(message.get("role")), told)), answers


def _block(block: Object) -> Told | None:
    match block.get("type"):
        case "tool_use" | "server_tool_use" | "mcp_tool_use" as kind:
            told = arguments(block.get("input"))
            return (kind, named(block.get("id")), named(block.get("name")), told)
        case "tool_result":
            failed = "failed" if block.get("is_error") is True else ""
            told = contents(block.get("content"), item)
            return ("tool_result", named(block.get("tool_use_id")), failed, told)
        case _:
            return item(block)


_NAME: Final = "anthropic-messages"
ANTHROPIC_MESSAGES: Final = Dialect(
    _NAME,
    "/v1/messages",
    Form(
        conversation="messages",
        instructions="system",
        tools=("tools",),
        elsewhere=_elsewhere,
        identifiers=_identifiers,
        seen=FingerprintCache(wire_for(_NAME), _looked),
    ),
    answer=answer,
    assembling=AssemblingMessages,
    refusal=anthropic_refusal,
)
"""The dialect of messages."""
