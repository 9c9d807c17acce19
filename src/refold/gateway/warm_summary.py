"""Summaries by a session's own model, asked below the request that it answered last.

The provider has that request in its cache, so it is read at a fraction of the price. What is kept
of a session for this is its last request without its keys, in memory: the folds that the next
request starts find it in their context. Folds that are made elsewhere have none.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Final

import httpx2
from pydantic import JsonValue

from refold.errors import FoldNotMade, WindowExceeded
from refold.fold.job import Job
from refold.fold.write.by_model import CALLED_A_TOOL, SummarizerAnswer, shows
from refold.gateway.client_keys import is_lent, lent_headers
from refold.gateway.dialects.dialect import Answer, Dialect, ParsedRequest
from refold.gateway.upstream import KEY_HEADERS, ProxiedRequest, Upstream, Upstreams
from refold.gateway.upstream_stream import UpstreamStream
from refold.log import Span
from refold.models.catalog import Usage
from refold.models.overflow import overflow_of
from refold.wire import Insert, Shape, wire_for

_OK: Final = 200
_EVENT_STREAM: Final = "text/event-stream"
_NOT_KEPT: Final = frozenset({*KEY_HEADERS, "idempotency-key", "content-length"})
"""Headers of the request that are not sent again: keys, and what makes it the same request."""
_FREE: Final = ("auto", "none")
"""Choices of tools that leave a model free to answer with text."""
MAX_KEPT: Final = 4 * 1024 * 1024
"""Bytes of a request that is kept; no window has room for more."""


@dataclass(frozen=True, eq=False)
class SentRequest:
    """A request that was answered, as it was sent."""

    session: str
    model: str
    dialect: Dialect
    upstreams: Upstreams = field(repr=False)
    upstream: Upstream
    proxied: ProxiedRequest
    answer: tuple[bytes, ...] = field(repr=False)
    """The messages of the answer; none if it calls tools."""
    usage: Usage | None
    head: int
    """The newest entry of the log that it could show."""
    unseen: tuple[Span, ...]
    """Entries that it left out for lack of room."""
    tokens: int
    at: float

    @property
    def is_cached(self) -> bool:
        usage = self.usage
        told = usage is not None and bool(usage.cache_read or usage.cache_write)
        return told or b'"cache_control"' in self.proxied.body

    def can_be_asked(self, model: str, entries: Sequence[int]) -> bool:
        own_key = self.upstreams.key(self.upstream, self.proxied.tenant, {})
        has_key = own_key is not None or is_lent(self.upstream)
        if not has_key or model != self.model or not shows(entries, self.head, self.unseen):
            return False
        return _may_answer_with_text(self._parsed().body)

    async def ask(self, prompt: str, headers: Mapping[str, str]) -> SummarizerAnswer:
        added = (*lent_headers(self.upstream), *headers.items())
        encoded = ((name.encode(), value.encode("latin-1")) for name, value in added)
        proxied = replace(
            self.proxied,
            headers=(*self.proxied.headers, *encoded),
            body=self.with_prompt(prompt),
        )
        response = await self.upstreams.send(self.upstream, proxied)
        try:
            answer = await self._read(response)
        finally:
            await response.aclose()
        shapes = shapes_of(self.dialect, answer)
        if any(shape.kind == "call" for shape in shapes):
            failure = CALLED_A_TOOL
        else:
            failure = "" if answer.complete else "The model's summary was cut off."
        text = "".join(shape.text for shape in shapes if shape.kind == "text")
        usage = answer.usage._asdict() if answer.usage else {}
        return SummarizerAnswer(text, None, usage, failure=failure)

    def with_prompt(self, prompt: str) -> bytes:
        """What is sent: the request as it was, its answer unless that calls tools, the prompt."""
        parsed = self._parsed()
        asked = wire_for(self.dialect.name).make([Insert(0, "prompt", prompt, "summary")])
        return self.dialect.body(parsed, [*parsed.messages, *self.answer, *asked])

    def _parsed(self) -> ParsedRequest:
        return self.dialect.read(self.proxied.body)

    async def _read(self, response: httpx2.Response) -> Answer:
        status, kind = response.status_code, response.headers.get("content-type", "")
        if status == _OK and kind.startswith(_EVENT_STREAM):
            stream = UpstreamStream(self.dialect, response)
            await stream.begin()
            async for _ in stream.chunks():
                pass
            answer, error = stream.assembler.answer(), stream.error
            if error is None:
                return answer
        else:
            error = await response.aread()
            answer = self.dialect.answer(error) if status == _OK else None
            if answer is not None:
                return answer
        if overflow_of(status, error) is not None:
            raise WindowExceeded(f"{self.model} has no room for a summary.")
        raise FoldNotMade(f"The model's server answered {status}, without a summary.")


def _may_answer_with_text(body: Mapping[str, JsonValue]) -> bool:
    """Whether nothing in a request forces a call of a tool, or an answer that is JSON."""
    choice = body.get("tool_choice")
    formats = [body.get("response_format"), body.get("output_format")]
    formats += [_field(body.get(name), "format") for name in ("text", "output_config")]
    forced = (isinstance(choice, dict) and choice.get("type")) or choice
    return (forced is None or forced in _FREE) and all(
        _field(one, "type") in (None, "text") for one in formats
    )


def _field(value: JsonValue, name: str) -> JsonValue:
    return value.get(name) if isinstance(value, dict) else None


def shapes_of(dialect: Dialect, answer: Answer) -> list[Shape]:
    describe = wire_for(dialect.name).describe
    return [shape for payload in answer.payloads for shape in describe(payload).shapes]


def sendable_again(proxied: ProxiedRequest, body: bytes) -> ProxiedRequest:
    """The request with this body, without its keys."""
    kept = (one for one in proxied.headers if one[0].lower().decode("latin-1") not in _NOT_KEPT)
    return replace(proxied, headers=tuple(kept), body=body)


_LAST: Final[ContextVar[SentRequest | None]] = ContextVar("last_request", default=None)


@contextmanager
def offering(last: SentRequest | None) -> Generator[None]:
    """Let the folds that start in this context ask below their session's last request."""
    token = _LAST.set(last)
    try:
        yield
    finally:
        _LAST.reset(token)


def last_request(job: Job) -> SentRequest | None:
    """The last request of a fold's session, if the fold was started by the next one, here."""
    last = _LAST.get()
    return last if last is not None and last.session == job.session else None
