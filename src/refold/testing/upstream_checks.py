"""Refuses requests as the providers' own servers do, for a scripted upstream.

A scripted model takes whatever it is sent. The real APIs do not: they refuse calls without results,
results without calls, reasoning that stands before another answer's output, and thinking whose
signature is not theirs. The checks here are written from the providers' rules and share no code
with the wires, so that one error is not made twice.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from typing import Any, Final, cast

# What a scripted upstream gets, and what it is told to answer.

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Got:
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Json:
        try:
            return json.loads(self.raw or b"{}")
        except ValueError:
            return {}


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    tool: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Reply:
    text: str = ""
    calls: tuple[Call, ...] = ()
    usage: tuple[int, int] | None = (10, 5)
    thought: str = ""
    breaks_after: int | None = None
    """After how many events the connection breaks."""
    pieces: int = 4
    """In how many pieces the text comes."""
    pause: Callable[[], Awaitable[object]] | None = None
    """Is waited for when half of the events were sent."""
    number: int | None = None
    """Which answer it is, where its ids are to be those of a recording; else they are counted."""


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    body: Json
    headers: dict[str, str] = field(default_factory=dict[str, str])


MAX_CACHE_MARKS: Final = 4
_CALLS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
}
_OUTPUTS: Final = frozenset(_CALLS.values())


class RequestChecker:
    def __init__(self) -> None:
        self.faults: list[tuple[Got, str]] = []
        """The requests that were refused, and why."""
        self._signatures: dict[str, str] = {}
        """The text of each signed thinking block."""
        self._thinking_calls: dict[str, frozenset[str]] = {}
        """The calls of the answer that a signed thinking block belongs to."""
        self._outputs: dict[str, tuple[str, ...]] = {}
        """The items that followed each reasoning item in its answer."""
        self._reasoning: dict[str, str] = {}
        """The reasoning item that an output item was answered with, by the output's own id."""

    def check(self, got: Got) -> Refusal | None:
        if not (problem := next(self.problems(got), "")):
            return None
        self.faults.append((got, problem))
        error = {"type": "invalid_request_error", "message": problem}
        if got.path.endswith("/messages"):
            return Refusal(400, {"type": "error", "error": error})
        return Refusal(400, {"error": {**error, "code": None, "param": None}})

    def problems(self, got: Got) -> Iterator[str]:
        body = got.body
        if got.path.endswith("/chat/completions"):
            yield from _chat(_objects(body.get("messages")))
        elif got.path.endswith("/responses"):
            yield from self._responses(body.get("input"))
        elif got.path.endswith("/messages"):
            yield from self._messages(body)

    def answered(self, whole: Json) -> None:
        if whole.get("type") == "message":
            self._answered_message(_objects(whole.get("content")))
        elif whole.get("object") == "response":
            self._answered_response(_objects(whole.get("output")))

    def _answered_message(self, blocks: Sequence[Json]) -> None:
        calls = frozenset(str(one["id"]) for one in blocks if one.get("type") == "tool_use")
        for block in blocks:
            if block.get("type") == "thinking":
                self._signatures[block["signature"]] = block["thinking"]
                self._thinking_calls[block["signature"]] = calls

    def _answered_response(self, items: Sequence[Json]) -> None:
        for nth, item in enumerate(items):
            if item.get("type") != "reasoning":
                continue
            live = tuple(_output_name(one) for one in items[nth + 1 :])
            for name in _reasoning_names(item):
                self._outputs[name] = live
            for one in items[nth + 1 :]:
                if isinstance(one.get("id"), str):
                    self._reasoning[one["id"]] = item["id"]

    # Anthropic's messages.

    def _messages(self, body: Json) -> Iterator[str]:
        if not isinstance(body.get("max_tokens"), int):
            yield "max_tokens: Field required"
        messages = _objects(body.get("messages"))
        if sum(_cache_marks(body.get(key)) for key in ("system", "tools", "messages")) > (
            MAX_CACHE_MARKS
        ):
            yield f"A maximum of {MAX_CACHE_MARKS} blocks with cache_control may be provided."
        turns = [
            (role, [block for one in run for block in _blocks(one)])
            for role, run in groupby(
                (one for one in messages if one.get("role") != "system"),
                key=lambda one: one.get("role"),
            )
        ]
        if not turns or turns[0][0] != "user":
            yield "messages: first message must use the user role"
        for nth, (role, blocks) in enumerate(turns):
            where = f"messages.{nth}"
            yield from _text_faults(where, blocks)
            if role == "assistant":
                yield from self._thinking_faults(where, blocks)
            before = turns[nth - 1][1] if nth else []
            yield from _result_faults(where, role, blocks, before)
            if role == "assistant" and nth == len(turns) - 1 and _uses(blocks):
                yield f"{where}: `tool_use` ids were found without `tool_result` blocks after"
        names = [name for role, blocks in turns if role == "assistant" for name in _uses(blocks)]
        if len(names) > len(set(names)):
            yield "messages: `tool_use` ids must be unique"

    def _thinking_faults(self, where: str, blocks: Sequence[Json]) -> Iterator[str]:
        for nth, block in enumerate(blocks):
            if block.get("type") != "thinking":
                continue
            signature = str(block.get("signature"))
            if self._signatures.get(signature) != block.get("thinking"):
                yield f"{where}.content.{nth}: Invalid `signature` in `thinking` block"
            own = self._thinking_calls.get(signature, frozenset())
            if own and not own.intersection(_uses(blocks)):
                yield f"{where}.content.{nth}: `thinking` blocks cannot be moved or modified"

    # OpenAI's responses.

    def _responses(self, given: object) -> Iterator[str]:
        items = _objects(given)
        yield from self._reasoning_faults(items)
        open_calls: dict[str, str] = {}
        answered: set[str] = set()
        for nth, item in enumerate(items):
            kind, call = str(item.get("type") or "message"), str(item.get("call_id"))
            if kind in _CALLS:
                if call in open_calls:
                    yield f"input[{nth}]: Duplicate call_id {call!r}."
                open_calls[call] = kind
            elif kind in _OUTPUTS:
                if call not in open_calls and call not in answered:
                    yield f"No tool call found for function call output with call_id {call}."
                elif call in answered:
                    yield f"input[{nth}]: A second output for call_id {call!r}."
                open_calls.pop(call, None)
                answered.add(call)
            elif kind == "message" and item.get("role") in {"user", "assistant"} and open_calls:
                # The API takes this; a model then takes the call for one that failed.
                yield f"No tool output found for function call {next(iter(open_calls))}."
        if open_calls:
            yield f"No tool output found for function call {next(iter(open_calls))}."
        ids = [item["id"] for item in items if isinstance(item.get("id"), str)]
        if len(ids) > len(set(ids)):
            yield "Duplicate item found with id in input."

    def _reasoning_faults(self, items: Sequence[Json]) -> Iterator[str]:
        for nth, item in enumerate(items):
            if item.get("type") == "reasoning":
                named = [one for one in _reasoning_names(item) if one in self._outputs]
                live = [_output_name(one) for one in items[nth + 1 : nth + 2]]
                if not named:
                    yield f"Item {item.get('id')!r} of type 'reasoning' could not be verified."
                elif live != list(self._outputs[named[0]][:1]):
                    yield (
                        f"Item {item.get('id')!r} of type 'reasoning' was provided without its "
                        "required following item."
                    )
            reasoning = self._reasoning.get(str(item.get("id")))
            if reasoning is not None and not _follows(items[:nth], reasoning):
                yield (
                    f"Item {item.get('id')!r} of type {item.get('type')!r} was provided without "
                    f"its required 'reasoning' item: {reasoning!r}."
                )


