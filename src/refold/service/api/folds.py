"""Folds: list, preview, make, cancel, undo and open them."""

import asyncio
from typing import Final, Literal

from fastapi import APIRouter, Request, Response

from refold.errors import FoldUnderWay, InvalidInput
from refold.fold.summary import Summary, parse
from refold.gateway.upstream import Headers
from refold.log import CODEC, Entry, FoldCompleted, FoldStarted, Log, Outline, Span
from refold.service.api import schemas
from refold.service.api.routing import (
    CallerLog,
    Reader,
    Route,
    ServiceDep,
    SessionName,
    Writer,
    using,
)
from refold.service.api.schemas import FoldId, NewFold, Run, SessionState, moment
from refold.service.api.sessions import state_of
from refold.service.callers import Caller
from refold.service.service import Service
from refold.session import Compacted, Session

router = APIRouter(tags=["folds"], route_class=Route)
_LIST: Final = "GET /api/v1/sessions/{session}/folds lists them."
_POLL: Final = 0.02  # seconds between two checks whether a fold has begun


@router.get("/sessions/{session}/folds", summary="List the folds")
async def list_folds(_: Reader, log: CallerLog, session: SessionName) -> schemas.Folds:
    """The folds in effect, those that later folds replaced, and the one in progress."""
    outline = (await log.outlined(session)).outline
    folds = await _active_folds(log, session, outline)
    for running in outline.running:
        entries = await log.read(session, Span(running.seq, running.seq))
        folds += [fold_of(entry, "under way") for entry in entries]
    return schemas.Folds(folds=sorted(folds, key=lambda fold: fold.seq))


@router.get("/sessions/{session}/folds/preview", summary="Preview a fold")
async def preview_fold(
    caller: Reader, service: ServiceDep, session: SessionName
) -> schemas.Preview:
    """What it would remove, keep and save. Changes nothing."""
    async with using(service, caller, session) as opened:
        return schemas.Preview.model_validate(await opened.preview())


@router.post(
    "/sessions/{session}/folds",
    summary="Start a fold",
    responses={202: {"model": schemas.Folded, "description": "It has begun."}},
)
async def start_fold(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    caller: Writer,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    body: NewFold,
    request: Request,
    response: Response,
) -> schemas.Folded:
    """What is older than the last turn is folded to a summary; the log keeps everything.

    Where no model can be asked for one, the summary is written from the log.
    """
    if (await log.outlined(session)).outline.running:
        raise FoldUnderWay("A fold of this session is being made.")
    task = asyncio.create_task(_compact(service, caller, session, body.focus, request.headers.raw))
    service.tasks.add(task)
    task.add_done_callback(service.tasks.discard)
    task.add_done_callback(_retrieve)
    if body.wait:
        return schemas.Folded.of(await asyncio.shield(task))
    while not task.done():
        running = (await log.outlined(session)).outline.running
        if running and not task.done():
            response.status_code = 202
            return schemas.Folded(fold=running[0].fold, state="under way")
        await asyncio.wait({task}, timeout=_POLL)
    return schemas.Folded.of(await task)


@router.post("/sessions/{session}/folds/{fold}/cancel", summary="Cancel a fold")
async def cancel_fold(
    caller: Writer, log: CallerLog, service: ServiceDep, session: SessionName, fold: FoldId
) -> schemas.Canceled:
    """If it is still in progress, in this process or another."""
    running = (await log.outlined(session)).outline.running
    if all(each.fold != fold for each in running):
        return schemas.Canceled(fold=fold, cancelled=False)
    ended = await service.sessions.engine(caller.tenant).cancel(session, fold)
    return schemas.Canceled(fold=fold, cancelled=ended is not None and not ended.completed)


@router.post("/sessions/{session}/folds/{fold}/undo", summary="Undo a fold")
async def undo_fold(
    caller: Writer, log: CallerLog, service: ServiceDep, session: SessionName, fold: FoldId
) -> SessionState:
    """The messages that it replaced return to the context."""
    outline = (await log.outlined(session)).outline
    if all(each.fold != fold for each in outline.folds):
        raise InvalidInput("There is no such fold in effect.", _LIST)
    async with using(service, caller, session) as opened:
        await opened.take_back(fold)
    return await state_of(log, session)


@router.put("/sessions/{session}/folds/{fold}/summary", summary="Edit a fold's summary")
async def edit_summary(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    caller: Writer,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    fold: FoldId,
    body: schemas.NewSummary,
) -> schemas.Fold:
    """A new fold with these words supersedes it; the old one stays in the log.

    The model is shown them as the user's words.
    """
    async with using(service, caller, session) as opened:
        made = await opened.edit_summary(fold, body.text)
    outline = (await log.outlined(session)).outline
    seq = next(each.seq for each in outline.folds if each.fold == made)
    [entry] = await log.read(session, Span(seq, seq))
    return fold_of(entry, "stands")


@router.post("/sessions/{session}/unfold", summary="Unfold entries")
async def unfold_entries(
    caller: Writer, log: CallerLog, service: ServiceDep, session: SessionName, body: Run
) -> SessionState:
    """The folds over them still replace the rest."""
    async with using(service, caller, session) as opened:
        await opened.unfold(body.span)
    return await state_of(log, session)


async def _compact(
    service: Service, caller: Caller, session: str, focus: str | None, headers: Headers
) -> Compacted:
    # A session object of its own: the conversation goes on in the shared one meanwhile.
    async with using(service, caller, session) as shared:
        setup = shared.setup
    log, engine = service.sessions.log(caller.tenant), service.sessions.engine(caller.tenant)
    own = await Session.open(log, session, setup, format=None, engine=engine)
    try:
        with service.lending(setup.model, headers):
            possible = service.summaries.possible(caller.tenant, setup)
            own.allow_folds(summarizer=possible)
            # Where no model can be asked, the log's own summary is better than none.
            extractive = not (setup.profile.fold.breadcrumb or possible)
            return await own.compact(focus, extractive=extractive)
    finally:
        await own.close()


def _retrieve(task: "asyncio.Task[Compacted]") -> None:
    if not task.cancelled():
        task.exception()  # a caller that did not wait finds it in the log


async def _active_folds(log: Log, session: str, outline: Outline) -> list[schemas.Fold]:
    """The folds in effect, and those that they took in."""
    folds: dict[int, schemas.Fold] = {}
    topmost = {fold.seq for fold in outline.folds}
    pending = [*topmost]
    while pending:
        seq = pending.pop()
        if seq in folds:
            continue
        for entry in await log.read(session, Span(seq, seq)):
            value = CODEC.decode(entry)
            if isinstance(value, FoldCompleted):  # else it was forgotten
                pending += parse(value.summary).over
                folds[seq] = fold_of(entry, "stands" if seq in topmost else "beneath")
    return [*folds.values()]


def fold_of(entry: Entry, state: Literal["stands", "beneath", "under way"]) -> schemas.Fold:
    """A fold, from the entry that started or completed it."""
    value = CODEC.decode(entry)
    if not isinstance(value, FoldCompleted | FoldStarted):
        raise InvalidInput(f"Entry {entry.seq} tells of no fold.", _LIST)
    summary = parse(value.summary) if isinstance(value, FoldCompleted) else Summary("")
    return schemas.Fold(
        fold=value.fold,
        seq=entry.seq,
        at=moment(entry.at),
        state=state,
        spans=[schemas.Span.model_validate(span) for span in value.spans],
        by=summary.by,
        title=summary.title,
        text=summary.text or summary.words,
        messages=summary.messages,
        tokens=summary.tokens,
    )
