"""The servers behind the gateway: which one a model is asked at, and how a request is passed on."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.cookiejar import DefaultCookiePolicy
from typing import Final, TypeVar

import httpx2
from starlette.responses import Response

from refold.errors import InvalidInput
from refold.gateway.bounded_answers import MOST, bounded
from refold.gateway.passed_paths import OWN_SECRET, check_allowed, check_path

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

    def serves(self, model: str, dialect: str) -> bool:
        """Whether it has the model, and speaks the format."""
        speaks = not self.dialects or not dialect or dialect in self.dialects
        return speaks and any(fnmatchcase(model, one) for one in self.models)

    def address(self, path: str) -> str:
        """Where a path of ours is there."""
        base = self.base_url.rstrip("/")
        return base + (path.removeprefix("/v1") if base.endswith("/v1") else path)


@dataclass(frozen=True, slots=True)
class Passing:
    """A request that is passed on."""

    method: str
    path: str
    """As it came, not decoded."""
    query: str = field(repr=False)
    headers: tuple[tuple[bytes, bytes], ...] = field(repr=False)
    body: bytes = field(repr=False)
    tenant: str


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

    def choose(self, model: str, dialect: str) -> Upstream:
        """The server for a model."""
        for one in self._upstreams:
            if one.serves(model, dialect):
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
        query = f"?{passing.query}" if passing.query else ""
        request = self._client.build_request(
            passing.method,
            upstream.address(passing.path) + query,
            headers=[*_sent(passing, key), (b"accept-encoding", b"identity")],
            content=passing.body,
        )
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


def _sent(passing: Passing, key: str | None) -> Headers:
    """The client's headers, but for those of its connection and our own, with the key."""
    for name, value in passing.headers:
        lower = name.lower().decode("latin-1")
        if lower in _NOT_SENT or lower.startswith(_OURS) or _SECRET.search(value):
            continue
        if lower not in _KEYS or (key is None and OURS.encode() not in value):
            yield name, value
    if key is not None:
        yield from _keyed(key, passing.path)


def _keyed(key: str, path: str) -> Headers:
    """The key as the provider of the format takes it; compatible servers look for the other."""
    if path.startswith("/v1/messages"):
        yield b"x-api-key", key.encode()
    yield b"authorization", f"Bearer {key}".encode()


def answered_with(made: AnyResponse, response: httpx2.Response, **ours: str) -> AnyResponse:
    """The answer with the upstream's headers, but for those of its connection, and with ours."""
    for name, value in response.headers.raw:
        lower = name.lower().decode("latin-1")
        if lower not in _NOT_RETURNED and not lower.startswith(_OURS):
            made.raw_headers.append((name.lower(), value))
    for name, value in ours.items():
        safe = value.translate(_UNSAFE).encode("ascii", "replace").decode()
        made.headers[f"{_OURS}{name}"] = safe
    return made
