"""Sessions: listed, opened, titled, forked, turned back and forgotten."""

import json
from collections.abc import Collection, Iterable
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Path, Query, Response

from refold.errors import Conflict, InvalidInput, InvalidMessage, SessionExists
from refold.log import Author, Entry, Log, Message, Opened, PartRef, Span, Titled
from refold.log.entry import check_name
from refold.memory.memory import forget
from refold.service.api import schemas
from refold.service.api.routing import (
    Admin,
    OfLog,
    OfService,
    Reader,
    Route,
    SessionName,
    Writer,
    using,
)
from refold.service.api.schemas import (
    After,
    FewAtMost,
    Limit,
    NewFork,
    NewMessages,
    NewOwner,
    NewSession,
    NewTitle,
    Run,
    Seq,
    To,
    moment,
)
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
) -> schemas.SessionPage:
    """With `search`, those that hold its words in their title or entries, or are so named."""
    found = await log.sessions(search=search or None, limit=limit, page=page)
    return schemas.SessionPage(
        sessions=[schemas.Session.of(one) for one in found.sessions], next=found.next
    )


@router.post("/sessions", status_code=201, summary="Open a new session")
async def open_session(caller: Writer, log: OfLog, given: NewSession) -> schemas.SessionState:
    """A session has one message format for life. It is managed, and folds, like any other.

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
async def get_session(_: Reader, log: OfLog, session: SessionName) -> schemas.SessionState:
    """Its title, its size, its folds, and whether one is being made."""
    return await state_of(log, session)


@router.put("/sessions/{session}/title", summary="Give a session another title")
async def set_title(
    _: Writer, log: OfLog, session: SessionName, given: NewTitle
) -> schemas.SessionState:
    """The earlier titles stay in the log."""
    await log.head(session)
    await log.append(session, [Author().draft(Titled(given.title))], expected=None)
    return await state_of(log, session)


@router.put("/sessions/{session}/owner", summary="Hand a session over to another key")
async def set_owner(
    caller: Admin, log: OfLog, service: OfService, session: SessionName, given: NewOwner
) -> schemas.SessionState:
    """From then on that key, and no other, may name it in `Refold-Session`."""
    [first] = await log.read(session, Span(1, 1), whole=False)
    await service.keyring.hand_over(caller.tenant, first.id, given.key, by=caller.key)
    return await state_of(log, session)


@router.post("/sessions/{session}/messages", status_code=201, summary="Append messages")
async def append_messages(
    caller: Writer, log: OfLog, service: OfService, session: SessionName, given: NewMessages
) -> schemas.Appended:
    """All or none of them, in the session's format. No model is asked."""
    wire = wire_for((await log.info(session)).format)
    payloads = [_payload(one) for one in given.messages]
    for payload in payloads:
        wire.describe(payload)
    async with using(service, caller, session) as opened:
        said = await opened.say(*payloads)
    return schemas.Appended(first=said.first, last=said.last)


@router.post("/sessions/{session}/fork", status_code=201, summary="Make a fork")
async def fork_session(
    _: Writer, log: OfLog, session: SessionName, given: NewFork
) -> schemas.SessionState:
    """A new session that begins with this one's entries; nothing is copied."""
    check_name(given.name)
    await log.fork(session, given.name, at=given.at)
    return await state_of(log, given.name)


@router.post("/sessions/{session}/rewind", summary="Go back to an earlier entry")
async def rewind_session(
    caller: Writer, log: OfLog, service: OfService, session: SessionName, given: To
) -> schemas.SessionState:
    """The view is again as it was when that entry was the newest. Nothing is deleted."""
    async with using(service, caller, session) as opened:
        await opened.rewind(given.to)
    return await state_of(log, session)


@router.post("/sessions/{session}/clear", summary="Begin the view anew")
async def clear_session(
    caller: Writer, log: OfLog, service: OfService, session: SessionName
) -> schemas.SessionState:
    """The log keeps everything."""
    async with using(service, caller, session) as opened:
        await opened.clear()
    return await state_of(log, session)


