"""OpenAI response items, as the Responses API takes them: each message here is one item.

A response of the model is several of them in a row: what it thinks, says and calls. The provider
refuses reasoning without the item that it led to, and an item of its own without its reasoning, so
they stay together. What each item is made of, `openai_responses_items` says.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import ClassVar

from refold.wire.editing import edited
from refold.wire.openai_responses_items import CALLS, OUTPUTS, places, role
from refold.wire.pairing import Turn, unpaired
from refold.wire.part import Change, Described, Insert
from refold.wire.protocol import Problem
from refold.wire.splice import Object, encoded, parsed


class OpenAIResponses:
    """The wire of OpenAI's response items."""

    name: ClassVar[str] = "openai-responses"
    version: ClassVar[int] = 1
    unique_calls: ClassVar[bool] = False
    itemized: ClassVar[bool] = True
    systems_last: ClassVar[bool] = False

    def describe(self, payload: bytes) -> Described:
        """The item as parts."""
        item = parsed(payload)
        shapes = tuple(place.shape for place in places(item))
        return Described(role(item), shapes)

    def edit(self, payload: bytes, changes: Mapping[int, Change]) -> bytes | None:
        """The item with these parts changed."""
        return edited(payload, places(parsed(payload)), changes)

    def make(self, inserts: Sequence[Insert]) -> list[bytes]:
        """The inserts as items, one each; nothing for a return that words cannot be."""
        return [encoded(made) for insert in inserts if (made := _made(insert))]

    def join(self, returns: Sequence[Insert], payload: bytes) -> bytes | None:  # noqa: ARG002
        """Never: a return is an item of its own."""
        return None

    def problems(self, messages: Sequence[bytes]) -> list[Problem]:
        """Calls without their return, returns without their call, reasoning that led nowhere."""
        described = [self.describe(payload) for payload in messages]
        return [*_alone(described), *unpaired(_turns(described))]


def _turns(described: Sequence[Described]) -> Iterator[Turn]:
    """The model's items in a row are one response: their calls are answered after the last."""
    said = enumerate(described)
    for answers, run in groupby(said, key=lambda one: one[1].role == "assistant"):
        items = list(run)
        if answers:
            yield Turn(items[0][0], True, tuple(one for _, item in items for one in item.shapes))  # noqa: FBT003 - a row of a table
        else:
            yield from (Turn(at, False, item.shapes) for at, item in items)  # noqa: FBT003 - as above


def _alone(described: Sequence[Described]) -> Iterator[Problem]:
    for at, item in enumerate(described):
        after = described[at + 1 : at + 2]
        thinks = any(shape.kind == "thought" for shape in item.shapes)
        if thinks and not (after and after[0].role == "assistant"):
            yield Problem(at, "Reasoning comes without the item that it led to.")


def _made(insert: Insert) -> Object | None:
    if insert.kind != "return":
        return {"role": "user" if insert.kind == "prompt" else "assistant", "content": insert.text}
    return _returned(insert.call or "", insert.text)


def _returned(name: str, text: str) -> Object | None:
    """The item that answers a call in words; calls of computers want a picture."""
    sort, _, call = name.partition(":")
    if sort not in CALLS:
        return {"type": "function_call_output", "call_id": name, "output": text}
    made = _answer(sort, text)
    if made is None:
        return None
    sort, key = next((other, keys[1]) for other, keys in OUTPUTS.items() if keys[0] == sort)
    return {"type": sort, key: call, **made}


def _answer(sort: str, text: str) -> Object | None:
    """What the answer to such a call says."""
    match sort:
        case "computer_call":
            return None
        case "shell_call":
            outcome: Object = {"type": "exit", "exit_code": 1}
            return {"output": [{"stdout": "", "stderr": text, "outcome": outcome}]}
        case "apply_patch_call":
            return {"status": "failed", "output": text}
        case "tool_search_call":
            return {"execution": "client", "tools": []}
        case "mcp_approval_request":
            return {"approve": False, "reason": text}
        case _:
            return {"output": text}
