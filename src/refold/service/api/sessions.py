"""Sessions and their entries, pins and artifacts."""

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict
from functools import partial
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Path, Query, Response

from refold.errors import Conflict, InvalidInput, InvalidMessage, SessionExists
from refold.fold.checkpoints import forget_files
from refold.log import Author, Entry, Log, Message, Opened, PartRef, Span, Titled
from refold.log.entry import check_name
from refold.memory.board import conversations
from refold.memory.memory import forget
from refold.service.api import schemas
from refold.service.api.routing import (
    Admin,
    CallerLog,
    Reader,
    Route,
    ServiceDep,
    SessionName,
    Writer,
    using,
)
from refold.service.api.schemas import After, HitLimit, Limit, Run, Seq, moment
from refold.view.profiles import profile
from refold.wire import wire_for

router = APIRouter(tags=["sessions"], route_class=Route)
entries_router = APIRouter(tags=["entries"], route_class=Route)
pins_router = APIRouter(tags=["pins"], route_class=Route)
artifacts_router = APIRouter(tags=["artifacts"], route_class=Route)
Hash = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the content.")]
Index = Annotated[int, Path(ge=0, le=1_000_000, description="The part's index in its message.")]
INERT: Final = "default-src 'none'; sandbox"
"""A content security policy under which a document runs and loads nothing."""
_BINARY: Final = "application/octet-stream"
_PAGE_PATTERN: Final = r"^[0-9]{1,18}\.[0-9]{1,18}$"
_MAX_SCANNED: Final = 2_000
"""Entries that one page reads to find those of some kinds."""
_BATCH: Final = 500
_MAX_BYTES: Final = 32 * 1024 * 1024
"""Bytes of bodies after which a page ends, however few entries it has."""


@router.get("/sessions", summary="List sessions, most recently used first")
async def list_sessions(
    _: Reader,
    log: CallerLog,
    search: Annotated[
        str | None,
        Query(
            max_length=1_000,
            pattern=schemas.PLAIN_TEXT,
            description="Only sessions with these words, in text or name.",
        ),
    ] = None,
    limit: HitLimit = 50,
    page: Annotated[
        str | None, Query(pattern=_PAGE_PATTERN, description="What `next` said of the page before.")
    ] = None,
    internal: Annotated[  # noqa: FBT002 - a query parameter
        bool, Query(description="Also list sessions of Refold's own, such as boards.")
    ] = False,
) -> schemas.SessionPage:
    """With `search`, those that hold its words in their title or entries, or are so named."""
    listed = log.sessions if internal else partial(conversations, log)
    sessions = await listed(search=search or None, limit=limit, page=page)
    return schemas.SessionPage.model_validate(sessions)


@router.post("/sessions", status_code=201, summary="Create a session")
async def open_session(
    caller: Writer, log: CallerLog, body: schemas.NewSession
) -> schemas.SessionState:
    """A session has one message format for life. It is managed, and folds, like any other.

    It belongs to the key that opens it.
    """
    check_name(body.name)
    wire_for(body.format)
    opened = Opened(body.format, profile(body.profile).name, body.title, owner=caller.key or None)
    try:
        await log.append(body.name, [Author().draft(opened)], expected=0)
    except Conflict:
        raise SessionExists("A session with that name exists already.") from None
    return await state_of(log, body.name)


@router.get("/sessions/{session}", summary="Get a session")
async def get_session(_: Reader, log: CallerLog, session: SessionName) -> schemas.SessionState:
    """Its title, size and folds, and whether a fold is in progress."""
    return await state_of(log, session)


@router.put("/sessions/{session}/title", summary="Rename a session")
async def set_title(
    _: Writer, log: CallerLog, session: SessionName, body: schemas.NewTitle
) -> schemas.SessionState:
    """Earlier titles stay in the log."""
    await log.head(session)
    await log.append(session, [Author().draft(Titled(body.title))], expected=None)
    return await state_of(log, session)


