"""One managed request: from its session to an answer that is in the log."""

import asyncio
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from operator import add
from time import monotonic
from typing import Any, Final, NamedTuple

import httpx2
from pydantic import JsonValue
from starlette.responses import Response

from refold.errors import Conflict, RefoldError, StoreError, ViewTooLarge
from refold.fold.compactor import AUTO
from refold.gateway.client_keys import lending
from refold.gateway.dialects.dialect import Answer, ParsedRequest, Reference
from refold.gateway.dialects.hidden_calls import HiddenCall
from refold.gateway.dialects.hidden_streams import StreamRewriter
from refold.gateway.hidden_recall import HINT, MAX_ROUNDS
from refold.gateway.history import HistoryMismatch, check_history, extras_of, render
from refold.gateway.incoming import IncomingRequest, SessionLease
from refold.gateway.large_requests import LargeRequests, ThreadOffload, UnloggedAnswer, is_large
from refold.gateway.provider_state import (
    KnownAnswer,
    answer_notes,
    context_note,
    is_unknown,
    left_alone,
    lost_note,
)
from refold.gateway.session_resolver import SessionResolver
from refold.gateway.unmanaged import NOT_LOGGED, UnmanagedTurns
from refold.gateway.unmanaged import managed as managed_value
from refold.gateway.upstream import (
    AnyResponse,
    ProxiedRequest,
    ProxiedStream,
    Upstream,
    Upstreams,
    with_headers,
)
from refold.gateway.upstream_stream import UpstreamStream
from refold.gateway.warm_summary import MAX_KEPT, SentRequest, offering, sendable_again, shapes_of
from refold.log import Log, Note
from refold.models.catalog import Usage, cost_of
from refold.models.experience import Experiences, Setup
from refold.models.overflow import Overflow, overflow_of
from refold.session.session import TIGHTER
from refold.view import Request

SESSION: Final = "refold-session"
_EVENT_STREAM: Final = "text/event-stream"
_NEARLY_FULL: Final = 0.8
"""From this share of the window on, a stream that ends without an event was too much."""
_OK: Final = 200
_BYTES_PER_TOKEN: Final = 4
"""Of an answer, where nobody counted its tokens."""

Charge = Callable[[Usage, float | None], None]
"""Called with an answer's usage, and its cost in dollars, if that is known."""
RunLater = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
"""Starts work that is done whether or not somebody waits for it."""


@dataclass(frozen=True, slots=True)
class Summaries:
    """Who writes the summaries of folds that requests start."""

    possible: Callable[[str, Setup], bool] = lambda _tenant, _setup: True
    """Whether a model can write those of a tenant's session, here and now."""
    lend_keys: bool = False
    """Whether clients' keys may be used for them."""
    in_process: bool = False
    """Whether this process makes the folds, and could ask a model on its warm cache."""


