"""When a fold pays: row by row, and against the best fold times in sessions of any shape."""

import pytest
from amounts import amount
from hypothesis import given, settings
from hypothesis import strategies as st

from refold.fold.debt import NextRequest, Rates
from refold.fold.economics import MIN_SHARE, Outlook, Pace, Tariff, weigh
from refold.lab.economics import Step, Terms, bound, cost_of_times

SONNET = Tariff.of(3.0, 0.3, 3.75, 15.0)
LOCAL = Tariff.of(1.0)
EXAMPLES = amount(few=50, quick=200, ci=1_000, nightly=20_000, thorough=100_000)
SIZE = 20_000


def outlook(size=60_000, kept=58_000, *, cold=False, after=SIZE, **other):
    return Outlook(NextRequest(size, kept, 90_000, cold), 5_000, after, **other)


def pace(requests, each=50_000):
    return Pace(0, requests, requests * each)


def test_a_fold_waits_until_reading_in_vain_has_cost_as_much():
    price = weigh(outlook(), Pace(), SONNET).price
    # 5,000 tokens stay in the cache and 15,000 are written; not read are 58,000, not written 2,000.
    assert price == pytest.approx((5_000 * 0.3 + 15_000 * 3.75 - 58_000 * 0.3 - 2_000 * 3.75) / 1e6)
    each, this = 30_000 * 0.3 / 1e6, 38_000 * 0.3 / 1e6  # this request would be read too
    needed = int((price - this) / each) + 1
    assert weigh(outlook(), pace(needed - 1), SONNET).finding == "not yet"
    worth = weigh(outlook(), pace(needed), SONNET)
    assert (worth.finding, worth.requests) == ("paid by reading", needed + 1)
    assert worth.read == pytest.approx(each * needed + this)
    assert worth.saves == pytest.approx(40_000 * 0.3 / 1e6)


def test_when_all_is_written_anyway_a_fold_is_made_at_once():
    assert weigh(outlook(cold=True), Pace(), SONNET).finding == "not dearer"
    assert weigh(outlook(), Pace(), LOCAL).finding == "not dearer"
    assert not weigh(outlook(), Pace(), SONNET).due
    # A giant result that must be written is no reason: the fold does not write less of the rest.
    assert not weigh(outlook(60_000, 30_000, after=50_000), Pace(), SONNET).due


def test_what_a_fold_costs_besides_counts():
    cold = outlook(cold=True)
    saved = weigh(cold, Pace(), SONNET)
    assert saved.price == 0
    for dear in (cold._replace(summary=1.0), cold._replace(rereads=1.0)):
        worth = weigh(dear, Pace(), SONNET)
        assert worth.finding == "not yet"
        assert 0 < worth.price < 1


def test_a_fold_that_leaves_little_out_is_never_made():
    size = int(60_000 * (1 - MIN_SHARE)) + 1
    for cold in (False, True):
        worth = weigh(outlook(after=size, cold=cold), pace(9_999), SONNET)
        assert worth.finding == "too little to leave out"
        assert not worth.due


def test_prices_may_be_unknown_or_without_a_cache():
    unknown = Tariff.of(None)
    assert not unknown.in_dollars
    assert unknown.rates == Rates(0.1, 1.25)
    assert Tariff.of(2.0, output=None).rates == Rates(2e-6, 2e-6)
    assert Tariff.of(1.25, 0.125, None, 10).rates == Rates(0.125e-6, 1.25e-6)
    assert Tariff.of(0.0).rates == unknown.rates  # nothing to pay, but reading takes time


def test_a_pace_starts_again_with_each_fold():
    so_far = Pace().after(0, 10).after(0, 15)
    assert so_far == Pace(0, 2, 25)
    assert so_far.after(7, 5) == Pace(7, 1, 5)


@pytest.mark.parametrize(
    ("given_outlook", "given_pace", "tariff", "words"),
    [
        (
            outlook(),
            pace(9),
            SONNET,
            ["60,000 to about 20,000", "now costs $0.0329 and saves $0.0120"],
        ),
        (
            outlook(),
            pace(9),
            SONNET,
            ["after 3 requests it pays", "$0.0924 in 10 requests, so it is made"],
        ),
        (outlook(), pace(1), SONNET, ["in 2 requests; it is made when"]),
        (outlook(), Pace(), Tariff.of(None), ["as much as 4,000 tokens of input a request"]),
        (outlook(cold=True), Pace(), SONNET, ["at once, because the cache has expired, and saves"]),
        (outlook(), Pace(), LOCAL, ["because the cache gives no discount"]),
        (outlook(after=59_000), Pace(), SONNET, ["It must leave out 25% at least."]),
    ],
)
def test_it_says_why_in_dollars(given_outlook, given_pace, tariff, words):
    text = str(weigh(given_outlook, given_pace, tariff))
    assert all(word in text for word in words), text


def fold_times(session, terms):
    """Play a session by the rule, with folds of one size."""
    tariff, size, before, times, so_far = (
        Tariff(Rates(terms.read, terms.write), 5),
        0,
        0,
        [],
        Pace(),
    )
    for number, step in enumerate(session):
        grown = size + step.size - before
        cold = step.cold or not number
        request = NextRequest(terms.fixed + grown, terms.fixed + size, step.size, cold)
        after = terms.fixed + terms.fold
        if weigh(Outlook(request, terms.fixed, after), so_far, tariff).due:
            times.append(number)
            grown = min(terms.fold, grown)
        size, before = grown, step.size
        so_far = so_far.after(len(times), terms.fixed + size)
    return times


STEPS = st.lists(
    st.tuples(
        st.one_of(st.integers(1, 500), st.integers(1, 5_000), st.integers(1, 60_000)),
        st.sampled_from([False] * 9 + [True]),
    ),
    min_size=1,
    max_size=60,
)
TERMS = st.builds(
    Terms,
    read=st.sampled_from([0.1, 0.25, 0.5, 1.0]),
    write=st.sampled_from([1.0, 1.25]),
    fixed=st.sampled_from([0, 10_000]),
    fold=st.sampled_from([2_000, 10_000, 20_000]),
)


def session_of(grown):
    total, session = 0, []
    for tokens, cold in grown:
        total += tokens
        session.append(Step(total, cold))
    return session


@settings(max_examples=EXAMPLES)
@given(STEPS, TERMS)
def test_it_costs_about_twice_the_best_fold_times_at_most(grown, terms):
    session = session_of(grown)
    cost = cost_of_times(session, fold_times(session, terms), terms)
    assert cost <= 2.2 * bound(session, terms)[0]


@settings(max_examples=EXAMPLES)
@given(STEPS, TERMS, st.integers(2, 50))
def test_prices_count_only_in_proportion(grown, terms, times):
    session = session_of(grown)
    dearer = Terms(terms.read * times, terms.write * times, 5.0, terms.fixed, terms.fold)
    assert fold_times(session, dearer) == fold_times(session, terms)


def test_in_an_even_session_it_is_close_to_the_best_that_can_be():
    session = session_of([(700, False)] * 400)
    cost = cost_of_times(session, fold_times(session, Terms()), Terms())
    assert cost <= 1.04 * bound(session, Terms())[0]