@router.put("/sessions/{session}/owner", summary="Hand a session over to another key")
async def set_owner(
    caller: Admin, log: CallerLog, service: ServiceDep, session: SessionName, body: schemas.NewOwner
) -> schemas.SessionState:
    """From then on, only that key may name it in `Refold-Session`."""
    [first] = await log.read(session, Span(1, 1), whole=False)
    await service.keyring.hand_over(caller.tenant, first.id, body.key, by=caller.key)
    return await state_of(log, session)


@router.post("/sessions/{session}/messages", status_code=201, summary="Append messages")
async def append_messages(
    caller: Writer,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    body: schemas.NewMessages,
) -> schemas.Appended:
    """All or none of them, in the session's format. No model is called."""
    wire = wire_for((await log.info(session)).format)
    try:
        payloads = [dump_json(message) for message in body.messages]
    except ValueError:
        raise InvalidInput("A number is not one that JSON has.") from None
    for payload in payloads:
        wire.describe(payload)
    async with using(service, caller, session) as opened:
        return schemas.Appended.model_validate(await opened.say(*payloads))


@router.post("/sessions/{session}/fork", status_code=201, summary="Fork a session")
async def fork_session(
    _: Writer, log: CallerLog, session: SessionName, body: schemas.NewFork
) -> schemas.SessionState:
    """Creates a session that starts with this one's entries; nothing is copied."""
    check_name(body.name)
    await log.fork(session, body.name, at=body.at)
    return await state_of(log, body.name)


@router.post("/sessions/{session}/rewind", summary="Rewind to an earlier entry")
async def rewind_session(
    caller: Writer, log: CallerLog, service: ServiceDep, session: SessionName, body: schemas.To
) -> schemas.SessionState:
    """The context is again as it was when that entry was the newest. Nothing is deleted."""
    async with using(service, caller, session) as opened:
        await opened.rewind(body.to)
    return await state_of(log, session)


@router.post("/sessions/{session}/clear", summary="Clear the context")
async def clear_session(
    caller: Writer, log: CallerLog, service: ServiceDep, session: SessionName
) -> schemas.SessionState:
    """The next request starts without the messages so far. The log keeps everything."""
    async with using(service, caller, session) as opened:
        await opened.clear()
    return await state_of(log, session)


@router.delete("/sessions/{session}", summary="Erase a session")
async def forget_session(
    caller: Admin, log: CallerLog, service: ServiceDep, session: SessionName
) -> schemas.Erased:
    """Its entries and everything derived from them. This cannot be undone.

    When it is answered, nobody can read them. What the server's disk still holds is in `to_scrub`.
    """
    erased = await forget(log, session)
    await service.sessions.drop(caller.tenant, session)
    await forget_files(service.settings.profile.workspace, log, session)
    return schemas.Erased.model_validate(erased)


@router.post("/sessions/{session}/forget", summary="Erase entries")
async def forget_entries(
    caller: Admin, service: ServiceDep, session: SessionName, body: Run
) -> schemas.Erased:
    """With every fold, title and request record derived from them. This cannot be undone.

    When it is answered, nobody can read them. What the server's disk still holds is in `to_scrub`.
    """
    async with using(service, caller, session) as opened:
        return schemas.Erased.model_validate(await opened.forget(body.span))


async def state_of(log: Log, session: str) -> schemas.SessionState:
    info, outline, _ = await log.outlined(session)
    return schemas.SessionState.model_validate(
        {
            **asdict(info),
            "folds": len(outline.folds),
            "under_way": outline.running[0].fold if outline.running else None,
            "last_request": outline.record,
            "last_fold": max((fold.seq for fold in outline.folds), default=None),
            "pins": len(outline.pins),
        }
    )


@artifacts_router.get(
    "/artifacts/{hash}",
    summary="Read an artifact",
    response_class=Response,
    responses={
        200: {
            "description": "Its bytes, never to be shown as a page.",
            "content": {_BINARY: {}, "text/plain": {}},
        }
    },
)
async def get_artifact(_: Reader, log: CallerLog, hash: Hash) -> Response:  # noqa: A002 - the glossary's word
    """Only what an entry of the caller's own tenant refers to."""
    artifact = await log.artifact(hash)
    plain = artifact.media_type == "text/plain"
    kind, suffix = ("text/plain; charset=utf-8", ".txt") if plain else (_BINARY, ".bin")
    headers = {
        "Content-Disposition": f'attachment; filename="{artifact.hash}{suffix}"',
        "Content-Security-Policy": INERT,
    }
    return Response(artifact.data, headers=headers, media_type=kind)