@dataclass(frozen=True, slots=True)
class GatewayContext:
    """What every request of a tenant needs."""

    resolver: SessionResolver
    upstreams: Upstreams
    experiences: Experiences
    setup: Callable[[IncomingRequest], Setup]
    run_later: RunLater
    offload: ThreadOffload
    unmanaged: UnmanagedTurns
    large: LargeRequests | None
    """Logs large answers elsewhere."""
    recovered: Callable[[], Awaitable[None]] | None
    """Waits until the store is back; None where nothing is put off until then."""
    summaries: "Summaries"
    log_of: Callable[[str], Log]
    """The log of a tenant."""
    receipts: bool = False
    """Whether answers say what their session has saved so far."""


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
        self._outcome = proxied.outcome
        self._outcome.upstream = upstream.name
        self._lease: SessionLease
        self._request: Request | None = None
        self._record = 0
        self._receipt = ""
        """What the session was billed before this request, as a header."""
        self._planned_in = ""
        """The name of the session that has the record."""
        self._body_sent = b""
        self._stream_ended = False
        """The stream has come to its end, or was left before."""
        self._is_logged = True
        self._logged_in = ""
        """The session in which another process logged the answer."""
        self._rewritten: set[int] = set()
        """The entries that the client sends back in another form than the log has."""
        self._compaction_signal = ""
        """What the stream said when the provider compacted its own context."""
        self._by_provider = incoming.root
        """Why the provider has the last word on what the model sees; empty if we have it."""
        self._is_shortened = False
        """Whether what was sent has less than the log, by Refold's edits."""
        self._lost: Reference | None = None
        """What the provider does not have any more, so that all was sent instead."""
        self._rounds: list[Answer] = []
        """The answers before the last one that only called hidden tools."""
        self._bodies: list[bytes] = []
        """Their responses, if they did not come as streams."""
        self._used_before: Usage | None = None
        """What the rounds used that are charged."""
        self._rewriter: StreamRewriter | None = None
        """Hides calls in streams."""

    async def answer(self) -> Response:
        """The response for the client.

        Raises:
            StoreError: The store is unavailable. The provider has been asked nothing, or it has
                refused the request for its length.
        """
        self._lease = await self._context.resolver.lease(self._incoming)
        self._outcome.session = self._lease.session.name
        self._context.unmanaged.logged(self._incoming.tenant, self._incoming.chain)
        try:
            return await self._send_until_it_fits()
        except StoreError:
            # The client does not wait for a note that cannot be written now.
            await self._lease.release()
            self._context.run_later(self._note_store_failure())
            raise
        except BaseException as error:
            await self._shield(self._fail(f"{type(error).__name__}: the request was not answered."))
            raise

    async def _send_until_it_fits(self) -> Response:
        """Send; after each refusal for its length plan again with less, up to `TIGHTER`'s end."""
        context, refused = self._context, None
        model = self._incoming.parsed_request.model
        for refusals in range(len(TIGHTER) + 1):
            try:
                body = await self._plan_body(forced=refusals > 0)
            except ViewTooLarge:
                if refused is not None:
                    break
                # Nothing would fit: the client gets the provider's own refusal of what it sent.
                body = self._proxied.body
            sent = replace(self._proxied, body=body)
            response = await context.upstreams.send(self._upstream, sent)
            self._outcome.answered(self._upstream.name, response.status_code)
            try:
                result = await self._receive(response)
            except BaseException:
                await response.aclose()
                raise
            if isinstance(result, Response):
                return result
            overflow, refused = result
            if self._incoming.root:
                break  # what is too long is not here
            reserve = self._lease.session.setup.budget.reserve
            context.experiences.refused(model, self._sent_tokens, overflow, reserve)
            # If the answer alone is to have more than half of what the provider takes, no
            # conversation is short enough.
            if overflow.limit and overflow.output and 2 * overflow.output > overflow.limit:
                break
        assert refused is not None  # noqa: S101 - it was refused each time
        await self._shield(self._fail("The upstream refused the request for its length."))
        return refused

    async def _plan_body(self, *, forced: bool) -> bytes:
        resolver = self._context.resolver
        for move in (resolver.branch, resolver.isolate):
            try:
                return await self._plan(forced=forced)
            except HistoryMismatch:
                self._lease = await move(self._lease)
        return await self._plan(forced=forced)

    async def _plan(self, *, forced: bool) -> bytes:
        incoming, session = self._incoming, self._lease.session
        self._context.experiences.resume(session.setup)
        setup = self._context.setup(incoming)
        async with self._lease.opened.turn:
            self._by_provider = self._provider_context(forced=forced)
            setup = left_alone(setup, session.inputs) if self._by_provider else setup
            with self._lending():
                possible = self._context.summaries.possible(incoming.tenant, setup)
                session.allow_folds(summarizer=possible, on=not self._by_provider)
                if setup is not session.setup:
                    await session.switch(setup)
                if forced:  # the refusal took a while
                    await session.catch_up()
                    check_history(incoming.dialect, self._full_request(), session.inputs)
                self._request = await session.request(
                    forced=forced,
                    extras=extras_of(self._parsed_request, self._proxied.headers),
                    hashes=self._render,
                    caught_up=self._lease.has_appended and not forced,
                )
            self._record, self._planned_in = session.record, session.name
            self._lease.opened.sent.recorded(session.record)
            if self._context.receipts:
                self._receipt = await self._read_receipt()
        return self._body_sent

    def _provider_context(self, *, forced: bool) -> str:
        """Why the provider manages the context of the request; empty if that is done here.

        One of the two compacts, never both: where something is folded already, or the provider
        refuses the request for its length, its own edits are taken out of the request.
        """
        edits = self._incoming.parsed_request.edits
        if self._incoming.root or not edits or forced or self._lease.session.inputs.foldings:
            return self._incoming.root
        return ", ".join(edits)

    async def _read_receipt(self) -> str:
        opened, tenant = self._lease.opened, self._incoming.tenant
        try:
            log = self._context.log_of(tenant)
            receipt = await opened.accounts.read_on(log, opened.session.name)
        except RefoldError:  # a figure for people is no reason to answer nothing
            return ""
        saved = receipt.whole - receipt.paid
        amounts = {"paid": receipt.paid, "whole": receipt.whole, "saved": saved}
        return ", ".join(f"{name}={amount:.6f}" for name, amount in amounts.items())

    def _render(self, request: Request) -> Mapping[str, str | bytes]:
        """Make the body; the record has its hash, that of what the client sent, and its marks."""
        parsed_request, session = self._full_request(), self._lease.session
        rendered = render(
            self._incoming.dialect,
            parsed_request,
            session.inputs,
            request,
            drop_orphans=session.setup.profile.fit.orphans == "drop",
            as_it_came=bool(self._by_provider),
            is_journal=bool(self._incoming.journal),
        )
        self._body_sent, self._rewritten = rendered.body, rendered.rewritten
        client = sha256(self._proxied.body).hexdigest()
        unchanged = self._body_sent is self._proxied.body
        self._is_shortened = self._body_sent is not parsed_request.raw
        inputs = session.inputs
        forms = self._lease.opened.sent.forms_of(
            session.record,
            rendered.messages,
            lambda seq: inputs.rows[inputs.at(seq)].payload,
            edited=self._is_shortened,
        )
        return {
            "client": client,
            "sent": client if unchanged else sha256(self._body_sent).hexdigest(),
            **({"provider": self._by_provider} if self._by_provider else {}),
            **({"held": str(parsed_request.held)} if unchanged and parsed_request.held else {}),
            **forms,
        }

    @property
    def _parsed_request(self) -> ParsedRequest:
        """What the client asks, as this round asks it."""
        parsed_request, recall = self._incoming.parsed_request, self._incoming.recall
        if recall is None or len(self._rounds) < MAX_ROUNDS:
            return parsed_request
        return recall.without_choice(parsed_request)

    def _full_request(self) -> ParsedRequest:
        """The same, with what the client does not see, or does not send, of its conversation."""
        recall, parsed_request = self._incoming.recall, self._parsed_request
        rows = [row.payload for row in self._lease.session.inputs.rows]
        if self._incoming.journal:
            own = parsed_request.messages[parsed_request.held :]
            parsed_request = replace(parsed_request, messages=own)
            return self._incoming.dialect.continuing(parsed_request, rows[: -len(own)])
        return recall.full(parsed_request, rows) if recall is not None else parsed_request

    async def _receive(self, response: httpx2.Response) -> "Response | _TooLong":
        status, kind = response.status_code, response.headers.get("content-type", "")
        if status == _OK and kind.startswith(_EVENT_STREAM):
            return await self._receive_stream(response)
        content = await response.aread()
        await response.aclose()
        if status != _OK:
            if self._detach(status, content):
                return await self._send_until_it_fits()
            overflow = overflow_of(status, content)
            if overflow is not None:
                return _TooLong(overflow, self._with_headers(Response(content, status), response))
            await self._shield(self._fail(f"The upstream answered {status}."))
        elif self._is_large(content):
            await self._shield(self._log_elsewhere((content,)))
        else:
            read = self._incoming.dialect.answer
            answer = await self._context.offload(len(content), read, content)
            if answer is None:
                await self._shield(self._fail(f"The upstream answered {status}."))
            elif calls := self._hidden_calls(answer):
                self._bodies.append(content)
                await self._shield(self._log_round(answer, calls))
                return await self._send_until_it_fits()
            else:
                await self._shield(self._log(answer))
                content = self._merged(content)
        return self._with_headers(Response(content, status), response)

    def _detach(self, status: int, error: bytes) -> bool:
        """Whether to send the whole conversation: the provider does not have its beginning."""
        incoming = self._incoming
        reference = incoming.reference
        if reference is None or self._lost or incoming.root or not is_unknown(status, error):
            return False
        self._lost = reference
        parsed_request = incoming.dialect.detached(incoming.parsed_request, lost=True)
        self._incoming = replace(incoming, parsed_request=parsed_request)
        return True

    # Rounds in which the model reads back.

    def _hidden_calls(self, answer: Answer) -> list[HiddenCall]:
        """The calls of an answer that only calls hidden tools, if another round may follow."""
        recall = self._incoming.recall
        if recall is None or not answer.complete or len(self._rounds) >= MAX_ROUNDS:
            return []
        return recall.only_hidden(answer.payloads)

    async def _log_round(self, answer: Answer, calls: Sequence[HiddenCall]) -> None:
        """Log an answer that the client does not see as one, and the results of its calls."""
        recall, session = self._incoming.recall, self._lease.session
        assert recall is not None  # noqa: S101 - it has offered the tools
        self._charge_for(answer.usage, sum(map(len, answer.payloads)))
        self._rounds.append(answer)
        async with self._lease.opened.turn:
            key = self._incoming.key or None
            await session.answer(*answer.payloads, usage=answer.usage, key=key)
            await session.say(*await recall.run(session.name, calls))

    def _merged(self, content: bytes) -> bytes:
        """The response to the client: that of all rounds, without hidden calls."""
        recall = self._incoming.recall
        if recall is None or not (self._bodies or HINT in content):
            return content
        is_last = len(self._rounds) >= MAX_ROUNDS
        return recall.form.response([*self._bodies, content], is_last=is_last)

    def _shown(self, answer: Answer) -> tuple[bytes, ...]:
        """What the client has of the answer and the rounds before it."""
        recall = self._incoming.recall
        if recall is None:
            return answer.payloads
        return recall.shown([*self._rounds, answer])

    async def _receive_stream(self, response: httpx2.Response) -> "Response | _TooLong":
        recall = self._incoming.recall
        if recall is not None and self._rewriter is None:
            self._rewriter = recall.form.rewriter()
        stream = UpstreamStream(self._incoming.dialect, response, self._rewriter)
        await stream.begin()
        overflow = None
        if stream.error is not None:
            if self._detach(HTTPStatus.BAD_REQUEST, stream.error):
                await response.aclose()
                return await self._send_until_it_fits()
            overflow = overflow_of(None, stream.error)
        elif stream.silent:
            window = self._lease.session.setup.budget.window
            if window is not None and self._sent_tokens >= _NEARLY_FULL * window:
                overflow = Overflow(window)
        if overflow is not None:
            refusal = self._with_headers(Response(await stream.read_refusal(), _OK), response)
            await response.aclose()
            return _TooLong(overflow, refusal)
        if self._rounds:
            return _NextRound(stream)
        proxied = ProxiedStream(self._relay(stream), _OK)
        proxied.on_close = partial(self._leave, stream)
        return self._with_headers(proxied, response)

    async def _relay(self, stream: UpstreamStream) -> AsyncGenerator[bytes]:
        """Pass the stream on. Its end is sent when the log has the answer."""
        current: UpstreamStream | None = stream
        try:
            while current is not None:
                async for chunk in current.chunks():
                    yield chunk
                answer = current.assembler.answer()
                calls = [] if current.assembler.failed else self._hidden_calls(answer)
                if not calls:
                    async for chunk in self._end(current, answer):
                        yield chunk
                    return
                ended, current = current, None
                self._context.run_later(ended.close())
                current, refusal = await self._next_round(answer, calls)
                if refusal:
                    self._stream_ended = True
                    yield refusal
        finally:
            if current is not None:
                self._leave(current)
            elif not self._stream_ended:
                self._stream_ended = True
                self._context.run_later(self._fail("The client left between two rounds."))

    async def _end(self, stream: UpstreamStream, answer: Answer) -> AsyncGenerator[bytes]:
        self._stream_ended = True
        self._compaction_signal = stream.compaction_signal
        if stream.assembler.failed:
            self._outcome.fail_in_stream()
        if stream.assembler.failed or not answer.complete:
            await self._shield(self._log_interrupted(answer))
        else:
            await self._shield(self._log(answer))
        if ending := stream.ending:
            if not self._is_logged:  # the headers could not say so
                yield f": refold-managed: {NOT_LOGGED}\n\n".encode()
            yield ending

    async def _next_round(
        self, answer: Answer, calls: Sequence[HiddenCall]
    ) -> "tuple[UpstreamStream | None, bytes]":
        """The stream that continues an answer; or the error that ends it."""
        recall, rewriter = self._incoming.recall, self._rewriter
        assert recall is not None  # noqa: S101 - it has offered the tools
        assert rewriter is not None  # noqa: S101 - as above
        rewriter.next_round(recall.shown([answer]))
        reason = "the model's server did not answer"
        try:
            await self._shield(self._log_round(answer, calls))
            rewriter.is_last = len(self._rounds) >= MAX_ROUNDS
            response = await self._send_until_it_fits()
            if isinstance(response, _NextRound):
                return response.stream, b""
            reason = f"the model's server answered {response.status_code}"
        except httpx2.TransportError as error:
            self._outcome.fail_upstream(error)
            await self._shield(self._fail("The model's server did not answer."))
        except RefoldError as error:
            reason = error.what
            await self._shield(self._fail("Refold could not continue the answer."))
        what = f"The model read back, and then {reason}. Send the request again."
        refusal = self._incoming.dialect.refusal(HTTPStatus.BAD_GATEWAY, "recall-broke-off", what)
        return None, rewriter.error(refusal)

    def _leave(self, stream: UpstreamStream) -> None:
        """Nobody listens anymore. Nothing here may wait: a canceled task may not."""
        if not self._stream_ended:
            self._stream_ended = True
            answer = stream.assembler.answer()
            # The access log has its line before the answer is logged.
            self._used(answer.usage, sum(map(len, answer.payloads)))
            self._context.run_later(self._log_interrupted(answer))
        self._context.run_later(stream.close())

    async def _log(self, answer: Answer, note: Note | None = None) -> None:
        if not answer.payloads:
            await self._fail("The answer says nothing.")
            return
        if any(map(self._is_large, answer.payloads)):
            words = note.text if note else ""
            await self._log_elsewhere(answer.payloads, answer=answer, note=words)
            return
        self._charge_for(answer.usage, sum(map(len, answer.payloads)))
        try:
            await self._append(answer, note)
        except Conflict:  # the same was asked twice, and the other answer came first
            self._lease = await self._context.resolver.branch(self._lease)
            await self._append(answer, note)
        except StoreError:
            # The client gets what was paid for; it is logged when the client sends it again.
            mark = self._lease.answer_mark(self._shown(answer))
            self._context.unmanaged.not_logged(
                self._incoming.tenant, self._incoming.chain, mark.key
            )
            self._is_logged = False
        finally:
            await self._lease.release()

    def _is_large(self, raw: bytes) -> bool:
        """Whether another process is to read and log it, because it would keep others waiting."""
        if self._incoming.recall is not None and (self._rounds or HINT in raw):
            return False  # its calls are answered here
        return self._context.large is not None and is_large(raw)

    async def _log_elsewhere(
        self,
        pieces: tuple[bytes, ...],
        *,
        answer: Answer | None = None,
        note: str = "",
    ) -> None:
        """Have another process log an answer, or read one in a whole response first."""
        lease, incoming = self._lease, self._incoming
        usage = answer.usage if answer else None
        assert self._context.large is not None  # noqa: S101 - the answer is large
        unlogged = UnloggedAnswer(
            *(incoming.tenant, incoming.dialect.path, lease.session.name, incoming.chain.tip),
            *(lease.tip, pieces, answer is None, usage, note),
            owner=incoming.owner.hex(),
            is_kept=self._is_kept,
            id=answer.id if answer else "",
            edits=answer.edits if answer else (),
            root=incoming.root,
            is_shortened=self._is_shortened,
            signal=self._compaction_signal,
            notes=[(each.text, each.data) for each in self._context_notes()],
            key=incoming.key,
        )
        try:
            logged = await self._context.large.log_answer(unlogged)
        except RefoldError:
            # It is in the log when the client sends it again, with its next request.
            self._is_logged = False
            self._charge_for(usage, sum(map(len, pieces)))
            await self._fail("The answer could not be logged.")
            return
        if not logged.session:
            await self._fail("The upstream's answer says nothing.")
            return
        self._charge_for(logged.usage, logged.size)
        self._logged_in = logged.session
        if not note:
            lease.opened.by_provider = self._by_provider
        await lease.release()

    def _charge_for(self, usage: Usage | None, size: int) -> None:
        model, experiences = self._incoming.parsed_request.model, self._context.experiences
        if self._request is not None and usage is not None and usage.input and self._sent_tokens:
            correction = self._request.plan.correction
            experiences.answered(model, self._sent_tokens, usage.input, correction)
        elif self._sent_tokens:
            experiences.record_accepted(model, self._sent_tokens)
        used = self._used(usage, size)
        self._charge(used, cost_of(used, self._incoming.setup.prices))
        self._used_before = self._outcome.usage

    def _used(self, usage: Usage | None, size: int) -> Usage:
        """What the answer used; an estimate where the provider did not report it."""
        used = usage or Usage(self._sent_tokens)
        estimated = usage is None or not used.output
        if not used.output:  # not reported, or the stream broke off before it was
            used = used._replace(output=size // _BYTES_PER_TOKEN)
        before, self._outcome.estimated = self._used_before, estimated
        self._outcome.usage = Usage(*map(add, before, used)) if before else used
        return used

    async def _append(self, answer: Answer, note: Note | None) -> None:
        lease, opened = self._lease, self._lease.opened
        mark = lease.answer_mark(self._shown(answer))
        mark = mark._replace(nth=len(answer.payloads) - 1)
        differing = sorted(self._rewritten - opened.noted)
        is_whole = note is None
        notes = self._provider_notes(answer) if is_whole else []
        if note is None and differing:
            entries = ", ".join(map(str, differing))
            words = (
                f"The client sends back in another form, which is what was sent: entry {entries}."
            )
            note = Note(words, {"gateway": "rewritten", "entries": list[JsonValue](differing)})
            opened.noted |= self._rewritten
        async with opened.turn:
            with self._lending():  # some profiles fold after the turn
                appended = await lease.session.answer(
                    *answer.payloads,
                    usage=answer.usage,
                    note=note,
                    notes=notes,
                    mark=mark,
                    key=self._incoming.key or None,
                )
        self._outcome.session = lease.session.name
        if is_whole:
            opened.by_provider = self._by_provider
        if notes and self._is_kept and answer.id:
            owner, root = self._incoming.owner, self._incoming.root
            where = lease.session.name, appended.first + mark.nth
            known = KnownAnswer(*where, root, self._is_shortened)
            provider = self._context.resolver.provider
            provider.remember(self._incoming.tenant, owner, answer.id, known)
        self._context.resolver.remember_answer(
            lease, mark.key, appended.first + mark.nth, answer.payloads
        )
        self._keep_last(answer, appended.last)

    @property
    def _is_kept(self) -> bool:
        """Whether the provider keeps the answer, so that requests may refer to it."""
        return self._incoming.dialect.state.keeps(dict(self._incoming.parsed_request.body))

    def _provider_notes(self, answer: Answer) -> list[Note]:
        """What the provider keeps of the answer, and what it did with the context."""
        incoming = self._incoming
        notes = answer_notes(
            *(incoming.owner, incoming.dialect, answer),
            is_kept=self._is_kept,
            root=incoming.root,
            is_shortened=self._is_shortened,
            signal=self._compaction_signal,
        )
        return [*notes, *self._context_notes()]

    def _context_notes(self) -> list[Note]:
        notes = [lost_note(self._lost)] if self._lost else []
        if self._by_provider and self._lease.opened.by_provider != self._by_provider:
            notes.append(context_note(self._by_provider))
        return notes

    def _keep_last(self, answer: Answer, head: int) -> None:
        """Keep what was sent, if the model may be asked for a summary below it."""
        opened, parsed_request = self._lease.opened, self._incoming.parsed_request
        setup, request, body = opened.session.setup, self._request, self._body_sent
        wanted = setup.profile.summarizer == AUTO and self._context.summaries.in_process
        # What is behind a reference is not in the body, as long as that goes out as it came.
        wanted = wanted and (parsed_request.reference is None or body is not parsed_request.raw)
        if not wanted or request is None or not answer.complete or len(body) > MAX_KEPT:
            opened.last = None
            return
        calls = any(shape.kind == "call" for shape in shapes_of(self._incoming.dialect, answer))
        opened.last = SentRequest(
            *(opened.session.name, parsed_request.model, self._incoming.dialect),
            *(self._context.upstreams, self._upstream, sendable_again(self._proxied, body)),
            answer=() if calls else answer.payloads,
            usage=answer.usage,
            head=request.plan.head if calls else head,
            unseen=request.plan.unseen,
            tokens=(answer.usage.input if answer.usage else 0) or self._sent_tokens,
            at=monotonic(),
        )

    async def _log_interrupted(self, answer: Answer) -> None:
        """Log what came before the client left, or the upstream broke off."""
        note = Note("The answer was interrupted.", {"gateway": "interrupted"})
        if answer.payloads:
            await self._log(answer, note)
        else:
            await self._fail(note.text)

    async def _fail(self, words: str) -> None:
        """Note that nothing was answered; asking the same again is a retry."""
        lease = self._lease
        try:
            with suppress(Conflict, StoreError):  # then others continued meanwhile, or nobody can
                async with lease.opened.turn:
                    await lease.session.note(self._failure(words), mark=lease.failure_mark())
        finally:
            await lease.release()

    async def _note_store_failure(self) -> None:
        """Note, when the store is back, that nothing was asked: a retry then finds its session."""
        note = self._failure("The store was unavailable.")
        if self._context.recovered is not None:
            await self._context.resolver.note_failure(self._lease, note, self._context.recovered)

    def _failure(self, words: str) -> Note:
        return Note(words, {"gateway": "failed", "request": self._record})

    @contextmanager
    def _lending(self) -> Generator[None]:
        """Lend folds that begin now the last request, and the client's key if that is allowed."""
        may_lend = self._context.summaries.lend_keys
        key = lending(self._upstream, self._proxied.headers) if may_lend else nullcontext()
        with key, offering(self._lease.opened.last):
            yield

    async def _shield(self, work: Coroutine[Any, Any, None]) -> None:
        """Finish the work even if this task is canceled."""
        await asyncio.shield(self._context.run_later(work))

    @property
    def _sent_tokens(self) -> int:
        return self._request.plan.account.sent if self._request else 0

    def _with_headers(self, made: AnyResponse, response: httpx2.Response) -> AnyResponse:
        """The response with our headers.

        They name the answer's session: for a stream, where it will be unless others continue that
        session first. It may be a branch by now; the request's record stays where it was planned.
        """
        name = self._outcome.session = self._logged_in or self._lease.session.name
        request = f"{self._planned_in or name}:{self._record}"
        managed = managed_value(self._by_provider, logged=self._is_logged)
        more = {"receipt": self._receipt} if self._receipt else {}
        ours = {"session": name, "request": request, "managed": managed, **more}
        return with_headers(made, response, **ours)


class _TooLong(NamedTuple):
    """A request was refused for its length."""

    overflow: Overflow
    response: Response


class _NextRound(Response):
    """A stream that continues the one that the client already receives."""

    def __init__(self, stream: UpstreamStream) -> None:
        super().__init__()
        self.stream = stream
