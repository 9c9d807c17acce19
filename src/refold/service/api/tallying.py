"""What requests and summaries used and cost, added up from the log."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import JsonValue

from refold.errors import SessionForgotten, SessionNotFound
from refold.fold.summary import parse
from refold.log import CODEC, Entry, FoldCompleted, Log, SessionInfo, Span, Used
from refold.models.catalogue import facts_of
from refold.models.spending import Usage, cost_of
from refold.service.api.answers import moment

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
