"""The models of the API: what requests may hold, and what answers do.

Answers read attributes, so most are validated straight from the library's own dataclasses.
"""

from datetime import UTC, datetime
from typing import Annotated, Final, Literal, Self
from uuid import UUID

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from refold.log import Span as LogSpan
from refold.log.entry import LONGEST_NAME
from refold.service.keys import ROLES, Role
from refold.service.keys import Key as ServiceKey
from refold.session import Compacted

MAX_INTEGER: Final = 2**53 - 1
"""The largest integer that every JSON parser keeps exact."""
MAX_ENTRIES: Final = 500
MAX_HITS: Final = 100
PLAIN_TEXT: Final = r"^[^\u0000-\u001f\u007f]*$"
"""No control characters: stores and terminals treat them differently."""
_MAX_TIMESTAMP: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, where `datetime` ends."""


def moment(milliseconds: int) -> datetime:
    """The time so many milliseconds after 1970."""
    return datetime.fromtimestamp(min(milliseconds, _MAX_TIMESTAMP) / 1000, UTC)


def _as_moment(value: object) -> object:
    return moment(value) if isinstance(value, int) else value


def _encodable(value: object) -> object:
    """A text that can be sent: a lone surrogate becomes a question mark."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


Moment = Annotated[datetime, BeforeValidator(_as_moment)]
Text = Annotated[str, BeforeValidator(_encodable)]
"""Words of a transcript: data, whatever they look like."""
Words = Annotated[str, Field(min_length=1, max_length=200, pattern=PLAIN_TEXT)]
Seq = Annotated[int, Path(ge=1, le=MAX_INTEGER, description="The entry's position in the log.")]
MAX_SUMMARY = 100_000
"""Characters of a summary that a person writes."""
FoldId = Annotated[UUID, Path(description="The fold's id.")]
After = Annotated[int, Query(ge=0, le=MAX_INTEGER, description="Start after this entry.")]
Limit = Annotated[int, Query(ge=1, le=MAX_ENTRIES)]
Lifetime = Annotated[
    float,
    Query(
        ge=0, le=MAX_INTEGER, description="Seconds that the provider's cache lasts after each use."
    ),
]
Days = Annotated[int, Query(ge=1, le=92, description="How many days, today included.")]
HitLimit = Annotated[int, Query(ge=1, le=MAX_HITS)]
SearchQuery = Annotated[
    str,
    Query(min_length=1, max_length=1_000, pattern=PLAIN_TEXT, description="Words to search for."),
]


# Request bodies.


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NewSession(Body):
    """A session that is to be created."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME, examples=["support-42"])
    format: str = Field(max_length=40, examples=["openai-chat"])
    profile: str = Field(default="balanced", max_length=40)
    title: Words | None = None


class NewTitle(Body):
    """A new title for a session."""

    title: Words


class NewOwner(Body):
    """The key that gets the session."""

    key: str = Field(pattern=r"^[a-z0-9]{1,64}$", description="The key's id.")


class NewFork(Body):
    """A session to fork from another one."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME)
    at: int | None = Field(
        default=None, ge=1, le=MAX_INTEGER, description="Only the first N entries; default: all."
    )


class To(Body):
    """The entry to rewind to."""

    to: int = Field(ge=1, le=MAX_INTEGER, description="The entry that becomes the newest again.")


class Run(Body):
    """A run of entries, first and last included."""

    first: int = Field(ge=1, le=MAX_INTEGER)
    last: int = Field(ge=1, le=MAX_INTEGER)

    @property
    def span(self) -> LogSpan:
        return LogSpan(self.first, self.last)


class NewMessages(Body):
    """Messages to append, in the session's format."""

    messages: list[dict[str, JsonValue]] = Field(min_length=1, max_length=100)


class NewFold(Body):
    """How a new fold is made."""

    focus: str | None = Field(
        default=None, max_length=2_000, description="What the summary must preserve."
    )
    wait: bool = Field(default=True, description="False: respond as soon as it has started.")


class NewSummary(Body):
    """A summary written by a person."""

    text: str = Field(
        min_length=1, max_length=MAX_SUMMARY, description="The text that the model sees."
    )


class NewKey(Body):
    """A key that is to be created."""

    roles: list[Role] = Field(min_length=1, max_length=4)
    name: str = Field(default="", max_length=LONGEST_NAME)
    days: int | None = Field(
        default=None, ge=1, le=3_660, description="Days until it expires; null: never."
    )


