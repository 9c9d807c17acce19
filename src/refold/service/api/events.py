"""Live events: a session's entries as server-sent events, whichever process appends them.

    id: 12
    event: message
    data: {"seq": 12, …}

A client that lost its connection sends the last id it saw, and continues after it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.responses import StreamingResponse

from refold.errors import Draining, InvalidInput, LimitReached, RefoldError
from refold.log import Entry, Log
from refold.service import problem
from refold.service.api.routing import CallerLog, Reader, Route, ServiceDep, SessionName
from refold.service.api.schemas import MAX_INTEGER
from refold.service.api.sessions import dump_json, entry_json, read_page
from refold.service.callers import authenticate

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


@router.get(
    "/sessions/{session}/events",
    summary="Follow a session as it grows",
    response_class=Response,
    responses={
        200: {
            "description": "Server-sent events, one for each entry; large strings stay in their "
            "artifacts.",
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
    if service.draining.is_set():
        raise Draining("The service is about to stop.")
    if _OPEN[caller.tenant] >= MAX_STREAMS:
        raise LimitReached("Too many event streams are open.", 5)

    async def admit() -> None:
        """Check the key again: it, or its secret, may have expired meanwhile."""
        (await authenticate(request, service.keyring, local=service.local)).require("read")

    chunks = _chunks(log, session, min(start, head), service.draining)
    stream = _stream(chunks, admit, caller.tenant)
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(stream, headers=headers, media_type="text/event-stream")


def _parse_event_id(last_event_id: str | None) -> int | None:
    text = (last_event_id or "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):  # noqa: PLR2004 - below 2**53
        raise InvalidInput("Last-Event-ID is no entry's place.", "Send the id that came last.")
    return int(text)


async def _stream(
    chunks: AsyncGenerator[bytes], admit: Callable[[], Awaitable[None]], tenant: str
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
    clock = asyncio.get_running_loop().time
    end, heartbeat, pause = clock() + _MAX_SECONDS, clock() + _HEARTBEAT, _MIN_PAUSE
    while not draining.is_set() and clock() < end:
        page = await read_page(log, session, after=after, limit=100, whole=False)
        for entry in page.entries:
            yield event(entry)
        if page.entries:
            after = page.entries[-1].seq
            heartbeat, pause = clock() + _HEARTBEAT, _MIN_PAUSE
            continue
        if clock() >= heartbeat:
            yield b": still here\n\n"
            heartbeat = clock() + _HEARTBEAT
        yield b""
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await draining.wait()
        pause = min(pause * _BACKOFF, _MAX_PAUSE)


def event(entry: Entry) -> bytes:
    data = entry_json(entry).translate(_ONE_LINE)
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (entry.seq, entry.kind.encode(), data)
