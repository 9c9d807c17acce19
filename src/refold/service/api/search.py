"""Search over sessions, and their export to files."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from starlette.responses import StreamingResponse

from refold.exports import ENDINGS, exported
from refold.log import export_session
from refold.log.entry import LONGEST_NAME
from refold.recall.search import search, search_sessions
from refold.service.api import schemas
from refold.service.api.routing import CallerLog, Reader, Route, SessionName
from refold.service.api.schemas import HitLimit, SearchQuery
from refold.service.api.sessions import INERT

router = APIRouter(tags=["search"], route_class=Route)
export_router = APIRouter(tags=["export"], route_class=Route)
Form = Literal["jsonl", "markdown", "json", "html"]
_TYPES: Final[dict[Form, str]] = {
    "jsonl": "application/x-ndjson",
    "markdown": "text/plain; charset=utf-8",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
}
_PAGE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@router.get("/search", summary="Search messages")
async def search_entries(
    _: Reader,
    log: CallerLog,
    query: SearchQuery,
    session: Annotated[
        str | None, Query(max_length=LONGEST_NAME, description="Only in this session.")
    ] = None,
    limit: HitLimit = 10,
) -> schemas.FoundEntries:
    """In all sessions or in one, also beneath folds; what answers best comes first."""
    if session is not None:
        await log.head(session)
    hits = await search(log, query, session=session, limit=limit)
    return schemas.FoundEntries.model_validate({"found": hits})


@router.get("/search/sessions", summary="Search sessions")
async def search_for_sessions(
    _: Reader, log: CallerLog, query: SearchQuery, limit: HitLimit = 10
) -> schemas.FoundSessions:
    """The best matches come first."""
    hits = await search_sessions(log, query, limit=limit)
    return schemas.FoundSessions.model_validate({"found": hits})


@export_router.get(
    "/sessions/{session}/export",
    summary="Export a session",
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
    log: CallerLog,
    session: SessionName,
    form: Annotated[
        Form, Query(alias="as", description="`jsonl` can be imported again; the others are read.")
    ] = "jsonl",
) -> Response:
    """Always sent as a download."""
    pieces = export_session(log, session) if form == "jsonl" else exported(log, session, form)
    first = await anext(pieces)  # an error here can still have its own status
    name = quote(f"{session}{ENDINGS[form]}", safe="")
    headers = {
        "Content-Disposition": f'attachment; filename="session{ENDINGS[form]}"; '
        f"filename*=UTF-8''{name}",
        "Content-Security-Policy": _PAGE_POLICY if form == "html" else INERT,
    }
    return StreamingResponse(_encoded(first, pieces), headers=headers, media_type=_TYPES[form])


async def _encoded(first: str, pieces: AsyncIterator[str]) -> AsyncGenerator[bytes]:
    yield first.encode(errors="replace")
    async for piece in pieces:
        yield piece.encode(errors="replace")
