"""Search: what was said, wherever it lies."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from refold.log.names import LONGEST_NAME
from refold.recall.search import search, search_sessions
from refold.service.api import answers
from refold.service.api.asking import OfLog, Reader
from refold.service.api.given import FewAtMost, Looked
from refold.service.api.route import Route

router = APIRouter(tags=["search"], route_class=Route)


@router.get("/search", summary="Find what was said")
async def search_entries(
    _: Reader,
    log: OfLog,
    query: Looked,
    session: Annotated[
        str | None, Query(max_length=LONGEST_NAME, description="Only in this session.")
    ] = None,
    limit: FewAtMost = 10,
) -> answers.FoundEntries:
    """In all sessions or in one, also beneath folds; what answers best comes first."""
    if session is not None:
        await log.head(session)
    hits = await search(log, query, session=session, limit=limit)
    found = [
        answers.Found.model_validate({**asdict(one), "at": answers.moment(one.at)}) for one in hits
    ]
    return answers.FoundEntries(found=found)


@router.get("/search/sessions", summary="Find the sessions that speak of something")
async def search_for_sessions(
    _: Reader, log: OfLog, query: Looked, limit: FewAtMost = 10
) -> answers.FoundSessions:
    """Those in which most was said about it come first."""
    found = [
        answers.FoundSession(
            session=answers.Session.of(one.info), score=one.score, matches=one.matches
        )
        for one in await search_sessions(log, query, limit=limit)
    ]
    return answers.FoundSessions(found=found)
