"""Requests: which there were, what each sent, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response
from pydantic import JsonValue

from refold.errors import InvalidInput, SessionForgotten, SessionNotFound
from refold.fold.summary import parse
from refold.log import (
    CODEC,
    Entry,
    FoldCompleted,
    Forgotten,
    Log,
    Requested,
    SessionInfo,
    Span,
    Used,
)
from refold.models.catalog import Usage, cost_of, facts_of
from refold.recall.text import rebuilt
from refold.service.api import schemas
from refold.service.api import schemas as answers
from refold.service.api.routing import OfLog, Reader, Route, SessionName
from refold.service.api.schemas import After, Limit, Seq, moment
from refold.service.api.sessions import listed, read_page, with_raw
from refold.session.explain import explain_past

router = APIRouter(tags=["requests"], route_class=Route)


@router.get("/sessions/{session}/requests", summary="List the requests that were sent")
async def list_requests(
    _: Reader, log: OfLog, session: SessionName, after: After = 0, limit: Limit = 100
) -> answers.RequestPage:
    """Each is a record from which what was sent can be made again."""
    kinds = (Requested.KIND,)
    page = await read_page(log, session, after=after, limit=limit, kinds=kinds)
    records = [_record(one) for one in page.entries]
    return answers.RequestPage(requests=records, head=page.head, next=page.next)


@router.get(
    "/sessions/{session}/requests/{seq}",
    summary="See what a request sent, and why",
    response_model=answers.RequestView,
)
async def get_request(_: Reader, log: OfLog, session: SessionName, seq: Seq) -> Response:
    """The messages as they were sent, and what became of each part of the session, with reasons.

    The number is what the gateway's header `Refold-Request` has behind the colon.
    """
    entries = await log.read(session, Span(seq, seq), whole=True)
    if not entries or entries[0].kind != Requested.KIND:
        raise InvalidInput(
            f"Entry {seq} is no request record.",
            "GET /api/v1/sessions/{session}/requests lists them.",
        )
    messages = await rebuilt(log, session, seq)
    told = (await explain_past(log, session, seq)).as_json()
    about = _record(entries[0]).model_dump(mode="json")
    about["explanation"] = answers.Explanation.model_validate(told).model_dump(mode="json")
    body = with_raw(about, "messages", listed(messages))
    return Response(body, media_type="application/json")


def _record(entry: Entry) -> answers.RequestRecord:
    match CODEC.decode(entry):
        case Requested(model=model, plan=dict() as plan, digest=digest, limit=limit):
            tokens, profile = plan.get("tokens"), plan.get("profile")
            return answers.RequestRecord(
                seq=entry.seq,
                at=moment(entry.at),
                model=model,
                state="rebuildable",
                profile=profile if isinstance(profile, str) else None,
                tokens=tokens if isinstance(tokens, int) else None,
                limit=limit,
                digest=digest,
            )
        case Forgotten(kept=kept):
            limit = kept.get("limit")
            return answers.RequestRecord(
                seq=entry.seq,
                at=moment(entry.at),
                model=str(kept.get("model", "")),
                state="unrebuildable",
                limit=limit if isinstance(limit, int) else None,
                digest=str(kept.get("digest", "")),
            )
        case _:
            return answers.RequestRecord(
                seq=entry.seq, at=moment(entry.at), model="", state="unrebuildable", digest=""
            )


# What requests and summaries used and cost, added up from the log.

MOST_SESSIONS: Final = 2_000
"""Sessions that are looked through for one answer."""
_KINDS: Final = frozenset({Used.KIND, FoldCompleted.KIND})
_PAGE: Final = 1_000


@dataclass(slots=True)
class Tally:
    """What some requests and summaries come to."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    summaries: int = 0
    cost: float = 0.0
    unmanaged: float = 0.0
    unpriced: int = 0

    def add(self, entry: Entry) -> None:
        """Add what one entry tells of."""
        match CODEC.decode(entry):
            case Used(usage=dict() as usage, cost=cost, unmanaged=instead):
                self.requests += 1
                self._count(usage)
                self._pay(cost, instead.get("cost") if isinstance(instead, dict) else None)
            case Used(cost=cost):
                self.requests += 1
                self._pay(cost, None)
            case FoldCompleted(summary=summary):
                self._summary(summary)
            case _:
                pass

    def told(self) -> dict[str, float]:
        """Its figures by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def _summary(self, body: JsonValue) -> None:
        summary = parse(body)
        if not summary.usage:  # the log wrote it
            return
        self.summaries += 1
        self._count(summary.usage)
        read = summary.usage.get("cache_read", 0)
        told = Usage(summary.usage.get("input", 0), summary.usage.get("output", 0), read)
        self._pay(cost_of(told, facts_of(summary.by).prices), 0.0)

    def _count(self, usage: Mapping[str, JsonValue] | Mapping[str, int]) -> None:
        for name in Usage._fields:
            value = usage.get(name)
            if isinstance(value, int):
                setattr(self, name, getattr(self, name) + value)

    def _pay(self, cost: float | None, instead: JsonValue) -> None:
        if cost is None:
            self.unpriced += 1
            return
        self.cost += cost
        self.unmanaged += float(instead) if isinstance(instead, int | float) else cost


async def of_session(log: Log, session: str) -> tuple[Tally, int]:
    """What a session used and cost, and up to which entry that is."""
    head = await log.head(session)
    tally = Tally()
    for first in range(1, head + 1, _PAGE):
        for entry in await _costing(log, session, Span(first, min(head, first + _PAGE - 1))):
            tally.add(entry)
    return tally, head


async def by_day(log: Log, days: int, now: datetime) -> tuple[dict[str, Tally], bool]:
    """What a tenant's sessions used and cost on each of these days, and whether that is all.

    What a fork shares with another session is counted there.
    """
    today = now.astimezone(UTC).date()
    found = {(today - timedelta(nth)).isoformat(): Tally() for nth in reversed(range(days))}
    since = datetime.combine(today - timedelta(days - 1), datetime.min.time(), UTC)
    page, looked = None, 0
    while looked < MOST_SESSIONS:
        listed = await log.sessions(limit=100, page=page)
        for info in listed.sessions:
            if moment(info.updated_at) < since:
                return found, True
            await _add_days(log, info, since, found)
        looked += len(listed.sessions)
        if listed.next is None:
            return found, True
        page = listed.next
    return found, False


async def _add_days(log: Log, info: SessionInfo, since: datetime, found: dict[str, Tally]) -> None:
    """Add a session's days, the newest entries first, back to the first day that is asked for."""
    own = (info.forked_at or 0) + 1
    last = info.entries
    try:
        while last >= own:
            span = Span(max(own, last - _PAGE + 1), last)
            for entry in await _costing(log, info.session, span):
                day = moment(entry.at).date().isoformat()
                if day in found:
                    found[day].add(entry)
            first = await log.read(info.session, Span(span.first, span.first), whole=False)
            if first and first[0].time < since:
                return
            last = span.first - 1
    except (SessionForgotten, SessionNotFound):  # since it was listed
        return