@router.delete("/sessions/{session}", summary="Forget a session for good")
async def forget_session(
    caller: Admin, log: OfLog, service: OfService, session: SessionName
) -> schemas.Erased:
    """Its entries and all that was derived from them; this cannot be undone.

    When it is answered, nobody can read them. What the server's disk still holds is in `to_scrub`.
    """
    erased = await forget(log, session)
    await service.sessions.drop(caller.tenant, session)
    return schemas.Erased.of(erased)


@router.post("/sessions/{session}/forget", summary="Forget some entries for good")
async def forget_entries(
    caller: Admin, service: OfService, session: SessionName, given: Run
) -> schemas.Erased:
    """With every fold, title and request record that rests on them; this cannot be undone.

    When it is answered, nobody can read them. What the server's disk still holds is in `to_scrub`.
    """
    async with using(service, caller, session) as opened:
        return schemas.Erased.of(await opened.forget(given.span))


async def state_of(log: Log, session: str) -> schemas.SessionState:
    """How a session stands."""
    info, outline, _ = await log.outlined(session)
    return schemas.SessionState(
        **schemas.Session.of(info).model_dump(),
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


# Artifacts: large bodies, by the hash of their content.

router_artifacts = APIRouter(tags=["artifacts"], route_class=Route)
Hash = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the content.")]
INERT: Final = "default-src 'none'; sandbox"
"""Whatever it is, it runs nothing and fetches nothing."""


@router_artifacts.get(
    "/artifacts/{hash}",
    summary="Read an artifact",
    response_class=Response,
    responses={
        200: {
            "description": "Its bytes, never to be shown as a page.",
            "content": {"application/octet-stream": {}, "text/plain": {}},
        }
    },
)
async def get_artifact(_: Reader, log: OfLog, hash: Hash) -> Response:  # noqa: A002 - the glossary's word
    """Only what an entry of the caller's own tenant refers to."""
    found = await log.artifact(hash)
    plain = found.media_type == "text/plain"
    kind = "text/plain; charset=utf-8" if plain else "application/octet-stream"
    headers = {
        "Content-Disposition": f'attachment; filename="{found.hash}{".txt" if plain else ".bin"}"',
        "Content-Security-Policy": INERT,
    }
    return Response(found.data, headers=headers, media_type=kind)


# Pins: parts that stay in the view, folded or not.

router_pins = APIRouter(tags=["pins"], route_class=Route)
Index = Annotated[int, Path(ge=0, le=1_000_000, description="The part's index in its message.")]


@router_pins.get("/sessions/{session}/pins", summary="List the pinned parts")
async def list_pins(_: Reader, log: OfLog, session: SessionName) -> schemas.Pins:
    """Those of people, and those that the session made itself."""
    return await _pins(log, session)


@router_pins.put("/sessions/{session}/pins/{seq}/{index}", summary="Pin a part")
async def pin_part(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    caller: Writer, log: OfLog, service: OfService, session: SessionName, seq: Seq, index: Index
) -> schemas.Pins:
    """It stays in the view; pinning it again changes nothing."""
    outline = (await log.outlined(session)).outline
    part = PartRef(seq, index)
    await _check(log, session, part)
    if part not in outline.pins or part in outline.watched:
        async with using(service, caller, session) as opened:
            await opened.pin(part)
    return await _pins(log, session)


@router_pins.delete("/sessions/{session}/pins/{seq}/{index}", summary="Let a pinned part go")
async def unpin_part(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    caller: Writer, log: OfLog, service: OfService, session: SessionName, seq: Seq, index: Index
) -> schemas.Pins:
    """It may leave the view again; what is not pinned stays so."""
    part = PartRef(seq, index)
    if part in (await log.outlined(session)).outline.pins:
        async with using(service, caller, session) as opened:
            await opened.unpin(part)
    return await _pins(log, session)


async def _pins(log: Log, session: str) -> schemas.Pins:
    outline = (await log.outlined(session)).outline
    return schemas.Pins(
        pins=[
            schemas.Pin(seq=one.seq, index=one.index, watched=one in outline.watched)
            for one in outline.pins
        ]
    )


async def _check(log: Log, session: str, part: PartRef) -> None:
    """Refuse to pin what is not there."""
    wire = wire_for((await log.info(session)).format)
    for entry in await log.read(session, Span(part.seq, part.seq)):
        if entry.kind == Message.KIND and not entry.forgotten:
            try:
                shapes = wire.describe(entry.body).shapes
            except InvalidMessage:
                break
            if part.index < len(shapes):
                return
    raise InvalidInput(
        f"There is no part {part.seq}.{part.index}.", "An explanation of a request names them."
    )


# Entries read a page at a time, and written as JSON with their bodies byte for byte.

_LOOKED: Final = 2_000
"""Entries that one page looks through for those of some kinds."""
_PAGE_READING: Final = 500
_WEIGHT: Final = 32 * 1024 * 1024
"""Bytes of bodies after which a page ends, however few entries it has."""


class Read(NamedTuple):
    """Some entries, and where the next page begins."""

    entries: list[Entry]
    head: int
    next: int | None


async def read_page(  # noqa: PLR0913 - a choice each
    log: Log,
    session: str,
    *,
    after: int = 0,
    limit: int = 100,
    kinds: Collection[str] = (),
    whole: bool = True,
) -> Read:
    """The entries behind `after`, of these kinds or of all; what one call costs is bounded."""
    head = await log.head(session)
    found: list[Entry] = []
    at, weight = after, 0
    end = min(head, after + (_LOOKED if kinds else limit))
    while at < end and len(found) < limit:
        span = Span(at + 1, min(end, at + _PAGE_READING))
        for lean in await log.read(session, span, whole=False):
            at = lean.seq
            if kinds and lean.kind not in kinds:
                continue
            entry = await _whole(log, session, lean) if whole and lean.holes else lean
            found.append(entry)
            weight += len(entry.body)
            if len(found) == limit or weight > _WEIGHT:
                end = at
                break
    return Read(found, head, at if at < head else None)


async def _whole(log: Log, session: str, lean: Entry) -> Entry:
    entries = await log.read(session, Span(lean.seq, lean.seq))
    return entries[0] if entries else lean


def entry_json(entry: Entry) -> bytes:
    """An entry as `answers.Entry` has it."""
    about: dict[str, object] = {
        "seq": entry.seq,
        "id": str(entry.id),
        "at": moment(entry.at).isoformat(timespec="milliseconds"),
        "kind": entry.kind,
        "version": entry.version,
        "scope": entry.scope,
        "forgotten": entry.forgotten,
        "attached": list(entry.attached),
        "left_out": [hole.hash for hole in entry.holes],
    }
    return with_raw(about, "body", entry.body)


def with_raw(about: dict[str, object], name: str, raw: bytes) -> bytes:
    """An object with one more member, whose JSON goes in as it is."""
    return dumped(about)[:-1] + b',"' + name.encode() + b'":' + raw + b"}"


def listed(raws: Iterable[bytes]) -> bytes:
    """A list of what is JSON already."""
    return b"[" + b",".join(raws) + b"]"


def dumped(value: object) -> bytes:
    """A value as JSON in ASCII, so that half a character can be written, too."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


# The entries of a session's log.

router_entries = APIRouter(tags=["entries"], route_class=Route)


@router_entries.get(
    "/sessions/{session}/entries",
    summary="Read the log, in order",
    response_model=schemas.EntryPage,
)
async def list_entries(  # noqa: PLR0913, PLR0917 - a choice each
    _: Reader,
    log: OfLog,
    session: SessionName,
    after: After = 0,
    limit: Limit = 100,
    kind: Annotated[
        list[Annotated[str, Query(max_length=64)]] | None,
        Query(max_length=20, description="Only entries of these kinds, such as `message`."),
    ] = None,
    whole: Annotated[  # noqa: FBT002 - FastAPI gives each by its name
        bool, Query(description="False: large strings stay in their artifacts.")
    ] = True,
) -> Response:
    """Bodies are byte for byte what was appended."""
    page = await read_page(
        log, session, after=after, limit=limit, kinds=frozenset(kind or ()), whole=whole
    )
    told = listed(map(entry_json, page.entries))
    beside = dumped({"head": page.head, "next": page.next})[1:]
    return Response(b'{"entries":' + told + b"," + beside, media_type="application/json")
