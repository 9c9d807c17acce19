"""The servers behind the gateway: which one a model is asked at, and how a request is passed on."""

import re
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Final, NamedTuple, TypeVar, cast
from urllib.parse import quote, unquote

import httpx2
from pydantic import JsonValue
from pydantic_core import from_json
from starlette.responses import Response, StreamingResponse

from refold.errors import InvalidInput, NotPassedOn
from refold.gateway.dialects.dialect import anthropic_usage, openai_usage
from refold.gateway.dialects.events import Events, EventTooLarge
from refold.models.catalog import Usage

# What an upstream sends, unpacked, and no more of it than may be kept.

MOST: Final = 64 * 1024 * 1024
"""Bytes of an answer that is read to be kept; no model says as much."""
_MOST_OF_AN_ERROR: Final = 1024 * 1024
_PIECE: Final = 256 * 1024
_ERROR: Final = 400
_HIDDEN: Final = b"..."
_ENDS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": 0}
"""How each packing begins, as zlib says it."""


_STATUSES: Final = range(200, 600)


class InvalidAnswer(httpx2.RemoteProtocolError):
    """An upstream's answer that cannot be passed on; its words are for clients."""


class BoundedAnswer(httpx2.AsyncByteStream):
    """An answer's bytes, unpacked as they come: a small one cannot become a huge one."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        packing: str,
        most: int | None,
        hidden: bytes = b"",
    ) -> None:
        """Wrap a stream.

        Args:
            inner: What comes.
            packing: Its `content-encoding`; empty if it has none.
            most: How many bytes there may be, unpacked.
            hidden: What must not be in it: then it is read whole, and given without.
        """
        self._inner = inner
        self._unpacking = zlib.decompressobj(_ENDS[packing]) if packing else None
        self._most = most
        self._hidden = hidden

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        """The bytes."""
        if not self._hidden:
            async for piece in self._pieces():
                yield piece
            return
        whole = b"".join([piece async for piece in self._pieces()])
        yield whole.replace(self._hidden, _HIDDEN)

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._inner.aclose()

    async def _pieces(self) -> AsyncGenerator[bytes]:
        came = 0
        async for packed in self._inner:
            for piece in self._unpacked(packed) if self._unpacking else (packed,):
                came += len(piece)
                if self._most is not None and came > self._most:
                    raise httpx2.RemoteProtocolError("The answer has no end.")
                yield piece

    def _unpacked(self, packed: bytes) -> Iterator[bytes]:
        assert self._unpacking is not None  # noqa: S101 - there is something to unpack
        rest = packed
        try:
            while rest:
                if piece := self._unpacking.decompress(rest, _PIECE):
                    yield piece
                rest = self._unpacking.unconsumed_tail
        except zlib.error as error:
            raise httpx2.RemoteProtocolError("The answer cannot be unpacked.") from error


def bounded(response: httpx2.Response, most: int | None, key: str | None = None) -> httpx2.Response:
    """The answer, to be read as it comes.

    Args:
        response: It was not read yet.
        most: How many bytes it may have; None where they are passed on and not kept.
        key: A key that is not the client's own: providers repeat those that they refuse.
    """
    if response.status_code not in _STATUSES:
        raise InvalidAnswer("answered with a status that HTTP does not have")
    if response.has_redirect_location:  # clients would send their keys along, wherever it leads
        raise httpx2.RemoteProtocolError("The upstream says to ask elsewhere.")
    if key:
        _hide(response.headers, key)
    packing = response.headers.get("content-encoding", "").strip().lower()
    packing = "" if packing == "identity" else packing
    if packing and packing not in _ENDS:
        raise httpx2.RemoteProtocolError("The answer is packed in a way that nobody asked for.")
    hidden = key.encode() if key and response.status_code >= _ERROR else b""
    stream = response.stream
    if not packing and most is None and not hidden:
        return response
    assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - the client is one of these
    most = _MOST_OF_AN_ERROR if hidden else most
    response.stream = BoundedAnswer(stream, packing, most, hidden)
    if packing:
        del response.headers["content-encoding"]
        response.headers.pop("content-length", None)
    return response


def _hide(headers: httpx2.Headers, key: str) -> None:
    for name, value in headers.multi_items():
        if key in value and name in headers:
            del headers[name]


# What an answer that is passed on unread used: nothing is free because it is not managed.

_MOST: Final = 4 * 1024 * 1024
"""Bytes of an answer that is one JSON value, in which its use is looked for."""
_CHARS: Final = 4
"""Bytes of a token, where nobody says how many there were."""
_WITHIN: Final = ("response", "message")
"""Where the events of some providers have it."""


class Counting:
    """Reads along."""

    def __init__(self, *, stream: bool, messages: bool) -> None:
        """Read a stream of events or one value; `messages`: as Anthropic counts."""
        self._messages = messages
        self._events = Events() if stream else None
        self._whole = bytearray()
        self._told: dict[str, JsonValue] = {}
        self._came = 0

    def take(self, chunk: bytes) -> None:
        """Take what came."""
        self._came += len(chunk)
        if self._events is None:
            if len(self._whole) <= _MOST:
                self._whole += chunk
            return
        try:
            for event in self._events.feed(chunk):
                if b'"usage"' in event.data:
                    self._look(event.data)
        except EventTooLarge:
            self._events = None
            self._whole = bytearray(_MOST + 1)

    def used(self, parsed_request: int | None) -> Usage | None:
        """What was used; where nobody said, what so many bytes that asked for it come to."""
        if self._events is None and len(self._whole) <= _MOST:
            self._look(bytes(self._whole))
        told = anthropic_usage(self._told) if self._messages else openai_usage(self._told)
        if told is None and parsed_request is not None:
            return Usage(parsed_request // _CHARS, self._came // _CHARS)
        return told

    def _look(self, data: bytes) -> None:
        try:
            value = from_json(data)
        except ValueError:
            return
        if not isinstance(value, dict):
            return
        top = cast("dict[str, JsonValue]", value)
        for one in (top, *(top.get(name) for name in _WITHIN)):
            if isinstance(one, dict) and isinstance(told := one.get("usage"), dict):
                self._told |= {name: count for name, count in told.items() if count is not None}


# Which paths are passed on to an upstream.
#
# What a path says is taken apart by others than us: a server that decodes it once more, or takes a
# backslash for a slash, must not get to another place than we saw. So a request is routed by its
# path as it came, before anything is decoded, and what is passed on is that same path.

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
"""What may be asked with a key that is not the client's own: answers of models, whose use is
counted. Files, stored answers and batches are its owner's, and a key may be several tenants'."""
V1: Final = "/v1"
"""The prefix of the gateway's paths; an upstream may have another one besides."""
_RESERVED: Final = ("/v1", "/api", "/healthz", "/readyz", "/metrics")
"""Paths of the service: no upstream can have these, or anything beneath them, as its prefix."""
_PREFIX: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)+")
_PATH: Final = re.compile(r"(?:[A-Za-z0-9/._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+")
"""What RFC 3986 allows in a path: no fragment, no backslash, no lone percent sign."""
_QUERY: Final = re.compile(r"[!\x22\x24-\x7e]*")
_TIMES: Final = 3
"""How often a path may be decoded on its way."""
_LONGEST: Final = 8_192


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
    own = any(path == one or path.startswith(f"{one}/") for one in _RESERVED)
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
    for _ in range(_TIMES):
        decoded = unquote(decoded)
    segments = decoded.replace("\\", "/").split("/")
    climbs = any(one.partition(";")[0].strip() in {".", ".."} for one in segments)
    if climbs or not decoded.isprintable() or len(path) > _LONGEST:
        raise InvalidInput("The path leads nowhere.", "Ask for a path beneath /v1 as it is.")
    if OWN_SECRET.search(path + unquote(query)) or OWN_SECRET.search(decoded):
        raise InvalidInput(
            "A key of this service is in the address, where others may read it.",
            "Send it as `Authorization: Bearer rfk_…`, and rotate it: refold keys rotate.",
        )


