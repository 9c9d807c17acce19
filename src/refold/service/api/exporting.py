"""Exports: a session in each form that it can be written in."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from starlette.responses import StreamingResponse

from refold.exports import ENDINGS, exported
from refold.log import export_session
from refold.service.api.artifacts import INERT
from refold.service.api.asking import OfLog, Reader, SessionName
from refold.service.api.route import Route

router = APIRouter(tags=["export"], route_class=Route)
Form = Literal["jsonl", "markdown", "json", "html"]
_TYPES: Final[dict[Form, str]] = {
    "jsonl": "application/x-ndjson",
    "markdown": "text/plain; charset=utf-8",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
}
_PAGE: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@router.get(
    "/sessions/{session}/export",
    summary="Write a session out",
    response_class=Response,
    responses={
        200: {
            "description": "The session; nothing in it runs, whatever was said.",
            "content": {kind.partition(";")[0]: {} for kind in _TYPES.values()},
        }
    },
)
async def export_session_as(
    _: Reader,
    log: OfLog,
    session: SessionName,
    form: Annotated[
        Form, Query(alias="as", description="`jsonl` can be imported again; the others are read.")
    ] = "jsonl",
) -> Response:
    """It is always a file to keep, never a page to show."""
    pieces = export_session(log, session) if form == "jsonl" else exported(log, session, form)
    first = await anext(pieces)  # what goes wrong at once is an answer of its own
    name = quote(f"{session}{ENDINGS[form]}", safe="")
    headers = {
        "Content-Disposition": f'attachment; filename="session{ENDINGS[form]}"; '
        f"filename*=UTF-8''{name}",
        "Content-Security-Policy": _PAGE if form == "html" else INERT,
    }
    return StreamingResponse(_encoded(first, pieces), headers=headers, media_type=_TYPES[form])


async def _encoded(first: str, pieces: AsyncIterator[str]) -> AsyncGenerator[bytes]:
    yield first.encode(errors="replace")
    async for piece in pieces:
        yield piece.encode(errors="replace")
