"""Pins: parts that stay in the view, folded or not."""

from typing import Annotated

from fastapi import APIRouter, Path

from refold.errors import InvalidInput, InvalidMessage
from refold.log import Log, Message, PartRef, Span
from refold.service.api import answers
from refold.service.api.asking import OfLog, OfService, Reader, SessionName, Writer, using
from refold.service.api.given import Seq
from refold.service.api.route import Route
from refold.wire import wire_for

router = APIRouter(tags=["pins"], route_class=Route)
Index = Annotated[int, Path(ge=0, le=1_000_000, description="The part's index in its message.")]


@router.get("/sessions/{session}/pins", summary="List the pinned parts")
async def list_pins(_: Reader, log: OfLog, session: SessionName) -> answers.Pins:
    """Those of people, and those that the session made itself."""
    return await _pins(log, session)


@router.put("/sessions/{session}/pins/{seq}/{index}", summary="Pin a part")
async def pin_part(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    caller: Writer, log: OfLog, service: OfService, session: SessionName, seq: Seq, index: Index
) -> answers.Pins:
    """It stays in the view; pinning it again changes nothing."""
    outline = (await log.outlined(session)).outline
    part = PartRef(seq, index)
    await _check(log, session, part)
    if part not in outline.pins or part in outline.watched:
        async with using(service, caller, session) as opened:
            await opened.pin(part)
    return await _pins(log, session)


@router.delete("/sessions/{session}/pins/{seq}/{index}", summary="Let a pinned part go")
async def unpin_part(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    caller: Writer, log: OfLog, service: OfService, session: SessionName, seq: Seq, index: Index
) -> answers.Pins:
    """It may leave the view again; what is not pinned stays so."""
    part = PartRef(seq, index)
    if part in (await log.outlined(session)).outline.pins:
        async with using(service, caller, session) as opened:
            await opened.unpin(part)
    return await _pins(log, session)


async def _pins(log: Log, session: str) -> answers.Pins:
    outline = (await log.outlined(session)).outline
    return answers.Pins(
        pins=[
            answers.Pin(seq=one.seq, index=one.index, watched=one in outline.watched)
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
