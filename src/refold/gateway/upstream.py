"""The servers behind the gateway: which one a model is asked at, and how a request is passed on."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from http.cookiejar import DefaultCookiePolicy
from typing import Final, TypeVar

import httpx2
from starlette.responses import Response

from refold.errors import InvalidInput
from refold.gateway.bounded_answers import MOST, bounded
from refold.gateway.passed_paths import OWN_SECRET, V1, check_allowed, check_path, prefix_of

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

    def url(self, passing: "Passing") -> httpx2.URL:
        """Where a request is passed on to.

        Only the path and the query come from the request, as components of their own: scheme, host
        and port are the upstream's by construction, and `Upstreams.send` compares them once more.

        Raises:
            InvalidInput: There is no such URL.
        """
        base = _parsed(self.base_url if passing.prefix != V1 else self.v1_url)
        own = _path_of(base).rstrip("/")
        path = own + passing.path.removeprefix(V1)
        query = f"?{passing.query}" if passing.query else ""
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
class Passing:
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
        self, upstream: Upstream, passing: Passing, *, most: int | None = MOST
    ) -> httpx2.Response:
        """Pass a request on; the answer is not read yet, and is no longer than `most` bytes."""
        check_path(passing.path, passing.query)
        key = self._own_key(upstream, passing)
        request = self._client.build_request(
            passing.method,
            upstream.url(passing),
            headers=[*_sent(passing, key), (b"accept-encoding", b"identity")],
            content=passing.body,
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

    def _own_key(self, upstream: Upstream, passing: Passing) -> str | None:
        """The key that is sent instead of the client's; None where the client's is."""
        if upstream.key == PASSED:
            return None
        check_allowed(passing.method, passing.path, upstream.paths)
        key = self.key(upstream, passing.tenant, {})
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


def _sent(passing: Passing, key: str | None) -> Headers:
    """The client's headers, but for those of its connection and our own, with the key."""
    dropped = _NOT_SENT | _hops_in(passing.headers)
    for name, value in passing.headers:
        lower = name.lower().decode("latin-1")
        if lower in dropped or lower.startswith(_OURS) or _SECRET.search(value):
            continue
        if lower not in _KEYS or (key is None and OURS.encode() not in value):
            yield name, value
    if key is not None:
        yield from _keyed(key, passing.path)


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
