"""The two accounts of a session, by hand."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from refold.log import (
    Author,
    Cleared,
    Findings,
    FoldCompleted,
    FoldFailed,
    FoldStepped,
    Requested,
    Rewound,
    Used,
)
from refold.log.entry import Span, placed
from refold.models.accounts import Accounts
from refold.models.catalog import Prices, Usage, cost_of
from refold.models.receipt import Basis, Receipt

PRICES = Prices(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
FOLD = UUID(int=1)


class Ledger:
    """A session's entries of requests, as a clock goes on by seconds."""

    def __init__(self, lifetime=300.0, **on_it):
        self.accounts = Accounts(lifetime, **on_it)
        self.now = datetime(2026, 11, 19, tzinfo=UTC)
        self.author = Author(lambda: self.now)
        self.seq = 0
        self.cost = 0.0

    def add(self, value, scope="/"):
        self.seq += 1
        self.accounts.add(placed(self.author.draft(value, scope=scope), self.seq))
        return self.seq

    def request(self, counted, whole=None, before=0, *, usage=None, wait=1, model="m", **more):  # noqa: PLR0913
        """A request that is answered in no time."""
        self.now += timedelta(seconds=wait)
        scope, prices = more.pop("scope", "/"), more.pop("prices", PRICES)
        estimated = more.pop("estimated", False)
        request = self.add(Requested((), {}, model, ""), scope)
        usage = usage or Usage(counted, 10, before, counted - before)
        limit = more.pop("limit", 1_000_000)
        basis = Basis(
            model, counted if whole is None else whole, before, counted, limit, prices, **more
        )
        cost = cost_of(usage, prices)
        self.cost += cost or 0.0
        reported = usage._asdict() | ({"estimated": True} if estimated else {})
        return self.add(Used(request, reported, cost, None, basis.as_json()), scope)

    def step(self, cost, fold=FOLD):
        spent = {"by": "x", "usage": {"input": 1}, "cost": cost}
        self.cost += cost or 0.0
        self.add(FoldStepped(fold, f"chunk {self.seq}", {"text": "…"}, spent))

    @property
    def receipt(self):
        return self.accounts.receipt


def dollars(read=0, write=0, plain=0, output=0):
    return (read * 0.3 + write * 3.75 + plain * 3 + output * 15) / 1e6


def test_without_a_fold_both_accounts_are_the_same():
    ledger = Ledger()
    ledger.request(1_000)
    ledger.request(1_500, before=1_000)
    ledger.request(4_000, before=1_500)
    found = ledger.receipt
    assert (found.requests, found.compared) == (3, 3)
    assert found.paid == pytest.approx(ledger.cost)
    assert found.whole == pytest.approx(ledger.cost)
    assert found.debt == pytest.approx(0)
    assert found.highest == pytest.approx(0)


def test_a_fold_is_paid_at_once_and_comes_back_later():
    ledger = Ledger()
    ledger.request(100_000)
    ledger.step(0.05)
    ledger.add(FoldCompleted(FOLD, (Span(1, 1),), {"by": "x", "usage": {"input": 1}}))
    sent = Usage(20_000, 10, 5_000, 15_000)
    ledger.request(20_000, 101_000, 100_000, usage=sent, moved=True)
    whole = dollars(write=100_000, output=10) + dollars(100_000, 1_000, output=10)
    found = ledger.receipt
    assert found.paid == pytest.approx(ledger.cost)
    assert found.whole == pytest.approx(whole)
    assert found.highest == pytest.approx(found.debt) == pytest.approx(ledger.cost - whole)
    assert found.debt > 0
    assert (found.summaries, found.unused) == (1, 0)
    assert found.summaries_cost == 0.05
    for more in range(10):
        size = 20_000 + 1_000 * more
        ledger.request(
            size + 1_000,
            102_000 + 1_000 * more,
            101_000 + 1_000 * more,
            usage=Usage(size + 1_000, 10, size, 1_000),
        )
    assert ledger.receipt.debt < 0 < ledger.receipt.highest


@pytest.mark.parametrize(("wait", "read"), [(300, True), (301, False)])
def test_after_a_pause_beyond_its_lifetime_the_cache_is_written_anew(wait, read):
    ledger = Ledger()
    ledger.request(1_000)
    ledger.request(500, 2_000, 1_000, wait=wait, usage=Usage(500, 0, 0, 500))
    again = dollars(1_000, 1_000) if read else dollars(write=2_000)
    assert ledger.receipt.whole == pytest.approx(dollars(write=1_000, output=10) + again)


