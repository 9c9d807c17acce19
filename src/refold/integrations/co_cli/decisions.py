"""Between the framework's messages and the policies of the view.

The policies decide about parts; their decisions are carried out on copies of the messages they
concern. Every other message is handed on as the very object that came in.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, cast
from uuid import UUID

from pydantic_ai.messages import (
    BaseToolReturnPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ToolReturnPart,
)

from refold.fold.replace import MARKER
from refold.log import Entry, Message, PartRef
from refold.view.assemble import Edited, Edits, assemble
from refold.view.desk import Desk
from refold.view.plan import Layout
from refold.view.profiles import STATIC_MARKER
from refold.view.sheet import Sheet
from refold.wire import Described, Drop, Kind, PydanticAI, Shape


def _marks(*texts: str) -> re.Pattern[str]:
    forms = (re.escape(text).replace(r"\{count\}", r"\d+") for text in texts)
    return re.compile("|".join(form.replace(r"\{text\}", ".*") for form in forms), re.DOTALL)


_MARKS: Final = _marks(MARKER, STATIC_MARKER)


class _History(PydanticAI):
    """The wire of a history in which markers stand: they look like prompts, but no one said them.

    Else the marker of one window would be the latest prompt to the next, which would then drop
    what the user asked for.
    """

    def describe(self, payload: bytes) -> Described:
        """The message as parts; a marker is none that the user asks with."""
        found = super().describe(payload)
        return found._replace(shapes=tuple(map(_unasked, found.shapes)))


def _unasked(shape: Shape) -> Shape:
    marks = shape.kind == "prompt" and _MARKS.fullmatch(shape.text)
    return shape._replace(kind="other") if marks else shape


WIRE: Final = _History()


class _Uncounted:
    """A counter for rules that count messages and characters, and no tokens."""

    name = "none"
    spread = 0.0

    def text(self, text: str, kind: Kind = "text") -> int:  # noqa: ARG002 - a counter takes it
        return 0

    def part(self, shape: Shape) -> int:  # noqa: ARG002 - a counter takes it
        return 0


def desk_of(messages: Sequence[ModelMessage]) -> Desk:
    """A desk on which nothing is decided yet; row `n` is message `n`."""
    sheet = Sheet(WIRE, _Uncounted())
    sheet.extend(
        Entry(seq, UUID(int=seq), 0, Message.KIND, 1, payload_of(message))
        for seq, message in enumerate(messages, 1)
    )
    return Desk(sheet)


def payload_of(message: ModelMessage) -> bytes:
    """The message as the wire reads it."""
    return ModelMessagesTypeAdapter.dump_json([message])[1:-1]


def decided(messages: Sequence[ModelMessage], desk: Desk) -> list[ModelMessage]:
    """The messages as the desk has them. None of those given is changed."""
    rows = desk.sheet.rows
    changes = {PartRef(*key): change for key, change in desk.changes.items()}
    inserts = tuple(sorted(desk.inserts, key=lambda insert: insert.before))
    edits: Edits = {}
    made = assemble(WIRE, rows, Layout((), changes, inserts), edits)
    known = {id(row.payload): message for row, message in zip(rows, messages, strict=True)}
    for seq, edited in edits.items():
        known[id(edited.message)] = _edited(messages[seq - 1], edited)
    found = [known[id(one)] if id(one) in known else _inserted(one) for one in made]
    if messages and _asks_without_words(messages[-1]):
        found.append(messages[-1])
    return found


def _asks_without_words(message: ModelMessage) -> bool:
    """Whether it is a request that holds only instructions; a run cannot do without its last."""
    return (
        isinstance(message, ModelRequest) and not message.parts and message.state != "interrupted"
    )


def _edited(message: ModelMessage, edited: Edited) -> ModelMessage:
    """The message with these changes; of a part whose text changes, all else stays the object."""
    if edited.message is None:
        return message
    stays = [
        nth for nth in range(len(message.parts)) if not isinstance(edited.changes.get(nth), Drop)
    ]
    old = [message.parts[nth] for nth in stays]
    new = _loaded(edited.message).parts
    parts = [
        _retold(was, now) if nth in edited.changes else was
        for nth, was, now in zip(stays, old, new, strict=True)
    ]
    return replace(message, parts=parts)


def _retold(was: object, now: object) -> object:
    if isinstance(was, BaseToolReturnPart) and isinstance(now, BaseToolReturnPart):
        return replace(cast("BaseToolReturnPart[Any]", was), content=now.content)
    return now


def _inserted(payload: bytes) -> ModelMessage:
    """A message that no one said; a stand-in for a return says that it is one."""
    message = _loaded(payload)
    if not isinstance(message, ModelRequest):
        return message
    return replace(message, parts=list(map(_stand_in, message.parts)))


def _stand_in(part: ModelRequestPart) -> ModelRequestPart:
    return replace(part, outcome="interrupted") if isinstance(part, ToolReturnPart) else part


def _loaded(payload: bytes) -> ModelMessage:
    return ModelMessagesTypeAdapter.validate_json(b"[" + payload + b"]")[0]
