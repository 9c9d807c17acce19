"""One managed request: from its place in a session to an answer that the log has."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Final

import httpx2
from starlette.responses import Response

from refold.errors import Conflict, RefoldError, StoreError, ViewTooLarge
from refold.gateway.dialects.dialect import Answer
from refold.gateway.history import NotTheirs, check_theirs, rendered
from refold.gateway.incoming import IncomingRequest, SessionLease
from refold.gateway.large_requests import LargeRequests, ThreadOffload, UnloggedAnswer, is_large
from refold.gateway.session_resolver import SessionResolver
from refold.gateway.unmanaged import MANAGED, NOT_LOGGED, UnmanagedTurns
from refold.gateway.upstream import (
    AnyResponse,
    ProxiedRequest,
    Streamed,
    Upstream,
    Upstreams,
    answered_with,
)
from refold.gateway.upstream_stream import UpstreamStream
from refold.log import Note
from refold.models.catalog import Usage, cost_of
from refold.models.experience import Experiences, Setup
from refold.models.overflow import Overflow, overflow_of
from refold.session.session import TIGHTER
from refold.view import Request

SESSION: Final = "refold-session"
_STREAM: Final = "text/event-stream"
_FULL: Final = 0.8
"""From this share of the window on, a stream in which nothing comes says that it was too much."""
_OK: Final = 200
_BYTES: Final = 4
"""Of an answer for each token, where nobody counted them."""

Charge = Callable[[Usage, float | None], None]
"""Is told what an answer used, and what that cost in dollars, if it is known."""
Later = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
"""Starts what is to be done whether or not somebody waits for it."""


@dataclass(frozen=True, slots=True)
class GatewayContext:
    """What every request needs."""

    resolver: SessionResolver
    upstreams: Upstreams
    experiences: Experiences
    setup: Callable[[IncomingRequest], Setup]
    later: Later
    aside: ThreadOffload
    unmanaged: UnmanagedTurns
    large: LargeRequests | None
    """Logs large answers elsewhere."""
    recovered: Callable[[], Awaitable[None]] | None
    """Waits until the store is back; None where nothing is put off until then."""


class ManagedRequest:
    """One request, until it is answered or given up."""

    def __init__(
        self,
        context: GatewayContext,
        incoming: IncomingRequest,
        proxied: ProxiedRequest,
        upstream: Upstream,
        charge: Charge,
    ) -> None:
        self._context = context
        self._incoming = incoming
        self._proxied = proxied
        self._upstream = upstream
        self._charge = charge
        self._lease: SessionLease
        self._request: Request | None = None
        self._record = 0
        self._planned_in = ""
        """The name of the session that has the record."""
        self._body_sent = b""
        self._over = False
        """The stream has come to its end, or was left before."""
        self._is_logged = True
        self._logged_in = ""
        """The session in which another process logged the answer."""
        self._rewritten: set[int] = set()
        """The entries that the client sends back in another form than the log has."""

    async def answer(self) -> Response:
        """What the client gets.

        Raises:
            StoreError: The store is unavailable, and nothing has been asked of the provider.
        """
        self._lease = await self._context.resolver.lease(self._incoming)
        self._context.unmanaged.placed(self._incoming.tenant, self._incoming.chain)
        try:
            return await self._answered()
        except StoreError:
            # The client does not wait for a note that cannot be written now.
            await self._lease.leave()
            self._context.later(self._failed_before("The store was unavailable."))
            raise
        except BaseException as error:
            await self._surely(
                self._failed(f"{type(error).__name__}: the request was not answered.")
            )
            raise

    async def _answered(self) -> Response:
        refused: Response | None = None
        for refusals in range(len(TIGHTER) + 1):
            try:
                body = await self._body(forced=refusals > 0)
            except StoreError:
                if refused is None:
                    raise
                break  # the provider has answered: that is what the client gets
            except ViewTooLarge:
                if refused is not None:
                    break
                body = (
                    self._incoming.parsed_request.raw
                )  # the provider says best what is too much for it
            sent = replace(self._proxied, body=body)
            response = await self._context.upstreams.send(self._upstream, sent)
            try:
                answer = await self._heard(response)
            except BaseException:
                await response.aclose()
                raise
            if isinstance(answer, Response):
                return answer
            reserve = self._lease.kept.session.setup.budget.reserve
            model = self._incoming.parsed_request.model
            self._context.experiences.refused(model, self._sent, answer.said, reserve)
            refused = answer.response
            if _asks_too_much(answer.said):
                break  # however short the conversation is made, its answer may not be so long
        assert refused is not None  # noqa: S101 - it was refused each time
        await self._surely(self._failed("The upstream refused the request for its length."))
        return refused

    async def _body(self, *, forced: bool) -> bytes:
        resolver = self._context.resolver
        for elsewhere in (resolver.branched, resolver.apart):
            try:
                return await self._planned(forced=forced)
            except NotTheirs:
                self._lease = await elsewhere(self._lease)
        return await self._planned(forced=forced)

    async def _planned(self, *, forced: bool) -> bytes:
        incoming, kept = self._incoming, self._lease.kept
        session = kept.session
        setup = self._context.setup(incoming)
        async with kept.turn:
            if setup is not session.setup:
                await session.switch(setup)
            if forced:  # it took a while until it was refused
                await session.catch_up()
                check_theirs(incoming.dialect, incoming.parsed_request, session.inputs)
            self._request = await session.request(
                forced=forced,
                extras=incoming.parsed_request.beside,
                hashes=self._rendered,
                caught_up=self._lease.said and not forced,
            )
            self._record, self._planned_in = session.record, session.name
        return self._body_sent

    def _rendered(self, request: Request) -> Mapping[str, str]:
        """Make the body; the record has its hash, and that of what the client sent."""
        parsed_request, inputs = self._incoming.parsed_request, self._lease.kept.session.inputs
        self._body_sent, self._rewritten = rendered(
            self._incoming.dialect, parsed_request, inputs, request
        )
        came = sha256(parsed_request.raw).hexdigest()
        as_it_came = self._body_sent is parsed_request.raw
        return {"client": came, "sent": came if as_it_came else sha256(self._body_sent).hexdigest()}

    async def _heard(self, response: httpx2.Response) -> "Response | _TooLong":
        kind = response.headers.get("content-type", "")
        if response.status_code == _OK and kind.startswith(_STREAM):
            return await self._streamed(response)
        content = await response.aread()
        await response.aclose()
        status = response.status_code
        if status != _OK and (said := overflow_of(status, content)) is not None:
            return _TooLong(said, self._told(Response(content, status), response))
        answer = None
        if status == _OK and self._is_handed_over(content):
            await self._surely(self._logged_elsewhere((content,), is_response=True))
            return self._told(Response(content, status), response)
        if status == _OK:
            answer = await self._context.aside(len(content), self._incoming.dialect.answer, content)
        if answer is None:
            await self._surely(self._failed(f"The upstream answered {status}."))
        else:
            await self._surely(self._logged(answer))
        return self._told(Response(content, status), response)

    async def _streamed(self, response: httpx2.Response) -> "Response | _TooLong":
        listening = UpstreamStream(self._incoming.dialect, response)
        await listening.begin()
        said = self._refused_in(listening)
        if said is not None:
            whole = self._told(Response(await listening.refused(), _OK), response)
            await response.aclose()
            return _TooLong(said, whole)
        made = Streamed(self._passed_on(listening), _OK)
        made.unheard = partial(self._left, listening)
        return self._told(made, response)

    def _refused_in(self, listening: UpstreamStream) -> Overflow | None:
        """Whether the stream says at its beginning, by an error or by nothing, that it is full."""
        if listening.error is not None:
            return overflow_of(None, listening.error)
        window = self._lease.kept.session.setup.budget.window
        full = window is not None and self._sent >= _FULL * window
        return Overflow(window) if listening.silent and full else None

    async def _passed_on(self, listening: UpstreamStream) -> AsyncGenerator[bytes]:
        """The stream. Its end is sent when the log has the answer."""
        try:
            async for chunk in listening.passed():
                yield chunk
            answer = listening.assembling.answer()
            self._over = True
            if listening.assembling.failed or not answer.complete:
                await self._surely(self._interrupted(answer))
            else:
                await self._surely(self._logged(answer))
            if listening.held:
                yield listening.held
        finally:
            self._left(listening)

    def _left(self, listening: UpstreamStream) -> None:
        """Nobody listens any more. Nothing here may wait: whoever is cancelled may not."""
        if not self._over:
            self._over = True
            self._context.later(self._interrupted(listening.assembling.answer()))
        self._context.later(listening.close())

    async def _logged(self, answer: Answer, note: Note | None = None) -> None:
        if not answer.payloads:
            return await self._failed("The answer says nothing.")
        if any(map(self._is_handed_over, answer.payloads)):
            return await self._logged_elsewhere(
                answer.payloads, usage=answer.usage, note=note.text if note else ""
            )
        self._learn(answer)
        try:
            await self._append(self._lease, answer, note)
        except Conflict:  # the same was asked twice, and the other answer came first
            self._lease = await self._context.resolver.branched(self._lease)
            await self._append(self._lease, answer, note)
        except StoreError:
            # The client gets what was paid for; it is logged when the client sends it again.
            mark = self._lease.answered(answer.payloads)
            self._context.unmanaged.not_logged(
                self._incoming.tenant, self._incoming.chain, mark.key
            )
            self._is_logged = False
        finally:
            await self._lease.leave()
        return None

    def _is_handed_over(self, raw: bytes) -> bool:
        """Whether to read it here would keep others waiting."""
        return self._context.large is not None and is_large(raw)

    async def _logged_elsewhere(
        self,
        pieces: tuple[bytes, ...],
        *,
        is_response: bool = False,
        usage: Usage | None = None,
        note: str = "",
    ) -> None:
        """Have a large answer read and logged in another process."""
        lease, incoming = self._lease, self._incoming
        assert self._context.large is not None  # noqa: S101 - it is handed over
        name, link = lease.kept.session.name, incoming.chain.end
        unlogged = UnloggedAnswer(
            *(incoming.tenant, incoming.dialect.path, name, link, lease.tip),
            *(pieces, is_response, usage, note),
        )
        try:
            logged = await self._context.large.log_answer(unlogged)
        except RefoldError:
            # It is in the log when the client sends it again, with its next request.
            self._is_logged = False
            self._charge_for(usage, sum(map(len, pieces)))
            await self._failed("The answer could not be logged.")
            return
        if not logged.session:
            await self._failed("The upstream's answer says nothing.")
            return
        self._charge_for(logged.usage, logged.size)
        self._logged_in = logged.session
        await lease.leave()

    def _learn(self, answer: Answer) -> None:
        self._charge_for(answer.usage, sum(map(len, answer.payloads)))

    def _charge_for(self, told: Usage | None, size: int) -> None:
        if told is not None and told.input and self._sent:
            self._context.experiences.answered(
                self._incoming.parsed_request.model, self._sent, told.input
            )
        elif self._sent:
            self._context.experiences.took(self._incoming.parsed_request.model, self._sent)
        used = told or Usage(self._sent)
        if not used.output:  # nobody said, or it broke off before they did
            used = used._replace(output=size // _BYTES)
        self._charge(used, cost_of(used, self._incoming.setup.prices))

    async def _append(self, lease: SessionLease, answer: Answer, note: Note | None) -> None:
        mark = lease.answered(answer.payloads)
        differing = sorted(self._rewritten - lease.kept.noted)
        if note is None and differing:
            note = _rewritten_note(differing)
            lease.kept.noted |= self._rewritten
        async with lease.kept.turn:
            done = await lease.kept.session.answer(
                *answer.payloads, usage=answer.usage, note=note, mark=mark
            )
        self._context.resolver.answered(lease, mark.key, done.first + mark.nth, answer.payloads)

    async def _interrupted(self, answer: Answer) -> None:
        """What came before the client left, or the upstream broke off."""
        note = Note("The answer was interrupted.", {"gateway": "interrupted"})
        if answer.payloads:
            await self._logged(answer, note)
        else:
            await self._failed(note.text)

    async def _failed(self, words: str) -> None:
        """Nothing was answered; asking the same again is a retry."""
        lease = self._lease
        note = Note(words, {"gateway": "failed", "request": self._record})
        try:
            with suppress(Conflict, StoreError):  # then others went on meanwhile, or nobody can
                async with lease.kept.turn:
                    await lease.kept.session.note(note, mark=lease.failed())
        finally:
            await lease.leave()

    async def _failed_before(self, words: str) -> None:
        """Note, when the store is back, that nothing was asked: a retry then finds its session."""
        note = Note(words, {"gateway": "failed", "request": self._record})
        if self._context.recovered is not None:
            await self._context.resolver.note_failure(self._lease, note, self._context.recovered)

    async def _surely(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it to its end, also when who waits for it is gone."""
        await asyncio.shield(self._context.later(work))

    @property
    def _sent(self) -> int:
        return self._request.plan.account.sent if self._request else 0

    def _told(self, made: AnyResponse, response: httpx2.Response) -> AnyResponse:
        """The answer, with where it is kept: of a stream, where it will be unless others are first.

        Its place may be a branch by now; the record of the request stays where it was planned.
        """
        name = self._logged_in or self._lease.kept.session.name
        request = f"{self._planned_in or name}:{self._record}"
        managed = MANAGED if self._is_logged else NOT_LOGGED
        return answered_with(made, response, session=name, request=request, managed=managed)


def _asks_too_much(said: Overflow) -> bool:
    """Whether the answer alone was to have more than half of what the provider takes."""
    return bool(said.limit and said.output and 2 * said.output > said.limit)


def _rewritten_note(entries: Sequence[int]) -> Note:
    """Says that what was sent of these entries is the client's form, without saying it again."""
    named = ", ".join(map(str, entries))
    words = f"The client sends back in another form, which is what was sent: entry {named}."
    return Note(words, {"gateway": "rewritten", "entries": list(entries)})


@dataclass(frozen=True, slots=True)
class _TooLong:
    """A request was refused for its length."""

    said: Overflow
    response: Response