class Rotation(Body):
    """How to rotate a key."""

    overlap: float = Field(
        default=86_400.0,
        ge=0,
        le=366 * 86_400,
        allow_inf_nan=False,
        description="Seconds that the old secret stays valid.",
    )


class NewQuota(Body):
    """A tenant's limits per day (UTC); null: the service's settings apply."""

    tokens: int | None = Field(ge=0, le=MAX_INTEGER, description="0: no limit.")
    cost: float | None = Field(ge=0, allow_inf_nan=False, description="Dollars; 0: no limit.")


class UpstreamKey(Body):
    """A provider's key to store."""

    key: str = Field(min_length=1, max_length=4_096, pattern=r"^[\x21-\x7e]+$", repr=False)


# Answers.


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True)


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


class Origin(Answer):
    """The program that recorded a session, and where it worked."""

    program: Text = Field(description="Such as `claude` or `codex`.")
    folder: Text | None
    branch: Text | None = Field(description="The git branch checked out there.")
    parent: Text | None = Field(
        description="The session that started it, as a sub-agent or a fork."
    )


class Session(Answer):
    """A session in a list."""

    name: Text = Field(validation_alias="session")
    title: Text | None
    format: str = Field(description="The format of its messages; it never changes.")
    profile: str = Field(description="The profile that it was created with.")
    created_at: Moment
    updated_at: Moment
    entries: int = Field(description="The number of entries.")
    messages: int
    forked_from: Text | None = None
    forked_at: int | None = None
    origin: Origin | None = Field(None, description="Where an imported session comes from.")


class SessionPage(Answer):
    """A page of sessions, most recently used first."""

    sessions: list[Session]
    next: str | None = Field(
        description="Pass it as `page` for the next page; null: this is the last."
    )


class SessionState(Session):
    """A session and its state."""

    folds: int = Field(description="The number of folds in effect.")
    under_way: UUID | None = Field(description="The fold in progress.")
    last_request: int | None = Field(description="The newest request record.")
    last_fold: int | None = Field(description="The entry of the newest fold in effect.")
    pins: int


class Erased(Answer):
    """What an erasure has removed."""

    session: Text
    entries: int
    derived: int = Field(
        description="Erased entries that were derived from them, such as folds and request records."
    )
    to_scrub: list[str] = Field(
        description="Where the bytes still are until the store's owner runs `refold store scrub`, "
        "though nobody can read them: on PostgreSQL, tables, indexes and the write-ahead log."
    )


class Entry(Answer):
    """One record of a session's log."""

    seq: int
    id: UUID
    at: Moment
    kind: str
    version: int
    scope: Text
    forgotten: bool
    attached: list[str] = Field(description="Hashes of its artifacts.")
    left_out: list[str] = Field(
        description="Hashes of the artifacts that hold large strings of the body; "
        "with `whole` there are none."
    )
    body: JsonValue = Field(description="The body as stored in the log, byte for byte.")


class EntryPage(Answer):
    """A page of entries, in order."""

    entries: list[Entry]
    head: int
    next: int | None = Field(
        description="Pass it as `after` for the next page; null: this is the last. A page of "
        "some kinds only may be short or empty, and still have a next one."
    )


class Appended(Answer):
    """The positions of the new messages in the log."""

    first: int
    last: int


class Pin(Answer):
    """A part that stays in the context."""

    seq: int
    index: int
    watched: bool = Field(description="The session pinned it, and may unpin it.")


class Pins(Answer):
    """The parts that stay in the context."""

    pins: list[Pin]


class Found(Answer):
    """A message or note that matches a search."""

    session: Text
    seq: int
    at: Moment
    scope: Text
    role: str
    standing: Literal["in view", "folded", "off the line"]
    score: float
    excerpt: Text
    before: Text = Field(description="The start of the message before it.")
    after: Text


class FoundEntries(Answer):
    """The matches, best first."""

    found: list[Found]


class FoundSession(Answer):
    """A session that matches a search."""

    session: Session = Field(validation_alias="info")
    score: float
    matches: int


class FoundSessions(Answer):
    """The matching sessions, best first."""

    found: list[FoundSession]


