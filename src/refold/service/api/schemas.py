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
Seq = Annotated[int, Path(ge=1, le=MAX_INTEGER, description="The entry's place in the log.")]
MAX_SUMMARY = 100_000
"""Characters of a summary that a person writes."""
FoldId = Annotated[UUID, Path(description="The fold's id.")]
After = Annotated[int, Query(ge=0, le=MAX_INTEGER, description="Begin behind this entry.")]
Limit = Annotated[int, Query(ge=1, le=MAX_ENTRIES)]
Lifetime = Annotated[
    float,
    Query(ge=0, le=MAX_INTEGER, description="Seconds that the provider's cache lives after use."),
]
Days = Annotated[int, Query(ge=1, le=92, description="How many days, today included.")]
HitLimit = Annotated[int, Query(ge=1, le=MAX_HITS)]
SearchQuery = Annotated[
    str,
    Query(min_length=1, max_length=1_000, pattern=PLAIN_TEXT, description="Words to look for."),
]


# Request bodies.


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NewSession(Body):
    """A session to open."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME, examples=["support-42"])
    format: str = Field(max_length=40, examples=["openai-chat"])
    profile: str = Field(default="balanced", max_length=40)
    title: Words | None = None


class NewTitle(Body):
    """Another title."""

    title: Words


class NewOwner(Body):
    """The key that a session is handed over to."""

    key: str = Field(pattern=r"^[a-z0-9]{1,64}$", description="The key's id.")


class NewFork(Body):
    """A session to be made of another's entries."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME)
    at: int | None = Field(
        default=None, ge=1, le=MAX_INTEGER, description="Of so many entries; else of all."
    )


class To(Body):
    """Where to go back to."""

    to: int = Field(ge=1, le=MAX_INTEGER, description="The entry that is to be the newest again.")


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
    """A fold to make."""

    focus: str | None = Field(
        default=None, max_length=2_000, description="What the summary must keep."
    )
    wait: bool = Field(default=True, description="False: answer as soon as it has begun.")


class NewSummary(Body):
    """A person's words in the place of a fold's summary."""

    text: str = Field(min_length=1, max_length=MAX_SUMMARY, description="What the model is shown.")


class NewKey(Body):
    """A key to make."""

    roles: list[Role] = Field(min_length=1, max_length=4)
    name: str = Field(default="", max_length=LONGEST_NAME)
    days: int | None = Field(
        default=None, ge=1, le=3_660, description="Until it expires; null: never."
    )


class Rotation(Body):
    """How a key gets a new secret."""

    overlap: float = Field(
        default=86_400.0,
        ge=0,
        le=366 * 86_400,
        allow_inf_nan=False,
        description="Seconds that the old secret stays valid.",
    )


class NewQuota(Body):
    """How much a tenant may use in a day (UTC); null: whatever the service's settings say."""

    tokens: int | None = Field(ge=0, le=MAX_INTEGER, description="0: no limit.")
    cost: float | None = Field(ge=0, allow_inf_nan=False, description="Dollars; 0: no limit.")


class UpstreamKey(Body):
    """A provider's key to keep."""

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
    branch: Text | None = Field(description="The git branch that was checked out there.")
    parent: Text | None = Field(description="The session that began it, as a sub-agent or a fork.")


class Session(Answer):
    """A session as a list shows it."""

    name: Text = Field(validation_alias="session")
    title: Text | None
    format: str = Field(description="Of its messages, for life.")
    profile: str = Field(description="The one that it was opened with.")
    created_at: Moment
    updated_at: Moment
    entries: int = Field(description="How many entries it has: its head.")
    messages: int
    forked_from: Text | None = None
    forked_at: int | None = None
    origin: Origin | None = Field(None, description="Of an imported session: where it is from.")


class SessionPage(Answer):
    """Some sessions, the one used last first."""

    sessions: list[Session]
    next: str | None = Field(description="What to pass as `page` for more; null at the end.")


class SessionState(Session):
    """A session, and how it stands."""

    folds: int = Field(description="How many folds stand.")
    under_way: UUID | None = Field(description="The fold that is being made.")
    last_request: int | None = Field(description="The newest request record.")
    last_fold: int | None = Field(description="The entry of the newest fold that stands.")
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


