"""Requests and usage: what each request sent and why, and what sessions used and cost."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

from fastapi import APIRouter, Response
from pydantic import JsonValue

from refold.errors import InvalidInput
from refold.fold.summary import parse
from refold.log import (
    CODEC,
    Entry,
    FoldCompleted,
    FoldStarted,
    Forgotten,
    Log,
    Note,
    Pinned,
    Requested,
    Span,
    Used,
)
from refold.models.accounts import LIFETIME, receipt_of
from refold.models.catalog import Overrides, Usage, cost_of, facts_of
from refold.recall.text import rebuilt
from refold.service.api import schemas
from refold.service.api.routing import CallerLog, Reader, Route, ServiceDep, SessionName
from refold.service.api.schemas import After, Lifetime, Limit, Seq
from refold.service.api.sessions import json_list, read_page, with_raw
from refold.session.explain import explain_past

router = APIRouter(tags=["requests"], route_class=Route)
usage_router = APIRouter(tags=["usage"], route_class=Route)
_COUNTED: Final = frozenset(
    {FoldCompleted.KIND, FoldStarted.KIND, Note.KIND, Pinned.KIND, Used.KIND}
)
FORCED: Final = "forced"
"""The trigger of a fold that a provider's refusal made necessary."""
_PAGE: Final = 1_000


@router.get("/sessions/{session}/requests", summary="List a session's requests")
async def list_requests(
    _: Reader, log: CallerLog, session: SessionName, after: After = 0, limit: Limit = 100
) -> schemas.RequestPage:
    """Each is a record from which the request can be rebuilt."""
    kinds = (Requested.KIND,)
    page = await read_page(log, session, after=after, limit=limit, kinds=kinds)
    records = [record_of(entry) for entry in page.entries]
    return schemas.RequestPage(requests=records, head=page.head, next=page.next)


@router.get(
    "/sessions/{session}/requests/{seq}",
    summary="Explain a request",
    response_model=schemas.RequestView,
)
async def get_request(_: Reader, log: CallerLog, session: SessionName, seq: Seq) -> Response:
    """The messages as they were sent, and what became of each part of the session, with reasons.

    The number is what the gateway's header `Refold-Request` has behind the colon.
    """
    entries = await log.read(session, Span(seq, seq), whole=True)
    if not entries or entries[0].kind != Requested.KIND:
        raise InvalidInput(
            f"Entry {seq} is not a request record.",
            "GET /api/v1/sessions/{session}/requests lists them.",
        )
    messages = await rebuilt(log, session, seq)
    explanation = (await explain_past(log, session, seq)).as_json()
    record = record_of(entries[0]).model_dump(mode="json")
    record["explanation"] = schemas.Explanation.model_validate(explanation).model_dump(mode="json")
    body = with_raw(record, "messages", json_list(messages))
    return Response(body, media_type="application/json")


def record_of(entry: Entry) -> schemas.RequestRecord:
    record: dict[str, object] = {"state": "unrebuildable", "model": "", "digest": ""}
    match CODEC.decode(entry):
        case Requested(model=model, plan=dict() as plan, digest=digest, limit=limit):
            tokens, profile = plan.get("tokens"), plan.get("profile")
            record = {
                "state": "rebuildable",
                "model": model,
                "profile": profile if isinstance(profile, str) else None,
                "tokens": tokens if isinstance(tokens, int) else None,
                "limit": limit,
                "digest": digest,
            }
        case Forgotten(kept=rest):
            limit = rest.get("limit")
            record |= {name: str(rest.get(name, "")) for name in ("model", "digest")}
            record["limit"] = limit if isinstance(limit, int) else None
        case _:
            pass
    return schemas.RequestRecord.model_validate({"seq": entry.seq, "at": entry.at, **record})


