"""The accounts of a session: what was billed, next to what sending everything would have cost.

Two accounts hold the same requests and the same answers, at the prices that were recorded with
them. *Paid* is all that was billed: requests, summaries whether they were used or not, recall calls
and rereads. *Whole* is every request that is no recall call and no reread, with the whole history:
read from the cache where the pause before it was within the cache's lifetime, else written; with
the same output. *Debt* is paid less whole.

It is an account of the same conversation, not of what an agent would have done otherwise. It is
made of what the log recorded with each request, and of nothing else.
"""

import json
from bisect import bisect
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Final, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from refold.errors import SessionForgotten, SessionNotFound
from refold.fold.debt import Ruled, RuleState
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
from refold.models.receipt import MAX_COUNT, SUMS, Basis, Receipt, possible

LIFETIME: Final = 300.0
"""Seconds that a provider's cache lives after its last use, if nothing else is set."""
BLOCK: Final = 1_024
"""Tokens: providers cache in blocks, so fewer than this are no miss."""
_MILLION: Final = 1_000_000
_TOLERANCE: Final = 1e-9  # dollars
_PAGE: Final = 1_000
_MAX_CHAINS: Final = 100
"""Readers of a session, and requests under way, that are kept in mind."""
_READ_WHOLE: Final = frozenset({Used.KIND, FoldStepped.KIND, FoldCompleted.KIND, Findings.KIND})
COUNTED: Final = _READ_WHOLE | {FoldFailed.KIND, Rewound.KIND, Cleared.KIND}
"""The kinds that change accounts. Of requests, only when they were sent is of interest."""
_STATE_VERSION: Final = 1
_COMPACT: Final = json.JSONEncoder(separators=(",", ":")).encode


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
    cut: bool = False
    """Whether earlier ones are gone, so that nobody can rewind to them."""
    newest: _Newest | None = None

    def as_json(self) -> list[JsonValue]:
        """What is needed to go on, in a size that does not grow with the session."""
        cut = self.cut or len(self.read_back) > 1
        newest = None if self.newest is None else [*astuple(self.newest)]
        return [
            *(self.model, self.at, self.sent, self.scale, self.caches, self.whole_at),
            *(self.carried, self.read_back[-1][1], cut, newest),
        ]

    @classmethod
    def of(cls, state: Sequence[Any]) -> "_Chain":
        *own, read_back, cut, newest = state
        last = None if newest is None else _Newest(*newest)
        chain = cls(*own)
        chain.read_back, chain.cut, chain.newest = [(0, read_back)], cut, last
        return chain


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
        self._sums: dict[str, float] = dict.fromkeys(SUMS, 0)
        self._chains: dict[str, _Chain] = {}
        self._sent: dict[int, int] = {}
        """When requests were sent that are not answered yet, by their records."""
        self._calls: dict[str, tuple[int, float]] = {}
        """By fold that has not ended: how often models were asked for it, and for how much."""
        self._pending = (0, 0.0)
        """The same for folds since the newest request: the next one says whether it was forced."""
        self._over_window = False
        self._head = 0
        self.rule = RuleState()
        """Of the session's main line."""
        self._promised = self._outside = 0.0
        self._doubt = 0.0
        """By how much our counts were off since there was no debt."""
        self._broken = 0
        self.model = ""
        """The model that answered last."""
        self.key = ""
        """The id of the key that its request came with; empty where none was needed."""

    async def read_on(self, log: Log, session: str) -> Receipt:
        """Take in what was appended to a session since it was read here last."""
        async for entry in entries_of(log, session, self._head + 1, await log.head(session)):
            self.add(entry)
            self._head = entry.seq
        return self.receipt

    def add(self, entry: Entry) -> None:
        """Take in the session's next entry."""
        main = self._chains.setdefault(MAIN_SCOPE, _Chain())
        if entry.kind == Requested.KIND:
            self.sent(entry.seq, entry.at)
        elif entry.kind == Cleared.KIND:
            _read_back_is(main, entry.seq, 0)
        elif entry.kind in COUNTED:
            try:
                body: JsonValue = from_json(entry.body)
            except ValueError:  # a log may hold what other programs wrote
                return
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
                _read_back_is(main, entry.seq, main.read_back[max(0, index)][1])
            case _:
                pass

    @property
    def receipt(self) -> Receipt:
        """What the accounts come to, up to the newest entry."""
        sums = self._sums
        self._sums = dict(sums)
        self._add_pending(over_window=self._over_window)
        found, self._sums = self._sums, sums
        receipt = Receipt.of(found.values())
        if not (self._promised or self._broken):
            return receipt
        return replace(
            receipt,
            promised=self._promised,
            broken=self._broken,
            outside_cost=self._outside,
        )

    @property
    def chain(self) -> tuple[JsonValue, ...]:
        """What is recorded of the session's main line, for whoever opens it next."""
        return (*self._chains.get(MAIN_SCOPE, _Chain()).as_json(),)

    def resume(self, ruled: Ruled) -> None:
        """Go on before a request, with what was recorded of those before it."""
        if ruled.chain:
            self._chains[MAIN_SCOPE] = _Chain.of(ruled.chain)

    @property
    def can_rewind(self) -> bool:
        """Whether these accounts hold what they need to take in a `Rewound` entry."""
        main = self._chains.get(MAIN_SCOPE)
        return main is None or not main.cut

    def dump(self) -> bytes:
        """What is needed to go on from here, in a size that does not grow with the session."""
        chains: dict[str, JsonValue] = {}
        for scope, chain in self._chains.items():
            chains[scope] = chain.as_json()
        calls: dict[str, JsonValue] = {fold: [*spent] for fold, spent in self._calls.items()}
        state: dict[str, JsonValue] = {
            "version": _STATE_VERSION,
            "receipt": [*self._sums.values()],
            "chains": chains,
            "calls": calls,
            "pending": [*self._pending],
            "over": self._over_window,
            "model": self.model,
            "key": self.key,
        }
        return _COMPACT(state).encode()

    @classmethod
    def load(cls, state: bytes) -> "Accounts | None":
        """The accounts that go on from a state; None if another version wrote it."""
        found = json.loads(state)
        if found["version"] != _STATE_VERSION:
            return None
        accounts = cls()
        accounts._sums = dict(zip(SUMS, found["receipt"], strict=True))
        accounts._chains = {scope: _Chain.of(state) for scope, state in found["chains"].items()}
        accounts._calls = {fold: (calls, spent) for fold, (calls, spent) in found["calls"].items()}
        accounts._pending = (found["pending"][0], found["pending"][1])
        accounts._over_window = found["over"]
        accounts.model, accounts.key = found["model"], found["key"]
        return accounts

    def sent(self, request: int, at: int) -> None:
        """Note when a request was sent, by its record; who reads every entry need not."""
        self._sent[request] = at
        if len(self._sent) > _MAX_CHAINS:
            del self._sent[next(iter(self._sent))]

    def _is_on_it(self, entry: Entry) -> bool:
        return entry.seq > self._after and entry.at >= self._since

    def _add(self, **amounts: float) -> None:
        for name, more in amounts.items():
            self._sums[name] += more

    def _summary(
        self, entry: Entry, fold: str, usage: Mapping[str, JsonValue], cost: JsonValue
    ) -> None:
        known = _dollars(cost)
        dollars = known or 0.0
        self.rule.spend(dollars, outside=not fold)
        if not self._is_on_it(entry):
            return
        self._add(**_usage(usage)._asdict())
        self._add(summaries=1, summaries_cost=dollars, unpriced=known is None)
        calls, spent = self._calls.get(fold, (0, 0.0))
        self._calls[fold] = calls + 1, spent + dollars
        self._pending = self._pending[0] + 1, self._pending[1] + dollars

    def _end(self, entry: Entry, fold: str, *, used: bool) -> None:
        calls, spent = self._calls.pop(fold, (0, 0.0))
        if not used and self._is_on_it(entry):
            self._add(unused=calls, unused_cost=spent)

    def _add_pending(self, *, over_window: bool) -> None:
        calls, spent = self._pending
        if over_window:
            self._add(forced=calls, forced_cost=spent, over_window_cost=spent)
        else:
            self._add(paid=spent)

    def _request(
        self, entry: Entry, request: int, body: dict[str, JsonValue], reported: dict[str, JsonValue]
    ) -> None:
        chain = self._chain(entry.scope)
        sent_at = self._sent.get(request, entry.at)
        counted = self._is_on_it(entry)
        usage = _usage(reported)
        basis, cost = Basis.parse(body.get("basis")), _dollars(body.get("cost"))
        key = body.get("key")
        self.model, self.key = basis.model if basis else "", key if isinstance(key, str) else ""
        if counted:
            self._add(requests=1, **usage._asdict())
        if basis is None or cost is None:
            if counted and cost is not None:
                self._add(older=1, older_cost=cost)
            elif counted:
                self._add(unpriced=1)
            chain.model, chain.at, chain.whole_at, chain.sent = None, entry.at, entry.at, 0
            chain.newest = None
            return
        estimated = reported.get("estimated") is True
        self._compare(entry, chain, basis, _Sent(sent_at, usage, cost, estimated))

    def _chain(self, scope: str) -> _Chain:
        """The chain of a reader. The ones used longest ago are dropped: no cache lives so long."""
        chain = self._chains.pop(scope, None) or _Chain()
        self._chains[scope] = chain
        if len(self._chains) > _MAX_CHAINS:
            oldest = next(name for name in self._chains if name != MAIN_SCOPE)
            del self._chains[oldest]
        return chain

    def _compare(self, entry: Entry, chain: _Chain, basis: Basis, sent: "_Sent") -> None:
        usage = sent.usage
        ruled = basis.rule if entry.scope == MAIN_SCOPE else None
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
        _read_back_is(chain, entry.seq, read_back + basis.read_back)
        size = max(0, basis.whole - basis.added - read_back - basis.read_back)
        before = max(0, basis.before - basis.added - read_back)
        warm = chain.caches and self._is_warm(chain.whole_at, sent.at)
        kept = min(size, max(0, before - chain.carried)) if warm else 0
        tokens = scale * (kept * rates.read + (size - kept) * rates.write)
        whole = (tokens + usage.output * rates.output) / _MILLION
        over = size > basis.limit
        counted = self._is_on_it(entry)
        if ruled is not None:
            self._rule(chain, basis, ruled, sent, None if over else whole)
        if counted:
            self._add_pending(over_window=over)
            self._pending, self._over_window = (0, 0.0), over
            self._add(estimated=sent.estimated)
        if counted and over:
            self._add(over_window=1, over_window_cost=sent.cost)
        elif counted:
            self._add(compared=1, paid=sent.cost, whole=whole)
            self._itemize(chain, basis, sent, rates, scale / _MILLION)
            if ruled is not None:
                self._check_promise()
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
        now = self._sums
        debt = now["paid"] - now["whole"] - now["added_cost"] - now["misses_cost"]
        now["highest"] = max(now["highest"], debt)

    def _rule(
        self, chain: _Chain, basis: Basis, ruled: Ruled, sent: "_Sent", whole: float | None
    ) -> None:
        """Take a request of the session's main line into the rule, with what is ours of it.

        `whole` is None where the whole history would not fit the window.
        """
        if ruled.state:  # as whoever sent the request recorded it
            self.rule = RuleState.of(ruled.state)
        if basis.extra:
            self.rule.retract()
        if whole is None:
            self.rule.skip()
            return
        usage, rates = sent.usage, _rates(basis.prices, writes=bool(sent.usage.cache_write))
        scale = usage.input / basis.counted if basis.counted else 1.0
        ruled = ruled.scaled(scale)
        scale /= _MILLION
        if not (ruled.unfolding or ruled.moved_by):  # it is the whole one: what differs are counts
            self.rule.request(ruled, whole, whole, reread=0.0, outside=0.0)
            return
        prefix = rates.read if usage.cache_read else rates.write
        # Of whatever size: providers cache in blocks, and no fold is to blame for that.
        warm = chain.caches and self._is_warm(chain.at, sent.at)
        missed = max(0, chain.sent - usage.cache_read) if warm else 0
        lost = missed * (rates.write - rates.read) / _MILLION
        apart = scale * basis.added * prefix + (0.0 if ruled.moved_by else lost)
        new = min(basis.read_back, ruled.carried)
        before = rates.write if ruled.moved_by else prefix
        reread = scale * (new * rates.write + (ruled.carried - new) * before)
        undone = ruled.undone or self.rule.now.unfolded
        if undone and not ruled.reopened:  # no fold made the model read it
            apart, reread = apart + reread, 0.0
        cut = lost if ruled.moved_by == "cut" else 0.0
        self.rule.request(ruled, sent.cost - apart, whole, reread=reread, outside=cut)
        known = chain.scale and not sent.estimated
        off = abs(usage.input - chain.scale * basis.counted) if known else 0.0
        doubt = self._doubt + off * rates.write / _MILLION
        self._doubt = doubt if self.rule.now.debt > 0 else 0.0

    def _check_promise(self) -> None:
        """Compare the debt after a request with what was promised."""
        state = self.rule.now
        self._promised = max(self._promised, state.promise)
        self._broken += state.debt > state.promise + self._doubt + _TOLERANCE
        self._outside = max(self._outside, state.outside)

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


