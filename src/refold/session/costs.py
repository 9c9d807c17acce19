"""Costs: what a tenant used and paid by day, model and key, beside sending everything.

They come from the daily totals that each append keeps, so no session is read. Only sessions that
are not counted yet are read, a few with each question; and one for the costs of its own requests.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import Final, NamedTuple, TypeVar

from pydantic import JsonValue
from pydantic_core import from_json

from refold.log import Log, Total, Used
from refold.models.accounts import COUNTED, Accounts, entries_of
from refold.models.receipt import Basis, Receipt

MAX_DEARER: Final = 20
"""Sessions that cost more than with everything, and requests of one of them, that are listed."""
_UNCOUNTED: Final = 20
"""Sessions that a question counts, at most."""
_TINY: Final = 5e-7  # dollars
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
K = TypeVar("K")


class Period(NamedTuple):
    """Some days, today last; as numbers since 1970, UTC."""

    first: int
    last: int

    @classmethod
    def of(cls, days: int, now: datetime | None = None) -> "Period":
        """So many days, today included."""
        today = ((now or datetime.now(UTC)) - _EPOCH).days
        return cls(today - days + 1, today)

    @classmethod
    def on(cls, day: date) -> "Period":
        """One day."""
        number = (day - _EPOCH.date()).days
        return cls(number, number)

    @property
    def begins_at(self) -> int:
        """When the first of them begins, in milliseconds since 1970."""
        return int((_EPOCH + timedelta(self.first)).timestamp() * 1000)

    @property
    def names(self) -> dict[int, str]:
        return {day: day_name(day) for day in range(self.first, self.last + 1)}


class Costs(NamedTuple):
    """What a tenant used and paid in some days."""

    period: Period
    rows: tuple[Total, ...]
    sessions: int
    complete: bool

    @property
    def total(self) -> Receipt:
        return receipt_of_rows(self.rows)

    @property
    def by_day(self) -> dict[str, Receipt]:
        """Each of the days, whether something was used or not."""
        found = grouped(self.rows, lambda row: row.day)
        return {name: found.get(day, Receipt()) for day, name in self.period.names.items()}

    @property
    def by_model(self) -> dict[str, Receipt]:
        """The models that were used; the one that was paid most for comes first."""
        return dearest_first(grouped(self.rows, lambda row: row.model))

    @property
    def by_key(self) -> dict[str, Receipt]:
        return dearest_first(grouped(self.rows, lambda row: row.key))


async def costs_in(log: Log, period: Period) -> Costs:
    """The totals of some days, after counting a few of the sessions that are not counted yet."""
    found = await log.totals(*period)
    if found.uncounted:
        await log.recount(_UNCOUNTED)
        found = await log.totals(*period)
    return Costs(period, found.rows, found.sessions, not found.uncounted)


def receipt_of_rows(rows: Iterable[Total]) -> Receipt:
    return reduce(Receipt.plus, (Receipt.of(row.sums) for row in rows), Receipt())


def grouped(rows: Iterable[Total], name: Callable[[Total], K]) -> dict[K, Receipt]:
    found: dict[K, Receipt] = {}
    for row in rows:
        found[name(row)] = found.get(name(row), Receipt()).plus(Receipt.of(row.sums))
    return found


def dearest_first(receipts: dict[str, Receipt]) -> dict[str, Receipt]:
    return dict(sorted(receipts.items(), key=lambda each: (-each[1].billed, each[0])))


def day_name(day: int) -> str:
    return (_EPOCH + timedelta(day)).date().isoformat()


def usage_of(receipt: Receipt) -> dict[str, object]:
    """A receipt as what was used and cost."""
    return {**receipt.as_json(), "cost": receipt.billed, "unmanaged": receipt.everything}


async def dearer_sessions(log: Log, period: Period) -> dict[str, Receipt]:
    """The sessions that cost more in these days than with everything, the worst first."""
    rows = await log.dearest(*period, limit=MAX_DEARER)
    return {row.session: Receipt.of(row.sums) for row in rows}


async def billed_sessions(log: Log, period: Period, limit: int) -> dict[str, Receipt]:
    """The sessions that something was billed for in these days, the dearest first."""
    rows = await log.dearest(*period, limit=limit, every=True)
    return {row.session: Receipt.of(row.sums) for row in rows}


class RequestCost(NamedTuple):
    """What a request or a summary added to a session's receipt."""

    request: int
    """The request record; the fold's entry for a summary."""
    at: int
    what: str
    """`request` or `summary`."""
    model: str
    receipt: Receipt
    moved: bool = False
    """Whether the request begins otherwise than the one before it."""

    @property
    def debt(self) -> float:
        """Dollars that it cost more than with the whole history."""
        return self.receipt.debt

    @property
    def causes(self) -> dict[str, float]:
        """Why, in dollars that add up to the debt; what saved something is negative."""
        now = self.receipt
        causes = {
            "summary": now.paid if self.what == "summary" else 0.0,
            "recall": now.rereads_cost,
            "tools": now.added_cost,
            "miss": now.misses_cost,
        }
        rest = now.debt - sum(causes.values())
        causes["prefix" if self.moved and rest > 0 else "other"] = rest
        return {name: dollars for name, dollars in causes.items() if abs(dollars) > _TINY}

    def as_json(self) -> dict[str, JsonValue]:
        """The cost as the HTTP API gives it."""
        causes: dict[str, JsonValue] = {**self.causes}
        return {
            "request": self.request,
            "at": self.at,
            "what": self.what,
            "model": self.model,
            "paid": self.receipt.billed,
            "whole": self.receipt.whole,
            "debt": self.debt,
            "causes": causes,
        }


async def costs_of_requests(log: Log, session: str) -> list[RequestCost]:
    """What each request and each summary of a session added to its receipt, oldest first."""
    accounts, found = Accounts(), list[RequestCost]()
    before = accounts.receipt
    async for entry in entries_of(log, session, 1, await log.head(session)):
        accounts.add(entry)
        if entry.kind not in COUNTED or (after := accounts.receipt) == before:
            continue
        what, request, moved = "summary", entry.seq, False
        if entry.kind == Used.KIND:
            body = from_json(entry.body)
            basis = Basis.parse(body.get("basis"))
            what, request, moved = "request", body["request"], bool(basis and basis.moved)
        cost = RequestCost(request, entry.at, what, accounts.model, after.less(before), moved)
        found.append(cost)
        before = after
    return found
