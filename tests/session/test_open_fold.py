"""Sessions under the rule of the open fold, with a provider that bills what it is sent.

The two accounts are kept here by hand: of what was sent, and of a session that is never folded and
reads nothing back.
"""

from datetime import UTC, datetime, timedelta

import pytest
from amounts import amount
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from receipt import account
from shown import changed, used
from talks import COUNTER, PRICES, Talk, setup

from refold.errors import InvalidSetting
from refold.log import Author, FoldStarted, FoldUndone, Used, export_session
from refold.models.accounts import receipt_of
from refold.models.catalog import Prices, cost_of
from refold.session import Usage
from refold.session.compaction import REREADS, worth_now
from refold.stores import MemoryStore
from refold.testing.wire import Asked, Responded
from refold.view.budget import PER_MESSAGE
from refold.view.profiles import BALANCED, PROFILES
from refold.wire import wire_for

EXAMPLES = amount(few=2, quick=4, ci=12, nightly=300, thorough=2_000)
RULED = changed(
    BALANCED,
    reserve=0,
    trigger={"at_least": 0, "tokens": 0},
    fold={
        "apply": "inline",
        "max_tokens": 300,
        "ledger_tokens": 100,
        "region_tokens": 0,
        "keep": {"unit": "tokens", "amount": 3_000, "snap": "turn"},
    },
    watch={"share": 0},
    summarizer="",
)
STRICT = changed(RULED, economics="strict")
LIFETIME = 300
WIRE = wire_for("pydantic-ai")


class Provider:
    """One way of sending a session, and what it cost."""

    def __init__(self, prices=PRICES):
        self.prices = prices
        self.before, self.at, self.total = [], None, 0.0

    def bill(self, messages, beside, now, output):
        sizes = [PER_MESSAGE + sum(map(COUNTER.part, WIRE.describe(x).shapes)) for x in messages]
        size = beside + sum(sizes)
        warm = self.at is not None and (now - self.at).total_seconds() <= LIFETIME
        cached = beside if warm else 0
        for old, new, tokens in zip(self.before, messages, sizes, strict=False):
            if not warm or old != new:
                break
            cached += tokens
        self.before, self.at = list(messages), now
        usage = Usage(size, output, cached, size - cached)
        self.total += cost_of(usage, self.prices) or 0.0
        return usage


class Played:
    """A session as it goes on: its turns, and both accounts."""

    def __init__(self, log, talk, clock):
        self.log, self.talk, self.clock = log, talk, clock
        self.paid, self.whole = Provider(), Provider()
        self.everything = []
        self.dearer = []
        """What each fold added to the request after it, and the debt before that."""
        self.count = self.rereads = self.beside = 0
        self.usage = Usage(0)

    @classmethod
    async def open(cls, profile=RULED, *, log=None, window=1_000_000, prices=PRICES, clock=None):
        log = log or MemoryStore().log()
        clock = clock or [datetime(2026, 11, 19, tzinfo=UTC)]
        author = Author(lambda: clock[0])
        talk = await Talk.open(log, setup(profile, window=window, prices=prices), author=author)
        return cls(log, talk, clock)

    @property
    def rule(self):
        return self.talk.session._folds.rule

    @property
    def debt(self):
        return self.paid.total - self.whole.total

    async def turn(self, tokens=500, pause=1, recall=0):
        self.clock[0] += timedelta(seconds=pause)
        self.count += 1
        await self.say(Asked(f"{self.count:05}" + "p" * (4 * tokens - 8)))
        await self.request()
        folded = self.talk.session.inputs.foldings and not self.rule.state.unfolded
        if recall and folded:
            call = f"r{self.count}"
            asked, result = used(call, "recall_search", "f" * 4 * recall, query="x")
            await self.talk.answer(asked, usage=self.usage)
            await self.talk.say(result)
            self.rereads += 1
            self.check()
            await self.request()
        self.whole.bill(self.everything, self.beside, self.clock[0], 10)
        span = await self.talk.answer(Responded(f"Reply {self.count}."), usage=self.usage)
        self.take(span)
        self.check()

    async def say(self, said):
        self.take(await self.talk.say(said))

    def take(self, span):
        self.everything += [row.payload for row in self.talk.session.inputs.rows if row.seq in span]

    async def request(self):
        before, folds = self.debt, self.talk.session.inputs.foldings
        request = await self.talk.request()
        self.beside = request.plan.account.sent - request.plan.tokens
        self.usage = self.paid.bill(request.messages, self.beside, self.clock[0], 10)
        if self.talk.session.inputs.foldings not in (folds, ()):
            self.dearer.append(before)

    def check(self):
        state = self.rule.state
        assert state.debt == pytest.approx(self.debt, abs=1e-9)
        assert self.debt <= state.promise + 1e-9


