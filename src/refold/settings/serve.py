"""The settings of `refold serve`."""

import re
from typing import Final, Literal

from pydantic import Field, field_validator

from refold.view.profiles import Values

_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_MEGABYTE: Final = 1 << 20

DialectName = Literal["openai-chat", "openai-responses", "anthropic-messages"]


class UpstreamSettings(Values):
    """A server that has models, behind the gateway."""

    name: str = Field(min_length=1, max_length=200)
    base_url: str = Field(pattern=r"^https?://[^\s/]+")
    models: tuple[str, ...] = ("*",)
    dialects: tuple[DialectName, ...] = ()
    key: str = "pass"
    paths: tuple[str, ...] = ()
    """What else may be asked with a key that is not the client's own, such as
    `GET /v1/files/*`; without it, only answers of models may be."""
    append_v1: bool = True
    """Whether `/v1` is appended to `base_url`, where it does not end with that."""

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        """A request's path and query follow it, so it has no query and no fragment."""
        if "?" in value or "#" in value or "\\" in value:
            raise ValueError("a base URL has no query, no fragment and no backslash")
        return value

    @field_validator("key")
    @classmethod
    def _no_secret(cls, value: str) -> str:
        """A key itself has no place in a file: the error must not repeat it."""
        if value in ("pass", "stored", "none") or _VARIABLE.fullmatch(value):
            return value
        raise ValueError(
            "a key is `pass`, `stored`, `none`, or the name of an environment variable"
        )


class LimitSettings(Values):
    """How much each key and each tenant may use; 0 means no limit.

    What is limited unless somebody says otherwise keeps one key from crowding out the others. How
    many tokens and dollars somebody may spend is for the operator to say.
    """

    key_requests: int = Field(default=6_000, ge=0, description="Requests per minute with one key.")
    key_tokens: int = Field(default=0, ge=0, description="Tokens per minute with one key.")
    tenant_requests: int = Field(
        default=12_000, ge=0, description="Requests per minute of one tenant, in one process."
    )
    tenant_tokens: int = Field(
        default=0, ge=0, description="Tokens per minute of one tenant, in one process."
    )
    streams: int = Field(
        default=128, ge=0, description="Requests to models under way at once with one key."
    )
    day_tokens: int = Field(
        default=0, ge=0, description="Tokens per day (UTC) of one tenant, over all processes."
    )
    day_cost: float = Field(
        default=0, ge=0, description="Dollars per day (UTC) of one tenant, over all processes."
    )


class SizeSettings(Values):
    """How large a request may be: bodies and headers in bytes."""

    gateway: int = Field(
        default=32 * _MEGABYTE, ge=1_024, description="The body of a request to a model."
    )
    api: int = Field(default=_MEGABYTE, ge=1_024, description="The body of a request to the API.")
    items: int = Field(
        default=20_000,
        ge=1,
        description="Messages, tools or content items of a request that is managed; one with more "
        "is passed on unmanaged.",
    )
    objects: int = Field(
        default=1_000_000,
        ge=1_000,
        description="JSON objects and arrays of a request that is managed; one with more is passed "
        "on unmanaged.",
    )
    headers: int = Field(
        default=64 * 1_024, ge=4_096, description="What comes before the body, all together."
    )
    connections: int = Field(
        default=4_096, ge=1, description="Concurrent connections; others are asked to retry."
    )


class TimeSettings(Values):
    """How long the service waits, in seconds."""

    headers: float = Field(default=15, gt=0, description="For the headers of a request.")
    pause: float = Field(default=30, gt=0, description="For the next piece of a body.")
    body: float = Field(default=300, gt=0, description="For a body, whole.")
    reader: float = Field(
        default=60, gt=0, description="For a client to take what it was sent; then it is dropped."
    )
    idle: float = Field(default=75, gt=0, description="For the next request on a connection.")
    connect: float = Field(default=10, gt=0, description="For a connection to an upstream.")
    upstream: float = Field(
        default=600, gt=0, description="For the next piece of an upstream's answer."
    )
    store: float = Field(
        default=2,
        gt=0,
        description="For one call to the store while a request waits for it, connecting and "
        "queueing included.",
    )
    stale_keys: float = Field(
        default=900,
        ge=0,
        description="With `serve.fail_open`, while the store is unavailable: that keys read before "
        "stay valid.",
    )
    unmanaged: float = Field(
        default=3_600,
        gt=0,
        description="After an outage of the store: for a client to send its history again, before "
        "its unmanaged turns count as lost.",
    )
    drain_delay: float = Field(
        default=0,
        ge=0,
        description="When told to stop: with `/readyz` at 503, before it takes no more.",
    )
    drain: float = Field(
        default=30, gt=0, description="When told to stop: for the requests that are under way."
    )


