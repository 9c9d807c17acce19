"""OpenAI's Responses API, and servers that speak it.

A message is one item of the input or the output. The last event of a stream has the whole answer.
If it never comes, the answer is what the events before it brought: items that are done, and of the
last one the text so far.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from refold.gateway.dialects.dialect import (
    COMPACTS,
    MAX_ID,
    Answer,
    Dialect,
    ProviderState,
    Reference,
    join_text,
    openai_refusal,
    openai_usage,
    read_object,
    without_nulls,
)
from refold.gateway.dialects.events import Event
from refold.gateway.dialects.openai_chat import openai_identifiers
from refold.wire import wire_for
from refold.wire.fingerprint import FingerprintCache
from refold.wire.splice import (
    Object,
    compact_json,
    encoded,
    is_object,
    objects,
    parsed,
    str_or_empty,
)

_NAME: Final = "openai-responses"
_END_EVENTS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_ITEM_EVENTS: Final = frozenset({"response.output_item.added", "response.output_item.done"})
_DELTA_EVENTS: Final = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.function_call_arguments.delta": "arguments",
}
_EVENTS: Final = _END_EVENTS | _ITEM_EVENTS | frozenset(_DELTA_EVENTS)
_UNFINISHED: Final = frozenset({"in_progress", "queued"})
_FAILED: Final = frozenset({"failed", "cancelled"})
_STATEFUL: Final = {
    "prompt": "prompt refers to what the provider holds",
    "background": "it is answered in the background",
}
"""Fields of requests that cannot be managed."""
_NAMED: Final = frozenset({"message", "function_call", "custom_tool_call"})
"""Items whose ids nothing else refers to."""
_REFERENCES: Final = ("previous_response_id", "conversation")
_ANSWER_ITEMS: Final = frozenset(
    {
        *("compaction", "mcp_list_tools", "mcp_approval_request"),
        *("program", "reasoning", "tool_search_output"),
    }
)
"""What the model's side makes, other than messages and calls."""


def answer(body: bytes) -> Answer | None:
    """The answer in a whole response; None if there is none, or none yet."""
    response = read_object(body)
    if response is None or not isinstance(response.get("output"), list):
        return None
    status, output = str_or_empty(response.get("status")), objects(response["output"])
    if status in _UNFINISHED:
        return None
    if status in _FAILED:
        items = [
            _Item(index, item, done=str_or_empty(item.get("status")) in {"", "completed"})
            for index, item in enumerate(output)
        ]
        return _answer(response, [*_usable(items)], complete=False)
    return _answer(response, output, complete=True)


class ResponsesAssembler:
    """Makes items of a stream's events."""

    def __init__(self) -> None:
        self.failed = False
        self._response: Object | None = None
        self._items: list[_Item] = []
        self._by_index: dict[int, _Item] = {}
        self._by_id: dict[str, _Item] = {}

    def take(self, event: Event) -> bool:
        """Take one event in; the one that has the whole answer is held back."""
        name = event.name
        # Most of the others repeat what came, and the first ones repeat the request.
        if not event.data or (name.startswith("response.") and name not in _EVENTS):
            return False
        data = read_object(event.data)
        kind = str_or_empty((data or {}).get("type")) or name
        if kind == "error" or name == "error" or (data and data.get("error")):
            self.failed = True
        if data is None or self.failed:
            return False
        if kind in _END_EVENTS:
            response = data.get("response")
            self._response = response if isinstance(response, dict) else {}
            self.failed = kind == "response.failed"
            return True
        if kind in _DELTA_EVENTS:
            self._grow(data, _DELTA_EVENTS[kind])
        elif kind in _ITEM_EVENTS:
            self._set(data, done=kind == "response.output_item.done")
        return False

    def answer(self) -> Answer:
        """The items so far, or all."""
        items = sorted(self._items, key=lambda item: item.index)
        if self._response is not None and not self.failed:
            # Some servers do not repeat the items at the end.
            output = objects(self._response.get("output")) or [item.value() for item in items]
            return _answer(self._response, output, complete=True)
        return _answer(self._response or {}, [*_usable(items)], complete=False)

    def _set(self, data: Object, *, done: bool) -> None:
        fields = data.get("item")
        if not isinstance(fields, dict):
            return
        item = self._find(data, fields.get("id"))
        if item is None:
            index = data.get("output_index")
            item = _Item(index if isinstance(index, int) else len(self._items), fields, done=done)
            self._items.append(item)
            if isinstance(index, int):
                self._by_index[index] = item
        if item_id := str_or_empty(fields.get("id")):
            self._by_id[item_id] = item
        item.fields, item.done = fields, done

    def _grow(self, data: Object, kind: str) -> None:
        item, piece = self._find(data, data.get("item_id")), data.get("delta")
        if item is not None and isinstance(piece, str):
            index = data.get("content_index")
            index = index if isinstance(index, int) and kind != "arguments" else 0
            item.pieces.setdefault((index, kind), []).append(piece)

    def _find(self, data: Object, item_id: JsonValue) -> "_Item | None":
        """By its index; servers that send none have ids."""
        index = data.get("output_index")
        if isinstance(index, int):
            return self._by_index.get(index)
        return self._by_id.get(str_or_empty(item_id))