class Entry(Answer):
    """One record of a session's log."""

    seq: int
    id: UUID
    at: Moment
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


class Pin(Answer):
    """A part that stays in the view."""

    seq: int
    index: int
    watched: bool = Field(description="The session pinned it itself, and may let it go.")


class Pins(Answer):
    """The parts that stay in the view."""

    pins: list[Pin]


class Found(Answer):
    """A message or note that a search found."""

    session: Text
    seq: int
    at: Moment
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

    session: Session = Field(validation_alias="info")
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


class Receipt(Answer):
    """What was billed, next to what the same requests would have cost with everything in them.

    An account of the same conversation at recorded prices, not of what an agent would have done
    otherwise. All sums are dollars.
    """

    requests: int
    compared: int = Field(description="Of these, those that both accounts hold.")
    folds: int
    input: int = Field(description="Tokens sent, cached or not, for summaries too.")
    output: int
    cache_read: int
    cache_write: int
    billed: float = Field(description="All that was paid, compared or not.")
    paid: float = Field(description="For the compared requests, and the summaries made for them.")
    whole: float = Field(description="What they would have cost with the whole history.")
    debt: float = Field(description="Paid less whole; negative where something was saved.")
    highest: float = Field(description="The highest debt at any request of a session.")
    error: float = Field(description="By what share our token counts are off.")
    summaries: int = Field(description="Calls of models for summaries.")
    summaries_cost: float
    unused: int = Field(description="Of these calls, those whose summary was not used.")
    unused_cost: float
    rereads: int = Field(description="Requests whose answers only asked for what is folded.")
    rereads_cost: float = Field(description="For these, and for writing what was read.")
    added_cost: float = Field(description="For the definitions of recall's tools.")
    misses: int = Field(description="Requests whose cache was gone without a cause of ours.")
    misses_cost: float
    over_window: int = Field(description="Requests with nothing to compare: it would not fit.")
    over_window_cost: float
    forced: int = Field(description="Calls for summaries of folds that the window forced.")
    forced_cost: float
    older: int = Field(description="Requests that an earlier version recorded.")
    older_cost: float
    unpriced: int = Field(description="How many requests and summaries have no known price.")
    estimated: int = Field(description="Requests whose usage no provider reported.")


class SessionReceipt(Receipt):
    """The receipt of a session."""

    session: Text


class TenantReceipt(Receipt):
    """The receipt of a tenant's sessions."""

    sessions: int
    complete: bool = Field(description="False: there were more sessions than are looked through.")


class DayCosts(Receipt):
    """What was paid on one day (UTC)."""

    day: str


class ModelCosts(Receipt):
    """What was paid for a model; with an empty name, for requests that tell none."""

    model: Text


class KeyCosts(Receipt):
    """What was paid for a key's requests; with an empty id, for those that needed none."""

    key: Text


class TenantReceiptRow(Receipt):
    """What a tenant paid."""

    tenant: Text


class TenantCosts(Answer):
    """What all tenants paid in some days."""

    total: Receipt
    tenants: list[TenantReceiptRow] = Field(description="The one that paid most comes first.")
    complete: bool = Field(description="False: some sessions are not counted yet. Ask again.")


class RequestCost(Answer):
    """A request, or a summary, that cost more than with everything."""

    request: int = Field(description="The request's entry, or that of the fold.")
    at: Moment
    what: Literal["request", "summary"]
    model: Text
    paid: float
    whole: float
    debt: float = Field(description="Paid less whole.")
    causes: dict[Literal["summary", "recall", "tools", "miss", "prefix", "other"], float] = Field(
        description="Dollars that add up to the debt: a summary's price, recall calls and rereads, "
        "recall's definitions, a cache that was gone without a cause of ours, a beginning that "
        "changed, and the rest."
    )


class SessionCosts(Answer):
    """What added most to a session's debt."""

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
    whole: bool = Field(description="False: there were more sessions than are looked through.")


class Fold(Answer):
    """A fold on the session's line."""

    fold: UUID
    seq: int = Field(description="The entry that completed it, or began it if it is under way.")
    at: Moment
    state: Literal["stands", "beneath", "under way"] = Field(
        description="`beneath`: a later fold stands for it too."
    )
    spans: list[Span]
    by: Text = Field(description="Who wrote the summary.")
    title: Text
    text: Text = Field(description="The summary.")
    messages: int
    tokens: int = Field(description="What it stands for would cost in a request.")


