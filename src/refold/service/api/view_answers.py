"""What the API answers about requests and the views that they were made of."""

from datetime import datetime
from typing import Literal

from pydantic import Field, JsonValue

from refold.service.api.answers import Answer, Text


class RequestRecord(Answer):
    """A request that was sent to a model."""

    seq: int
    at: datetime
    model: Text
    state: Literal["rebuildable", "unrebuildable"] = Field(
        description="`unrebuildable`: something that it was made of was forgotten."
    )
    profile: str | None = None
    tokens: int | None = Field(default=None, description="Of its messages, as they were counted.")
    limit: int | None = None
    digest: str = Field(description="SHA-256 of the messages that were sent.")


class RequestPage(Answer):
    """Some request records, in order."""

    requests: list[RequestRecord]
    head: int
    next: int | None = Field(description="What to pass as `after` for more; null at the end.")


class Whose(Answer):
    """The session, as it was then."""

    name: Text | None
    title: Text | None
    format: str
    scope: Text
    head: int
    messages: int


class Counter(Answer):
    """What counted the tokens, and how far the truth may lie above a count."""

    name: str
    spread: float


class Window(Answer):
    """The model's window, and what is assumed where it is unknown."""

    tokens: int | None
    shown: JsonValue


class Rewrite(Answer):
    """Why what had been sent before was changed."""

    count: int
    cause: str | None
    sentence: str | None


class Sent(Answer):
    """How much the request holds."""

    messages: int
    tokens: int


class Total(Answer):
    """All parts that share one fate."""

    edit: Literal["keep", "replace", "drop"]
    reason: str
    sentence: str
    parts: int
    messages: int
    before: int
    after: int


class Insert(Answer):
    """A message that is sent and not in the log."""

    before: int
    kind: str
    reason: str
    sentence: str
    tokens: int
    words: Text
    sources: list[str]


class Unlisted(Answer):
    """Entries that are not shown and were not read."""

    first: int
    last: int
    reason: str
    sentence: str


class MessageRun(Answer):
    """Messages that follow one another and share one fate."""

    first: int
    last: int
    messages: int
    totals: list[Total]


class PartFate(Answer):
    """What becomes of one part, and why."""

    part: str = Field(description="Its entry and its index: `12.0`.")
    kind: str
    tool: Text | None
    edit: Literal["keep", "replace", "drop"]
    reason: str
    before: int
    after: int
    words: Text
    sources: list[str]


class MessageFate(Answer):
    """What becomes of one message."""

    seq: int
    role: str | None
    scope: Text
    turn: bool
    step: int | None
    reason: str | None
    before: int
    after: int
    parts: list[PartFate]


class Explanation(Answer):
    """Why each part of a session is, or is not, in one request."""

    explanation: int
    session: Whose
    profile: str
    model: Text | None
    counter: Counter
    window: Window
    account: dict[str, JsonValue] = Field(description="The tokens, by what they are for.")
    rewrite: Rewrite
    request: Sent
    totals: list[Total]
    inserts: list[Insert]
    unlisted: list[Unlisted]
    runs: list[MessageRun]
    messages: list[MessageFate]


class RequestView(RequestRecord):
    """What a request sent, message by message, and why."""

    messages: list[JsonValue] = Field(description="As they were sent, byte for byte.")
    explanation: Explanation