async def test_dear_folds_wait_until_the_ones_before_have_paid():
    played = await Played.open()
    for _ in range(50):
        await played.turn()
    assert len(await played.talk.values(FoldStarted)) >= 3
    assert played.debt < 0
    assert all(before <= 1e-9 for before in played.dearer)
    found = await receipt_of(played.log, "s")
    assert found.debt == pytest.approx(played.debt)
    assert 0 < found.highest <= found.promised + 1e-9
    assert not found.broken
    assert not found.outside_cost
    script = account([line async for line in export_session(played.log, "s")])
    assert script["promised"] == pytest.approx(found.promised)
    assert not script["broken"]


async def test_a_call_that_never_returned_needs_a_result_in_the_whole_history_too():
    played = await Played.open(STRICT)
    played.check = lambda: None
    await played.turn()
    call, _ = used("c1", "look_up", "never", query="x")
    await played.say(Asked("Look it up."))
    await played.request()
    await played.talk.answer(call, usage=played.usage)
    for _ in range(3):
        await played.turn()
    *_, last = await played.talk.values(Used)
    assert last.basis["whole"] == last.basis["counted"]
    found = await receipt_of(played.log, "s")
    assert not found.broken
    assert found.debt == pytest.approx(0, abs=1e-9)


async def test_without_the_account_folds_follow_one_another_at_any_debt():
    played = await Played.open(changed(RULED, economics="off", trigger={"savings": 0.05}))
    played.check = lambda: None
    for _ in range(12):
        await played.turn(2_000)
    assert any(before > 0 for before in played.dearer)
    ruled = await Played.open(changed(RULED, trigger={"savings": 0.05}))
    for _ in range(12):
        await ruled.turn(2_000)
    assert all(before <= 1e-9 for before in ruled.dearer)
    assert len(await ruled.talk.values(FoldStarted)) < len(await played.talk.values(FoldStarted))


async def test_after_a_pause_beyond_the_lifetime_a_fold_is_made_at_any_debt():
    played = await Played.open()
    while not await played.talk.values(FoldStarted):
        await played.turn()
    assert played.debt > 0
    for _ in range(3):
        await played.turn(1_000)
    assert played.debt > 0
    before = len(await played.talk.values(FoldStarted))
    await played.turn(1_000, pause=LIFETIME + 1)
    assert len(await played.talk.values(FoldStarted)) == before + 1


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.sampled_from([50, 500, 500, 3_000, 40_000]),
            st.sampled_from([1, 1, 1, 1, LIFETIME, LIFETIME + 1, 9 * LIFETIME]),
            st.sampled_from([0, 0, 0, 0, 200, 5_000]),
        ),
        min_size=10,
        max_size=40,
    ),
    st.sampled_from([RULED, STRICT, changed(RULED, trigger={"savings": 0.1})]),
)
async def test_debt_is_never_more_than_promised(turns, profile):
    played = await Played.open(profile)
    for tokens, pause, recall in turns:
        await played.turn(tokens, pause, recall)
    found = await receipt_of(played.log, "s")
    assert not found.broken
    assert found.debt == pytest.approx(played.debt, abs=1e-9)
    if profile is STRICT and not played.rereads:
        assert found.highest <= 1e-9


