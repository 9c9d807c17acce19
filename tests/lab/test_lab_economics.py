"""What fold times cost, the best that there could have been, and how far from it a row is."""

import sys
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project_paths import ROOT

from refold.lab import Prices, Reader, RecordedMessage, Recording, Usage, play
from refold.lab.content import Miss
from refold.lab.economics import (
    Account,
    Step,
    Terms,
    account,
    bound,
    cost_of_times,
    fold_times,
    steps,
)
from refold.lab.policies import Settings, timed
from refold.lab.replay import Conditions
from refold.transcripts import messages

PRICES = st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.25, 2.0])
TERMS = st.builds(
    Terms,
    read=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    write=PRICES,
    fixed=st.sampled_from([0, 7, 500]),
    fold=st.integers(1, 60),
)


@st.composite
def sessions(draw, most=9):
    grown = draw(st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1, max_size=most))
    size = 0
    made = []
    for tokens, cold in grown:
        size += tokens
        made.append(Step(size, cold))
    return made


def dollars(session, times, terms):
    """The same price, counted token by token."""
    total = 0.0
    sent = []  # the request before, as the messages that its tokens are from
    for number, step in enumerate(session):
        whole = list(range(session[number - 1].size if number else 0, step.size))
        now = sent + whole
        if number in times:
            now = [f"fold {number}"] * min(terms.fold, len(now))
        kept = 0
        while kept < min(len(now), len(sent)) and now[kept] == sent[kept]:
            kept += 1
        warm = number and not step.cold
        hit = kept + terms.fixed if warm else 0
        total += terms.read * hit + terms.write * (len(now) + terms.fixed - hit)
        sent = now
    return total


@given(sessions(), TERMS)
def test_the_bound_is_the_least_of_all_fold_times(session, terms):
    every = range(len(session))
    costs = {
        times: dollars(session, times, terms)
        for count in range(len(session) + 1)
        for times in combinations(every, count)
    }
    least, times = bound(session, terms)
    assert least == pytest.approx(min(costs.values()))
    assert costs[times] == pytest.approx(least)


@given(sessions(most=20), TERMS, st.sets(st.integers(0, 19)))
def test_no_fold_times_are_cheaper_than_the_bound(session, terms, times):
    cost = cost_of_times(session, times, terms)
    assert cost == pytest.approx(dollars(session, times, terms))
    assert cost >= bound(session, terms)[0] - 1e-6


@given(sessions(most=20), TERMS)
def test_a_cold_cache_is_where_a_fold_costs_least(session, terms):
    """With a cache that always expires, a request is written anyway: it is folded each time."""
    cold = [Step(step.size, cold=True) for step in session]
    least, _ = bound(cold, terms)
    smallest = sum(min(terms.fold, step.size) + terms.fixed for step in cold)
    assert least == pytest.approx(terms.write * smallest)


def words(text):
    return len(text.split())


def recording(turns, tokens=98):
    made = []
    for turn in range(turns):
        said = messages.request([messages.user_prompt(f"t{turn} " + "word " * (tokens - 1))])
        made += [said, messages.response([messages.text("yes")])]
    return Recording("made", tuple(map(RecordedMessage, made)))


class Folding:
    """Sends only the newest message before some requests, and appends to that after."""

    def __init__(self, *times, summary=None):
        self.times = times
        self.first = self.requests = 0
        self.summary = summary

    def view(self, messages):
        if self.requests in self.times:
            self.first = len(messages) - 1
        self.requests += 1
        return messages[self.first :]

    def usage(self):
        folded = self.requests - 1 in self.times
        return self.summary if folded and self.summary else Usage(0)


def test_a_row_has_its_own_fold_times_and_prices_of_its_own():
    reader = Reader(words)
    session = steps(recording(6), reader, Conditions())
    assert [step.size for step in session] == [100, 203, 306, 409, 512, 615]
    assert [step.cold for step in session] == [True, False, False, False, False, False]
    played = play(recording(6), Folding(2, 4, summary=Usage(50, 10, 30, 20)), reader)
    assert fold_times(played, session) == (2, 4)
    terms = Terms(read=0.1, write=1.0, output=5.0, fold=100)
    best, _ = bound(session, terms)
    found = account(played, session, best, (Miss(7, 40), Miss(7, 2)), terms)
    requests = 100 + (10 + 103) + 100 + (10 + 103) + 100 + (10 + 103)
    summaries = 2 * (30 * 0.1 + 20 * 1.0 + 10 * 5.0)
    assert found.own == pytest.approx(requests + summaries)
    assert found.rereads == pytest.approx(2 * 203 * 0.1 + 42)
    assert found.misses == 2
    assert found.all_in == found.own + found.rereads
    assert found.timing == pytest.approx(cost_of_times(session, (2, 4), terms))
    assert found.timing == pytest.approx(requests)
    assert best <= found.timing


def test_a_rule_that_folds_to_more_has_the_same_bound_and_costs_more():
    reader = Reader(words)
    session = steps(recording(12), reader, Conditions())
    terms = Terms(fold=100)
    best, _ = bound(session, terms)
    settings = Settings(threshold=600, tail=100, summary=50)
    found = {}
    for fold in (150, 300):
        policy = timed(settings, fold)["fold at 2.5 times its size"](reader)
        played = play(recording(12), policy, reader)
        found[fold] = account(played, session, best, (), terms)
    assert found[150].bound == found[300].bound == best
    assert found[150].own < found[300].own


@pytest.mark.parametrize("price", [12.5, 1.0])
def test_ski_rental_folds_when_it_has_read_as_much_too_much_as_a_fold_costs(price):
    reader = Reader(words)
    policy = timed(Settings(threshold=10**6, summary=20), 200, price)["ski rental"](reader)
    played = play(recording(20), policy, reader)
    session = steps(recording(20), reader, Conditions())
    first = fold_times(played, session)[0]
    read = [max(0, step.size - 200) for step in session]
    assert sum(read[:first]) < price * 200 <= sum(read[: first + 1])


def test_several_sessions_are_one_account():
    one, two = Account(1.0, 2.0, 3.0, 4.0, 5), Account(10.0, 20.0, 30.0, 40.0, 50)
    assert Account.of([one, two]) == Account(11.0, 22.0, 33.0, 44.0, 55)


def test_terms_are_prices_in_those_of_input():
    assert Terms.of(Prices(3.0, 15.0, 0.3, 3.75), 7) == Terms(0.1, 1.25, 5.0, 7)
    assert Terms.of(Prices(2.0, 8.0)) == Terms(1.0, 1.0, 4.0)


def test_the_part_of_a_session_follows_from_its_name_alone(monkeypatch):
    pytest.importorskip("pydantic_ai")  # the benchmarks' package needs all extras
    if not (ROOT / "benchmarks").is_dir():
        pytest.skip("the benchmarks are not part of this copy")
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    from benchmarks.economics import part_of  # noqa: PLC0415 - found by the path above

    parts = [part_of(f"session_{number:03}") for number in range(200)]
    assert parts[:4] == ["tune", "tune", "tune", "report"]
    assert {*parts} == {"tune", "report"}
    assert 80 < parts.count("tune") < 120
    assert part_of("pi_large-session") == "pi"
