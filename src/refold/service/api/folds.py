"""Folds: previewed, made, given up, taken back and opened."""

import asyncio
from typing import Final

from fastapi import APIRouter, Response

from refold.errors import FoldUnderWay, InvalidInput
from refold.fold.summary import Summary, parse
from refold.log import CODEC, Entry, FoldCompleted, FoldStarted, Log, Outline, Span
from refold.service.api import schemas as answers
from refold.service.api.routing import (
    OfLog,
    OfService,
    Reader,
    Route,
    Service,
    SessionName,
    Writer,
    using,
)
from refold.service.api.schemas import FoldId, NewFold, Run, SessionState, moment
from refold.service.api.schemas import Span as ToldSpan
from refold.service.api.sessions import state_of
from refold.service.callers import Caller
from refold.session import Compacted, Session

router = APIRouter(tags=["folds"], route_class=Route)
_LIST: Final = "GET /api/v1/sessions/{session}/folds lists them."
_LOOK: Final = 0.02  # seconds between two looks whether a fold has begun


@router.get("/sessions/{session}/folds", summary="List the folds")
async def list_folds(_: Reader, log: OfLog, session: SessionName) -> answers.Folds:
    """Those that stand, those beneath them, and the one that is being made."""
    outline = (await log.outlined(session)).outline
    found = await _standing(log, session, outline)
    for one in outline.running:
        found += [_told(one) for one in await log.read(session, Span(one.seq, one.seq))]
    return answers.Folds(folds=sorted(found, key=lambda one: one.seq))


@router.get("/sessions/{session}/folds/preview", summary="See what a fold would do")
async def preview_fold(caller: Reader, service: OfService, session: SessionName) -> answers.Preview:
    """What goes, what stays, what is lost, what it saves. Nothing is changed."""
    async with using(service, caller, session) as opened:
        return answers.Preview.of(await opened.preview())


@router.post(
    "/sessions/{session}/folds",
    summary="Make a fold",
    responses={202: {"model": answers.Folded, "description": "It has begun."}},
)
async def start_fold(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    caller: Writer,
    log: OfLog,
    service: OfService,
    session: SessionName,
    given: NewFold,
    response: Response,
) -> answers.Folded:
    """What is older than the last turn is folded to a summary; the log keeps everything."""
    if (await log.outlined(session)).outline.running:
        raise FoldUnderWay("A fold of this session is being made.")
    making = asyncio.create_task(_made(service, caller, session, given.focus))
    service.tasks.add(making)
    making.add_done_callback(service.tasks.discard)
    making.add_done_callback(_retrieve)
    if given.wait:
        return answers.Folded.of(await asyncio.shield(making))
    while not making.done():
        running = (await log.outlined(session)).outline.running
        if running and not making.done():
            response.status_code = 202
            return answers.Folded(fold=running[0].fold, state="under way")
        await asyncio.wait({making}, timeout=_LOOK)
    return answers.Folded.of(await making)


@router.post("/sessions/{session}/folds/{fold}/cancel", summary="Give a fold up")
async def cancel_fold(
    caller: Writer, log: OfLog, service: OfService, session: SessionName, fold: FoldId
) -> answers.Cancelled:
    """If it is still being made, wherever that is."""
    running = (await log.outlined(session)).outline.running
    if all(one.fold != fold for one in running):
        return answers.Cancelled(fold=fold, cancelled=False)
    ended = await service.sessions.engine(caller.tenant).cancel(session, fold)
    return answers.Cancelled(fold=fold, cancelled=ended is not None and not ended.completed)


@router.post("/sessions/{session}/folds/{fold}/undo", summary="Take a fold back")
async def undo_fold(
    caller: Writer, log: OfLog, service: OfService, session: SessionName, fold: FoldId
) -> SessionState:
    """What it stood for is seen again."""
    outline = (await log.outlined(session)).outline
    if all(one.fold != fold for one in outline.folds):
        raise InvalidInput("No such fold stands.", _LIST)
    async with using(service, caller, session) as opened:
        await opened.take_back(fold)
    return await state_of(log, session)


@router.post("/sessions/{session}/unfold", summary="Show folded entries again")
async def unfold_entries(
    caller: Writer, log: OfLog, service: OfService, session: SessionName, given: Run
) -> SessionState:
    """The folds over them go on standing for the rest."""
    async with using(service, caller, session) as opened:
        await opened.unfold(given.span)
    return await state_of(log, session)


async def _made(service: Service, caller: Caller, session: str, focus: str | None) -> Compacted:
    """Make a fold; the conversation goes on meanwhile, because this reads the session by itself."""
    async with using(service, caller, session) as kept:
        setup = kept.setup
    log, engine = service.sessions.log(caller.tenant), service.sessions.engine(caller.tenant)
    opened = await Session.open(log, session, setup, format=None, engine=engine)
    try:
        return await opened.compact(focus)
    finally:
        await opened.close()


def _retrieve(making: "asyncio.Task[Compacted]") -> None:
    if not making.cancelled():
        making.exception()  # who did not wait finds it in the log


async def _standing(log: Log, session: str, outline: Outline) -> list[answers.Fold]:
    """The folds that stand, and those that they took in."""
    found: dict[int, answers.Fold] = {}
    topmost = {one.seq for one in outline.folds}
    waiting = [*topmost]
    while waiting:
        seq = waiting.pop()
        for entry in await log.read(session, Span(seq, seq)) if seq not in found else []:
            match CODEC.decode(entry):
                case FoldCompleted(summary=told):
                    waiting += parse(told).over
                    state = "stands" if seq in topmost else "beneath"
                    found[seq] = _told(entry).model_copy(update={"state": state})
                case _:  # forgotten
                    pass
    return [*found.values()]


def _told(entry: Entry) -> answers.Fold:
    """What the entry that began a fold, or completed it, says of it."""
    value = CODEC.decode(entry)
    if not isinstance(value, FoldCompleted | FoldStarted):
        raise InvalidInput(f"Entry {entry.seq} tells of no fold.", _LIST)
    completed = isinstance(value, FoldCompleted)
    summary = parse(value.summary) if completed else Summary("")
    return answers.Fold(
        fold=value.fold,
        seq=entry.seq,
        at=moment(entry.at),
        state="under way",
        spans=[ToldSpan.of(one) for one in value.spans],
        by=summary.by,
        title=summary.title,
        text=summary.text or summary.words,
        messages=summary.messages,
        tokens=summary.tokens,
    )
