"""What the API answers with, as its documentation shows it."""

from datetime import UTC, datetime
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from refold.log import Erased as LogErased
from refold.log import SessionInfo
from refold.log import Span as LogSpan

_LAST_MOMENT: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, after which no calendar goes on."""


def moment(at: int) -> datetime:
    """Milliseconds since 1970 as a moment."""
    return datetime.fromtimestamp(min(at, _LAST_MOMENT) / 1000, UTC)


def _legible(value: object) -> object:
    """A text that can be sent: half a character becomes a mark that something was there."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_legible)]
"""Words of a transcript: data, whatever they look like."""


class Answer(BaseModel):
    """What all answers have in common."""

    model_config = ConfigDict(frozen=True)


class Problem(Answer):
    """An error: what happened, and what to do."""

    type: str
    title: str
    status: int
    detail: str
    fix: str
    code: str
    """Stable, for programs."""


class Span(Answer):
    """A run of entries, first and last included."""

    first: int
    last: int

    @classmethod
    def of(cls, span: LogSpan) -> "Span":
        """The span as an answer has it."""
        return cls(first=span.first, last=span.last)


class Session(Answer):
    """A session as a list shows it."""

    name: Text
    title: Text | None
    format: str = Field(description="Of its messages, for life.")
    profile: str = Field(description="The one that it was opened with.")
    created_at: datetime
    updated_at: datetime
    entries: int = Field(description="How many entries it has: its head.")
    messages: int
    forked_from: Text | None = None
    forked_at: int | None = None

    @classmethod
    def of(cls, info: SessionInfo) -> "Session":
        """The session as an answer has it."""
        return cls(
            name=info.session,
            title=info.title,
            format=info.format,
            profile=info.profile,
            created_at=moment(info.created_at),
            updated_at=moment(info.updated_at),
            entries=info.entries,
            messages=info.messages,
            forked_from=info.forked_from,
            forked_at=info.forked_at,
        )


class SessionPage(Answer):
    """Some sessions, the one used last first."""

    sessions: list[Session]
    next: str | None = Field(description="What to pass as `page` for more; null at the end.")


class SessionState(Session):
    """A session, and how it stands."""

    folds: int = Field(description="How many folds stand.")
    under_way: UUID | None = Field(description="The fold that is being made.")
    last_request: int | None = Field(description="The newest request record.")
    pins: int


class Erased(Answer):
    """What a forget removed, for good."""

    session: Text
    entries: int
    derived: int = Field(description="Folds, request records and others that rested on them.")
    to_scrub: list[str] = Field(
        description="What still holds the bytes until the store's owner runs `refold store scrub`, "
        "though nobody can read them: on PostgreSQL its tables, indexes and write-ahead log."
    )

    @classmethod
    def of(cls, erased: LogErased) -> "Erased":
        """What was erased, as an answer has it."""
        return cls(
            session=erased.session,
            entries=erased.entries,
            derived=erased.derived,
            to_scrub=list(erased.to_scrub),
        )


class Entry(Answer):
    """One record of a session's log."""

    seq: int
    id: UUID
    at: datetime
    kind: str
    version: int
    scope: Text
    forgotten: bool
    attached: list[str] = Field(description="Hashes of the artifacts kept with it.")
    left_out: list[str] = Field(
        description="Hashes of the artifacts that hold large strings of the body; "
        "with `whole` there are none."
    )
    body: JsonValue = Field(description="As it lies in the log, byte for byte.")


class EntryPage(Answer):
    """Some entries, in order."""

    entries: list[Entry]
    head: int
    next: int | None = Field(
        description="What to pass as `after` for more; null at the end. A page that looks for "
        "kinds may be short, or empty, and still have a next one."
    )


class Appended(Answer):
    """Where messages are in the log now."""

    first: int
    last: int


class Part(Answer):
    """One part of one message."""

    seq: int
    index: int


class Pin(Part):
    """A part that stays in the view."""

    watched: bool = Field(description="The session pinned it itself, and may let it go.")


class Pins(Answer):
    """The parts that stay in the view."""

    pins: list[Pin]


class Found(Answer):
    """A message or note that a search found."""

    session: Text
    seq: int
    at: datetime
    scope: Text
    role: str
    standing: Literal["in view", "folded", "off the line"]
    score: float
    excerpt: Text
    before: Text = Field(description="How the message before it begins.")
    after: Text


class FoundEntries(Answer):
    """What was found, the best first."""

    found: list[Found]


class FoundSession(Answer):
    """A session that a search found."""

    session: Session
    score: float
    matches: int


class FoundSessions(Answer):
    """The sessions in which most was said about it."""

    found: list[FoundSession]


class Usage(Answer):
    """What requests and summaries used and cost."""

    requests: int
    input: int = Field(description="Tokens sent, cached or not.")
    output: int
    cache_read: int
    cache_write: int
    summaries: int = Field(description="Summaries that a model wrote; their tokens are counted.")
    cost: float = Field(description="Dollars, as far as prices are known.")
    unmanaged: float = Field(description="Dollars, had each request sent everything.")
    unpriced: int = Field(description="How many requests and summaries have no known price.")


class SessionUsage(Usage):
    """What a session used and cost, up to one of its entries."""

    session: Text
    upto: int


class DayUsage(Usage):
    """What a tenant's sessions used and cost on one day (UTC)."""

    day: str


class TenantUsage(Answer):
    """What a tenant's sessions used and cost, day by day, today last."""

    days: list[DayUsage]
    whole: bool = Field(description="False: there were more sessions than are looked through.")
