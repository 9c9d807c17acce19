"""OpenAI's responses, as long as the client holds the conversation."""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from refold.gateway.dialects.dialect import (
    Answer,
    Dialect,
    Form,
    joined,
    openai_refusal,
    openai_usage,
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
    other,
)
from refold.gateway.dialects.openai_chat import openai_identifiers
from refold.wire import wire_for
from refold.wire.splice import Object, encoded, is_object, objects

# Answers of OpenAI's Responses API, and of servers that speak it.
#
# The last event has the whole answer. If it never comes, the answer is what the events before it
# told: items that are done, and of the last one the text so far.

_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_ITEMS: Final = frozenset({"response.output_item.added", "response.output_item.done"})
_GROWS: Final = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.function_call_arguments.delta": "arguments",
}
_HEARD: Final = _ENDS | _ITEMS | frozenset(_GROWS)
_UNDER_WAY: Final = frozenset({"in_progress", "queued"})
_BROKEN: Final = frozenset({"failed", "cancelled"})


def answer(body: bytes) -> Answer | None:
    """The answer in a whole response; None if there is none, or none yet."""
    told = read(body)
    if told is None or not isinstance(told.get("output"), list):
        return None
    status, output = _str(told.get("status")), objects(told["output"])
    if status in _UNDER_WAY:
        return None
    if status in _BROKEN:
        items = [_Item(at, one, done=_done(one)) for at, one in enumerate(output)]
        return _cut(told, items)
    return _answer(told, output)


class AssemblingResponses:
    """Makes items of a stream's events."""

    def __init__(self) -> None:
        self.failed = False
        self._ended: Object | None = None
        self._items: list[_Item] = []
        self._numbers: dict[int, _Item] = {}
        self._names: dict[str, _Item] = {}

    def take(self, event: Event) -> bool:
        """Take one event in; the one that has the whole answer is held back."""
        name = event.name
        # Most of the others repeat what came, and the first ones repeat the request.
        if not event.data or (name.startswith("response.") and name not in _HEARD):
            return False
        told = read(event.data)
        kind = _str((told or {}).get("type")) or name
        if kind == "error" or name == "error" or (told and told.get("error")):
            self.failed = True
        if told is None or self.failed:
            return False
        if kind in _ENDS:
            response = told.get("response")
            self._ended = response if isinstance(response, dict) else {}
            self.failed = kind == "response.failed"
            return True
        if kind in _GROWS:
            self._grow(told, _GROWS[kind])
        elif kind in _ITEMS:
            self._set(told, done=kind == "response.output_item.done")
        return False

    def answer(self) -> Answer:
        """The items so far, or all."""
        told = self._ended
        if told is not None and not self.failed:
            # Some servers do not say again at the end what was done.
            output = objects(told.get("output")) or [one.item() for one in self._ordered()]
            return _answer(told, output)
        return _cut(told or {}, self._ordered())

    def _ordered(self) -> list["_Item"]:
        return sorted(self._items, key=lambda one: one.at)

    def _set(self, told: Object, *, done: bool) -> None:
        item = told.get("item")
        if not isinstance(item, dict):
            return
        found = self._find(told, item.get("id"))
        if found is None:
            index = told.get("output_index")
            at = index if isinstance(index, int) else len(self._items)
            found = _Item(at, item, done=done)
            self._items.append(found)
            if isinstance(index, int):
                self._numbers[index] = found
        if name := _str(item.get("id")):
            self._names[name] = found
        found.fields, found.done = item, done

    def _grow(self, told: Object, kind: str) -> None:
        found, piece = self._find(told, told.get("item_id")), told.get("delta")
        if found is not None and isinstance(piece, str):
            nth = told.get("content_index")
            at = nth if isinstance(nth, int) and kind != "arguments" else 0
            found.pieces.setdefault((at, kind), []).append(piece)

    def _find(self, told: Object, name: JsonValue) -> "_Item | None":
        """By its number; servers that give none have names for items."""
        index = told.get("output_index")
        return self._numbers.get(index) if isinstance(index, int) else self._names.get(_str(name))


