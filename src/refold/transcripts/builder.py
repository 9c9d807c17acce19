"""What importers share: building a recording message by message, and reading untrusted JSON.

A result is accepted only after its call, and a call has one result: so a broken pair in a replay is
always a policy's fault, never the file's.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from refold.log import Origin
from refold.models import Usage
from refold.transcripts import messages as make
from refold.transcripts.messages import Json
from refold.transcripts.recording import RecordedMessage, Recording

_MAX_TIME = 4_102_444_800_000  # the year 2100, in milliseconds
_MAX_TOKENS = 10**9
_MAX_NAME = 100
_MAX_ORIGIN = 4_096
_DOT: Final = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="  # a GIF of one pixel


@dataclass(slots=True)
class DraftMessage:
    """One message that may still grow."""

    parts: list[Json]
    at: int | None
    answer: bool
    """Whether it is the model's."""
    prompt: bool = False
    """Whether it is the user's."""
    usage: Usage | None = None
    model: str = ""

    def recorded(self) -> RecordedMessage:
        if not self.answer:
            return RecordedMessage(make.request(self.parts, at=self.at), self.at)
        more: Json = {"model_name": self.model} if self.model else {}
        if self.usage is not None:
            more["usage"] = usage_fields(self.usage)
        payload = make.response(self.parts, at=self.at, more=more)
        return RecordedMessage(payload, self.at, self.usage, self.model or None)


@dataclass
class TranscriptBuilder:
    program: str
    """The name of the program that recorded the session, in its origin."""
    messages: list[DraftMessage] = field(default_factory=list[DraftMessage])
    skipped: Counter[str] = field(default_factory=Counter[str])
    title: str = ""
    _origin: dict[str, str] = field(default_factory=dict[str, str])
    _open: dict[str, str] = field(default_factory=dict[str, str])
    _closed: set[str] = field(default_factory=set[str])

    def prompt(self, content: JsonValue, at: int | None, *, system: bool = False) -> None:
        """Add a prompt of the user, or of the developer."""
        if not content:
            self.skipped["empty message"] += 1
            return
        part = make.system_prompt(str(content)) if system else make.user_prompt(content)
        self.messages.append(DraftMessage([part], at, answer=False, prompt=not system))

    def answer(self, parts: Sequence[Json], at: int | None, model: str = "") -> DraftMessage | None:
        """Add an answer of the model; None where it is empty."""
        valid = [part for part in parts if self._accept(part)]
        if not valid:
            self.skipped["empty message"] += 1
            return None
        self.messages.append(DraftMessage(valid, at, answer=True, model=model))
        return self.messages[-1]

    def extend(self, message: DraftMessage, parts: Sequence[Json]) -> None:
        message.parts += [part for part in parts if self._accept(part)]

    def tool_return(
        self, call: str, content: JsonValue, at: int | None, *, failed: bool = False
    ) -> None:
        tool = self._open.pop(call, None)
        if tool is None:
            why = "second result of a call" if call in self._closed else "result without its call"
            self.skipped[why] += 1
            return
        self._closed.add(call)
        part = make.tool_return(tool, call, content, failed=failed)
        self.messages.append(DraftMessage([part], at, answer=False))

    def take_back(self, first: int) -> None:
        """Drop the messages from this index on: the user went back to before it."""
        dropped = self.messages[first:]
        del self.messages[first:]
        self.skipped["taken back"] += len(dropped)
        for part in (part for message in dropped for part in message.parts):
            call = str(part.get("tool_call_id", ""))
            if part.get("part_kind") == "tool-call":
                self._open.pop(call, None)
                self._closed.discard(call)
            elif part.get("part_kind") == "tool-return" and call in self._closed:
                self._closed.discard(call)
                self._open[call] = str(part["tool_name"])

    def note_origin(
        self,
        *,
        id: str = "",  # noqa: A002 - the field's name
        folder: str = "",
        branch: str = "",
        parent: str = "",
    ) -> None:
        """Note what a record says about the session; what an earlier one said stays."""
        origin = {"id": id, "folder": folder, "branch": branch, "parent": parent}
        if branch == "HEAD":  # no branch is checked out
            del origin["branch"]
        for name, value in origin.items():
            if value and value.isprintable() and len(value) <= _MAX_ORIGIN:
                self._origin.setdefault(name, value)

    def recording(self, name: str) -> Recording:
        messages = tuple(message.recorded() for message in self.messages)
        origin = Origin(self.program, **self._origin)
        return Recording(name, messages, dict(self.skipped), origin, self.title)

    def _accept(self, part: Json) -> bool:
        """Whether a part of an answer is valid; a call then awaits its result."""
        if part.get("part_kind") != "tool-call":
            return bool(part.get("content"))
        call = str(part["tool_call_id"])
        if not call or call in self._open or call in self._closed:
            self.skipped["call that was there already" if call else "call without an id"] += 1
            return False
        self._open[call] = str(part["tool_name"])
        return True


def usage_fields(usage: Usage) -> Json:
    """The usage as Pydantic AI writes it."""
    return {f"{name}_tokens": count for name, count in usage._asdict().items()}


# Fields of untrusted JSON: a value of the wrong type reads as an empty one; nothing raises.


def _field(record: JsonValue, name: str) -> JsonValue:
    return record.get(name) if isinstance(record, dict) else None


def string(record: JsonValue, name: str) -> str:
    value = _field(record, name)
    return value if isinstance(value, str) else ""


def name_of(record: JsonValue, name: str) -> str:
    return string(record, name)[:_MAX_NAME]


def child(record: JsonValue, name: str) -> Json:
    value = _field(record, name)
    return value if isinstance(value, dict) else {}


def items(record: JsonValue, name: str) -> list[JsonValue]:
    value = _field(record, name)
    return value if isinstance(value, list) else []


def tokens(record: JsonValue, name: str) -> int:
    value = _field(record, name)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 <= value <= _MAX_TOKENS else 0


def moment(value: JsonValue) -> int | None:
    """Milliseconds since 1970, from a number of them or a date; None where it is neither."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value).timestamp() * 1000
        except (ValueError, OverflowError, OSError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 < value < _MAX_TIME else None


def picture() -> Json:
    """A dot, because pictures are not measured and a session may hold very many."""
    return make.image(_DOT, "image/gif")


def content(parts: Iterator[JsonValue]) -> JsonValue:
    """One text where there are only texts."""
    present: list[JsonValue] = [part for part in parts if part not in ("", None)]
    texts = [part for part in present if isinstance(part, str)]
    return "\n".join(texts) if len(texts) == len(present) else present
