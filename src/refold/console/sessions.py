"""The list of sessions: search, filters, and what each has cost."""

from fastapi import APIRouter, Request, Response

from refold.console.pages import Page, page
from refold.service.api.routing import CallerLog, Reader
from refold.service.api.sessions import list_sessions

router = APIRouter(route_class=Page)


@router.get("")
async def show_sessions(request: Request, caller: Reader, log: CallerLog) -> Response:
    """The sessions, the one used last first."""
    found = await list_sessions(caller, log)
    return page(request, "sessions.html", found=found)
