"""The promise of the open fold, in sessions of any shape at any prices, against bad luck.

The sessions here are lists of blocks, and their costs are computed from the blocks alone: what two
requests in a row begin with is read from the cache, the rest is written. The rule sees what a
session would tell it. All numbers are integers, so that sums are exact.
"""

from dataclasses import dataclass, field

import pytest
from amounts import amount
from hypothesis import example, given, settings
from hypothesis import strategies as st

from refold.fold.debt import Move, NextRequest, OpenFold, Rates, price_of_unfolding

EXAMPLES = amount(few=50, quick=400, ci=2_000, nightly=50_000, thorough=200_000)
LIFETIME = 300
OUTPUT = 5


@dataclass(frozen=True)
class Block:
    number: int
    tokens: int
    stands_for: frozenset = frozenset()
    recalled: bool = False


def shared(before, blocks):
    count = 0
    for left, right in zip(before, blocks, strict=False):
        if left != right:
            break
        count += 1
    return count


def size(blocks):
    return sum(block.tokens for block in blocks)


@dataclass
class Account:
    """What one way of sending the session has cost, by its blocks and pauses."""

    rates: Rates
    before: tuple = ()
    idle: int = 0
    total: int = 0

    @property
    def cold(self):
        return not self.before or self.idle > LIFETIME

    def cost(self, blocks):
        cached = 0 if self.cold else shared(self.before, blocks)
        return self.rates.read * size(blocks[:cached]) + self.rates.write * size(blocks[cached:])

    def send(self, blocks, answer=0):
        cost = self.cost(blocks) + OUTPUT * self.rates.write * answer
        self.total += cost
        self.before, self.idle = tuple(blocks), 0
        return cost


@dataclass
class Begun:
    """A fold whose summary is written in the background."""

    first: int
    last: int
    tokens: int
    spent: int
    due: int


