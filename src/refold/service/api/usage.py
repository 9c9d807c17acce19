"""Usage and cost: of a session, and of a tenant day by day."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query

from refold.service.api import answers
from refold.service.api.asking import OfLog, Reader, SessionName
from refold.service.api.route import Route
from refold.service.api.tallying import by_day, of_session

router = APIRouter(tags=["usage"], route_class=Route)


@router.get("/sessions/{session}/usage", summary="See what a session used and cost")
async def session_usage(_: Reader, log: OfLog, session: SessionName) -> answers.SessionUsage:
    """Its requests, and the summaries that models wrote for it."""
    tally, upto = await of_session(log, session)
    return answers.SessionUsage.model_validate({**tally.told(), "session": session, "upto": upto})


@router.get("/usage", summary="See what was used and cost, day by day")
async def tenant_usage(
    _: Reader,
    log: OfLog,
    days: Annotated[int, Query(ge=1, le=92, description="How many days, today included.")] = 7,
) -> answers.TenantUsage:
    """Of all sessions that are there; what was forgotten is not counted. Days are UTC."""
    found, whole = await by_day(log, days, datetime.now(UTC))
    told = [
        answers.DayUsage.model_validate({**tally.told(), "day": day})
        for day, tally in found.items()
    ]
    return answers.TenantUsage(days=told, whole=whole)
