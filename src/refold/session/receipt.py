"""The receipt of a session: what was billed, next to what sending everything would have cost.

Two accounts hold the same requests and the same answers, at the prices that were recorded with
them. *Paid* is all that was billed: requests, summaries whether they were used or not, recall calls
and rereads. *Whole* is every request that is no recall call and no reread, with the whole history:
read from the cache where the pause before it was within the cache's lifetime, else written; with
the same output. *Debt* is paid less whole.

It is an account of the same conversation, not of what an agent would have done otherwise. It is
made of what the log recorded with each request, and of nothing else.
"""

from bisect import bisect
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Final, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from refold.errors import SessionForgotten, SessionNotFound
from refold.fold.extractive import BY
from refold.fold.summary import parse
from refold.log import (
    MAIN_SCOPE,
    Cleared,
    Entry,
    Findings,
    FoldCompleted,
    FoldFailed,
    FoldStepped,
    Log,
    Requested,
    Rewound,
    Span,
    Used,
)
from refold.models.catalog import Prices, Usage
from refold.session.spending import Basis

LIFETIME: Final = 300.0
"""Seconds that a provider's cache lives after its last use, if nothing else is set."""
BLOCK: Final = 1_024
"""Tokens: providers cache in blocks, so fewer than this are no miss."""
_MILLION: Final = 1_000_000
_PAGE: Final = 1_000
_READ_WHOLE: Final = frozenset({Used.KIND, FoldStepped.KIND, FoldCompleted.KIND, Findings.KIND})


