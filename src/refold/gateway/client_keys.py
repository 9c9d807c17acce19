"""Keys for summaries: an upstream's own, or a client's, lent to the folds that its request starts.

With `serve.summarize_with_client_key`, a summary may be written with the key that came with the
request. The key is in the context of that request's task and of the tasks that it starts, such as
the fold's, and nowhere else. A model that is called this way has no key of its own and
can be shared; the key is added to each call as it leaves, and taken out of what comes back. So a
fold cannot use the key of another request, and no cache, log or store ever has one.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

import httpx2

from refold.errors import InvalidInput
from refold.fold.compactor import AUTO, PRIMARY
from refold.gateway.upstream import (
    CLIENT_KEY,
    KEY_HEADERS,
    MAX_ANSWER,
    NO_COOKIES,
    OURS,
    Headers,
    Upstream,
    Upstreams,
    bounded,
)
from refold.models.experience import Setup


@dataclass(frozen=True, slots=True)
class LentKey:
    upstream: str
    """The name of the server that it was sent to: no other server receives it."""
    headers: tuple[tuple[str, str], ...] = field(repr=False)

    @property
    def secrets(self) -> set[str]:
        return {value.rpartition(" ")[2] for _, value in self.headers}


CHAT: Final = "openai-chat"
MESSAGES: Final = "anthropic-messages"
RESPONSES: Final = "openai-responses"
"""The formats in which a model may be asked for summaries."""
_LENT: Final[ContextVar[LentKey | None]] = ContextVar("lent_key", default=None)


@contextmanager
def lending(upstream: Upstream, headers: Headers) -> Generator[None]:
    """Lend the key in these headers to the folds that start in this context, for that server."""
    found = tuple(
        (name.lower().decode("latin-1"), value.decode("latin-1"))
        for name, value in headers
        if name.lower().decode("latin-1") in KEY_HEADERS and OURS.encode() not in value
    )
    lent = LentKey(upstream.name, found) if found and upstream.key == CLIENT_KEY else None
    token = _LENT.set(lent)
    try:
        yield
    finally:
        _LENT.reset(token)


def is_lent(upstream: Upstream) -> bool:
    """Whether a key for this server is lent in this context."""
    return bool(lent_headers(upstream))


def lent_headers(upstream: Upstream) -> tuple[tuple[str, str], ...]:
    """The headers with the key that is lent for this server in this context, if one is."""
    lent = _LENT.get()
    return lent.headers if lent is not None and lent.upstream == upstream.name else ()


def can_summarize(upstreams: Upstreams, tenant: str, setup: Setup) -> bool:
    """Whether a model can write the summaries of a tenant's session, here and now."""
    summarizer = setup.profile.summarizer
    name = summarizer if summarizer not in {"", PRIMARY, AUTO} else setup.model
    if name == summarizer and ":" in name:
        return True  # the operator named it, and has a key for it
    server = server_of(upstreams, name)
    if server is None:
        return name == summarizer
    upstream = server[1]
    return upstreams.key(upstream, tenant, {}) is not None or is_lent(upstream)


def server_of(upstreams: Upstreams, name: str) -> tuple[str, Upstream] | None:
    """The format for asking a model for summaries, and its server; None if no server has it."""
    for dialect in (CHAT, MESSAGES, RESPONSES):
        with suppress(InvalidInput):
            return dialect, upstreams.choose(name, dialect)
    return None


def client_with_lent_key(upstream: Upstream, client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """A client for this server; each call uses the key that is lent in its context.

    It has no connections of its own, and so needs no closing: `client` makes the calls.
    """
    lent = httpx2.AsyncClient(transport=_LentKeyTransport(upstream, client))
    lent.cookies.jar.set_policy(NO_COOKIES)
    return lent


class _LentKeyTransport(httpx2.AsyncBaseTransport):
    def __init__(self, upstream: Upstream, client: httpx2.AsyncClient) -> None:
        self._upstream = upstream
        self._client = client

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        lent = _LENT.get()
        if lent is None or lent.upstream != self._upstream.name:
            raise httpx2.UnsupportedProtocol("No key is lent here.", request=request)
        for name in KEY_HEADERS:
            request.headers.pop(name, None)
        request.headers.update([*lent.headers, ("accept-encoding", "identity")])
        response = await self._client.send(request, stream=True, follow_redirects=False)
        try:
            for secret in lent.secrets:  # providers repeat keys that they refuse
                response = bounded(response, MAX_ANSWER, secret)
        except BaseException:
            await response.aclose()
            raise
        return response