def check_allowed(method: str, path: str, more: Iterable[str]) -> None:
    """Refuse what is not to be asked with a key that is not the client's own."""
    parsed_request = f"{method} {path}"
    if not any(fnmatchcase(parsed_request, one) for one in (*ANSWERING, *more)):
        raise NotPassedOn(f"{method} {path[:100]} is not passed on with the service's own key.")


Headers = Iterable[tuple[bytes, bytes]]
"""As they came: what they hold need not be text."""

AnyResponse = TypeVar("AnyResponse", bound=Response)

PASSED: Final = "pass"
"""The key of an upstream that takes whatever key the client sent."""
STORED: Final = "stored"
"""The key of an upstream for which each tenant has stored one."""
OURS: Final = "rfk_"
"""How our own keys begin: they never leave."""

_HOPS: Final = frozenset(
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
"""Headers that speak of one connection only."""
_NOT_SENT: Final = _HOPS | {"accept-encoding", "content-length", "cookie", "expect", "host"}
_NOT_RETURNED: Final = _HOPS | {
    "alt-svc",  # of another host than ours
    "clear-site-data",
    "content-length",
    "date",
    "set-cookie",  # it may be as good as the key
    "strict-transport-security",
}
_KEYS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_OURS: Final = "refold-"
_UNSAFE: Final = dict.fromkeys((*range(32), 127), "?")
_NO_COOKIES: Final = DefaultCookiePolicy(allowed_domains=())
_SECRET: Final = re.compile(OWN_SECRET.pattern.encode())


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server that has models."""

    name: str
    base_url: str
    models: tuple[str, ...] = ("*",)
    """Which models it has: names, or patterns such as `gpt-*`."""
    dialects: tuple[str, ...] = ()
    """Which formats it speaks; all of them if none is named."""
    key: str = field(default=PASSED, repr=False)
    """`pass`: the client's own; `stored`: the tenant's; else the key itself."""
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
        return speaks and any(fnmatchcase(model, one) for one in self.models)

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


class Upstreams:
    """Passes requests on."""

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
        self._client = client
        # One client asks for all tenants: what one is given must not be sent with another's.
        client.cookies.jar.set_policy(_NO_COOKIES)
        self._key_of = key_of

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What the paths of requests may begin with, the longest first."""
        own = {one.prefix for one in self._upstreams} - {""}
        return (V1, *sorted(own, key=len, reverse=True))

    def choose(self, model: str, dialect: str, prefix: str = V1) -> Upstream:
        """The server for a model; a prefix other than `/v1` is of some servers only."""
        for one in self._upstreams:
            if prefix in (V1, one.prefix) and one.serves(model, dialect):
                return one
        raise InvalidInput(
            f"No upstream serves the model {model[:100]!r}.",
            "Name one for it under [serve] in the settings; `refold config` shows them.",
        )

    async def send(
        self, upstream: Upstream, proxied: ProxiedRequest, *, most: int | None = MOST
    ) -> httpx2.Response:
        """Pass a request on; the answer is not read yet, and is no longer than `most` bytes."""
        check_path(proxied.path, proxied.query)
        key = self._own_key(upstream, proxied)
        request = self._client.build_request(
            proxied.method,
            upstream.url(proxied),
            headers=[*_sent(proxied, key), (b"accept-encoding", b"identity")],
            content=proxied.body,
        )
        if not upstream.owns(request.url):
            raise _no_such_url()
        response = await self._client.send(request, stream=True, follow_redirects=False)
        try:
            return bounded(response, most, key)
        except BaseException:
            await response.aclose()
            raise

    def key(self, upstream: Upstream, tenant: str, headers: Mapping[str, str]) -> str | None:
        """The key by which a tenant asks there; None where nobody knows one."""
        if upstream.key == STORED:
            return self._key_of(tenant, upstream.name)
        if upstream.key != PASSED:
            return upstream.key
        given = (headers.get(name, "").removeprefix("Bearer ") for name in _KEYS)
        return next((one for one in given if one and not one.startswith(OURS)), None)

    def _own_key(self, upstream: Upstream, proxied: ProxiedRequest) -> str | None:
        """The key that is sent instead of the client's; None where the client's is."""
        if upstream.key == PASSED:
            return None
        check_allowed(proxied.method, proxied.path, upstream.paths)
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
    """The path of a URL, not decoded."""
    return url.raw_path.partition(b"?")[0].decode("ascii")


def _origin(url: httpx2.URL) -> tuple[str, bytes, int | None, bytes]:
    return url.scheme, url.raw_host, url.port, url.userinfo


def _no_such_url() -> InvalidInput:
    return InvalidInput(
        "The request's target makes no valid URL at the upstream.",
        "Send a path beneath /v1, percent-encoded as RFC 3986 says.",
    )


def _sent(proxied: ProxiedRequest, key: str | None) -> Headers:
    """The client's headers, but for those of its connection and our own, with the key."""
    dropped = _NOT_SENT | _hops_in(proxied.headers)
    for name, value in proxied.headers:
        lower = name.lower().decode("latin-1")
        if lower in dropped or lower.startswith(_OURS) or _SECRET.search(value):
            continue
        if lower not in _KEYS or (key is None and OURS.encode() not in value):
            yield name, value
    if key is not None:
        yield from _keyed(key, proxied.path)


def _hops_in(headers: Headers) -> set[str]:
    """The headers that `Connection` names: they end here, like `_HOPS` (RFC 9110, 7.6.1)."""
    options = (value for name, value in headers if name.lower() == b"connection")
    return {
        option.strip().lower() for value in options for option in value.decode("latin-1").split(",")
    }


def _keyed(key: str, path: str) -> Headers:
    """The key as the provider of the format takes it; compatible servers look for the other."""
    if path.startswith("/v1/messages"):
        yield b"x-api-key", key.encode()
    yield b"authorization", f"Bearer {key}".encode()


def answered_with(made: AnyResponse, response: httpx2.Response, **ours: str) -> AnyResponse:
    """The answer with the upstream's headers, but for those of its connection, and with ours."""
    dropped = _NOT_RETURNED | _hops_in(response.headers.raw)
    for name, value in response.headers.raw:
        lower = name.lower().decode("latin-1")
        if lower not in dropped and not lower.startswith(_OURS):
            made.raw_headers.append((name.lower(), value))
    for name, value in ours.items():
        safe = value.translate(_UNSAFE).encode("ascii", "replace").decode()
        made.headers[f"{_OURS}{name}"] = safe
    return made


# Streams that are passed on, whoever ends them first.


class BrokenOff(Exception):
    """An upstream ended an answer before it was whole: that is no fault of ours."""


class Streamed(StreamingResponse):
    """A stream that is told when nobody listens any more."""

    unheard: Callable[[], None] | None = None
    """Is called at the end: a generator that was never begun does not hear of its end."""

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
            if self.unheard is not None:
                self.unheard()