@dataclass
class World:
    rates: Rates
    strict: bool
    fixed: int
    state: OpenFold = field(default_factory=OpenFold)
    begun: Begun | None = None
    rereads: int = 0
    undoing: int = 0
    outside: int = 0
    folds: int = 0
    unfolded: int = 0

    def __post_init__(self):
        self.paid, self.whole = Account(self.rates), Account(self.rates)
        self.number = 0
        self.every = [self.block(self.fixed)]
        self.sent = [*self.every]

    def block(self, tokens, **more):
        self.number += 1
        return Block(self.number, tokens, **more)

    def say(self, tokens):
        block = self.block(tokens)
        self.every.append(block)
        self.sent.append(block)

    def wait(self, seconds):
        self.paid.idle += seconds
        self.whole.idle += seconds

    def switch(self, rates):
        """Another model has other prices, and nothing in its cache."""
        self.rates = rates
        for account in (self.paid, self.whole):
            account.rates, account.before = rates, ()

    @property
    def unfolding(self):
        """The price of sending everything that follows what no fold stands for."""
        folds = [i for i, block in enumerate(self.sent) if block.stands_for]
        if not folds:
            return 0
        return price_of_unfolding(self.rates, size(self.every), size(self.sent[: folds[0]]))

    def next_request(self):
        kept = shared(self.paid.before, self.sent)
        whole = size(self.every)
        return NextRequest(size(self.sent), size(self.sent[:kept]), whole, cold=self.paid.cold)

    def folded(self, first, last, tokens):
        covered = self.sent[first:last]
        numbers = frozenset().union(*(block.stands_for or {block.number} for block in covered))
        return [*self.sent[:first], self.block(tokens, stands_for=numbers), *self.sent[last:]]

    def propose(  # noqa: PLR0913, PLR0917
        self,
        first,
        last,
        share,
        summary,
        attempts,
        fails,
        later,
        forced=False,  # noqa: FBT002
    ):
        """A fold of what is between two places, if the rule allows it or the window forces it."""
        if self.begun or len(self.sent) < 3:
            return
        first = 1 + first % (len(self.sent) - 2)
        last = first + 1 + last % (len(self.sent) - first - 1)
        tokens = 1 + size(self.sent[first:last]) * share // 100
        after = self.folded(first, last, tokens)
        move = Move(size(self.sent[:first]), size(after), summary * attempts)
        verdict = self.state.may(move, self.next_request(), self.rates, strict=self.strict)
        excess = self.paid.cost(after) - self.paid.cost(self.sent)
        assert verdict.price >= max(move.summary, move.summary + excess)
        if forced:
            if size(after) > size(self.every):  # a summary longer than its messages is refused
                return
            self.state = self.state.forced(max(move.summary, verdict.price)).reopened()
            self.outside += max(move.summary, verdict.price)
            self.spend(summary)
            self.sent = after
            self.folds += 1
            return
        if not verdict.allowed or (later and verdict.at_once):
            return
        if self.state.debt > 0:
            assert excess + move.summary <= 0, "a dear fold was made while there was debt"
        assert size(after) <= size(self.every)
        self.state = self.state.stating(verdict.price)
        self.spend(summary * attempts if fails else summary)
        if fails:
            return
        if later:
            self.begun = Begun(first, last, tokens, summary, later)
        else:
            self.sent = after
            self.folds += 1

    def apply(self):
        """The summary of a fold that was begun earlier is there."""
        begun, self.begun = self.begun, None
        after = self.folded(begun.first, begun.last, begun.tokens)
        if size(after) > size(self.every):
            return
        excess = self.paid.cost(after) - self.paid.cost(self.sent)
        move = Move(size(self.sent[: begun.first]), size(after), begun.spent)
        price = move.price(self.next_request(), self.rates)
        assert price == begun.spent + excess
        self.state = self.state.stating(move.stated(self.next_request(), self.rates))
        self.sent = after
        self.folds += 1

    def spend(self, cost):
        self.paid.total += cost
        self.state = self.state.with_summary(cost)
        self.check()

    def request(self, answer, recall=0, extra=False):  # noqa: FBT002
        """One request, and what its answer asks for from beneath the folds."""
        if self.begun:
            self.begun.due -= 1
            if not self.begun.due:
                self.apply()
        before = self.paid.total - self.whole.total
        undone = self.state.must_unfold(self.unfolding)
        if undone:
            self.state = self.state.without_folds(self.unfolding)
            self.begun = None
            self.sent = [*self.every]
            self.unfolded += 1
        recall = recall if any(block.stands_for for block in self.sent) else 0
        extra = extra and bool(recall)
        cached = 0 if self.paid.cold else shared(self.paid.before, self.sent)
        carried = sum(
            (self.rates.read if i < cached else self.rates.write) * block.tokens
            for i, block in enumerate(self.sent)
            if block.recalled
        )
        paid = self.paid.send(self.sent, answer)
        whole = 0 if extra else self.whole.send(self.every, answer)
        reread = paid if extra else carried
        self.rereads += reread
        if undone:
            self.undoing += max(0, self.paid.total - self.whole.total - before)
        self.state = self.state.after(paid, whole, reread=reread, unfolding=self.unfolding)
        self.check()
        if recall:
            self.sent.append(self.block(recall, recalled=True))

    def check(self):
        debt = self.paid.total - self.whole.total
        assert self.state.debt == debt
        assert debt <= self.state.promise
        if not self.rereads:
            assert debt <= self.state.price + self.state.outside
        if self.strict:
            assert debt - self.rereads - self.undoing - self.outside <= 0


