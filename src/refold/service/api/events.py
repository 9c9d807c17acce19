"""Live events: a session's entries as server-sent events, whichever process appends them.

    id: 12
    event: message
    data: {"seq": 12, …}

A client that lost its connection sends the last id it saw, and continues after it. The session's
own events, such as `session.usage_info`, come before the entry that they are read from, and have no
id: who continues after an entry has had them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import JsonValue
from starlette.responses import StreamingResponse

from refold.errors import Draining, InvalidInput, LimitReached, RefoldError, Unrebuildable
from refold.fold.events import CompactionComplete, CompactionStart
from refold.fold.summary import Summary, counts, parse, shown_tokens
from refold.fold.undo import UNFOLD
from refold.log import (
    CODEC,
    Entry,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    Log,
    Requested,
    Span,
)
from refold.models.catalog import counter_for
from refold.recall.text import last_record, model_of
from refold.service import problem
from refold.service.api.routing import CallerLog, Reader, Route, ServiceDep, SessionName
from refold.service.api.schemas import MAX_INTEGER
from refold.service.api.sessions import dump_json, entry_json, read_page
from refold.service.callers import authenticate
from refold.view import Account
from refold.view.record import recorded

router = APIRouter(tags=["events"], route_class=Route)
MAX_STREAMS: Final = 100
"""Streams that one tenant may have open in one process."""
_MAX_SECONDS: Final = 3_600.0  # then the client reconnects
_HEARTBEAT: Final = 15.0  # seconds without an event until a comment is sent
_MIN_PAUSE, _MAX_PAUSE, _BACKOFF = 0.05, 1.0, 1.5
_RETRY: Final = b"retry: 1000\n\n"
_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")
"""JSON may have line ends between its values, where a space does as well, but not within them."""
_OPEN: Final[Counter[str]] = Counter()
_REPORTED: Final = {Requested.KIND, FoldStarted.KIND, FoldCompleted.KIND, FoldFailed.KIND}


@router.get(
    "/sessions/{session}/events",
    summary="Stream a session's events",
    response_class=Response,
    responses={
        200: {
            "description": "Server-sent events, one for each entry; large strings stay in their "
            "artifacts. Before the entry of a request or a fold come the events "
            "`session.usage_info`, `session.truncation`, `session.compaction_start` and "
            "`session.compaction_complete`, without an id.",
            "content": {"text/event-stream": {}},
        }
    },
)
async def follow_session(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    caller: Reader,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    after: Annotated[
        int | None,
        Query(ge=0, le=MAX_INTEGER, description="Begin behind this entry; else at the end."),
    ] = None,
    last_event_id: Annotated[
        str | None, Header(description="The entry seen last; it goes before `after`.")
    ] = None,
) -> Response:
    """It ends when the service stops, the session is forgotten or the key ends, or in an hour."""
    head = await log.head(session)
    start = _parse_event_id(last_event_id)
    if start is None:
        start = head if after is None else after

    async def admit() -> None:
        """Check the key again: it, or its secret, may have expired meanwhile."""
        (await authenticate(request, service.keyring, local=service.local)).require("read")

    chunks = _chunks(log, session, min(start, head), service.draining)
    return event_stream(chunks, admit, caller.tenant, service.draining)


def _parse_event_id(last_event_id: str | None) -> int | None:
    text = (last_event_id or "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):  # noqa: PLR2004 - below 2**53
        raise InvalidInput(
            "Last-Event-ID is not an entry's position.", "Send the last id that you received."
        )
    return int(text)


def event_stream(
    chunks: AsyncGenerator[bytes],
    admit: Callable[[], Awaitable[object]],
    tenant: str,
    draining: asyncio.Event,
) -> Response:
    """The chunks as an endless answer, as long as `admit` does not raise.

    An empty chunk is not sent: it lets the caller be checked.
    """
    if draining.is_set():
        raise Draining("The service is about to stop.")
    if _OPEN[tenant] >= MAX_STREAMS:
        raise LimitReached("Too many event streams are open.", 5)
    headers = {"X-Accel-Buffering": "no"}
    stream = _stream(chunks, admit, tenant)
    return StreamingResponse(stream, headers=headers, media_type="text/event-stream")


async def _stream(
    chunks: AsyncGenerator[bytes], admit: Callable[[], Awaitable[object]], tenant: str
) -> AsyncGenerator[bytes]:
    """The chunks, for as long as the caller is still admitted."""
    _OPEN[tenant] += 1
    try:
        yield _RETRY
        async for chunk in chunks:
            await admit()
            if chunk:
                yield chunk
    except RefoldError as error:
        yield b"event: problem\ndata: " + dump_json(problem.problem(error)) + b"\n\n"
    finally:
        _OPEN[tenant] -= 1
        if not _OPEN[tenant]:
            del _OPEN[tenant]


async def _chunks(
    log: Log, session: str, after: int, draining: asyncio.Event
) -> AsyncGenerator[bytes]:
    """Events and heartbeats; an empty chunk before each pause lets the caller be checked."""
    pace = Pace(draining)
    derived = _SessionEvents(log, session)
    while not pace.is_over:
        page = await read_page(log, session, after=after, limit=100, whole=False)
        for entry in page.entries:
            for name, data in await derived.of(entry):
                yield b"event: %s\ndata: %s\n\n" % (name.encode(), dump_json(data))
            yield event(entry)
        if page.entries:
            after = page.entries[-1].seq
            pace.restart()
            continue
        yield pace.heartbeat()
        await pace.wait()


class Pace:
    """How often a stream looks for news: soon after some came, then less and less often."""

    def __init__(self, draining: asyncio.Event, max_pause: float = _MAX_PAUSE) -> None:
        self._draining = draining
        self._max_pause = max_pause
        self._clock = asyncio.get_running_loop().time
        self._end = self._clock() + _MAX_SECONDS
        self._pause = _MIN_PAUSE
        self._heartbeat = self._clock() + _HEARTBEAT

    @property
    def is_over(self) -> bool:
        """Whether the service stops, or the client is to connect again."""
        return self._draining.is_set() or self._clock() >= self._end

    def restart(self) -> None:
        """Something was sent."""
        self._heartbeat, self._pause = self._clock() + _HEARTBEAT, _MIN_PAUSE

    def heartbeat(self) -> bytes:
        """A comment if nothing was sent for long, else nothing."""
        if self._clock() < self._heartbeat:
            return b""
        self._heartbeat = self._clock() + _HEARTBEAT
        return b": still here\n\n"

    async def wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause):
                await self._draining.wait()
        self._pause = min(self._pause * _BACKOFF, self._max_pause)


def event(entry: Entry) -> bytes:
    data = entry_json(entry).translate(_ONE_LINE)
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (entry.seq, entry.kind.encode(), data)


_Derived = list[tuple[str, dict[str, JsonValue]]]


class _SessionEvents:
    """The session's own events, read from its entries, whichever process wrote them.

    What a fold changes is measured by the newest request before it.
    """

    def __init__(self, log: Log, session: str) -> None:
        self._log = log
        self._session = session
        self._account: Account | None = None
        """Of the newest request."""
        self._model = ""
        self._started: dict[UUID, int] = {}
        """When each fold started."""

    async def of(self, entry: Entry) -> _Derived:
        """The events of an entry."""
        if entry.kind not in _REPORTED or entry.forgotten:
            return []
        if entry.holes:  # a large string was left out
            entries = await self._log.read(self._session, Span(entry.seq, entry.seq))
            entry = entries[0] if entries else entry
        match CODEC.decode(entry):
            case Requested() as value:
                with suppress(Unrebuildable):
                    return await self._request(value, entry.seq)
            case FoldStarted(fold, trigger=trigger) if trigger != UNFOLD:
                self._started[fold] = entry.at
                start = CompactionStart.of(trigger, await self._newest(entry.seq))
                return [(start.NAME, start.as_json())]
            case FoldCompleted(fold, summary=summary) if self._is_reported(fold):
                end = await self._complete(fold, parse(summary), entry)
                return [(end.NAME, end.as_json())]
            case FoldFailed(fold, reason) if self._is_reported(fold):
                end = CompactionComplete(str(fold), reason)
                return [(end.NAME, end.as_json())]
            case _:
                pass
        return []

    def _is_reported(self, fold: UUID) -> bool:
        """Each fold ends once; the remainder of an unfolded one has no start."""
        return self._started.pop(fold, None) is not None

    async def _request(self, value: Requested, seq: int) -> _Derived:
        # A whole record has no chain: the first one, and one in many after it.
        initial = not value.chain and not await self._has_record(seq - 1)
        self._account, events = recorded(value, initial=initial)
        self._model = value.model
        return [(event.NAME, event.as_json()) for event in events]

    async def _has_record(self, last: int) -> bool:
        entries = await self._log.read(self._session, Span(1, last), whole=False) if last else []
        return any(entry.kind == Requested.KIND for entry in entries)

    async def _newest(self, before: int) -> Account:
        """Where the tokens of the newest request went, also if it was before this stream."""
        if self._account is None:
            self._account = Account()
            seq = (await self._log.outlined(self._session)).outline.record
            previous = await last_record(self._log, self._session, seq)
            if previous is not None and previous.seq < before:
                self._account = previous.plan.account
                self._model = await model_of(self._log, self._session, previous.seq)
        return self._account

    async def _complete(self, fold: UUID, summary: Summary, entry: Entry) -> CompactionComplete:
        account = await self._newest(entry.seq)
        shown = shown_tokens(summary, counter_for(self._model))
        before = max(account.conversation, summary.tokens)
        return CompactionComplete(
            str(fold),
            pre_tokens=before,
            post_tokens=max(0, before - summary.tokens) + shown,
            messages_removed=summary.messages,
            summary=summary.text or summary.words,
            model=summary.by,
            usage=dict(summary.usage) or None,
            report=counts(summary.report) if summary.report else None,
        )