_DEFAULT_UPSTREAMS: Final = (
    UpstreamSettings(
        name="anthropic",
        base_url="https://api.anthropic.com",
        dialects=("anthropic-messages",),
    ),
    UpstreamSettings(
        name="openai",
        base_url="https://api.openai.com/v1",
        dialects=("openai-chat", "openai-responses"),
    ),
    UpstreamSettings(
        name="chatgpt",  # for Codex signed in with ChatGPT, at the path of its own
        base_url="https://chatgpt.com/backend-api/codex",
        dialects=("openai-responses",),
    ),
)


class Serve(Values):
    """Where `refold serve` listens, and which servers it passes requests on to."""

    host: str = Field(default="127.0.0.1", min_length=1, description="The address it listens on.")
    port: int = Field(default=8790, ge=0, le=65_535, description="The port; 0 is any free one.")
    upstreams: tuple[UpstreamSettings, ...] = Field(
        default=_DEFAULT_UPSTREAMS,
        description="The servers that have models, the first that fits is asked: `name`, "
        "`base_url`, `models` (patterns), `dialects` (formats), and `key`: `pass` the client's, "
        "one `stored` for the tenant, `none` where the server needs none, or the name of an "
        "environment variable. With a key that is not the client's own, only answers of models "
        "are asked for, and what `paths` names: `GET /v1/files/*`. `/v1` is appended to a "
        "`base_url` that doesn't end with it, unless `append_v1` is false. A path in `base_url` is "
        "also a prefix that clients can use in place of `/v1`: `/backend-api/codex/responses`.",
    )
    summarize_with_client_key: bool = Field(
        default=False,
        description="Whether summaries may be written with the key that a client sends with its "
        "request, at the upstream that it is sent to: for `pass`, where the gateway has no key of "
        "its own. The key is used for folds that this request starts, and is never kept.",
    )
    recall_tools: bool = Field(
        default=False,
        description="Whether models get the tools `recall_search`, `recall_read` and "
        "`recall_history`, with which they read back what was folded. The gateway adds them to "
        "requests that define none of these, and answers the calls itself; clients do not see "
        "them.",
    )
    receipt_header: bool = Field(
        default=False,
        description="Whether answers say in `Refold-Receipt` what their session was billed up to "
        "this request, and what sending everything would have cost. Each process reads a session's "
        "log once for it, and then what is new.",
    )
    open_sessions: int = Field(
        default=500,
        ge=1,
        description="Sessions kept open in memory while no request uses them, of all tenants.",
    )
    offload_processes: int = Field(
        default=2,
        ge=0,
        le=64,
        description="Processes that answer large requests, so that nobody else waits for them; 0 "
        "answers everything in one process. They need a store that processes can share.",
    )
    access_log: Literal["text", "json", "off"] = Field(
        default="text",
        description="How each request is logged: `text` on standard error, `json` as an object per "
        "line on standard output, or `off`.",
    )
    metrics: bool = Field(
        default=False,
        description="Whether `/metrics` answers everybody who reaches the port, without a key.",
    )
    fail_open: bool = Field(
        default=False,
        description="Whether requests to models are passed on unmanaged while the store is "
        "unavailable; else they get 503.",
    )
    limits: LimitSettings = LimitSettings()
    sizes: SizeSettings = SizeSettings()
    times: TimeSettings = TimeSettings()

    @field_validator("upstreams")
    @classmethod
    def _names(cls, value: tuple[UpstreamSettings, ...]) -> tuple[UpstreamSettings, ...]:
        names = [one.name for one in value]
        if len({*names}) < len(names):
            raise ValueError("two upstreams have the same name")
        return value