class _Item:
    def __init__(self, index: int, fields: Object, *, done: bool) -> None:
        self.index = index
        self.done = done
        self.fields = fields
        self.pieces: dict[tuple[int, str], list[str]] = {}

    def value(self) -> Object:
        """The item; if it is not done, as far as it came, and without the id it would have."""
        if self.done:
            return self.fields
        item = {key: self.fields[key] for key in self.fields if key not in {"id", "status"}}
        if item.get("type") == "function_call":
            item["arguments"] = self._arguments()
        if item.get("type") == "message":
            item["content"] = list(self._content())
        return item

    def is_usable(self) -> bool:
        """Whether it can be sent back although the answer was cut off."""
        kind = self.fields.get("type")
        if kind == "function_call" and not self.done:
            return is_object(self._arguments())
        return self.done or (kind == "message" and any(self._content()))

    def _arguments(self) -> str:
        first = str_or_empty(self.fields.get("arguments"))
        return join_text([first, *self.pieces.get((0, "arguments"), ())])

    def _content(self) -> Iterator[JsonValue]:
        for (_, kind), pieces in sorted(self.pieces.items()):
            text = join_text(pieces)
            if text and kind == "refusal":
                yield {"type": kind, "refusal": text}
            elif text:
                yield {"type": kind, "text": text, "annotations": []}


def _usable(items: Sequence[_Item]) -> Iterator[Object]:
    """What can be sent back of an answer that was cut off; a thought only with what it led to."""
    thoughts: list[Object] = []
    for item in items:
        if not item.is_usable():
            thoughts = []
        elif item.fields.get("type") == "reasoning":
            thoughts.append(item.value())
        else:
            yield from thoughts if item.done else ()
            thoughts = []
            yield item.value()


def _answer(response: Object, items: Sequence[Object], *, complete: bool) -> Answer:
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return Answer(
        tuple(encoded(without_nulls(item)) for item in items),
        openai_usage(response.get("usage")),
        str_or_empty(reason) or str_or_empty(response.get("status")),
        complete,
        str_or_empty(response.get("id")),
    )


def _unsupported(body: Object) -> str:
    for field, why in _STATEFUL.items():
        if body.get(field):
            return why
    if any(map(_is_item_reference, objects(body.get("input")))):
        return "an item refers to one that the provider holds"
    if any(item.get("type") == "compaction_trigger" for item in objects(body.get("input"))):
        return COMPACTS
    for field in _REFERENCES:
        if body.get(field) and _reference_id(body[field]) == "":
            return f"{field} is no id"
    if all(map(body.get, _REFERENCES)):
        return f"{' and '.join(_REFERENCES)} exclude each other"
    return ""


# What the provider keeps: every answer, unless the request says otherwise, and conversations.


def _reference_id(value: JsonValue) -> str:
    """The id; empty if it is none that can be looked for."""
    name = value.get("id") if isinstance(value, dict) else value
    return name if isinstance(name, str) and len(name) <= MAX_ID and name.isprintable() else ""


def _reference(body: Object) -> Reference | None:
    for field in _REFERENCES:
        if name := _reference_id(body.get(field)):
            return Reference(field, name, shared=field == "conversation")
    return None


def _is_item_reference(item: Object) -> bool:
    """Whether it is another item's id alone; its type may be left out."""
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "id" in item and "role" not in item)


def _names(body: Object) -> Iterator[str]:
    for item in filter(_is_item_reference, objects(body.get("input"))):
        yield str_or_empty(item.get("id"))
    yield from (_reference_id(body[field]) for field in _REFERENCES if body.get(field))


def _edits(body: Object) -> tuple[str, ...]:
    """A truncation needs no mention: it is for requests that exceed the window."""
    names = (str_or_empty(entry.get("type")) for entry in objects(body.get("context_management")))
    return tuple(name or "context_management" for name in names)


def _compactions(item: Object) -> tuple[str, ...]:
    if item.get("type") not in {"compaction", "compaction_summary"}:
        return ()
    named = str_or_empty(item.get("encrypted_content")) or str_or_empty(item.get("id"))
    return (named,) if named else ()


def _portable(message: bytes) -> bytes | None:
    """Without the name under which the provider kept it; reasoning goes if that was all of it."""
    item = parsed(message)
    if item.get("type") == "reasoning":
        return message if item.get("encrypted_content") else None
    if (item.get("type") or "message") not in _NAMED or "id" not in item:
        return message
    return compact_json({key: value for key, value in item.items() if key != "id"})


def _without(*names: str) -> Callable[[Object], Object]:
    return lambda body: {name: value for name, value in body.items() if name not in names}


STATE: Final = ProviderState(
    reference=_reference,
    names=_names,
    keeps=lambda body: body.get("store") is not False,
    edits=_edits,
    compactions=_compactions,
    detached=_without(*_REFERENCES),
    portable=_portable,
    unedited=_without("context_management"),
)


def _is_answer(item: Object) -> bool:
    kind = item.get("type") or "message"
    if kind == "message":
        return item.get("role") == "assistant"
    return isinstance(kind, str) and (kind.endswith("_call") or kind in _ANSWER_ITEMS)


OPENAI_RESPONSES: Final = Dialect(
    name=_NAME,
    path="/v1/responses",
    conversation="input",
    instructions="instructions",
    tools=("tools",),
    accepts_text=True,
    unsupported=_unsupported,
    identifiers=openai_identifiers,
    fingerprint=FingerprintCache(wire_for(_NAME), _is_answer),
    answer=answer,
    assembler=ResponsesAssembler,
    refusal=openai_refusal,
    state=STATE,
)
