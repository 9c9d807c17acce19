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
from refold.gateway.incoming import Place, Wanted
from refold.gateway.large_requests import Aside, LargeRequests, UnloggedAnswer, is_large
from refold.gateway.session_resolver import Placing
from refold.gateway.unmanaged import MANAGED, NOT_LOGGED, UnmanagedTurns
from refold.gateway.upstream import (
    AnyResponse,
    Passing,
    Streamed,
    Upstream,
    Upstreams,
    answered_with,
)
from refold.gateway.upstream_stream import Listening
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
class Means:
    """What every request needs."""

    placing: Placing
    upstreams: Upstreams
    experiences: Experiences
    setup: Callable[[Wanted], Setup]
    later: Later
    aside: Aside
    unmanaged: UnmanagedTurns
    large: LargeRequests | None
    """Logs large answers elsewhere."""
    recovered: Callable[[], Awaitable[None]] | None
    """Waits until the store is back; None where nothing is put off until then."""


class Asking:
    """One request, until it is answered or given up."""

    def __init__(
        self, means: Means, wanted: Wanted, passing: Passing, upstream: Upstream, charge: Charge
    ) -> None:
        self._means = means
        self._wanted = wanted
        self._passing = passing
        self._upstream = upstream
        self._charge = charge
        self._place: Place
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
        self._place = await self._means.placing.place(self._wanted)
        self._means.unmanaged.placed(self._wanted.tenant, self._wanted.chain)
        try:
            return await self._answered()
        except StoreError:
            # The client does not wait for a note that cannot be written now.
            await self._place.leave()
            self._means.later(self._failed_before("The store was unavailable."))
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
                body = self._wanted.asked.raw  # the provider says best what is too much for it
            sent = replace(self._passing, body=body)
            response = await self._means.upstreams.send(self._upstream, sent)
            try:
                answer = await self._heard(response)
            except BaseException:
                await response.aclose()
                raise
            if isinstance(answer, Response):
                return answer
            reserve = self._place.kept.session.setup.budget.reserve
            model = self._wanted.asked.model
            self._means.experiences.refused(model, self._sent, answer.said, reserve)
            refused = answer.response
            if _asks_too_much(answer.said):
                break  # however short the conversation is made, its answer may not be so long
        assert refused is not None  # noqa: S101 - it was refused each time
        await self._surely(self._failed("The upstream refused the request for its length."))
        return refused

    async def _body(self, *, forced: bool) -> bytes:
        placing = self._means.placing
        for elsewhere in (placing.branched, placing.apart):
            try:
                return await self._planned(forced=forced)
            except NotTheirs:
                self._place = await elsewhere(self._place)
        return await self._planned(forced=forced)

    async def _planned(self, *, forced: bool) -> bytes:
        wanted, kept = self._wanted, self._place.kept
        session = kept.session
        setup = self._means.setup(wanted)
        async with kept.turn:
            if setup is not session.setup:
                await session.switch(setup)
            if forced:  # it took a while until it was refused
                await session.catch_up()
                check_theirs(wanted.dialect, wanted.asked, session.sheet)
            self._request = await session.request(
                forced=forced,
                beside=wanted.asked.beside,
                hashes=self._rendered,
                caught_up=self._place.said and not forced,
            )
            self._record, self._planned_in = session.record, session.name
        return self._body_sent

    def _rendered(self, request: Request) -> Mapping[str, str]:
        """Make the body; the record has its hash, and that of what the client sent."""
        asked, sheet = self._wanted.asked, self._place.kept.session.sheet
        self._body_sent, self._rewritten = rendered(self._wanted.dialect, asked, sheet, request)
        came = sha256(asked.raw).hexdigest()
        as_it_came = self._body_sent is asked.raw
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
            answer = await self._means.aside(len(content), self._wanted.dialect.answer, content)
        if answer is None:
            await self._surely(self._failed(f"The upstream answered {status}."))
        else:
            await self._surely(self._logged(answer))
        return self._told(Response(content, status), response)

    async def _streamed(self, response: httpx2.Response) -> "Response | _TooLong":
        listening = Listening(self._wanted.dialect, response)
        await listening.begin()
        said = self._refused_in(listening)
        if said is not None:
            whole = self._told(Response(await listening.refused(), _OK), response)
            await response.aclose()
            return _TooLong(said, whole)
        made = Streamed(self._passed_on(listening), _OK)
        made.unheard = partial(self._left, listening)
        return self._told(made, response)

    def _refused_in(self, listening: Listening) -> Overflow | None:
        """Whether the stream says at its beginning, by an error or by nothing, that it is full."""
        if listening.error is not None:
            return overflow_of(None, listening.error)
        window = self._place.kept.session.setup.budget.window
        full = window is not None and self._sent >= _FULL * window
        return Overflow(window) if listening.silent and full else None

    async def _passed_on(self, listening: Listening) -> AsyncGenerator[bytes]:
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

    def _left(self, listening: Listening) -> None:
        """Nobody listens any more. Nothing here may wait: whoever is cancelled may not."""
        if not self._over:
            self._over = True
            self._means.later(self._interrupted(listening.assembling.answer()))
        self._means.later(listening.close())

    async def _logged(self, answer: Answer, note: Note | None = None) -> None:
        if not answer.payloads:
            return await self._failed("The answer says nothing.")
        if any(map(self._is_handed_over, answer.payloads)):
            return await self._logged_elsewhere(
                answer.payloads, usage=answer.usage, note=note.text if note else ""
            )
        self._learn(answer)
        try:
            await self._append(self._place, answer, note)
        except Conflict:  # the same was asked twice, and the other answer came first
            self._place = await self._means.placing.branched(self._place)
            await self._append(self._place, answer, note)
        except StoreError:
            # The client gets what was paid for; it is logged when the client sends it again.
            mark = self._place.answered(answer.payloads)
            self._means.unmanaged.not_logged(self._wanted.tenant, self._wanted.chain, mark.key)
            self._is_logged = False
        finally:
            await self._place.leave()
        return None

    def _is_handed_over(self, raw: bytes) -> bool:
        """Whether to read it here would keep others waiting."""
        return self._means.large is not None and is_large(raw)

    async def _logged_elsewhere(
        self,
        pieces: tuple[bytes, ...],
        *,
        is_response: bool = False,
        usage: Usage | None = None,
        note: str = "",
    ) -> None:
        """Have a large answer read and logged in another process."""
        place, wanted = self._place, self._wanted
        assert self._means.large is not None  # noqa: S101 - it is handed over
        name, link = place.kept.session.name, wanted.chain.end
        unlogged = UnloggedAnswer(
            *(wanted.tenant, wanted.dialect.path, name, link, place.tip),
            *(pieces, is_response, usage, note),
        )
        try:
            logged = await self._means.large.log_answer(unlogged)
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
        await place.leave()

    def _learn(self, answer: Answer) -> None:
        self._charge_for(answer.usage, sum(map(len, answer.payloads)))

    def _charge_for(self, told: Usage | None, size: int) -> None:
        if told is not None and told.input and self._sent:
            self._means.experiences.answered(self._wanted.asked.model, self._sent, told.input)
        elif self._sent:
            self._means.experiences.took(self._wanted.asked.model, self._sent)
        used = told or Usage(self._sent)
        if not used.output:  # nobody said, or it broke off before they did
            used = used._replace(output=size // _BYTES)
        self._charge(used, cost_of(used, self._wanted.setup.prices))

    async def _append(self, place: Place, answer: Answer, note: Note | None) -> None:
        mark = place.answered(answer.payloads)
        differing = sorted(self._rewritten - place.kept.noted)
        if note is None and differing:
            note = _rewritten_note(differing)
            place.kept.noted |= self._rewritten
        async with place.kept.turn:
            done = await place.kept.session.answer(
                *answer.payloads, usage=answer.usage, note=note, mark=mark
            )
        self._means.placing.answered(place, mark.key, done.first + mark.nth, answer.payloads)

    async def _interrupted(self, answer: Answer) -> None:
        """What came before the client left, or the upstream broke off."""
        note = Note("The answer was interrupted.", {"gateway": "interrupted"})
        if answer.payloads:
            await self._logged(answer, note)
        else:
            await self._failed(note.text)

    async def _failed(self, words: str) -> None:
        """Nothing was answered; asking the same again is a retry."""
        place = self._place
        note = Note(words, {"gateway": "failed", "request": self._record})
        try:
            with suppress(Conflict, StoreError):  # then others went on meanwhile, or nobody can
                async with place.kept.turn:
                    await place.kept.session.note(note, mark=place.failed())
        finally:
            await place.leave()

    async def _failed_before(self, words: str) -> None:
        """Note, when the store is back, that nothing was asked: a retry then finds its session."""
        note = Note(words, {"gateway": "failed", "request": self._record})
        if self._means.recovered is not None:
            await self._means.placing.note_failure(self._place, note, self._means.recovered)

    async def _surely(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it to its end, also when who waits for it is gone."""
        await asyncio.shield(self._means.later(work))

    @property
    def _sent(self) -> int:
        return self._request.plan.account.sent if self._request else 0

    def _told(self, made: AnyResponse, response: httpx2.Response) -> AnyResponse:
        """The answer, with where it is kept: of a stream, where it will be unless others are first.

        Its place may be a branch by now; the record of the request stays where it was planned.
        """
        name = self._logged_in or self._place.kept.session.name
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
