"""Live events: the entries of a session as they come, from whichever process.

    id: 12
    event: message
    data: {"seq": 12, …}

A client that lost its line sends the id it saw last, and goes on behind it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.responses import StreamingResponse

from refold.errors import Draining, InvalidInput, LimitReached, RefoldError
from refold.log import Entry, Log
from refold.service import problem
from refold.service.api.routing import OfLog, OfService, Reader, Route, SessionName
from refold.service.api.schemas import LARGEST
from refold.service.api.sessions import dumped, entry_json, read_page
from refold.service.callers import known

router = APIRouter(tags=["events"], route_class=Route)
MOST_STREAMS: Final = 100
"""Streams that one tenant may have open in one process."""
_LONGEST: Final = 3_600.0  # seconds; then the client opens another
_BEAT: Final = 15.0  # seconds without an event until a comment is sent
_FIRST_PAUSE, _LONGEST_PAUSE, _SLOWER = 0.05, 1.0, 1.5
_RETRY: Final = b"retry: 1000\n\n"
_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")
"""Between the values of a JSON text, a space is as good as a line's end; within them is none."""
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
    log: OfLog,
    service: OfService,
    session: SessionName,
    after: Annotated[
        int | None, Query(ge=0, le=LARGEST, description="Begin behind this entry; else at the end.")
    ] = None,
    last_event_id: Annotated[
        str | None, Header(description="The entry seen last; it goes before `after`.")
    ] = None,
) -> Response:
    """It ends when the service stops, the session is forgotten or the key ends, or in an hour."""
    head = await log.head(session)
    begin = _seen(last_event_id)
    begin = begin if begin is not None else head if after is None else after
    if service.draining.is_set():
        raise Draining("The service is about to stop.")
    if _OPEN[caller.tenant] >= MOST_STREAMS:
        raise LimitReached("Too many event streams are open.", 5)

    async def admit() -> None:
        """Let in who asked once more: the key, or its secret, may have ended meanwhile."""
        again = await known(request, service.keyring, local=service.local)
        again.require("read")

    pieces = _pieces(log, session, min(begin, head), service.draining)
    stream = _stream(_while_admitted(pieces, admit), caller.tenant)
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(stream, headers=headers, media_type="text/event-stream")


def _seen(last_event_id: str | None) -> int | None:
    if last_event_id is None or not last_event_id.strip():
        return None
    text = last_event_id.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 16):  # noqa: PLR2004 - below 2**53
        raise InvalidInput("Last-Event-ID is no entry's place.", "Send the id that came last.")
    return int(text)


async def _stream(pieces: AsyncGenerator[bytes], tenant: str) -> AsyncGenerator[bytes]:
    _OPEN[tenant] += 1
    try:
        yield _RETRY
        async for piece in pieces:
            if piece:
                yield piece
    except RefoldError as error:
        yield b"event: problem\ndata: " + dumped(problem.problem(error)) + b"\n\n"
    finally:
        _OPEN[tenant] -= 1
        if not _OPEN[tenant]:
            del _OPEN[tenant]


async def _while_admitted(
    pieces: AsyncGenerator[bytes], admit: Callable[[], Awaitable[None]]
) -> AsyncGenerator[bytes]:
    """What comes, until whoever asked for it would not be let in any more."""
    async for piece in pieces:
        await admit()
        yield piece


async def _pieces(
    log: Log, session: str, after: int, draining: asyncio.Event
) -> AsyncGenerator[bytes]:
    clock = asyncio.get_running_loop().time
    end, beat, pause = clock() + _LONGEST, clock() + _BEAT, _FIRST_PAUSE
    while not draining.is_set() and clock() < end:
        page = await read_page(log, session, after=after, limit=100, whole=False)
        for entry in page.entries:
            yield event(entry)
        if page.entries:
            after = page.entries[-1].seq
            beat, pause = clock() + _BEAT, _FIRST_PAUSE
            continue
        if clock() >= beat:
            yield b": still here\n\n"
            beat = clock() + _BEAT
        yield b""  # a moment to see whether it may go on
        await _wait(draining, pause)
        pause = min(pause * _SLOWER, _LONGEST_PAUSE)


async def _wait(draining: asyncio.Event, seconds: float) -> None:
    """A moment; less if the service is about to stop."""
    try:
        async with asyncio.timeout(seconds):
            await draining.wait()
    except TimeoutError:
        pass


def event(entry: Entry) -> bytes:
    """An entry as an event."""
    data = entry_json(entry).translate(_ONE_LINE)
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (entry.seq, entry.kind.encode(), data)