def test_what_is_counted_is_scaled_by_what_the_provider_reports():
    ledger = Ledger()
    ledger.request(1_000, usage=Usage(1_100, 0, 0, 1_100))
    ledger.request(1_000, 5_000, 4_000, usage=Usage(1_200, 0, 700, 500))
    found = ledger.receipt
    assert found.whole == pytest.approx(dollars(write=1_100) + 1.2 * dollars(4_000, 1_000))
    assert found.error == pytest.approx(100 / 1_200)  # 1,100 were to be expected


def test_a_recall_call_is_no_request_of_the_whole_account():
    ledger = Ledger()
    ledger.request(1_000, 5_000)
    ledger.request(1_100, 5_100, 5_000, usage=Usage(1_100, 20, 1_000, 100))  # asks for recall
    ledger.request(
        1_400, 5_400, 5_100, usage=Usage(1_400, 10, 1_100, 300), read_back=280, extra=True
    )
    found = ledger.receipt
    # The first and the third alone, the latter without the 280 tokens that were read back.
    whole = dollars(write=5_000, output=10) + dollars(5_000, 120, output=10)
    assert found.whole == pytest.approx(whole)
    assert found.paid == pytest.approx(ledger.cost)
    assert found.rereads == 1
    extra = dollars(1_000, 100, output=20) + dollars(write=280)
    assert found.rereads_cost == pytest.approx(extra)
    ledger.request(1_500, 5_500, 5_400, usage=Usage(1_500, 0, 1_400, 100))
    assert ledger.receipt.whole == pytest.approx(whole + dollars(5_120, 100))


def test_recall_calls_in_a_row():
    ledger = Ledger()
    ledger.request(1_000, 5_000)
    ledger.request(1_100, 5_100, 5_000, wait=200)
    ledger.request(1_200, 5_200, 5_100, wait=200, read_back=90, extra=True)
    ledger.request(1_300, 5_300, 5_200, wait=1, read_back=100, extra=True)
    found = ledger.receipt
    assert found.rereads == 2
    # For the whole account, more than the cache's lifetime has passed since the first request.
    assert found.whole == pytest.approx(
        dollars(write=5_000, output=10) + dollars(write=5_110, output=10)
    )


@pytest.mark.parametrize("back", ["rewind", "clear"])
def test_what_was_read_back_leaves_with_the_line(back):
    ledger = Ledger()
    ledger.request(1_000)
    start = ledger.seq
    ledger.request(2_000, before=1_000, read_back=500)
    ledger.add(Rewound(start) if back == "rewind" else Cleared())
    before = ledger.receipt.whole
    ledger.request(1_200, before=1_000)
    assert ledger.receipt.whole - before == pytest.approx(dollars(1_000, 200, output=10))


def test_tools_that_refold_adds_have_a_line():
    ledger = Ledger()
    ledger.request(1_000, added=100)
    ledger.request(1_500, before=1_000, added=100)
    found = ledger.receipt
    assert found.added_cost == pytest.approx(dollars(100, 100))
    assert found.debt == pytest.approx(found.added_cost)
    assert found.apart == found.added_cost
    assert found.highest == pytest.approx(0)


@pytest.mark.parametrize(
    ("moved", "wait", "missed"), [(False, 1, 1), (True, 1, 0), (False, 301, 0)]
)
def test_a_miss_that_refold_did_not_cause_has_a_line(moved, wait, missed):
    ledger = Ledger()
    ledger.request(10_000)
    ledger.request(
        11_000, 11_000, 10_000, wait=wait, usage=Usage(11_000, 10, 0, 11_000), moved=moved
    )
    found = ledger.receipt
    assert found.misses == missed
    assert found.misses_cost == pytest.approx(missed * 10_000 * (3.75 - 0.3) / 1e6)