async def _costing(log: Log, session: str, span: Span) -> list[Entry]:
    found: list[Entry] = []
    for entry in await log.read(session, span, whole=False):
        if entry.kind in _KINDS:
            whole = await log.read(session, Span(entry.seq, entry.seq)) if entry.holes else [entry]
            found += whole
    return found


# Usage and cost: of a session, and of a tenant day by day.

router_usage = APIRouter(tags=["usage"], route_class=Route)


@router_usage.get("/sessions/{session}/usage", summary="See what a session used and cost")
async def session_usage(_: Reader, log: OfLog, session: SessionName) -> schemas.SessionUsage:
    """Its requests, and the summaries that models wrote for it."""
    tally, upto = await of_session(log, session)
    return schemas.SessionUsage.model_validate({**tally.told(), "session": session, "upto": upto})


@router_usage.get("/usage", summary="See what was used and cost, day by day")
async def tenant_usage(
    _: Reader,
    log: OfLog,
    days: Annotated[int, Query(ge=1, le=92, description="How many days, today included.")] = 7,
) -> schemas.TenantUsage:
    """Of all sessions that are there; what was forgotten is not counted. Days are UTC."""
    found, whole = await by_day(log, days, datetime.now(UTC))
    told = [
        schemas.DayUsage.model_validate({**tally.told(), "day": day})
        for day, tally in found.items()
    ]
    return schemas.TenantUsage(days=told, whole=whole)