class Usage(Answer):
    """What requests and summaries used and cost."""

    requests: int
    input: int = Field(description="Tokens sent, cached or not.")
    output: int
    cache_read: int
    cache_write: int
    summaries: int = Field(description="Summaries written by a model; their tokens are included.")
    cost: float = Field(description="Dollars, for models with known prices.")
    unmanaged: float = Field(
        description="Dollars that the same requests would have cost without Refold, each with the "
        "full history; `unmanaged` less `cost` is what was saved."
    )
    unpriced: int = Field(
        description="Requests and summaries without a known price: they are in no sum."
    )


class Receipt(Answer):
    """What was billed, next to what the same requests would have cost with everything in them.

    An account of the same conversation at recorded prices, not of what an agent would have done
    otherwise. All sums are dollars.
    """

    requests: int
    compared: int = Field(description="Requests in both accounts.")
    folds: int
    input: int = Field(description="Tokens sent, cached or not, for summaries too.")
    output: int
    cache_read: int
    cache_write: int
    billed: float = Field(description="Everything that was paid.")
    paid: float = Field(description="Paid for the compared requests and their summaries.")
    whole: float = Field(
        description="What the compared requests would have cost without Refold, each with the "
        "whole history: the other account."
    )
    debt: float = Field(description="`paid` less `whole`; negative where something was saved.")
    highest: float = Field(description="The highest debt at any request of a session.")
    promised: float = Field(
        description="The most that debt was not to exceed, where the profile keeps an account."
    )
    broken: int = Field(description="Requests at which the debt exceeded it.")
    outside_cost: float = Field(
        description="Of `promised`: folds that the window forced or a person asked for."
    )
    error: float = Field(description="The relative error of Refold's token counts.")
    summaries: int = Field(description="Model calls for summaries.")
    summaries_cost: float
    unused: int = Field(description="Of these calls, those whose summary was not used.")
    unused_cost: float
    rereads: int = Field(description="Requests whose answers only asked for folded text.")
    rereads_cost: float = Field(
        description="Their cost, and that of writing the text to the cache."
    )
    added_cost: float = Field(description="The cost of the recall tools' definitions.")
    misses: int = Field(description="Cache misses that Refold did not cause.")
    misses_cost: float
    over_window: int = Field(
        description="Requests whose full history would not fit: nothing to compare."
    )
    over_window_cost: float
    forced: int = Field(description="Model calls for folds that the window forced.")
    forced_cost: float
    older: int = Field(description="Requests recorded by an earlier version.")
    older_cost: float
    unpriced: int = Field(
        description="Requests and summaries without a known price: they are in no sum."
    )
    estimated: int = Field(description="Requests whose usage the provider did not report.")


class SessionReceipt(Receipt):
    """The receipt of a session."""

    session: Text


class TenantReceipt(Receipt):
    """The receipt of a tenant's sessions."""

    sessions: int
    complete: bool = Field(description="False: there are more sessions than one call reads.")


class DayCosts(Receipt):
    """What was paid on one day (UTC)."""

    day: str


class ModelCosts(Receipt):
    """What was paid for a model. The name is empty for requests without one."""

    model: Text


class KeyCosts(Receipt):
    """What was paid for a key's requests. The id is empty for requests without one."""

    key: Text


class TenantReceiptRow(Receipt):
    """What a tenant paid."""

    tenant: Text


class TenantCosts(Answer):
    """What all tenants paid together."""

    total: Receipt
    tenants: list[TenantReceiptRow] = Field(description="The highest cost comes first.")
    complete: bool = Field(description="False: some sessions are not counted yet. Ask again.")


class RequestCost(Answer):
    """A request or summary that cost more than sending the full history."""

    request: int = Field(description="The entry of the request or fold.")
    at: Moment
    what: Literal["request", "summary"]
    model: Text
    paid: float
    whole: float = Field(description="What it would have cost with the whole history.")
    debt: float = Field(description="`paid` less `whole`.")
    causes: dict[Literal["summary", "recall", "tools", "miss", "prefix", "other"], float] = Field(
        description="Dollars that add up to the debt: a summary's price, recall calls and rereads, "
        "the recall tools' definitions, a cache miss that Refold did not cause, a changed prefix, "
        "and the rest."
    )


class SessionCosts(Answer):
    """The largest parts of a session's debt."""

    session: Text
    total: Receipt
    dearer: list[RequestCost]


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
    whole: bool = Field(
        description="Whether these are all sessions. False: some are not counted yet. Ask again."
    )


