"""Random lives of sessions, through the flow itself, held against the promises after each step."""

import asyncio
import shutil
import tempfile
from functools import cache
from math import inf
from pathlib import Path

import pytest
from amounts import amount, check_histories
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from session_acting import COUNTER, PROFILED, AtOnce, Thread, prompted
from session_promises import Promises, sight_of

from refold.errors import FoldError, ViewTooLarge
from refold.log import Message, PartRef, Span
from refold.log.entry import seqs
from refold.session import Setup
from refold.stores import MemoryStore, SqliteStore
from refold.stores.sqlite import store, writer
from refold.testing.wire import Told
from refold.view import Budget

FAST = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # noqa: S108 - where syncing is free
FORMATS = ("pydantic-ai", "openai-chat", "anthropic-messages", "openai-responses")
picks = st.integers(0, (1 << 16) - 1)


class SessionMachine(Promises, RuleBasedStateMachine):
    """Random lives of sessions over one store."""

    @initialize(n=picks, budget=st.integers(900, 2600), wait=st.sampled_from([60, 60, 60, 0]))
    def begin(self, n, budget, wait):
        """Open a session, and say a little."""
        self.format = FORMATS[n % 4]
        profile = PROFILED[n // 4 % len(PROFILED)]
        fold = profile.fold.model_copy(update={"wait": wait})
        profile = profile.model_copy(update={"fold": fold})
        self.setup = Setup("test:model", COUNTER, Budget(window=budget, tools=20), profile)
        self.store = self.new_store()
        self.run(self.store.open())
        self.log = self.store.log()
        self.threads = [Thread("s", self.run(self.opened("s")))]
        if n // 32 % 2:
            self.run(self.say(Told("Be brief.")))
        for each in range(n // 64 % 4):
            self.one_turn(n // 256 + each)

    @rule(n=picks)
    def turn(self, n):
        """A turn from its prompt to its last words."""
        self.one_turn(n)

    @rule(n=picks)
    def turns(self, n):
        """Two of them."""
        self.one_turn(n)
        self.one_turn(n // 16)

    @rule(n=picks)
    def move(self, n):
        """Whoever is to speak speaks; calls may stay without their answers."""
        self.one_move(n)

    @rule(n=picks)
    def imported(self, n):
        """Much is said without a request."""
        for each in range(2 + n % 4):
            self.run(self.say(prompted(n // 4 + each), self.replied(n // 8 + each)))

    @rule(n=picks)
    def request(self, n):
        """One more request, perhaps after one that the provider refused."""
        self.run(self.sent(forced=n % 4 == 0))

    @rule(n=picks)
    def compact(self, n):
        """A person asks for a fold, and goes on meanwhile if it takes long."""
        focus = "the test" if n % 2 else None
        work = self.thread.session.compact(focus)
        if self.writer.mode == "hold" and n % 3:
            self.later(work)
        else:
            self.tried(work, FoldError)

    @rule(n=picks)
    def fold_after_fold(self, n):
        """Three folds in a row, a turn between them."""
        for each in range(3):
            self.one_turn(n + each)
            self.tried(self.thread.session.compact(), FoldError)

    @rule(n=picks)
    def unfold(self, n):
        """Open a span that is folded."""
        self.caught_up()
        folds = self.thread.inputs.outline.folds
        if not folds:
            return self.one_turn(n)
        fold = folds[n % len(folds)]
        inside = [*seqs(fold.spans)]
        first = inside[n // 4 % len(inside)]
        last = min(self.thread.inputs.head, first + n // 64 % 6)
        return self.check_unfolded(Span(first, last))

    @rule(n=picks)
    def take_back(self, n):
        """Take back a fold, the newest or another."""
        self.caught_up()
        folds = self.thread.inputs.outline.folds
        if not folds:
            return self.one_turn(n)
        return self.check_taken_back(folds[n % len(folds)] if n % 3 else None)

    @rule(n=picks)
    def rewind(self, n):
        """See the session as it was."""
        self.caught_up()
        to = max(1, self.thread.head - n % 24)
        running = self.thread.live.running
        self.run(self.thread.session.rewind(to))
        shot = self.thread.shots.get(to)
        if shot and not running and shot[-1] == len(self.gone):
            assert sight_of(self.thread.inputs) == shot[0]

    @rule(n=picks)
    def clear(self, n):
        """Begin anew, now and then."""
        if n % 4:
            return self.one_turn(n)
        self.run(self.thread.session.clear())
        assert not self.thread.inputs.rows
        return None

    @rule(n=picks)
    def fork(self, n):
        """Go on in a fork."""
        if len(self.threads) > 3 or n % 2:
            return self.one_turn(n)
        old = self.thread
        at = old.head - n // 8 % 12 if n // 4 % 2 else None
        at = max(1, at) if at is not None else None
        name = f"s{len(self.threads)}"
        self.run(old.session.fork(name, at=at))
        new = Thread(name, self.run(self.opened(name)), old.seen[:at])
        new.since = new.head
        self.threads.append(new)
        return None

    @rule()
    def back(self):
        """Go on in the session that was forked."""
        self.threads.insert(0, self.threads.pop())

    @rule(n=picks)
    def pin(self, n):
        """Pin a part of any message, seen or not."""
        messages = [one.seq for one in self.thread.seen if one.kind == Message.KIND]
        if messages:
            self.run(self.thread.session.pin(PartRef(messages[n % len(messages)], n // 64 % 2)))

    @rule(n=picks)
    def unpin(self, n):
        """Unpin one."""
        pins = self.thread.inputs.outline.pins
        if not pins:
            return self.one_turn(n)
        return self.run(self.thread.session.unpin(pins[n % len(pins)]))

    @rule(n=picks)
    def forget(self, n):
        """Erase a few entries for good."""
        if n % 3:
            return self.one_turn(n)
        self.run(self.read_on())
        first = 2 + n // 4 % max(1, self.thread.head - 1)
        span = Span(first, first + n // 64 % 3)
        if span.last > self.thread.head:
            return None
        self.run(self.thread.session.forget(span))
        self.note_forgotten(span)
        for thread in self.threads:  # they keep what they have read
            self.run(self.reopened(thread))
        return None

    @rule()
    def reopen(self):
        """Another process goes on with the session."""
        self.run(self.reopened(self.thread))

    @rule(n=picks)
    def another(self, n):
        """Another process appends in between."""
        thread = self.thread
        if thread.other is None:
            thread.other = self.run(self.opened(thread.name))
        if n % 3:
            self.run(thread.other.say(*self.payloads(prompted(n), self.replied(n))))
        elif n % 2:
            self.tried(thread.other.compact(), FoldError)
        else:
            self.tried(thread.other.request(), ViewTooLarge)

    @rule()
    def cancel(self):
        """Give up what is under way."""
        thread = self.thread
        running = thread.live.running
        given_up = self.run(thread.session.cancel())
        assert not given_up or running or thread.other or self.asked
        assert not thread.live.running

    @rule(mode=st.sampled_from(["ok", "fail", "fail", "hold", "hold"]))
    def writer_is(self, mode):
        """The writer gets well, or ill, or slow."""
        if mode == "hold":
            self.writer.mode = mode
        else:
            self.writer.release(mode)

    @rule(share=st.sampled_from([0.6, 0.8, 1.5]))
    def switch(self, share):
        """Go on with a smaller or a larger model."""
        thread = self.thread
        window = min(4000, max(800, int(thread.live.setup.budget.window * share)))
        setup = Setup("test:other", COUNTER, Budget(window=window, tools=20), self.setup.profile)
        self.tried(thread.session.switch(setup), FoldError)
        thread.since = self.run(self.log.head(thread.name))

    @rule()
    def settle(self):
        """Whatever is under way comes to its end."""
        self.writer.release(self.writer.mode if self.writer.mode != "hold" else "ok")
        self.run(self.quiet())

    @rule(n=picks)
    def same(self, n):
        """A session that is opened anew sends what the one that stayed open sends."""
        self.caught_up()
        if self.thread.live.running or self.asked:
            return self.one_move(n)
        fresh = self.run(self.opened(self.thread.name))
        first = self.run(self.sent())
        try:
            second = self.run(fresh.request())
        except ViewTooLarge:
            return self.run(self.closed(fresh))
        self.run(self.read_on())
        self.thread.sent[fresh._live.previous.seq] = tuple(second.messages)
        if first and self.comparable(fresh, first.plan, second.plan):
            assert first.digest == second.digest
        return self.run(self.closed(fresh))

    def comparable(self, fresh, first, second):
        """Whether both had the same to go on from, neither rewrote, and no fold ended between."""
        mine, other = self.thread.live, fresh._live
        folds = [one.closed.terms.outline.folds for one in (first, second)]
        return (
            (mine.setup, mine.view.profile) == (other.setup, other.view.profile)
            and folds[0] == folds[1]
            and not (first.cause or second.cause)
        )

    @invariant()
    def holds(self):
        if self.threads:
            self.run(self.held())
        self.sound = True

    def teardown(self):
        try:
            if self.sound and self.threads:
                self.check_all()
        finally:
            self.runner.run(self.end())
            self.runner.close()


class MemoryMachine(SessionMachine):
    """Sessions in memory."""

    def new_store(self):
        return MemoryStore()


class SqliteMachine(SessionMachine):
    """Sessions in a file."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="refold-session-", dir=FAST))

    def new_store(self):
        shutil.copy(_empty(), self.folder / "refold.db")
        return SqliteStore(self.folder / "refold.db")

    def teardown(self):
        try:
            super().teardown()
        finally:
            shutil.rmtree(self.folder)


@cache
def _empty():
    """A store without sessions: making one takes longer than copying it."""
    path = Path(tempfile.mkdtemp(prefix="refold-session-", dir=FAST)) / "empty.db"

    async def make():
        async with SqliteStore(path):
            pass

    asyncio.run(make())
    return path


EXAMPLES, STEPS = amount(
    few=((8, 4), 5),
    quick=((60, 20), 5),
    ci=((400, 100), 10),
    nightly=((2_400, 600), 24),
    thorough=((16_000, 4_000), 24),
)
PARTS = 4
"""Each with a share of the lives, for as many processes."""


@pytest.mark.parametrize("part", range(PARTS))
def test_memory(part):
    check_histories(MemoryMachine, f"memory {part}", EXAMPLES[0] // PARTS, STEPS)


@pytest.mark.parametrize("part", range(PARTS))
def test_sqlite(part, monkeypatch):
    # With threads, and with what depends on how long they take, no history could be played again.
    monkeypatch.setattr(store, "ThreadPoolExecutor", AtOnce)
    monkeypatch.setattr(writer, "ThreadPoolExecutor", AtOnce)
    monkeypatch.setattr(writer, "LOOP_LIMIT", inf)
    check_histories(SqliteMachine, f"sqlite {part}", EXAMPLES[1] // PARTS, STEPS)