def _chat(messages: Sequence[Json]) -> Iterator[str]:
    waiting: list[str] = []
    for nth, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            call = str(message.get("tool_call_id"))
            if call not in waiting:
                yield f"messages.[{nth}]: a 'tool' message must answer a preceding 'tool_calls'"
            else:
                waiting.remove(call)
            continue
        if waiting:
            yield f"messages.[{nth}]: tool_call_ids without response: {', '.join(waiting)}"
        waiting = []
        if role == "assistant":
            calls = _objects(message.get("tool_calls"))
            waiting = [str(one.get("id")) for one in calls]
            if len(waiting) > len(set(waiting)):
                yield f"messages.[{nth}]: two tool calls have the same id"
            if not calls and not message.get("content") and not message.get("refusal"):
                yield f"messages.[{nth}]: expected content or tool_calls"
    if waiting:
        yield f"tool_call_ids without response messages: {', '.join(waiting)}"


def signature_of(answer: str, thinking: str) -> str:
    return sha256(f"{answer}\n{thinking}".encode()).hexdigest()


def _result_faults(
    where: str, role: object, blocks: Sequence[Json], before: Sequence[Json]
) -> Iterator[str]:
    results = [str(one["tool_use_id"]) for one in blocks if one.get("type") == "tool_result"]
    if role != "user":
        return
    asked = _uses(before)
    for name in results:
        if name not in asked:
            yield f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {name}"
    if len(results) > len(set(results)):
        yield f"{where}: each tool_use must have a single result"
    for name in asked:
        if name not in results:
            yield f"{where}: `tool_use` ids were found without `tool_result` blocks: {name}"
    types = [one.get("type") == "tool_result" for one in blocks]
    if types != sorted(types, reverse=True):
        yield f"{where}: `tool_result` blocks must come first"


def _text_faults(where: str, blocks: Sequence[Json]) -> Iterator[str]:
    if not blocks:
        yield f"{where}: all messages must have non-empty content"
    for nth, block in enumerate(blocks):
        if block.get("type") == "text" and not str(block.get("text")).strip():
            yield f"{where}.content.{nth}: text content blocks must be non-empty"


def _uses(blocks: Sequence[Json]) -> list[str]:
    return [str(one.get("id")) for one in blocks if one.get("type") == "tool_use"]


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else _objects(content)


def _cache_marks(value: object) -> int:
    match value:
        case Mapping():
            fields = cast("Mapping[str, object]", value)
            own = 1 if fields.get("cache_control") else 0
            return own + sum(_cache_marks(one) for key, one in fields.items() if key != "input")
        case list():
            return sum(_cache_marks(one) for one in cast("list[object]", value))
        case _:
            return 0


def _follows(before: Sequence[Json], reasoning: str) -> bool:
    for item in reversed(before):
        if item.get("id") == reasoning:
            return True
        if item.get("type") in _OUTPUTS or item.get("role") in {"user", "system", "developer"}:
            return False
    return False


def _reasoning_names(item: Json) -> list[str]:
    names = [item.get("encrypted_content"), item.get("id")]
    return [one for one in names if isinstance(one, str)]


def _output_name(item: Json) -> str:
    """What an output item is known by, whether or not a client sends its id."""
    if isinstance(call := item.get("call_id"), str):
        return f"call {call}"
    if item.get("type") == "reasoning":
        return f"reasoning {next(iter(_reasoning_names(item)), '')}"
    content = item.get("content")
    pieces = [str(one.get("text", "")) for one in _objects(content)]
    text = content if isinstance(content, str) else "".join(pieces)
    return f"message {' '.join(text.split())}" if text else json.dumps(item, sort_keys=True)


def _objects(value: object) -> list[Json]:
    many = cast("list[Any]", value) if isinstance(value, list) else []
    return [one for one in many if isinstance(one, dict)]