class Folds(Answer):
    """The folds on the session's line, oldest first; entries of kind `fold.*` tell of others."""

    folds: list[Fold]


class Folded(Answer):
    """What came of a fold that was asked for."""

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


class Cancelled(Answer):
    """Whether the fold was given up; one that had ended stays as it is."""

    fold: UUID
    cancelled: bool


class Offer(Answer):
    """One way to have a summary written."""

    model: str
    how: Literal["warm", "transcript"] = Field(
        description="On top of the request that was sent last, which its provider has cached; or "
        "as quoted data."
    )
    dollars: float | None = Field(description="What it costs; null if a price is not known.")


class Preview(Answer):
    """What a fold would do, with the summary that the log itself gives."""

    spans: list[Span]
    messages: int
    kept: int
    before: int = Field(description="Tokens of the view now.")
    after: int = Field(description="Tokens of the view then.")
    text: Text = Field(description="What would be shown instead.")
    lost: int = Field(description="How many names would be found in the log only.")
    names: list[Text] = Field(description="The weightiest of them.")
    cost_before: float | None
    cost_after: float | None
    cost_once: float | None
    price: float | None = Field(
        description="Dollars that folding now adds to the next request, with its summary; "
        "negative if it saves at once."
    )
    saves: float | None = Field(description="Dollars that each later request costs less.")
    pays_after: int | None = Field(description="Requests until the fold has saved its price.")
    offers: list[Offer] = Field(
        description="Who could write the summary, and for how much, the cheapest first."
    )


class Key(Answer):
    """A key of this service; its secret is nowhere."""

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

    secret: str = Field(repr=False, description="It is told this once, and kept nowhere.")


class Upstream(Answer):
    """An upstream for which a provider's key is kept."""

    upstream: str
    since: Moment = Field(validation_alias="at")


class Upstreams(Answer):
    """For which upstreams a provider's key is kept; the keys themselves are never told."""

    upstreams: list[Upstream]


class Quota(Answer):
    """How much the tenant may use in a day (UTC); null: whatever the service's settings say."""

    tokens: int | None
    cost: float | None = Field(description="Dollars.")


class TenantQuota(Quota):
    """A tenant's quota, and what it has used of it."""

    tenant: Text
    used_tokens: int = Field(description="Today, as far as this process knows.")
    used_cost: float = Field(description="Dollars, today, as far as this process knows.")


class Costs(Answer):
    """What a tenant paid in some days, beside what sending everything would have cost."""

    total: Receipt
    sessions: int = Field(description="In how many sessions something was used.")
    complete: bool = Field(description="False: some sessions are not counted yet. Ask again.")
    days: list[DayCosts] = Field(description="Every day that was asked for, today last.")
    models: list[ModelCosts]
    keys: list[KeyCosts] | None = Field(description="For administrators.")
    dearer: list[SessionReceipt] = Field(
        description="The sessions that cost more in these days than with everything, at most 20."
    )
    quota: TenantQuota | None = Field(description="For administrators.")


class Tenant(TenantQuota):
    """A tenant, with how much it has and how much it uses."""

    sessions: int
    keys: int = Field(description="Keys that are active.")
    usage: Usage = Field(description="Of the days that were asked for, today included.")
    whole: bool = Field(description="False: it has more sessions than were looked through.")


class Tenants(Answer):
    """Some tenants, in the order of their names."""

    tenants: list[Tenant]
    next: str | None = Field(description="For `after`; null: these were the last.")


class UsageAcrossTenants(Answer):
    """What all tenants together used and cost, day by day, today last; and each of them."""

    days: list[DayUsage]
    tenants: dict[str, Usage] = Field(description="Of all of these days.")
    whole: bool = Field(description="False: there were more sessions than are looked through.")


class RequestRecord(Answer):
    """A request that was sent to a model."""

    seq: int
    at: Moment
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


class Context(Answer):
    """Who decides what the model sees of the conversation."""

    by: Literal["refold", "provider"]
    reason: Text | None = Field(description="Why the provider does: what it keeps or edits.")
    held: int = Field(description="Messages that were not sent, as the provider has them.")
    sentence: Text | None


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
    context: Context
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