async def test_what_rereads_cost_undoes_the_folds_and_takes_what_was_read_out_of_the_view():
    played = await Played.open()
    while not await played.talk.values(FoldStarted):
        await played.turn()
    for _ in range(80):
        await played.turn(100, recall=2_000)
        if await played.talk.values(FoldUndone):
            break
    else:
        pytest.fail("Nothing was undone.")
    session, request = played.talk.session, await played.talk.request()
    shown = [shape.text for x in request.messages for shape in WIRE.describe(x).shapes]
    prompts = [text for text in shown if text.endswith("pp")]
    assert len(prompts) == played.count
    assert sum("ffff" in text for text in shown) <= 1  # what the model has just asked for
    assert played.rule.state.unfolded
    assert [x.guard for x in played.talk.events("session.compaction_held")] == [
        "read back too often"
    ]
    folds = [x for x in await played.talk.values(FoldStarted) if x.trigger != REREADS]
    await session.answer(usage=Usage(1))
    for _ in range(5):
        assert session.decide().act == "continue"
    assert [x for x in await played.talk.values(FoldStarted) if x.trigger != REREADS] == folds


async def test_whoever_opens_the_session_continues_from_the_same_state():
    played = await Played.open()
    while not await played.talk.values(FoldStarted):
        await played.turn()
    await played.turn(recall=500)
    state = played.rule.state
    assert state.debt > 0
    await played.talk.session.close()
    again = await Played.open(log=played.log, clock=played.clock)
    assert again.rule.state == state
    played.talk = again.talk
    for _ in range(40):
        await played.turn()
    assert not (await receipt_of(played.log, "s")).broken


async def test_strictly_a_fold_costs_no_more_than_was_saved_before():
    played = await Played.open(STRICT)
    for _ in range(40):
        await played.turn()
    assert not await played.talk.values(FoldStarted)
    await played.turn(pause=LIFETIME + 1)
    assert len(await played.talk.values(FoldStarted)) == 1
    for _ in range(45):
        await played.turn()
        assert played.debt <= 1e-9
    assert len(await played.talk.values(FoldStarted)) > 1


async def test_strictly_without_prices_only_what_is_not_dearer_is_folded():
    played = await Played.open(STRICT, prices=Prices())
    played.check = lambda: None
    for _ in range(40):
        await played.turn()
    assert not await played.talk.values(FoldStarted)
    await played.turn(pause=LIFETIME + 1)
    assert len(await played.talk.values(FoldStarted)) == 1


async def test_a_fold_that_is_asked_for_is_made_at_any_debt_and_has_its_own_line():
    played = await Played.open()
    while not await played.talk.values(FoldStarted):
        await played.turn()
    for _ in range(2):
        await played.turn(1_500)
    assert played.debt > 0
    await played.talk.session.compact()
    await played.turn()
    found = await receipt_of(played.log, "s")
    assert 0 < found.outside_cost < found.promised
    assert not found.broken


async def test_it_says_what_folding_costs_and_why_it_waits():
    played = await Played.open()
    await played.turn()
    worth = played.talk.session.decide().worth
    while not await played.talk.values(FoldStarted):
        worth = played.talk.session.decide().worth
        await played.turn()
    assert "Folding now costs $" in str(worth)
    assert "requests it pays." in str(worth)
    for _ in range(2):
        await played.turn(2_000)
    assert played.debt > 0
    worth = played.talk.session.decide().worth
    assert worth.waits
    assert f"earlier folds have yet to save ${played.debt:.4f}" in str(worth)
    stored = await worth_now(played.log, "s", played.talk.session.setup)
    assert str(stored) == str(worth)


def test_a_profile_that_moves_what_was_sent_by_other_rules_cannot_be_strict():
    with pytest.raises(InvalidSetting, match="by other rules"):
        changed(PROFILES["co-cli"], economics="strict")
    assert not changed(PROFILES["co-cli"], economics="open-fold").keeps_account
    assert PROFILES["balanced"].keeps_account