async def entries_of(log: Log, session: str, first: int, last: int) -> AsyncIterator[Entry]:
    """The entries of a session, whole where accounts read them."""
    for start in range(first, last + 1, _PAGE):
        span = Span(start, min(last, start + _PAGE - 1))
        for entry in await log.read(session, span, whole=False):
            lifted = entry.holes and entry.kind in _READ_WHOLE
            yield (await log.read(session, Span(entry.seq, entry.seq)))[0] if lifted else entry


def _read_back_is(chain: _Chain, seq: int, tokens: int) -> None:
    if chain.read_back[-1][1] != tokens:
        chain.read_back.append((seq, tokens))


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
    return Usage(
        *(
            max(-MAX_COUNT, min(count, MAX_COUNT)) if isinstance(count, int) else 0
            for count in counts
        )
    )


def _dollars(cost: JsonValue) -> float | None:
    return float(cost) if isinstance(cost, int | float) and possible(cost) else None


async def receipt_of(
    log: Log, session: str, lifetime: float = LIFETIME, *, since: int = 0, own: bool = False
) -> Receipt:
    """The receipt of a session; with `own`, without what it was forked with.

    Args:
        log: The log that holds the session.
        session: Its name.
        lifetime: Seconds that the cache lives after its last use.
        since: Only what was written since, in milliseconds since 1970.
        own: Leave out what came before the fork.
    """
    info = await log.info(session)
    after = info.own_from - 1 if own else 0
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