class Fold(Answer):
    """A fold on the session's line."""

    fold: UUID
    seq: int = Field(description="The entry that completed it, or started it if it is in progress.")
    at: Moment
    state: Literal["stands", "beneath", "under way"] = Field(
        description="`beneath`: a later fold replaces it too."
    )
    spans: list[Span]
    by: Text = Field(description="What wrote the summary: a model, a person, or code.")
    title: Text
    text: Text = Field(description="The summary.")
    messages: int
    tokens: int = Field(description="Tokens of the messages that it replaces.")


class Folds(Answer):
    """The folds on the session's line, oldest first; entries of kind `fold.*` tell of others."""

    folds: list[Fold]


class Folded(Answer):
    """The outcome of a requested fold."""

    fold: UUID
    state: Literal["completed", "under way"]
    messages_removed: int | None = None
    tokens_removed: int | None = None
    title: Text = ""
    text: Text = ""
    by: Text = ""

    @classmethod
    def of(cls, compacted: Compacted) -> "Folded":
        return cls(
            fold=compacted.fold,
            state="completed",
            messages_removed=compacted.messages_removed,
            tokens_removed=compacted.tokens_removed,
            title=compacted.summary.title,
            text=compacted.summary.text or compacted.summary.words,
            by=compacted.summary.by,
        )


class Canceled(Answer):
    """Whether the fold was canceled. A completed fold stays as it is."""

    fold: UUID
    cancelled: bool


class Offer(Answer):
    """One way to have a summary written."""

    model: str
    how: Literal["warm", "transcript"] = Field(
        description="On top of the request that was sent last, which its provider has cached; or "
        "as quoted data."
    )
    dollars: float | None = Field(description="The cost in dollars; null: unknown.")


class Preview(Answer):
    """What a fold would do, with the summary that Refold writes without a model."""

    spans: list[Span]
    messages: int
    kept: int
    before: int = Field(description="Tokens of the context now.")
    after: int = Field(description="Tokens of the context after the fold.")
    text: Text = Field(description="The summary.")
    lost: int = Field(description="Names that would only be found in the log.")
    names: list[Text] = Field(description="The most important of them.")
    cost_before: float | None
    cost_after: float | None
    cost_once: float | None
    price: float | None = Field(
        description="Dollars that folding now adds to the next request, with its summary; "
        "negative if it saves at once."
    )
    saves: float | None = Field(description="Dollars saved by each later request.")
    pays_after: int | None = Field(description="Requests until the fold has paid for itself.")
    offers: list[Offer] = Field(
        description="The ways to write the summary with their prices, cheapest first."
    )


class Key(Answer):
    """A key of this service. Its secret is not stored."""

    id: str
    name: str
    roles: list[Role]
    state: Literal["active", "expired", "revoked"]
    created_at: Moment
    expires_at: Moment | None

    @classmethod
    def of(cls, key: ServiceKey, now: int, **more: str) -> Self:
        return cls(
            id=key.id,
            name=key.name,
            roles=[role for role in ROLES if role in key.roles],
            state=key.state(now),
            created_at=moment(key.created_at),
            expires_at=None if key.until is None else moment(key.until),
            **more,
        )


class Keys(Answer):
    """The keys of a tenant, oldest first."""

    keys: list[Key]


class MadeKey(Key):
    """A key with its new secret."""

    secret: str = Field(repr=False, description="Returned only once, and not stored.")


class Upstream(Answer):
    """An upstream with a stored key."""

    upstream: str
    since: Moment = Field(validation_alias="at")


class Upstreams(Answer):
    """The upstreams with a stored key. The keys themselves are never returned."""

    upstreams: list[Upstream]


class Quota(Answer):
    """The tenant's limits per day (UTC); null: the service's settings apply."""

    tokens: int | None
    cost: float | None = Field(description="Dollars.")


class TenantQuota(Quota):
    """A tenant's quota, and what it has used of it."""

    tenant: Text
    used_tokens: int = Field(description="Today, as far as this process knows.")
    used_cost: float = Field(description="Dollars, today, as far as this process knows.")


class Costs(Answer):
    """What a tenant paid, compared with sending the full history."""

    total: Receipt
    sessions: int = Field(description="Sessions with usage.")
    complete: bool = Field(description="False: some sessions are not counted yet. Ask again.")
    days: list[DayCosts] = Field(description="Every requested day, today last.")
    models: list[ModelCosts]
    keys: list[KeyCosts] | None = Field(description="For administrators.")
    dearer: list[SessionReceipt] = Field(
        description="The sessions that cost more than sending the full history, at most 20."
    )
    quota: TenantQuota | None = Field(description="For administrators.")