@dataclass(frozen=True, slots=True)
class Receipt:
    """What requests cost, next to what the same requests would have cost with everything in them.

    All sums are dollars.
    """

    requests: int = 0
    """Those that were answered."""
    folds: int = 0
    """Those that were made."""
    input: int = 0
    """Tokens of requests and of calls for summaries; our own count where none was reported."""
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    compared: int = 0
    """Of these, those that both accounts hold."""
    paid: float = 0.0
    """For those, and the summaries made for them."""
    whole: float = 0.0
    """What they would have cost with the whole history, without recall calls and rereads."""
    summaries: int = 0
    """Calls of models for summaries."""
    summaries_cost: float = 0.0
    unused: int = 0
    """Of these calls, those for folds that failed, or that have another summary."""
    unused_cost: float = 0.0
    rereads: int = 0
    """Requests whose answers only asked for what is folded."""
    rereads_cost: float = 0.0
    """Of `paid`: for these requests, and for writing what was read."""
    added_cost: float = 0.0
    """Of `paid`: for the definitions of recall's tools."""
    misses: int = 0
    """Requests that the cache did not hold, although it was in its lifetime and nothing moved."""
    misses_cost: float = 0.0
    """Of `paid`: what these cost more than with the cache."""
    over_window: int = 0
    """Requests whose whole history would not have fitted, so that there is nothing to compare."""
    over_window_cost: float = 0.0
    """What they cost, with the folds that the window forced."""
    forced: int = 0
    """Of the calls for summaries, those of these folds."""
    forced_cost: float = 0.0
    older: int = 0
    """Requests that were recorded by a version that wrote down too little to compare."""
    older_cost: float = 0.0
    unpriced: int = 0
    """Requests and summaries whose model's price is unknown: they are in no sum."""
    estimated: int = 0
    """Requests whose usage no provider reported."""
    highest: float = 0.0
    """The highest debt at any request of a session, without what Refold did not cause."""
    reported: int = 0
    """Tokens of compared requests after another one, as the provider reported them."""
    miscounted: float = 0.0
    """By how much our counts of them were off, corrected as the request before them was."""

    @property
    def billed(self) -> float:
        """All that was paid, compared or not."""
        return self.paid + self.over_window_cost + self.older_cost

    @property
    def debt(self) -> float:
        """Paid less whole; negative where Refold saved something."""
        return self.paid - self.whole

    @property
    def tokens(self) -> Usage:
        return Usage(self.input, self.output, self.cache_read, self.cache_write)

    @property
    def cost(self) -> float | None:
        """All that was paid; None if a price is unknown."""
        return None if self.unpriced else self.billed

    @property
    def saved(self) -> float | None:
        """What sending everything would have cost more; None if a price is unknown."""
        return None if self.unpriced else -self.debt

    @property
    def apart(self) -> float:
        """Of the debt, what no fold caused: added tools, and misses of the cache."""
        return self.added_cost + self.misses_cost

    @property
    def error(self) -> float:
        """By what share our counts, corrected by one request, are off in the next one."""
        return self.miscounted / self.reported if self.reported else 0.0

    def plus(self, other: "Receipt") -> "Receipt":
        """Of both together; the highest debt is that of one session."""
        names = [each.name for each in fields(self) if each.name != "highest"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Receipt(**sums, highest=max(self.highest, other.highest))

    def as_json(self) -> dict[str, JsonValue]:
        """The sums, and what follows from them."""
        own: dict[str, JsonValue] = asdict(self)
        return own | {"billed": self.billed, "debt": self.debt, "error": self.error}


@dataclass(slots=True)
class _Newest:
    """A chain's newest request, which may turn out to have been a reread."""

    cost: float
    whole: float
    """What it added to the whole account."""
    in_both: bool
    at: int
    """When the request before it was answered, of those in the whole account."""
    new: int
    """Tokens that the whole history had more than at that request."""


@dataclass(slots=True)
class _Chain:
    """The requests of one reader of a session, each of which may find the last one's cache."""

    model: str | None = None
    at: int = 0
    """When its newest request was answered, in milliseconds."""
    sent: int = 0
    """Tokens of that, as reported; 0 if they weren't."""
    scale: float = 0.0
    """How many tokens were reported for each that we counted; 0 if none were."""
    caches: bool = False
    """Whether the model has reported a use of its cache."""
    whole_at: int = 0
    """When the newest request of the whole account was answered."""
    carried: int = 0
    """Tokens that came to the whole history since then."""
    read_back: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    """By entry: the tokens on the session's line that the whole history would not have."""
    newest: _Newest | None = None


class Accounts:
    """The two accounts of one session; they take in its entries in order."""

    def __init__(self, lifetime: float = LIFETIME, *, after: int = 0, since: int = 0) -> None:
        """Keep the accounts.

        Args:
            lifetime: Seconds that the cache lives after its last use.
            after: Only entries after this one are on the receipt.
            since: Only those written since, in milliseconds since 1970.
        """
        self._lifetime = lifetime
        self._after = after
        self._since = since
        self._receipt = Receipt()
        self._chains: dict[str, _Chain] = {}
        self._sent: dict[int, int] = {}
        """When requests were sent that are not answered yet, by their records."""
        self._calls: dict[str, tuple[int, float]] = {}
        """By fold that has not ended: how often models were asked for it, and for how much."""
        self._pending = (0, 0.0)
        """The same for folds since the newest request: the next one says whether it was forced."""
        self._over_window = False
        self._head = 0

    async def read_on(self, log: Log, session: str) -> Receipt:
        """Take in what was appended to a session since it was read here last."""
        head = await log.head(session)
        while self._head < head:
            span = Span(self._head + 1, min(head, self._head + _PAGE))
            for entry in await log.read(session, span, whole=False):
                whole = [entry]
                if entry.holes and entry.kind in _READ_WHOLE:
                    whole = await log.read(session, Span(entry.seq, entry.seq))
                for each in whole:
                    self.add(each)
            self._head = span.last
        return self.receipt

    def add(self, entry: Entry) -> None:
        """Take in the session's next entry."""
        main = self._chains.setdefault(MAIN_SCOPE, _Chain())
        if entry.kind == Requested.KIND:
            self._sent[entry.seq] = entry.at
        elif entry.kind == Cleared.KIND:
            main.read_back.append((entry.seq, 0))
        elif entry.kind in _READ_WHOLE or entry.kind in (FoldFailed.KIND, Rewound.KIND):
            body: JsonValue = from_json(entry.body)
            if isinstance(body, dict):
                self._take(entry, body, main)

    def _take(self, entry: Entry, body: dict[str, JsonValue], main: _Chain) -> None:
        fold = str(body.get("fold"))
        match entry.kind, body:
            case Used.KIND, {"request": int(request), "usage": dict(usage)}:
                self._request(entry, request, body, usage)
            case FoldStepped.KIND, {"spent": {"usage": dict(usage), "cost": cost}}:
                self._summary(entry, fold, usage, cost)
            case FoldCompleted.KIND, {"summary": value}:
                summary = parse(value)
                if fold not in self._calls and summary.usage:
                    self._summary(entry, fold, summary.usage, summary.cost)
                self._add(folds=self._is_on_it(entry))
                self._end(entry, fold, used=summary.by != BY)
            case FoldFailed.KIND, _:
                self._end(entry, fold, used=False)
            case Findings.KIND, {"summary": value}:
                if (summary := parse(value)).usage:
                    self._summary(entry, "", summary.usage, summary.cost)
            case Rewound.KIND, {"to": int(to)}:
                index = bisect(main.read_back, to, key=lambda mark: mark[0]) - 1
                main.read_back.append((entry.seq, main.read_back[index][1]))
            case _:
                pass

    @property
    def receipt(self) -> Receipt:
        """What the accounts come to, up to the newest entry."""
        return self._with_summaries(over_window=self._over_window)

    def _is_on_it(self, entry: Entry) -> bool:
        return entry.seq > self._after and entry.at >= self._since

    def _add(self, **amounts: float) -> None:
        sums = {name: getattr(self._receipt, name) + more for name, more in amounts.items()}
        self._receipt = replace(self._receipt, **sums)

    def _summary(
        self, entry: Entry, fold: str, usage: Mapping[str, JsonValue], cost: JsonValue
    ) -> None:
        if not self._is_on_it(entry):
            return
        self._add(**_usage(usage)._asdict())
        dollars = float(cost) if isinstance(cost, int | float) else 0.0
        self._add(summaries=1, summaries_cost=dollars, unpriced=cost is None)
        calls, spent = self._calls.get(fold, (0, 0.0))
        self._calls[fold] = calls + 1, spent + dollars
        self._pending = self._pending[0] + 1, self._pending[1] + dollars

    def _end(self, entry: Entry, fold: str, *, used: bool) -> None:
        calls, spent = self._calls.pop(fold, (0, 0.0))
        if not used and self._is_on_it(entry):
            self._add(unused=calls, unused_cost=spent)

    def _with_summaries(self, *, over_window: bool) -> Receipt:
        calls, spent = self._pending
        now = self._receipt
        if not over_window:
            return replace(now, paid=now.paid + spent)
        forced, cost = now.forced + calls, now.forced_cost + spent
        over = now.over_window_cost + spent
        return replace(now, forced=forced, forced_cost=cost, over_window_cost=over)

    def _request(
        self, entry: Entry, request: int, body: dict[str, JsonValue], reported: dict[str, JsonValue]
    ) -> None:
        chain = self._chains.setdefault(entry.scope, _Chain())
        sent_at = self._sent.pop(request, entry.at)
        counted = self._is_on_it(entry)
        usage = _usage(reported)
        basis, cost = Basis.parse(body.get("basis")), body.get("cost")
        if counted:
            self._add(requests=1, **usage._asdict())
        if basis is None or not isinstance(cost, int | float):
            if counted and isinstance(cost, int | float):
                self._add(older=1, older_cost=cost)
            elif counted:
                self._add(unpriced=1)
            chain.model, chain.at, chain.whole_at, chain.sent = None, entry.at, entry.at, 0
            chain.newest = None
            return
        estimated = reported.get("estimated") is True
        self._compare(entry, chain, basis, _Sent(sent_at, usage, float(cost), estimated))

    def _compare(self, entry: Entry, chain: _Chain, basis: Basis, sent: "_Sent") -> None:
        usage = sent.usage
        if chain.model not in (None, basis.model):  # another model has nothing in its cache
            chain.at = chain.whole_at = chain.carried = 0
            chain.caches, chain.scale = False, 0.0
        chain.model = basis.model
        chain.caches |= bool(usage.cache_read or usage.cache_write)
        if basis.extra:
            self._retract(chain)
        rates = _rates(basis.prices, writes=bool(usage.cache_write))
        scale = usage.input / basis.counted if basis.counted else 1.0
        # The whole history is without recall's tools, and without what they gave.
        read_back = chain.read_back[-1][1]
        chain.read_back.append((entry.seq, read_back + basis.read_back))
        size = max(0, basis.whole - basis.added - read_back - basis.read_back)
        before = max(0, basis.before - basis.added - read_back)
        warm = chain.caches and self._is_warm(chain.whole_at, sent.at)
        kept = min(size, max(0, before - chain.carried)) if warm else 0
        tokens = scale * (kept * rates.read + (size - kept) * rates.write)
        whole = (tokens + usage.output * rates.output) / _MILLION
        over = size > basis.limit
        counted = self._is_on_it(entry)
        if counted:
            self._receipt = self._with_summaries(over_window=over)
            self._pending, self._over_window = (0, 0.0), over
            self._add(estimated=sent.estimated)
        if counted and over:
            self._add(over_window=1, over_window_cost=sent.cost)
        elif counted:
            self._add(compared=1, paid=sent.cost, whole=whole)
            self._itemize(chain, basis, sent, rates, scale / _MILLION)
        new = chain.carried + max(0, size - before)
        in_both = counted and not over
        chain.newest = _Newest(sent.cost, whole, in_both, chain.whole_at, new)
        chain.at = chain.whole_at = entry.at
        chain.carried = 0
        chain.sent = 0 if sent.estimated else usage.input
        chain.scale = 0.0 if sent.estimated else scale

    def _itemize(
        self, chain: _Chain, basis: Basis, sent: "_Sent", rates: "_Rates", scale: float
    ) -> None:
        """What has a line of its own in a request that was compared."""
        usage = sent.usage
        prefix = rates.read if usage.cache_read else rates.write
        self._add(
            added_cost=scale * basis.added * prefix,
            rereads_cost=scale * basis.read_back * rates.write,
        )
        if chain.scale and not sent.estimated:
            off = abs(usage.input - chain.scale * basis.counted)
            self._add(reported=usage.input, miscounted=off)
        # The cache should have held what was sent the time before.
        missed = chain.sent - usage.cache_read
        expected = chain.caches and not basis.moved and self._is_warm(chain.at, sent.at)
        if expected and missed >= BLOCK:
            self._add(misses=1, misses_cost=missed * (rates.write - rates.read) / _MILLION)
        now = self._receipt
        self._receipt = replace(now, highest=max(now.highest, now.debt - now.apart))

    def _retract(self, chain: _Chain) -> None:
        """The newest request was a reread: with the whole history, it would not have been made."""
        newest = chain.newest
        if newest is None:
            return
        chain.newest, chain.whole_at, chain.carried = None, newest.at, newest.new
        if newest.in_both:
            self._add(whole=-newest.whole, rereads=1, rereads_cost=newest.cost)

    def _is_warm(self, last: int, now: int) -> bool:
        return bool(last) and now - last <= self._lifetime * 1000


class _Sent(NamedTuple):
    """A request as it was sent and billed."""

    at: int
    usage: Usage
    cost: float
    estimated: bool


class _Rates(NamedTuple):
    """Dollars for a million tokens of one request."""

    read: float
    write: float
    output: float


def _rates(prices: Prices, *, writes: bool) -> _Rates:
    """The prices of a request; `writes`: whether the provider charges for writing to its cache."""
    plain = prices.input or 0.0
    read = plain if prices.cache_read is None else prices.cache_read
    write = prices.cache_write if writes and prices.cache_write is not None else plain
    return _Rates(read, write, prices.output or 0.0)


def _usage(reported: Mapping[str, JsonValue]) -> Usage:
    counts = (reported.get(name) for name in Usage._fields)
    return Usage(*(count if isinstance(count, int) else 0 for count in counts))


async def receipt_of(
    log: Log, session: str, lifetime: float = LIFETIME, *, since: int = 0, own: bool = False
) -> Receipt:
    """The receipt of a session; with `own`, without what it shares with the one it is forked from.

    Args:
        log: The log that holds the session.
        session: Its name.
        lifetime: Seconds that the cache lives after its last use.
        since: Only what was written since, in milliseconds since 1970.
        own: Leave out what came before the fork.
    """
    info = await log.info(session)
    after = (info.forked_at or 0) if own else 0
    return await Accounts(lifetime, after=after, since=since).read_on(log, session)


async def receipts(
    log: Log, lifetime: float = LIFETIME, *, since: int = 0
) -> AsyncIterator[tuple[str, Receipt]]:
    """The receipts of a tenant's sessions that were used since; shared entries count once."""
    page = None
    while True:
        batch = await log.sessions(limit=100, page=page)
        for info in batch.sessions:
            if info.updated_at < since:
                return
            try:
                yield (
                    info.session,
                    await receipt_of(log, info.session, lifetime, since=since, own=True),
                )
            except (SessionForgotten, SessionNotFound):  # since it was listed
                continue
        if batch.next is None:
            return
        page = batch.next
