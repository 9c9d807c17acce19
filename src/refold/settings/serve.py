"""The settings of `refold serve`."""

import re
from typing import Final, Literal

from pydantic import Field, field_validator

from refold.view.policy_values import Values

_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_MEGABYTE: Final = 1 << 20

Speaks = Literal["openai-chat", "openai-responses", "anthropic-messages"]


class UpstreamSettings(Values):
    """A server that has models, behind the gateway."""

    name: str = Field(min_length=1, max_length=200)
    base_url: str = Field(pattern=r"^https?://[^\s/]+")
    models: tuple[str, ...] = ("*",)
    dialects: tuple[Speaks, ...] = ()
    key: str = "pass"
    paths: tuple[str, ...] = ()
    """What else may be asked with a key that is not the client's own, such as
    `GET /v1/files/*`; without it, only answers of models may be."""

    @field_validator("key")
    @classmethod
    def _no_secret(cls, value: str) -> str:
        """A key itself has no place in a file: the error must not repeat it."""
        if value in ("pass", "stored") or _VARIABLE.fullmatch(value):
            return value
        raise ValueError("a key is `pass`, `stored`, or the name of an environment variable")


class LimitSettings(Values):
    """How much each key and each tenant may use; 0 means no limit."""

    key_requests: int = Field(default=0, ge=0, description="Requests per minute with one key.")
    key_tokens: int = Field(default=0, ge=0, description="Tokens per minute with one key.")
    tenant_requests: int = Field(
        default=0, ge=0, description="Requests per minute of one tenant, in one process."
    )
    tenant_tokens: int = Field(
        default=0, ge=0, description="Tokens per minute of one tenant, in one process."
    )
    streams: int = Field(
        default=0, ge=0, description="Requests to models under way at once with one key."
    )
    day_tokens: int = Field(
        default=0, ge=0, description="Tokens per day (UTC) of one tenant, over all processes."
    )
    day_cost: float = Field(
        default=0, ge=0, description="Dollars per day (UTC) of one tenant, over all processes."
    )


class SizeSettings(Values):
    """How large a request may be, in bytes."""

    gateway: int = Field(
        default=64 * _MEGABYTE, ge=1_024, description="The body of a request to a model."
    )
    api: int = Field(default=_MEGABYTE, ge=1_024, description="The body of a request to the API.")
    headers: int = Field(
        default=64 * 1_024, ge=4_096, description="What comes before the body, all together."
    )
    connections: int = Field(
        default=4_096, ge=1, description="Connections at once; who comes then is told to wait."
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
    drain_delay: float = Field(
        default=0,
        ge=0,
        description="When told to stop: with `/readyz` at 503, before it takes no more.",
    )
    drain: float = Field(
        default=30, gt=0, description="When told to stop: for the requests that are under way."
    )


_USUAL: Final = (
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
)


class Serve(Values):
    """Where `refold serve` listens, and which servers it passes requests on to."""

    host: str = Field(default="127.0.0.1", min_length=1, description="The address it listens on.")
    port: int = Field(default=8790, ge=0, le=65_535, description="The port; 0 is any free one.")
    upstreams: tuple[UpstreamSettings, ...] = Field(
        default=_USUAL,
        description="The servers that have models, the first that fits is asked: `name`, "
        "`base_url`, `models` (patterns), `dialects` (formats), and `key`: `pass` the client's, "
        "one `stored` for the tenant, or the name of an environment variable. With a key that is "
        "not the client's own, only answers of models are asked for, and what `paths` names: "
        "`GET /v1/files/*`.",
    )
    open_sessions: int = Field(
        default=500, ge=1, description="Sessions kept open in memory, of all tenants."
    )
    metrics: bool = Field(
        default=False,
        description="Whether `/metrics` answers everybody who reaches the port, without a key.",
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
