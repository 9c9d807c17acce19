"""Messages as an importer finds them, put in order and in pairs.

A result stands only where its call came before it, and one call has one result: so a broken pair
in a replay is always the doing of a policy, never of a file.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from refold.lab import messages as make
from refold.lab.messages import Json
from refold.lab.recording import Recorded, Recording, Usage


@dataclass(slots=True)
class Gathered:
    """One message that may still grow."""

    parts: list[Json]
    at: int | None
    said: bool
    """Whether the model said it."""
    prompt: bool = False
    """Whether the user did."""
    usage: Usage | None = None
    model: str = ""

    def recorded(self) -> Recorded:
        if not self.said:
            return Recorded(make.request(self.parts, at=self.at), self.at)
        more: Json = {"model_name": self.model} if self.model else {}
        if self.usage is not None:
            more["usage"] = {
                "input_tokens": self.usage.input,
                "output_tokens": self.usage.output,
                "cache_read_tokens": self.usage.cache_read,
                "cache_write_tokens": self.usage.cache_write,
            }
        payload = make.response(self.parts, at=self.at, more=more)
        return Recorded(payload, self.at, self.usage, self.model or None)


@dataclass
class Gathering:
    """What was found so far."""

    messages: list[Gathered] = field(default_factory=list[Gathered])
    skipped: Counter[str] = field(default_factory=Counter[str])
    _open: dict[str, str] = field(default_factory=dict[str, str])
    _closed: set[str] = field(default_factory=set[str])

    def prompt(self, content: JsonValue, at: int | None, *, system: bool = False) -> None:
        """What the user said, or the developer."""
        if not content:
            self.skipped["empty message"] += 1
            return
        part = make.system_prompt(str(content)) if system else make.user_prompt(content)
        self.messages.append(Gathered([part], at, said=False, prompt=not system))

    def answer(self, parts: Sequence[Json], at: int | None, model: str = "") -> Gathered | None:
        """What the model said; None where that is nothing."""
        sound = [part for part in parts if self._sound(part)]
        if not sound:
            self.skipped["empty message"] += 1
            return None
        self.messages.append(Gathered(sound, at, said=True, model=model))
        return self.messages[-1]

    def more(self, message: Gathered, parts: Sequence[Json]) -> None:
        message.parts += [part for part in parts if self._sound(part)]

    def returned(
        self, call: str, content: JsonValue, at: int | None, *, failed: bool = False
    ) -> None:
        tool = self._open.pop(call, None)
        if tool is None:
            why = "second result of a call" if call in self._closed else "result without its call"
            self.skipped[why] += 1
            return
        self._closed.add(call)
        part = make.tool_return(tool, call, content, failed=failed)
        self.messages.append(Gathered([part], at, said=False))

    def take_back(self, first: int) -> None:
        """Forget the messages from this one on: the user went back to before it."""
        gone = self.messages[first:]
        del self.messages[first:]
        self.skipped["taken back"] += len(gone)
        for part in (part for message in gone for part in message.parts):
            call = str(part.get("tool_call_id", ""))
            if part.get("part_kind") == "tool-call":
                self._open.pop(call, None)
                self._closed.discard(call)
            elif part.get("part_kind") == "tool-return" and call in self._closed:
                self._closed.discard(call)
                self._open[call] = str(part["tool_name"])

    def recording(self, name: str) -> Recording:
        return Recording(name, tuple(one.recorded() for one in self.messages), dict(self.skipped))

    def _sound(self, part: Json) -> bool:
        """Whether a part of an answer can stand; a call is noted as one that awaits its result."""
        if part.get("part_kind") != "tool-call":
            return bool(part.get("content"))
        call = str(part["tool_call_id"])
        if not call or call in self._open or call in self._closed:
            self.skipped["call that was there already" if call else "call without an id"] += 1
            return False
        self._open[call] = str(part["tool_name"])
        return True


# Values as others wrote them: taken where they make sense, else nothing.
#
# Nothing here raises an error, whatever it is given.

_LAST_MOMENT = 4_102_444_800_000  # the year 2100, in milliseconds
_MOST_TOKENS = 10**9
_LONGEST_NAME = 100
_DOT: Final = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="  # a GIF of one pixel


def string(of: JsonValue, name: str) -> str:
    """The text of that name in an object, or none."""
    value = of.get(name) if isinstance(of, dict) else None
    return value if isinstance(value, str) else ""


def name_of(of: JsonValue, name: str) -> str:
    """The same, as short as a name is."""
    return string(of, name)[:_LONGEST_NAME]


def child(of: JsonValue, name: str) -> Json:
    """The object of that name in an object, or an empty one."""
    value = of.get(name) if isinstance(of, dict) else None
    return value if isinstance(value, dict) else {}


def items(of: JsonValue, name: str) -> list[JsonValue]:
    """The list of that name in an object, or an empty one."""
    value = of.get(name) if isinstance(of, dict) else None
    return value if isinstance(value, list) else []


def tokens(of: JsonValue, name: str) -> int:
    """A count of tokens that can be one, else 0."""
    value = of.get(name) if isinstance(of, dict) else None
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 <= value <= _MOST_TOKENS else 0


def moment(value: JsonValue) -> int | None:
    """Milliseconds since 1970, from a number of them or a date; None where it is neither."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value).timestamp() * 1000
        except (ValueError, OverflowError, OSError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 < value < _LAST_MOMENT else None


def picture() -> Json:
    """A dot for a picture: pictures are not measured, and a session may hold very many."""
    return make.image(_DOT, "image/gif")


def content(parts: Iterator[JsonValue]) -> JsonValue:
    """What was said: one text where there are only texts."""
    found: list[JsonValue] = [part for part in parts if part not in ("", None)]
    texts = [part for part in found if isinstance(part, str)]
    return "\n".join(texts) if len(texts) == len(found) else found