def test_over_the_window_there_is_nothing_to_compare_with():
    ledger = Ledger()
    ledger.request(9_000, limit=10_000)
    before = ledger.cost
    ledger.step(0.01)
    ledger.request(2_000, 11_000, 9_000, limit=10_000)
    found = ledger.receipt
    assert (found.compared, found.over_window) == (1, 1)
    assert found.paid == pytest.approx(before)
    assert found.over_window_cost == pytest.approx(ledger.cost - before)
    assert (found.forced, found.forced_cost) == (1, 0.01)
    assert found.billed == pytest.approx(ledger.cost)
    ledger.step(0.02)  # after the newest request
    assert ledger.receipt.forced_cost == pytest.approx(0.03)


def test_summaries_that_were_not_used():
    ledger = Ledger()
    ledger.request(1_000)
    ledger.step(0.01)
    ledger.add(FoldFailed(FOLD, "too slow"))
    ledger.step(0.02)
    ledger.add(FoldCompleted(FOLD, (Span(1, 1),), {"by": "breadcrumb", "usage": {"input": 1}}))
    ledger.step(0.04)
    ledger.add(FoldCompleted(FOLD, (Span(1, 1),), {"by": "x", "usage": {"input": 1}}))
    found = ledger.receipt
    assert (found.summaries, found.unused) == (3, 2)
    assert found.summaries_cost == pytest.approx(0.07)
    assert found.unused_cost == pytest.approx(0.03)
    assert found.paid == pytest.approx(ledger.cost)


def test_summaries_without_steps_and_findings_count_once():
    ledger = Ledger()
    summary = {"by": "x", "usage": {"input": 1}, "cost": 0.5}
    ledger.add(FoldCompleted(FOLD, (Span(1, 1),), summary))
    ledger.add(Findings((Span(1, 1),), summary), "/child")
    assert ledger.receipt.summaries_cost == 1.0
    ledger.step(0.25)
    ledger.add(FoldCompleted(FOLD, (Span(1, 1),), summary))
    assert ledger.receipt.summaries_cost == 1.25


def test_what_has_no_price_or_no_basis_is_counted_apart():
    ledger = Ledger()
    ledger.request(1_000, prices=Prices())
    ledger.step(None)
    ledger.add(Used(1, {"input": 10, "output": 1}, 0.5, {"cost": 1.0}))
    found = ledger.receipt
    assert (found.requests, found.compared, found.unpriced, found.older) == (2, 0, 2, 1)
    assert found.billed == found.older_cost == 0.5


def test_another_model_has_nothing_in_its_cache():
    ledger = Ledger()
    ledger.request(1_000)
    ledger.request(1_500, before=1_000, model="n", usage=Usage(1_500, 0, 0, 1_500))
    assert ledger.receipt.debt == pytest.approx(0)
    assert not ledger.receipt.misses


def test_readers_have_caches_of_their_own():
    ledger = Ledger()
    ledger.request(1_000)
    ledger.request(800, scope="/child", usage=Usage(800, 10, 0, 800))
    ledger.request(1_500, before=1_000)
    assert ledger.receipt.debt == pytest.approx(0)


def test_without_a_cache_everything_has_the_plain_price():
    ledger = Ledger()
    ledger.request(1_000, usage=Usage(1_000, 0))
    ledger.request(500, 2_000, 1_000, usage=Usage(500, 0))
    assert ledger.receipt.whole == pytest.approx(dollars(plain=3_000))


def test_only_what_is_on_it():
    first = Ledger()
    first.request(1_000)
    later = Ledger(since=int(first.now.timestamp() * 1000) + 1)
    later.request(1_000)
    later.request(1_500, before=1_000)
    assert (later.receipt.requests, later.receipt.compared) == (1, 1)
    assert later.receipt.whole == pytest.approx(dollars(1_000, 500, output=10))
    forked = Ledger(after=2)
    forked.request(1_000)
    forked.request(1_500, before=1_000)
    assert forked.receipt == later.receipt


def test_receipts_add_up():
    one, two = Ledger(), Ledger()
    one.request(1_000)
    two.request(1_000, 500)
    both = one.receipt.plus(two.receipt)
    assert both.requests == 2
    assert both.paid == pytest.approx(one.cost + two.cost)
    assert both.highest == two.receipt.highest > 0


def test_a_receipt_prints_as_a_sentence():
    receipt = Receipt(requests=2, folds=1, paid=0.5, whole=0.75, unpriced=3)
    assert str(receipt) == (
        "2 requests, 1 fold: $0.5000 billed; sending everything would have cost $0.7500 "
        "for what cost $0.5000; 3 without a known price."
    )