class _Item:
    def __init__(self, at: int, fields: Object, *, done: bool) -> None:
        self.at = at
        self.done = done
        self.fields = fields
        self.pieces: dict[tuple[int, str], list[str]] = {}

    def item(self) -> Object:
        """The item; if it is not done, as far as it came, and without the name it would have."""
        if self.done:
            return self.fields
        item = {key: self.fields[key] for key in self.fields if key not in {"id", "status"}}
        if item.get("type") == "function_call":
            item["arguments"] = self.arguments()
        if item.get("type") == "message":
            item["content"] = list(self._content())
        return item

    def whole(self) -> bool:
        """Whether it can be sent back although the answer was cut off."""
        kind = self.fields.get("type")
        if kind == "function_call" and not self.done:
            return is_object(self.arguments())
        return self.done or (kind == "message" and any(self._content()))

    def arguments(self) -> str:
        """Those that came."""
        begun = _str(self.fields.get("arguments"))
        return joined([begun, *self.pieces.get((0, "arguments"), ())])

    def _content(self) -> Iterator[JsonValue]:
        for (_, kind), pieces in sorted(self.pieces.items()):
            if text := joined(pieces):
                said: Object = {"type": kind, "refusal" if kind == "refusal" else "text": text}
                yield said | ({} if kind == "refusal" else {"annotations": []})


def _whole(items: Sequence[_Item]) -> Iterator[Object]:
    """What is whole of an answer that was cut off; a thought only with what it led to."""
    thoughts: list[Object] = []
    for one in items:
        if not one.whole():
            thoughts = []
        elif one.fields.get("type") == "reasoning":
            thoughts.append(one.item())
        else:
            yield from thoughts if one.done else ()
            thoughts = []
            yield one.item()


def _answer(told: Object, output: Sequence[Object]) -> Answer:
    return Answer(_payloads(output), openai_usage(told.get("usage")), _finish(told), complete=True)


def _cut(told: Object, items: Sequence[_Item]) -> Answer:
    usage = openai_usage(told.get("usage"))
    return Answer(_payloads(list(_whole(items))), usage, _finish(told), complete=False)


def _done(item: Object) -> bool:
    return _str(item.get("status")) in {"", "completed"}


def _finish(told: Object) -> str:
    details = told.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return _str(reason) or _str(told.get("status"))


def _payloads(items: Sequence[Object]) -> tuple[bytes, ...]:
    return tuple(encoded(without_nulls(item)) for item in items)


def _str(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _elsewhere(body: Object) -> str:
    for field, why in _HELD.items():
        if body.get(field):
            return why
    items = objects(body.get("input"))
    if any(map(_refers, items)):
        return "an item refers to one that the provider holds"
    if any(one.get("type") == "compaction_trigger" for one in items):
        return "it has the provider shorten the conversation"
    return ""


def _refers(given: Object) -> bool:
    """The type of a reference may be left out."""
    kind = given.get("type")
    return kind == "item_reference" or (kind is None and "id" in given and "role" not in given)


def _looked(given: Object) -> tuple[bytes, bool]:
    kind = given.get("type") or "message"
    if kind == "reasoning":
        return b"", True
    if kind == "message":
        answers = given.get("role") == "assistant"
        told = contents(given.get("content"), item)
        if answers and not told:
            return b"", True
        return alike(("message", named(given.get("role")), told)), answers
    kind = named(kind)
    made = kind.endswith("_call") or kind in _MADE
    return alike((kind, _item(kind, given))), made


def _item(kind: str, given: Object) -> list[Told]:
    call, name = named(given.get("call_id")), named(given.get("name"))
    match kind:
        case "function_call":
            return [call, name, arguments(given.get("arguments"))]
        case "custom_tool_call":
            return [call, name, named(given.get("input"))]
        case "function_call_output" | "custom_tool_call_output":
            return [call, contents(given.get("output"), item)]
        case _:
            return [other({key: one for key, one in given.items() if key not in _PASSING})]


_HELD: Final = {
    "previous_response_id": "previous_response_id refers to what the provider holds",
    "conversation": "conversation refers to what the provider holds",
    "prompt": "prompt refers to what the provider holds",
    "background": "it is answered in the background",
}
_MADE: Final = frozenset(
    {
        *("compaction", "mcp_list_tools", "mcp_approval_request"),
        *("program", "tool_search_output"),
    }
)
"""What the model's side makes, other than calls."""

_PASSING: Final = frozenset({"id", "status"})
"""Clients leave them out when they send an item again."""

_NAME: Final = "openai-responses"
OPENAI_RESPONSES: Final = Dialect(
    _NAME,
    "/v1/responses",
    Form(
        conversation="input",
        instructions="instructions",
        tools=("tools",),
        elsewhere=_elsewhere,
        identifiers=openai_identifiers,
        seen=FingerprintCache(wire_for(_NAME), _looked),
        lone_text=True,
    ),
    answer=answer,
    assembling=AssemblingResponses,
    refusal=openai_refusal,
)
"""The dialect of responses; a message is one item of the input."""
