"""The entries of a session's log."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from refold.service.api import answers
from refold.service.api.asking import OfLog, Reader, SessionName
from refold.service.api.given import After, Limit
from refold.service.api.reading import dumped, entry_json, listed, read_page
from refold.service.api.route import Route

router = APIRouter(tags=["entries"], route_class=Route)


@router.get(
    "/sessions/{session}/entries",
    summary="Read the log, in order",
    response_model=answers.EntryPage,
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
