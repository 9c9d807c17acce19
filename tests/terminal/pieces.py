"""What a scripted provider's answers are made of."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning, streamed word by word, as servers of open models send it."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool; its arguments come in pieces. A text is sent as it is, JSON or not."""

    tool: str
    arguments: dict[str, Any] | str = field(default_factory=dict)

    @property
    def json(self) -> str:
        """The arguments as they are sent."""
        given = self.arguments
        return given if isinstance(given, str) else json.dumps(given)


@dataclass(frozen=True, slots=True)
class Gate:
    """Nothing more comes until the test says so: `provider.release(name)`."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing more comes for so many seconds; for pictures, a test uses a Gate."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Raw:
    """An event of the stream, as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """A status and a body; after something was said already, an error in the stream."""

    status: int
    body: str


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection is lost."""


@dataclass(frozen=True, slots=True)
class Used:
    """What the provider says was used, instead of what it counts."""

    prompt: int
    answer: int
    cached: int = 0


_SAID = re.compile(r"^\[entry (\d+)\] user\b.*\n\| (.+)$", re.MULTILINE)

Piece = str | Thought | Call | Gate | Pause | Raw | Refuse | Cut | Used
"""A text is said word by word."""
Turn = str | Sequence[Piece] | Callable[["Asked"], str | Sequence[Piece]]
"""The answer to one request: its pieces, or what a function makes of the request."""


@dataclass(slots=True)
class Asked:
    """A request as it was received."""

    body: dict[str, Any]
    headers: dict[str, str]
    answered: bool = False
    """Whether the whole answer was sent."""
    left: bool = False
    """Whether who asked went away before that."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What the model was shown."""
        return self.body["messages"]

    @property
    def for_fold(self) -> bool:
        """Whether a summary is asked for."""
        return self.headers.get("x-interaction-type") == "conversation-compaction"

    @property
    def structured(self) -> bool:
        """Whether the answer is to be a form."""
        return (self.body.get("response_format") or {}).get("type") == "json_schema"

    @property
    def tools(self) -> list[str]:
        """The names of the tools that are offered."""
        return [tool["function"]["name"] for tool in self.body.get("tools") or ()]

    @property
    def prompt(self) -> str:
        """What the user said last."""
        said = [_text(one) for one in self.messages if one["role"] == "user"]
        return said[-1] if said else ""


def overflow(limit: int, asked: int) -> Refuse:
    """The refusal of a request that is too long, in the words of OpenAI."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted "
        f"in {asked} tokens. Please reduce the length of the messages."
    )
    error = {
        "message": message,
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
    return Refuse(400, json.dumps({"error": error}))


def echo(asked: Asked) -> str:
    """The answer where the script has run out."""
    return f"You said: {asked.prompt}"


def summary(title: str, *points: str) -> Callable[[Asked], str]:
    """A summary of the points, in the form that is asked for, resting on the first entry shown."""

    def of(asked: Asked) -> str:
        first = min((int(seq) for seq, _ in _SAID.findall(asked.prompt)), default=1)
        return _form(asked, title, [(point, first) for point in points])

    return of


def own_words(asked: Asked) -> str:
    """A summary of what the user said, in the user's words: nobody can find fault with it."""
    said = [(text, int(seq)) for seq, text in _SAID.findall(asked.prompt)]
    return _form(asked, "What the user said", said or [("Nothing was said", 1)])


def _form(asked: Asked, title: str, points: Sequence[tuple[str, int]]) -> str:
    if asked.structured:
        made = [{"text": text, "entries": [seq]} for text, seq in points]
        return json.dumps({"title": title, "goal": made})
    return "\n".join([f"Title: {title}", "## Goal", *(f"- {text} [{seq}]" for text, seq in points)])


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)