@dataclass(slots=True)
class Tally:
    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    summaries: int = 0
    cost: float = 0.0
    unmanaged: float = 0.0
    unpriced: int = 0
    rereads: int = 0
    """How often something was read again that had been compacted."""
    refusals: int = 0
    """Requests that got no answer, and folds because a provider refused one for its length."""

    @property
    def saved(self) -> float:
        """Dollars, beside sending everything; below zero if it cost more."""
        return self.unmanaged - self.cost

    def add(self, entry: Entry, models: Overrides) -> None:
        match CODEC.decode(entry):
            case Used(usage=dict() as usage, cost=cost, unmanaged=unmanaged):
                self.requests += 1
                self._count(usage)
                self._pay(cost, unmanaged.get("cost") if isinstance(unmanaged, dict) else None)
            case Used(cost=cost):
                self.requests += 1
                self._pay(cost, None)
            case FoldCompleted(summary=summary):
                self._summary(summary, models)
            case Pinned(watched=True, parts=parts):
                self.rereads += len(parts)
            case FoldStarted(trigger=trigger):
                self.refusals += FORCED in trigger
            case Note(data={"gateway": "failed"}):
                self.refusals += 1
            case _:
                pass

    def _summary(self, body: JsonValue, models: Overrides) -> None:
        usage = parse(body).usage
        if not usage:  # an extractive summary costs nothing
            return
        self.summaries += 1
        self._count(usage)
        self._pay(_summary_cost(body, models), 0.0)

    def _count(self, usage: Mapping[str, JsonValue] | Mapping[str, int]) -> None:
        for name in Usage._fields:
            value = usage.get(name)
            if isinstance(value, int):
                setattr(self, name, getattr(self, name) + value)

    def _pay(self, cost: float | None, unmanaged: JsonValue) -> None:
        if cost is None:
            self.unpriced += 1
            return
        self.cost += cost
        self.unmanaged += float(unmanaged) if isinstance(unmanaged, int | float) else cost


def _summary_cost(body: JsonValue, models: Overrides) -> float | None:
    """What a model took for a summary; 0 for an extractive one."""
    summary = parse(body)
    if not summary.usage:
        return 0.0
    if summary.cost is not None:
        return summary.cost
    usage = summary.usage
    reported = Usage(usage.get("input", 0), usage.get("output", 0), usage.get("cache_read", 0))
    return cost_of(reported, facts_of(summary.by, models).prices)


_NOTHING: Final = Tally()


async def session_tally(
    log: Log,
    session: str,
    models: Overrides,
    before: tuple[Tally, int] = (_NOTHING, 0),
    *,
    max_entries: int | None = None,
) -> tuple[Tally, int]:
    """What a session used and cost, and up to which entry: its head at that time.

    Args:
        log: The log that holds the session.
        session: Its name.
        models: The prices that the settings give.
        before: An earlier result, to read on from there.
        max_entries: How many entries are read at most.
    """
    head = await log.head(session)
    tally, upto = replace(before[0]), before[1]
    end = head if max_entries is None else min(head, upto + max_entries)
    for first in range(upto + 1, end + 1, _PAGE):
        for entry in await _counted(log, session, Span(first, min(end, first + _PAGE - 1))):
            tally.add(entry, models)
    return tally, end


async def _counted(log: Log, session: str, span: Span) -> list[Entry]:
    entries: list[Entry] = []
    for entry in await log.read(session, span, whole=False):
        if entry.kind in _COUNTED:
            seq = Span(entry.seq, entry.seq)
            entries += await log.read(session, seq) if entry.holes else [entry]
    return entries


@usage_router.get("/sessions/{session}/usage", summary="Get a session's usage and cost")
async def session_usage(
    _: Reader, log: CallerLog, service: ServiceDep, session: SessionName
) -> schemas.SessionUsage:
    """Its requests, and the summaries that models wrote for it."""
    tally, head = await session_tally(log, session, service.settings.models)
    return schemas.SessionUsage.model_validate({**asdict(tally), "session": session, "upto": head})


@usage_router.get("/sessions/{session}/receipt", summary="Get a session's receipt")
async def session_receipt(
    _: Reader, log: CallerLog, session: SessionName, lifetime: Lifetime = LIFETIME
) -> schemas.SessionReceipt:
    """What was billed, compared with the same requests with the full history."""
    receipt = await receipt_of(log, session, lifetime)
    return schemas.SessionReceipt.model_validate({**receipt.as_json(), "session": session})