TOKENS = st.one_of(st.integers(1, 50), st.integers(1, 3_000), st.just(40_000))
PAUSES = st.sampled_from([1, 1, 1, LIFETIME // 2, LIFETIME, LIFETIME + 1, 9 * LIFETIME])
RATES = st.one_of(
    st.sampled_from([Rates(2, 25), Rates(5, 10), Rates(10, 10), Rates(0, 1), Rates(1, 20)]),
    st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda two: Rates(min(two), max(two))),
)
REQUESTS = st.tuples(
    st.just("request"),
    TOKENS,
    PAUSES,
    st.integers(0, 500),
    st.one_of(st.just(0), TOKENS),
    st.booleans(),
)
FOLDS = st.tuples(
    st.just("fold"),
    st.one_of(st.just(0), st.integers(0, 40)),
    st.integers(0, 60),
    st.integers(0, 110),
    st.one_of(st.just(0), st.integers(0, 60_000)),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([0, 0, 1, 3]),
    st.sampled_from([False] * 7 + [True]),
)
SWITCHES = st.tuples(st.just("switch"), RATES)
STEPS = st.lists(st.one_of(REQUESTS, REQUESTS, REQUESTS, FOLDS, FOLDS, SWITCHES), max_size=60)


def play(rates, fixed, steps, *, strict=False):
    world = World(rates, strict, fixed)
    for step in steps:
        match step:
            case ("request", tokens, pause, answer, recall, extra):
                world.wait(pause)
                world.say(tokens)
                world.request(answer, recall, extra)
            case ("fold", *terms):
                world.propose(*terms)
            case ("switch", other):
                world.switch(other)
    return world


SAY = ("request", 1_000, 1, 10, 0, False)
FOLD = ("fold", 0, 60, 10, 0, 1, False, 0)
FORCED = (*FOLD, True)


SHORT = ("request", 1, 1, 0, 0, False)
TWO_FOLDS = [("fold", 0, 0, 0, summary, 1, False, 0) for summary in (0, 1)]
THEN_IN_VAIN = [("fold", 0, 0, 3, 0, 1, False, 0), ("fold", 0, 0, 0, 1, 1, True, 0)]


def reread(tokens):
    return ("request", 10, 1, 10, tokens, True)


# Each once broke the promise.
FORCED_THEN_IN_VAIN = [
    *[("request", tokens, 0, 0, 0, False) for tokens in (5, 0)],
    *[("fold", 0, 0, 23, 0, 1, False, 0, True), *[("fold", 0, 0, 0, 1, 1, True, 0, False)] * 2],
    ("request", 0, 0, 0, 0, False),
]
READ_BACK_THEN_FOLDED = [
    *[("request", tokens, 0, 0, 0, False) for tokens in (40_000, 0)],
    *[("switch", Rates(12, 28)), ("fold", 0, 0, 24, 0, 1, False, 0, False)],
    *[("request", 5_000, 0, 0, 40_000, False), ("request", 0, 0, 0, 0, False)],
    *[("fold", 0, 11, 82, 0, 1, False, 0, False), ("request", 0, 0, 0, 0, False)],
]
REOPENED = [FORCED, *[reread(40_000)] * 3]
DEARER_LATER = [
    *[("request", tokens, 0, 0, 0, False) for tokens in (9, 0)],
    *[("fold", 0, 0, 0, 0, 1, False, 0, False), ("request", 19, 0, 0, 0, False)],
    *[("switch", Rates(1, 20)), ("fold", 0, 0, 100, 0, 1, False, 3, False)],
    *[("request", 0, 0, 0, 0, False)] * 3,
]


@settings(max_examples=EXAMPLES)
@given(RATES, st.integers(0, 20_000), STEPS)
@example(Rates(2, 25), 500, [SAY] * 8 + [FOLD] + [reread(3_000)] * 30)
@example(Rates(2, 25), 500, [SAY] * 8 + [FOLD, SAY, FORCED, SAY, FORCED] + [reread(3_000)] * 30)
@example(Rates(0, 1), 5, FORCED_THEN_IN_VAIN)
@example(Rates(10, 10), 0, READ_BACK_THEN_FOLDED)
@example(Rates(2, 25), 500, [SAY] * 8 + [FOLD] + [reread(3_000)] * 30 + REOPENED)
@example(Rates(2, 25), 0, [SHORT] * 7 + TWO_FOLDS + [SAY])
@example(Rates(2, 25), 0, [("request", 34, 1, 0, 0, False), *[SHORT] * 3, *THEN_IN_VAIN, SAY])
def test_debt_is_never_more_than_promised(rates, fixed, steps):
    play(rates, fixed, steps)


@settings(max_examples=EXAMPLES)
@given(RATES, st.integers(0, 20_000), STEPS)
@example(Rates(2, 25), 500, [SAY] * 8 + [FOLD] + [SAY] * 90 + [FOLD] + [reread(3_000)] * 30)
@example(Rates(5, 10), 0, DEARER_LATER)
def test_strictly_nothing_but_rereads_is_ever_dearer(rates, fixed, steps):
    play(rates, fixed, steps, strict=True)


def test_what_rereads_cost_undoes_the_folds_once():
    world = play(Rates(2, 25), 500, [SAY] * 8 + [FOLD] + [reread(3_000)] * 30)
    assert (world.folds, world.unfolded) == (1, 1)
    assert world.sent == world.every


def test_a_fold_that_pays_for_itself_is_followed_by_another():
    world = play(Rates(2, 25), 500, ([SAY] * 40 + [FOLD]) * 4)
    assert world.folds > 1
    assert world.paid.total < world.whole.total


def test_a_dear_fold_waits_while_there_is_debt_and_a_cheap_one_does_not():
    steps = [*[SAY] * 8, FOLD, SAY, FOLD]
    assert play(Rates(2, 25), 500, steps).folds == 1
    world = play(Rates(2, 25), 500, [*[SAY] * 8, FOLD, SAY])
    world.wait(9 * LIFETIME)
    world.propose(*FOLD[1:])
    assert world.folds == 2
    assert play(Rates(10, 10), 500, steps).folds == 2


def test_a_fold_that_the_window_forces_adds_its_own_price_to_the_promise():
    world = play(Rates(2, 25), 500, [*[SAY] * 8, FOLD, SAY, FORCED, SAY])
    assert world.folds == 2
    assert world.state.outside == world.outside > 0
    assert world.state.debt > world.state.price
    for _ in range(200):
        world.wait(1)
        world.say(300)
        world.request(10)
    assert world.state.debt < 0
    assert world.state.outside == 0


def test_strictly_a_fold_is_paid_from_gains():
    assert not play(Rates(2, 25), 500, [*[SAY] * 8, FOLD], strict=True).folds
    world = play(Rates(2, 25), 500, [SAY] * 8, strict=True)
    world.wait(9 * LIFETIME)
    world.propose(*FOLD[1:])
    for _ in range(200):
        world.wait(1)
        world.say(300)
        world.request(10)
        world.propose(*FOLD[1:])
    assert world.folds > 1


def test_the_folded_text_alone_does_not_bound_what_undoing_costs():
    """Why Q covers all that follows a fold: it is written again too."""
    rates = Rates(1, 20)
    world = play(rates, 0, [*[SAY] * 3, FOLD, *[("request", 2_000, 1, 10, 0, False)] * 1])
    folded = rates.write * size(world.every[1:4])
    price, worst, dearest = world.state.price, 0, 0
    for _ in range(400):
        world.wait(1)
        world.say(2_000)
        world.request(10, 200, extra=True)
        worst = max(worst, world.state.debt)
        dearest = max(dearest, world.state.reread)
        if world.unfolded:
            break
    assert world.unfolded
    assert worst > price + 2 * folded + dearest


@pytest.mark.parametrize("strict", [False, True])
def test_what_would_not_be_smaller_than_the_whole_history_is_not_made(strict):
    request = NextRequest(size=1_000, kept=900, whole=800, cold=True)
    verdict = OpenFold().may(Move(0, 900), request, Rates(1, 10), strict=strict)
    assert (verdict.allowed, verdict.why) == (False, "not smaller")