class Tenant(TenantQuota):
    """A tenant with its sessions, keys and usage."""

    sessions: int
    keys: int = Field(description="Active keys.")
    usage: Usage = Field(description="Usage in the requested days, including today.")
    whole: bool = Field(
        description="Whether these are all of its sessions. False: some are not counted yet, or it "
        "has more than were looked through."
    )


class Tenants(Answer):
    """A page of tenants, by name."""

    tenants: list[Tenant]
    next: str | None = Field(
        description="Pass it as `after` for the next page; null: this is the last."
    )


class UsageAcrossTenants(Answer):
    """Usage and cost of all tenants, by day (today last) and by tenant."""

    days: list[DayUsage]
    tenants: dict[str, Usage] = Field(description="Totals of all requested days.")
    whole: bool = Field(
        description="Whether these are all sessions. False: some are not counted yet. Ask again."
    )


class RequestRecord(Answer):
    """A request that was sent to a model."""

    seq: int
    at: Moment
    model: Text
    state: Literal["rebuildable", "unrebuildable"] = Field(
        description="`unrebuildable`: some of its content was erased."
    )
    profile: str | None = None
    tokens: int | None = Field(default=None, description="Tokens of its messages, as counted then.")
    limit: int | None = None
    digest: str = Field(description="SHA-256 of the messages sent.")


class RequestPage(Answer):
    """A page of request records, in order."""

    requests: list[RequestRecord]
    head: int
    next: int | None = Field(
        description="Pass it as `after` for the next page; null: this is the last."
    )


class Whose(Answer):
    """The session at that time."""

    name: Text | None
    title: Text | None
    format: str
    program: Text | None = Field(description="The agent that recorded it, such as `claude`.")
    scope: Text
    head: int
    messages: int


class Counter(Answer):
    """The token counter, and by how much it may underestimate."""

    name: str
    spread: float


class Window(Answer):
    """The model's window, or the assumed one if it is unknown."""

    tokens: int | None
    shown: JsonValue


class Rewrite(Answer):
    """Why earlier content was changed."""

    count: int
    cause: str | None
    sentence: str | None


class Sent(Answer):
    """The size of the request."""

    messages: int
    tokens: int


class Total(Answer):
    """Parts with the same disposition."""

    edit: Literal["keep", "replace", "drop"]
    reason: str
    sentence: str
    parts: int
    messages: int
    before: int
    after: int


class Insert(Answer):
    """A message that was sent but is not in the log."""

    before: int
    kind: str
    reason: str
    sentence: str
    tokens: int
    words: Text
    sources: list[str]


class Unlisted(Answer):
    """Entries that were neither shown nor read."""

    first: int
    last: int
    reason: str
    sentence: str


class MessageRun(Answer):
    """Consecutive messages with the same disposition."""

    first: int
    last: int
    messages: int
    totals: list[Total]


class PartFate(Answer):
    """What happened to a part, and why."""

    part: str = Field(description="Its entry and index, such as `12.0`.")
    kind: str
    tool: Text | None
    edit: Literal["keep", "replace", "drop"]
    reason: str
    before: int
    after: int
    words: Text
    sources: list[str]


class MessageFate(Answer):
    """What happened to a message."""

    seq: int
    role: str | None
    scope: Text
    turn: bool
    step: int | None
    reason: str | None
    before: int
    after: int
    parts: list[PartFate]


class Context(Answer):
    """Whether Refold or the provider decides what the model sees."""

    by: Literal["refold", "provider"]
    reason: Text | None = Field(description="Why it is the provider: what it stores or edits.")
    held: int = Field(description="Messages not sent because the provider has them.")
    sentence: Text | None


class Explanation(Answer):
    """Why each part of a session is in a request, or not."""

    explanation: int
    session: Whose
    profile: str
    model: Text | None
    counter: Counter
    window: Window
    account: dict[str, JsonValue] = Field(description="Tokens by purpose.")
    rewrite: Rewrite
    context: Context
    request: Sent
    totals: list[Total]
    inserts: list[Insert]
    unlisted: list[Unlisted]
    runs: list[MessageRun]
    messages: list[MessageFate]


class RequestView(RequestRecord):
    """What a request sent, message by message, and why."""

    messages: list[JsonValue] = Field(description="The messages as sent, byte for byte.")
    explanation: Explanation
