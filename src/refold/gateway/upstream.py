"""The servers behind the gateway: which one serves a model, and how a request is passed on."""

import re
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, unquote

import httpx2
from pydantic import JsonValue
from pydantic_core import from_json
from starlette.responses import Response, StreamingResponse

from refold.errors import InvalidInput, NoProviderKey, NotPassedOn
from refold.gateway.dialects.dialect import anthropic_usage, openai_usage, without_nulls
from refold.gateway.dialects.events import Events, EventTooLarge
from refold.gateway.outcome import InvalidAnswer, Outcome
from refold.models.catalog import Usage

MAX_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of an answer that is read to be kept; no model says as much."""
_MAX_ERROR: Final = 1024 * 1024
_UNPACKED_PIECE: Final = 256 * 1024
_ERROR_STATUS: Final = 400
_UNAUTHORIZED: Final = 401
_STATUSES: Final = range(200, 600)
_REDACTED: Final = b"..."
_ENCODINGS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": 0}
"""Each `content-encoding`, as zlib names it."""
_MAX_USAGE_BODY: Final = 4 * 1024 * 1024
"""Bytes of an answer that is one JSON value, in which its usage is looked for."""
_BYTES_PER_TOKEN: Final = 4
"""Where nobody says how many tokens there were."""
_USAGE_HOLDERS: Final = ("response", "message")
"""Where the events of some providers have it."""
OWN_SECRET: Final = re.compile(r"rfk_[a-z0-9]{12}_[A-Za-z0-9_-]{43}")
"""A key of the service itself: it never leaves."""
ANSWERING: Final = (
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /v1/responses",
    "POST /v1/responses/input_tokens",
    "POST /v1/messages",
    "POST /v1/messages/count_tokens",
    "POST /v1/embeddings",
    "POST /v1/moderations",
    "POST /v1/rerank",
    "GET /v1/models",
    "GET /v1/models/*",
    "HEAD /v1/models",
    "HEAD /v1/models/*",
)
"""What may be asked with a key that is not the client's own: answers of models, whose usage is
counted. Files, stored answers and batches are its owner's, and several tenants may share a key."""
V1: Final = "/v1"
"""The prefix of the gateway's paths; an upstream may have another one besides."""
_RESERVED: Final = ("/v1", "/api", "/healthz", "/readyz", "/metrics")
"""Paths of the service: no upstream can have these, or anything beneath them, as its prefix."""
_PREFIX: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)+")
_PATH: Final = re.compile(r"(?:[A-Za-z0-9/._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+")
"""What RFC 3986 allows in a path: no fragment, no backslash, no lone percent sign."""
_QUERY: Final = re.compile(r"[!\x22\x24-\x7e]*")
_MAX_DECODINGS: Final = 3
"""How often a path may be decoded on its way."""
_MAX_PATH: Final = 8_192
_ANY_TENANT: Final = "*"
"""Whose stored key is for all tenants that have none of their own."""
CLIENT_KEY: Final = "pass"
"""The key of an upstream that takes whatever key the client sent."""
STORED_KEY: Final = "stored"
"""The key of an upstream for which each tenant has stored one."""
NO_KEY: Final = "none"
"""The key of an upstream that needs none, such as a server on this machine."""
OURS: Final = "rfk_"
"""How our own keys begin: they never leave."""
_CONNECTION_HEADERS: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_SENT: Final = _CONNECTION_HEADERS | {
    *("accept-encoding", "content-length", "cookie", "expect", "host"),
}
_NOT_RETURNED: Final = _CONNECTION_HEADERS | {
    "alt-svc",  # of another host than ours
    "clear-site-data",
    "content-length",
    "date",
    "set-cookie",  # it may be as good as the key
    "strict-transport-security",
}
KEY_HEADERS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
"""Where clients send their keys."""
_OWN_HEADERS: Final = "refold-"
_UNSAFE: Final = dict.fromkeys((*range(32), 127), "?")
NO_COOKIES: Final = DefaultCookiePolicy(allowed_domains=())
_SECRET: Final = re.compile(OWN_SECRET.pattern.encode())

Headers = Iterable[tuple[bytes, bytes]]
"""As they came: what they hold need not be text."""
AnyResponse = TypeVar("AnyResponse", bound=Response)


# Answers, unpacked, and no more of them than may be kept.


