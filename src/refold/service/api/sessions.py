"""Sessions: listed, opened, titled, forked, turned back and forgotten."""

import json
from typing import Annotated

from fastapi import APIRouter, Query

from refold.errors import Conflict, InvalidInput, SessionExists
from refold.log import Author, Log, Opened, Titled
from refold.log.names import check_name
from refold.log.span import Span
from refold.memory.forgetting import forget
from refold.service.api import answers
from refold.service.api.asking import Admin, OfLog, OfService, Reader, SessionName, Writer, using
from refold.service.api.given import (
    FewAtMost,
    NewFork,
    NewMessages,
    NewOwner,
    NewSession,
    NewTitle,
    Run,
    To,
)
from refold.service.api.route import Route
from refold.view.profiles import profile
from refold.wire import wire_for

router = APIRouter(tags=["sessions"], route_class=Route)
_PAGE = r"^[0-9]{1,18}\.[0-9]{1,18}$"


@router.get("/sessions", summary="List the sessions, the one used last first")
async def list_sessions(
    _: Reader,
    log: OfLog,
    search: Annotated[
        str | None,
        Query(
            max_length=1_000,
            pattern=r"^[^\u0000-\u001f\u007f]*$",
            description="Only those with these words, or so named.",
        ),
    ] = None,
    limit: FewAtMost = 50,
    page: Annotated[
        str | None, Query(pattern=_PAGE, description="What `next` said of the page before.")
    ] = None,
) -> answers.SessionPage:
    """With `search`, those that hold its words in their title or entries, or are so named."""
    found = await log.sessions(search=search or None, limit=limit, page=page)
    return answers.SessionPage(
        sessions=[answers.Session.of(one) for one in found.sessions], next=found.next
    )


@router.post("/sessions", status_code=201, summary="Open a new session")
async def open_session(caller: Writer, log: OfLog, given: NewSession) -> answers.SessionState:
    """A session has one message format for life. It is governed, and folds, like any other.

    It belongs to the key that opens it.
    """
    check_name(given.name)
    wire_for(given.format)
    opened = Opened(
        given.format, profile(given.profile).name, given.title, owner=caller.key or None
    )
    try:
        await log.append(given.name, [Author().draft(opened)], expected=0)
    except Conflict:
        raise SessionExists("A session of that name is there already.") from None
    return await state_of(log, given.name)


@router.get("/sessions/{session}", summary="See how a session stands")
async def get_session(_: Reader, log: OfLog, session: SessionName) -> answers.SessionState:
    """Its title, its size, its folds, and whether one is being made."""
    return await state_of(log, session)


@router.put("/sessions/{session}/title", summary="Give a session another title")
async def set_title(
    _: Writer, log: OfLog, session: SessionName, given: NewTitle
) -> answers.SessionState:
    """The earlier titles stay in the log."""
    await log.head(session)
    await log.append(session, [Author().draft(Titled(given.title))], expected=None)
    return await state_of(log, session)


@router.put("/sessions/{session}/owner", summary="Hand a session over to another key")
async def set_owner(
    caller: Admin, log: OfLog, service: OfService, session: SessionName, given: NewOwner
) -> answers.SessionState:
    """From then on that key, and no other, may name it in `Refold-Session`."""
    [first] = await log.read(session, Span(1, 1), whole=False)
    await service.keyring.hand_over(caller.tenant, first.id, given.key, by=caller.key)
    return await state_of(log, session)


@router.post("/sessions/{session}/messages", status_code=201, summary="Append messages")
async def append_messages(
    caller: Writer, log: OfLog, service: OfService, session: SessionName, given: NewMessages
) -> answers.Appended:
    """All or none of them, in the session's format. No model is asked."""
    wire = wire_for((await log.info(session)).format)
    payloads = [_payload(one) for one in given.messages]
    for payload in payloads:
        wire.describe(payload)
    async with using(service, caller, session) as opened:
        said = await opened.say(*payloads)
    return answers.Appended(first=said.first, last=said.last)


@router.post("/sessions/{session}/fork", status_code=201, summary="Make a fork")
async def fork_session(
    _: Writer, log: OfLog, session: SessionName, given: NewFork
) -> answers.SessionState:
    """A new session that begins with this one's entries; nothing is copied."""
    check_name(given.name)
    await log.fork(session, given.name, at=given.at)
    return await state_of(log, given.name)


@router.post("/sessions/{session}/rewind", summary="Go back to an earlier entry")
async def rewind_session(
    caller: Writer, log: OfLog, service: OfService, session: SessionName, given: To
) -> answers.SessionState:
    """The view is again as it was when that entry was the newest. Nothing is deleted."""
    async with using(service, caller, session) as opened:
        await opened.rewind(given.to)
    return await state_of(log, session)


@router.post("/sessions/{session}/clear", summary="Begin the view anew")
async def clear_session(
    caller: Writer, log: OfLog, service: OfService, session: SessionName
) -> answers.SessionState:
    """The log keeps everything."""
    async with using(service, caller, session) as opened:
        await opened.clear()
    return await state_of(log, session)


@router.delete("/sessions/{session}", summary="Forget a session for good")
async def forget_session(
    caller: Admin, log: OfLog, service: OfService, session: SessionName
) -> answers.Erased:
    """Its entries and all that was derived from them; this cannot be undone.

    When it is answered, nobody can read them. What the server's disk still holds is in `to_scrub`.
    """
    erased = await forget(log, session)
    await service.sessions.drop(caller.tenant, session)
    return answers.Erased.of(erased)


@router.post("/sessions/{session}/forget", summary="Forget some entries for good")
async def forget_entries(
    caller: Admin, service: OfService, session: SessionName, given: Run
) -> answers.Erased:
    """With every fold, title and request record that rests on them; this cannot be undone.

    When it is answered, nobody can read them. What the server's disk still holds is in `to_scrub`.
    """
    async with using(service, caller, session) as opened:
        return answers.Erased.of(await opened.forget(given.span))


async def state_of(log: Log, session: str) -> answers.SessionState:
    """How a session stands."""
    info, outline, _ = await log.outlined(session)
    return answers.SessionState(
        **answers.Session.of(info).model_dump(),
        folds=len(outline.folds),
        under_way=outline.running[0].fold if outline.running else None,
        last_request=outline.record,
        pins=len(outline.pins),
    )


def _payload(message: object) -> bytes:
    try:
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        raise InvalidInput("A number is none that JSON has.") from None