@pins_router.get("/sessions/{session}/pins", summary="List pinned parts")
async def list_pins(_: Reader, log: CallerLog, session: SessionName) -> schemas.Pins:
    """Those pinned by people, and those pinned by the session."""
    return await _pins(log, session)


@pins_router.put("/sessions/{session}/pins/{seq}/{index}", summary="Pin a part")
async def pin_part(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    caller: Writer,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    seq: Seq,
    index: Index,
) -> schemas.Pins:
    """It stays in the context. Pinning it again changes nothing."""
    outline = (await log.outlined(session)).outline
    part = PartRef(seq, index)
    await _check_part(log, session, part)
    if part not in outline.pins or part in outline.watched:
        async with using(service, caller, session) as opened:
            await opened.pin(part)
    return await _pins(log, session)


@pins_router.delete("/sessions/{session}/pins/{seq}/{index}", summary="Unpin a part")
async def unpin_part(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    caller: Writer,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    seq: Seq,
    index: Index,
) -> schemas.Pins:
    """It may leave the context again. Unpinning it again changes nothing."""
    part = PartRef(seq, index)
    if part in (await log.outlined(session)).outline.pins:
        async with using(service, caller, session) as opened:
            await opened.unpin(part)
    return await _pins(log, session)


async def _pins(log: Log, session: str) -> schemas.Pins:
    outline = (await log.outlined(session)).outline
    return schemas.Pins(
        pins=[
            schemas.Pin(seq=part.seq, index=part.index, watched=part in outline.watched)
            for part in outline.pins
        ]
    )


async def _check_part(log: Log, session: str, part: PartRef) -> None:
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
        f"There is no part {part.seq}.{part.index}.", "The explanation of a request lists them."
    )


class EntryBatch(NamedTuple):
    entries: list[Entry]
    head: int
    next: int | None
    """Where the next page begins."""


async def read_page(  # noqa: PLR0913 - a choice each
    log: Log,
    session: str,
    *,
    after: int = 0,
    limit: int = 100,
    kinds: Collection[str] = (),
    whole: bool = True,
    last: int | None = None,
) -> EntryBatch:
    """The entries after `after`, of these kinds or of all; the cost of one call is bounded.

    With `last`, none behind that entry.
    """
    head = await log.head(session)
    if last is not None:
        head = min(head, last)
    entries: list[Entry] = []
    seq, size = after, 0
    end = min(head, after + (_MAX_SCANNED if kinds else limit))
    while seq < end and len(entries) < limit:
        span = Span(seq + 1, min(end, seq + _BATCH))
        for lean in await log.read(session, span, whole=False):
            seq = lean.seq
            if kinds and lean.kind not in kinds:
                continue
            full = await log.read(session, Span(seq, seq)) if whole and lean.holes else []
            entries.append(full[0] if full else lean)
            size += len(entries[-1].body)
            if len(entries) == limit or size > _MAX_BYTES:
                end = seq
                break
    return EntryBatch(entries, head, seq if seq < head else None)


def entry_json(entry: Entry) -> bytes:
    """An entry as `schemas.Entry` has it, its body byte for byte."""
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
    """A JSON object with one more member, whose JSON is inserted as it is."""
    return dump_json(about)[:-1] + b',"' + name.encode() + b'":' + raw + b"}"


def json_list(items: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(items) + b"]"


def dump_json(value: object) -> bytes:
    """A value as JSON in ASCII, so that lone surrogates can be written, too."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


@entries_router.get(
    "/sessions/{session}/entries",
    summary="Read the log",
    response_model=schemas.EntryPage,
)
async def list_entries(  # noqa: PLR0913, PLR0917 - a choice each
    _: Reader,
    log: CallerLog,
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
    entries = json_list(map(entry_json, page.entries))
    rest = dump_json({"head": page.head, "next": page.next})[1:]
    return Response(b'{"entries":' + entries + b"," + rest, media_type="application/json")