class BoundedAnswer(httpx2.AsyncByteStream):
    """An answer's bytes, unpacked as they come: a small one cannot become a huge one."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        encoding: str,
        max_bytes: int | None,
        secret: bytes = b"",
    ) -> None:
        """Wrap a stream.

        Args:
            inner: The bytes as they come.
            encoding: Their `content-encoding`; empty if there is none.
            max_bytes: How many there may be, unpacked.
            secret: What must not be in them: then they are read whole, and returned without it.
        """
        self._inner = inner
        self._decompressor = zlib.decompressobj(_ENCODINGS[encoding]) if encoding else None
        self._max_bytes = max_bytes
        self._secret = secret

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        if not self._secret:
            async for piece in self._pieces():
                yield piece
            return
        whole = b"".join([piece async for piece in self._pieces()])
        yield whole.replace(self._secret, _REDACTED)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _pieces(self) -> AsyncGenerator[bytes]:
        size = 0
        async for packed in self._inner:
            for piece in self._unpack(packed):
                size += len(piece)
                if self._max_bytes is not None and size > self._max_bytes:
                    raise httpx2.RemoteProtocolError("The answer has no end.")
                yield piece

    def _unpack(self, packed: bytes) -> Iterator[bytes]:
        if self._decompressor is None:
            yield packed
            return
        rest = packed
        try:
            while rest:
                if piece := self._decompressor.decompress(rest, _UNPACKED_PIECE):
                    yield piece
                rest = self._decompressor.unconsumed_tail
        except zlib.error as error:
            raise httpx2.RemoteProtocolError("The answer cannot be unpacked.") from error


def bounded(
    response: httpx2.Response, max_bytes: int | None, key: str | None = None
) -> httpx2.Response:
    """The answer, to be read as it comes.

    Args:
        response: It was not read yet.
        max_bytes: How many bytes it may have; None where they are passed on and not kept.
        key: A key that is not the client's own: providers repeat those that they refuse.
    """
    if response.status_code not in _STATUSES:
        raise InvalidAnswer("answered with a status that HTTP does not have")
    if response.has_redirect_location:  # clients would send their keys along, wherever it leads
        raise InvalidAnswer("answered with a redirect, which is not followed")
    for name, value in response.headers.multi_items() if key else ():
        if key and key in value and name in response.headers:
            del response.headers[name]
    encoding = response.headers.get("content-encoding", "").strip().lower()
    encoding = "" if encoding == "identity" else encoding
    if encoding and encoding not in _ENCODINGS:
        raise InvalidAnswer("compressed its answer in a way that was not asked for")
    secret = key.encode() if key and response.status_code >= _ERROR_STATUS else b""
    stream = response.stream
    if not encoding and max_bytes is None and not secret:
        return response
    assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - the client is one of these
    max_bytes = _MAX_ERROR if secret else max_bytes
    response.stream = BoundedAnswer(stream, encoding, max_bytes, secret)
    if encoding:
        del response.headers["content-encoding"]
        response.headers.pop("content-length", None)
    return response


class UsageReader:
    """Reads the usage in an answer that is passed on: nothing is free because it is unmanaged."""

    def __init__(self, *, stream: bool, messages: bool) -> None:
        """Read a stream of events or one value; `messages`: as Anthropic counts."""
        self._messages = messages
        self._events = Events() if stream else None
        self._body = bytearray()
        self._counts: dict[str, JsonValue] = {}
        self._size = 0
        self.reported = True
        """Whether the provider reported the usage."""

    def take(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._events is None:
            if len(self._body) <= _MAX_USAGE_BODY:
                self._body += chunk
            return
        try:
            for event in self._events.feed(chunk):
                if b'"usage"' in event.data:
                    self._read(event.data)
        except EventTooLarge:
            self._events = None
            self._body = bytearray(_MAX_USAGE_BODY + 1)

    def usage(self, request_size: int | None) -> Usage | None:
        """The usage; an estimate by bytes where none came and the request's size is known."""
        if self._events is None and len(self._body) <= _MAX_USAGE_BODY:
            self._read(bytes(self._body))
        usage = anthropic_usage(self._counts) if self._messages else openai_usage(self._counts)
        if usage is None and request_size is not None:
            self.reported = False
            return Usage(request_size // _BYTES_PER_TOKEN, self._size // _BYTES_PER_TOKEN)
        return usage

    def _read(self, data: bytes) -> None:
        try:
            value: JsonValue = from_json(data)
        except ValueError:
            return
        if isinstance(value, dict):
            for holder in (value, *(value.get(name) for name in _USAGE_HOLDERS)):
                if isinstance(holder, dict) and isinstance(usage := holder.get("usage"), dict):
                    self._counts |= without_nulls(usage)


# Which paths are passed on to an upstream.
#
# Other servers parse a path too: one that decodes it once more, or takes a backslash for a slash,
# must not get to another place than we saw. So a request is routed by its path as it came, before
# anything is decoded, and the same path is passed on.


class Target(NamedTuple):
    """A request target beneath one of the gateway's prefixes."""

    prefix: str
    path: str
    """As it came, not decoded, with `/v1` in place of the prefix."""
    query: str


def prefix_of(path: str) -> str:
    """The prefix under which clients reach an upstream with this path in its `base_url`.

    Clients of some servers send no `/v1`: `/backend-api/codex/responses`. Empty where the path is
    empty, one of the service's own, or not plain enough to be compared as it is.
    """
    path = path.rstrip("/")
    own = any(f"{path}/".startswith(f"{reserved}/") for reserved in _RESERVED)
    return "" if own or not _PREFIX.fullmatch(path) else path


def target_of(scope: Mapping[str, Any], prefixes: Iterable[str] = (V1,)) -> Target | None:
    """The target of a request, if its raw path begins with one of the prefixes, literally."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    path = raw.partition(b"?")[0].decode("latin-1")
    query: bytes = scope.get("query_string", b"")
    for prefix in prefixes:
        if path.startswith(f"{prefix}/"):
            return Target(prefix, V1 + path.removeprefix(prefix), query.decode("latin-1"))
    return None


def check_path(path: str, query: str) -> None:
    """Refuse a path that may lead elsewhere, and one that has a key of ours."""
    if not _PATH.fullmatch(path) or not _QUERY.fullmatch(query):
        raise InvalidInput(
            "The request's target is not a valid path and query.",
            "Percent-encode it as RFC 3986 says, and send no fragment.",
        )
    decoded = path
    for _ in range(_MAX_DECODINGS):
        decoded = unquote(decoded)
    segments = decoded.replace("\\", "/").split("/")
    climbs = any(segment.partition(";")[0].strip() in {".", ".."} for segment in segments)
    if climbs or not decoded.isprintable() or len(path) > _MAX_PATH:
        raise InvalidInput("The path is outside the API.", "Request a plain path below /v1.")
    if OWN_SECRET.search(path + unquote(query)) or OWN_SECRET.search(decoded):
        raise InvalidInput(
            "A key of this service is in the address, where others may read it.",
            "Send it as `Authorization: Bearer rfk_…`, and rotate it: refold keys rotate.",
        )


def check_allowed(method: str, path: str, more: Iterable[str]) -> None:
    """Refuse what is not to be asked with a key that is not the client's own."""
    if not any(fnmatchcase(f"{method} {path}", pattern) for pattern in (*ANSWERING, *more)):
        raise NotPassedOn(f"{method} {path[:100]} is not passed on with the service's own key.")


# The servers.


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server that has models."""

    name: str
    base_url: str
    models: tuple[str, ...] = ("*",)
    """Which models it has: names, or patterns such as `gpt-*`."""
    dialects: tuple[str, ...] = ()
    """Which formats it speaks; all of them if none is named."""
    key: str = field(default=CLIENT_KEY, repr=False)
    """`pass`: the client's own; `stored`: the tenant's; `none`: none is needed; else the key."""
    paths: tuple[str, ...] = ()
    """What else may be asked with a key that is not the client's own: `GET /v1/files/*`."""
    append_v1: bool = True
    """Whether `/v1` follows `base_url`, where that does not end with it."""

    @property
    def prefix(self) -> str:
        """What paths of clients that send no `/v1` begin with; empty if there is no such prefix."""
        return prefix_of(_path_of(_parsed(self.base_url)))

    @property
    def v1_url(self) -> str:
        """The address that takes the place of the gateway's `/v1`."""
        base = self.base_url.rstrip("/")
        return base if base.endswith(V1) or not self.append_v1 else base + V1

    def serves(self, model: str, dialect: str) -> bool:
        """Whether it has the model, and speaks the format."""
        speaks = not self.dialects or not dialect or dialect in self.dialects
        return speaks and any(fnmatchcase(model, name) for name in self.models)

    def url(self, proxied: "ProxiedRequest") -> httpx2.URL:
        """Where a request is passed on to.

        Only the path and the query come from the request, as components of their own: scheme, host
        and port are the upstream's by construction, and `Upstreams.send` compares them once more.

        Raises:
            InvalidInput: There is no such URL.
        """
        base = _parsed(self.base_url if proxied.prefix != V1 else self.v1_url)
        own = _path_of(base).rstrip("/")
        path = own + proxied.path.removeprefix(V1)
        query = f"?{proxied.query}" if proxied.query else ""
        try:
            url = base.copy_with(raw_path=(path + query).encode("ascii"))
        except (httpx2.InvalidURL, ValueError) as error:
            raise _no_such_url() from error
        # A server may take what follows two slashes for a host.
        if path.startswith("//") or not _path_of(url).startswith(f"{own}/"):
            raise _no_such_url()
        return url

    def owns(self, url: httpx2.URL) -> bool:
        """Whether the URL is of this server."""
        return _origin(url) == _origin(_parsed(self.base_url))


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    """A request that is passed on."""

    method: str
    path: str
    """As it came, not decoded, with `/v1` in place of another prefix."""
    query: str = field(repr=False)
    headers: tuple[tuple[bytes, bytes], ...] = field(repr=False)
    body: bytes = field(repr=False)
    tenant: str
    prefix: str = V1
    """What its path began with."""
    outcome: Outcome = field(default_factory=Outcome, repr=False, compare=False)


class Upstreams:
    def __init__(
        self,
        upstreams: Iterable[Upstream],
        client: httpx2.AsyncClient,
        key_of: Callable[[str, str], str | None] = lambda _tenant, _upstream: None,
    ) -> None:
        """Make them; the first that serves a model is asked.

        Args:
            upstreams: The servers.
            client: Holds the connections to them.
            key_of: The key that a tenant has stored for an upstream.
        """
        self._upstreams = tuple(upstreams)
        self.client = client
        # One client asks for all tenants: what one is given must not be sent with another's.
        client.cookies.jar.set_policy(NO_COOKIES)
        self._key_of = key_of

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What the paths of requests may begin with, the longest first."""
        own = {upstream.prefix for upstream in self._upstreams} - {""}
        return (V1, *sorted(own, key=len, reverse=True))

    def choose(self, model: str, dialect: str, prefix: str = V1) -> Upstream:
        """The server for a model; a prefix other than `/v1` is of some servers only."""
        for upstream in self._upstreams:
            if prefix in (V1, upstream.prefix) and upstream.serves(model, dialect):
                return upstream
        raise InvalidInput(
            f"No upstream serves the model {model[:100]!r}.",
            "Name one for it under [serve] in the settings; `refold config` shows them.",
        )

    async def send(
        self, upstream: Upstream, proxied: ProxiedRequest, *, max_bytes: int | None = MAX_ANSWER
    ) -> httpx2.Response:
        """Pass a request on; the answer is not read yet, and may have `max_bytes` at most."""
        check_path(proxied.path, proxied.query)
        key = self._own_key(upstream, proxied)
        request = self.client.build_request(
            proxied.method,
            upstream.url(proxied),
            headers=[*_request_headers(proxied, key), (b"accept-encoding", b"identity")],
            content=proxied.body,
        )
        if not upstream.owns(request.url):
            raise _no_such_url()
        response = await self.client.send(request, stream=True, follow_redirects=False)
        if response.status_code == _UNAUTHORIZED and _lacks_key(upstream, proxied):
            await response.aclose()
            raise NoProviderKey(
                f"The upstream {upstream.name!r} takes the client's own key, and only a key of "
                "this service came.",
                f"Send the provider's key as usual and the {OURS}… in Refold-Key, or store one: "
                f"refold keys upstream set {upstream.name}.",
            )
        try:
            return bounded(response, max_bytes, key)
        except BaseException:
            await response.aclose()
            raise

    def key(self, upstream: Upstream, tenant: str, headers: Mapping[str, str]) -> str | None:
        """The key that a tenant uses there; None if none is known.

        A server that needs none gets a placeholder: client libraries require some key.
        """
        if upstream.key == STORED_KEY:
            return self._key_of(tenant, upstream.name)
        if upstream.key != CLIENT_KEY:
            return upstream.key
        keys = (headers.get(name, "").removeprefix("Bearer ") for name in KEY_HEADERS)
        return next((key for key in keys if key and not key.startswith(OURS)), None)

    def is_shared(self, upstream: Upstream, tenant: str) -> bool:
        """Whether other tenants' requests go there with the key that this tenant's have."""
        if upstream.key == CLIENT_KEY:
            return False
        if upstream.key != STORED_KEY:
            return True
        return self._key_of(tenant, upstream.name) == self._key_of(_ANY_TENANT, upstream.name)

    def _own_key(self, upstream: Upstream, proxied: ProxiedRequest) -> str | None:
        """The key that is sent instead of the client's: empty for none, None for the client's."""
        if upstream.key == CLIENT_KEY:
            return None
        check_allowed(proxied.method, proxied.path, upstream.paths)
        if upstream.key == NO_KEY:
            return ""
        key = self.key(upstream, proxied.tenant, {})
        if key is None:
            raise InvalidInput(
                f"No key is stored for the upstream {upstream.name!r}.",
                f"Store one: refold keys upstream set {upstream.name}.",
            )
        return key


@lru_cache(256)
def _parsed(base_url: str) -> httpx2.URL:
    return httpx2.URL(base_url)


def _path_of(url: httpx2.URL) -> str:
    return url.raw_path.partition(b"?")[0].decode("ascii")


def _origin(url: httpx2.URL) -> tuple[str, bytes, int | None, bytes]:
    return url.scheme, url.raw_host, url.port, url.userinfo


def _no_such_url() -> InvalidInput:
    return InvalidInput(
        "The request's target is not a valid URL at the upstream.",
        "Send a path beneath /v1, percent-encoded as RFC 3986 says.",
    )


def _lacks_key(upstream: Upstream, proxied: ProxiedRequest) -> bool:
    """Whether nothing authenticates the request, because only a key of ours came."""
    names = {name.encode() for name in (*KEY_HEADERS, "refold-key")}
    keys = [value for name, value in proxied.headers if name.lower() in names]
    return upstream.key == CLIENT_KEY and bool(keys) and all(OURS.encode() in key for key in keys)


def _request_headers(proxied: ProxiedRequest, key: str | None) -> Headers:
    """The client's headers, but for those of its connection and our own, with the key."""
    dropped = _NOT_SENT | _connection_options(proxied.headers)
    for name, value in proxied.headers:
        lower = name.lower().decode("latin-1")
        if lower in dropped or lower.startswith(_OWN_HEADERS) or _SECRET.search(value):
            continue
        if lower not in KEY_HEADERS or (key is None and OURS.encode() not in value):
            yield name, value
    if key:
        # Anthropic reads x-api-key; servers that are only compatible may read the other.
        if proxied.path.startswith("/v1/messages"):
            yield b"x-api-key", key.encode()
        yield b"authorization", f"Bearer {key}".encode()


def _connection_options(headers: Headers) -> set[str]:
    """The headers that `Connection` names: they are of one connection too (RFC 9110, 7.6.1)."""
    options = (value for name, value in headers if name.lower() == b"connection")
    return {
        option.strip().lower() for value in options for option in value.decode("latin-1").split(",")
    }


def with_headers(made: AnyResponse, response: httpx2.Response, **ours: str) -> AnyResponse:
    """The response with the upstream's headers, but for those of its connection, and with ours."""
    dropped = _NOT_RETURNED | _connection_options(response.headers.raw)
    for name, value in response.headers.raw:
        lower = name.lower().decode("latin-1")
        if lower not in dropped and not lower.startswith(_OWN_HEADERS):
            made.raw_headers.append((name.lower(), value))
    for name, value in ours.items():
        safe = value.translate(_UNSAFE).encode("ascii", "replace").decode()
        made.headers[f"{_OWN_HEADERS}{name}"] = safe
    return made


class BrokenOff(Exception):
    """An upstream ended an answer before it was whole: that is not our fault."""


class ProxiedStream(StreamingResponse):
    """A stream that is passed on, and that closes its source whichever side ends first."""

    on_close: Callable[[], None] | None = None
    """Called at the end: a generator that was never started does not get to its `finally`."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI's
        """Send it.

        Raises:
            BrokenOff: There is no more of it to send.
        """
        try:
            await super().__call__(scope, receive, send)
        except httpx2.TransportError as error:
            raise BrokenOff(f"{type(error).__name__}: {error}") from error
        finally:
            close: Callable[[], Awaitable[None]] | None = getattr(
                self.body_iterator, "aclose", None
            )
            if close is not None:
                await close()
            if self.on_close is not None:
                self.on_close()
