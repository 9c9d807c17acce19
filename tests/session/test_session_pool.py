"""The pool of sessions: counted by its users, opened once, bounded when idle, closed in the end."""

import asyncio
import gc
import weakref
from collections import Counter
from functools import partial

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from refold.errors import StoreClosed, StoreFailed
from refold.session.pool import Closed, SessionKey, SessionPool

KEYS = [
    SessionKey("t", "a"),
    SessionKey("t", "b"),
    SessionKey("u", "a"),
    SessionKey("t", "a", "/d"),
]
KEY = KEYS[0]


class Fake:
    """A session that may be making a fold."""

    def __init__(self):
        self.closed = 0
        self.quiet = asyncio.Event()
        self.quiet.set()

    @property
    def busy(self):
        return not self.quiet.is_set()

    async def drain(self):
        await self.quiet.wait()

    async def close(self):
        await asyncio.sleep(0)
        self.closed += 1


async def new_session():
    return Fake()


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


async def hold_lease(pool, key, until, open_session=new_session, **options):
    """Lease a session until an event."""
    async with pool.lease(key, open_session, **options) as session:
        await until.wait()
        return session


async def used(pool, key=KEY, open_session=new_session, **options):
    """Lease a session and release it at once."""
    async with pool.lease(key, open_session, **options) as session:
        return session


def keys(count):
    return [SessionKey("t", f"s{nth}") for nth in range(count)]


async def test_leases_of_one_key_share_a_session_and_other_keys_have_their_own():
    pool = SessionPool(max_idle=8)
    found = [await used(pool, key) for key in [*KEYS, *KEYS]]
    assert found[:4] == found[4:]
    assert len({*map(id, found)}) == len(KEYS)
    assert pool.counts == (0, 4, 0)


async def test_a_leased_session_is_neither_evicted_nor_counted_as_idle():
    pool, until = SessionPool(max_idle=1), asyncio.Event()
    users = [asyncio.create_task(hold_lease(pool, key, until)) for key in keys(50)]
    await settled()
    assert pool.counts == (50, 0, 0)
    until.set()
    sessions = await asyncio.gather(*users)
    assert pool.counts == (0, 1, 0)
    assert not any(session.closed for session in sessions)


async def test_the_longest_idle_is_evicted_and_freed():
    pool = SessionPool(max_idle=2)
    freed = [weakref.ref(await used(pool, key)) for key in keys(3)]
    await used(pool, keys(3)[1])
    gc.collect()
    assert [one() is None for one in freed] == [True, False, False]
    assert pool.find(keys(3)[0]) is None


async def test_an_evicted_session_that_somebody_has_is_leased_again():
    pool = SessionPool(max_idle=1)
    mine = await used(pool)
    for key in keys(10):
        await used(pool, key)
    assert pool.find(KEY) is mine
    assert await used(pool) is mine
    assert not mine.closed


async def test_an_evicted_session_finishes_its_fold_first_and_can_be_leased_meanwhile():
    pool = SessionPool(max_idle=0)
    session = Fake()
    session.quiet.clear()
    await used(pool, open_session=partial(asyncio.sleep, 0, session))
    assert pool.counts == (0, 0, 1)
    assert await used(pool) is session
    session.quiet.set()
    await settled()
    assert pool.counts.total == 0
    assert not session.closed


async def test_a_lease_that_is_not_to_be_kept_is_let_go_at_once():
    pool = SessionPool(max_idle=8)
    await used(pool, keep=False)
    assert pool.counts.total == 0


async def test_a_failed_open_fails_alone_and_one_waiter_tries_again():
    pool, gate, tries = SessionPool(max_idle=8), asyncio.Event(), []

    async def fails_once():
        tries.append(1)
        await gate.wait()
        if len(tries) == 1:
            raise StoreFailed("The store is gone.", "Wait.")
        return Fake()

    users = [asyncio.create_task(used(pool, open_session=fails_once)) for _ in range(5)]
    await settled()
    gate.set()
    first, *others = await asyncio.gather(*users, return_exceptions=True)
    assert isinstance(first, StoreFailed)
    assert len({*map(id, others)}) == 1
    assert len(tries) == 2


async def test_a_key_that_cannot_be_opened_leaves_nothing_behind():
    pool = SessionPool(max_idle=8)

    async def fails():
        raise StoreFailed("The store is gone.", "Wait.")

    for _ in range(3):
        with pytest.raises(StoreFailed):
            await used(pool, open_session=fails)
    assert pool.counts.total == 0


async def test_canceling_the_first_opener_does_not_fail_the_others():
    pool, gate, tries = SessionPool(max_idle=8), asyncio.Event(), []

    async def opens():
        tries.append(1)
        await gate.wait()
        return Fake()

    first, *others = [asyncio.create_task(used(pool, open_session=opens)) for _ in range(4)]
    await settled()
    first.cancel()
    await settled()
    gate.set()
    found = await asyncio.gather(*others)
    assert first.cancelled()
    assert len({*map(id, found)}) == 1
    assert len(tries) == 2


async def test_a_discarded_session_stays_with_its_users_and_is_opened_anew_for_others():
    pool, until = SessionPool(max_idle=8), asyncio.Event()
    user = asyncio.create_task(hold_lease(pool, KEY, until))
    await settled()
    before = pool.find(KEY)
    pool.discard(KEY)
    after = await used(pool)
    assert after is not before
    pool.discard(KEY, before)
    assert pool.find(KEY) is after, "it is another one by now"
    until.set()
    assert await user is before
    assert pool.counts == (0, 1, 0)


async def test_closing_refuses_new_leases_waits_for_users_and_leaves_the_pool_usable():
    pool, until = SessionPool(max_idle=8), asyncio.Event()
    user = asyncio.create_task(hold_lease(pool, KEY, until))
    idle = await used(pool, KEYS[1])
    await settled()
    closing = asyncio.create_task(pool.close())
    await settled()
    with pytest.raises(StoreClosed):
        await used(pool, KEYS[2])
    assert not closing.done()
    until.set()
    assert await closing == Closed(2, ())
    assert (await user).closed == idle.closed == 1
    assert await used(pool, KEYS[1]) is not idle


async def test_closing_says_whose_sessions_were_still_in_use():
    pool, until = SessionPool(max_idle=8), asyncio.Event()
    user = asyncio.create_task(hold_lease(pool, KEY, until))
    await settled()
    assert await pool.close(grace=0) == Closed(1, (KEY,))
    until.set()
    assert (await user).closed == 1
    assert pool.counts.total == 0


async def test_a_session_that_opens_after_the_pool_was_closed_is_closed_too():
    pool, gate, session = SessionPool(max_idle=8), asyncio.Event(), Fake()

    async def opens():
        await gate.wait()
        return session

    users = [asyncio.create_task(used(pool, open_session=opens)) for _ in range(2)]
    await settled()
    assert await pool.close(grace=0) == Closed(0, (KEY,))
    gate.set()
    results = await asyncio.gather(*users, return_exceptions=True)
    assert all(isinstance(one, StoreClosed) for one in results)
    assert session.closed == 1


async def test_closing_gives_up_the_fold_of_an_evicted_session():
    pool, session = SessionPool(max_idle=0), Fake()
    session.quiet.clear()
    await used(pool, open_session=partial(asyncio.sleep, 0, session))
    assert pool.counts.draining == 1
    await pool.close()
    assert session.closed == 1


async def test_canceling_close_still_closes_everything():
    pool, until = SessionPool(max_idle=8), asyncio.Event()
    user = asyncio.create_task(hold_lease(pool, KEY, until))
    await settled()
    closing = asyncio.create_task(pool.close())
    await settled()
    closing.cancel()
    await settled()
    until.set()
    assert await pool.close() == Closed(1, ())
    assert (await user).closed == 1


def test_sessions_of_a_dead_event_loop_are_dropped_as_they_are():
    pool = SessionPool(max_idle=8)
    dead = asyncio.run(used(pool))
    again = asyncio.run(used(pool))
    assert again is not dead
    assert dead.closed == again.closed == 0
    freed = weakref.ref(dead)
    del dead
    gc.collect()
    assert freed() is None, "the next event loop let go of it"
    assert asyncio.run(pool.close()) == Closed(0, ())


class PoolMachine(RuleBasedStateMachine):
    """Random interleavings of all that can happen to a pool, on one event loop.

    Whatever was opened stays in hand here, so each key is opened once until it is discarded or
    the pool is closed, however often it is evicted in between.
    """

    MAX_IDLE = 2

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.pool = SessionPool(max_idle=self.MAX_IDLE)
        self.users = []
        self.sessions = []
        self.age = Counter()
        """By key, how often it was discarded or closed."""
        self.opened = Counter()
        """Sessions by key and its age when they were opened."""
        self.opening = Counter()
        self.closing = []

    def run(self, work):
        return self.loop.run_until_complete(work)

    @rule(key=st.sampled_from(KEYS), fails=st.booleans(), waits=st.booleans(), keep=st.booleans())
    def lease(self, key, fails, waits, keep):
        self.users.append(_User(self, key, fails=fails, waits=waits, keep=keep))
        self.run(settled())

    @precondition(lambda self: self.users)
    @rule(pick=st.integers(0, 99))
    def let_open(self, pick):
        self.users[pick % len(self.users)].gate.set()
        self.run(settled())

    @precondition(lambda self: self.users)
    @rule(pick=st.integers(0, 99))
    def release(self, pick):
        self.users[pick % len(self.users)].done.set()
        self.run(settled())

    @precondition(lambda self: self.users)
    @rule(pick=st.integers(0, 99), moments=st.integers(0, 3))
    def cancel(self, pick, moments):
        user = self.users[pick % len(self.users)]
        user.gate.set()
        for _ in range(moments):
            self.run(asyncio.sleep(0))
        user.task.cancel()
        self.run(settled())

    @precondition(lambda self: self.sessions)
    @rule(pick=st.integers(0, 99), folds=st.booleans())
    def fold(self, pick, folds):
        quiet = self.sessions[pick % len(self.sessions)].quiet
        quiet.clear() if folds else quiet.set()
        self.run(settled())

    @rule(key=st.sampled_from(KEYS))
    def discard(self, key):
        async def discard():
            self.pool.discard(key)

        self.run(discard())
        self.age[key] += 1

    @rule(grace=st.sampled_from([0, 600]))
    def close(self, grace):
        self.closing.append(self.loop.create_task(self.pool.close(grace)))
        self.run(settled())

    @invariant()
    def holds(self):
        self.run(settled())
        self.users = [user for user in self.users if not user.task.done()]
        for closing in [one for one in self.closing if one.done()]:
            self.closing.remove(closing)
            in_use = closing.result().in_use
            self.age.update(KEYS)
            for user in self.users:
                if user.session is not None and user.session.closed and not user.outlived:
                    assert user.key in in_use
                    user.outlived = True
        assert all(count <= 1 for count in self.opened.values()), "opened once"
        for user in self.users:
            assert user.session is None or user.outlived or not user.session.closed
        assert all(session.closed <= 1 for session in self.sessions)
        counts = self.run(self.counts())
        assert counts.idle <= self.MAX_IDLE
        holding = {id(u.session) for u in self.users if u.session and not u.outlived}
        assert counts.leased >= len(holding)

    async def counts(self):
        return self.pool.counts

    def teardown(self):
        for user in self.users:
            user.gate.set()
            user.done.set()
        self.run(settled())
        self.run(asyncio.wait_for(self.pool.close(), 5))
        assert all(user.task.done() for user in self.users)
        assert self.run(self.counts()).total == 0
        leftover = asyncio.all_tasks(self.loop)
        assert not leftover, leftover
        self.loop.close()


class _User:
    """Somebody who leases a session: waits before it is opened, fails to open it, or uses it."""

    def __init__(self, machine, key, *, fails, waits, keep):
        self.machine, self.key, self.fails = machine, key, fails
        self.gate, self.done = asyncio.Event(), asyncio.Event()
        if not waits:
            self.gate.set()
        self.session = None
        self.outlived = False
        """The pool was closed under it."""
        self.task = machine.loop.create_task(self.lease(keep=keep))

    async def lease(self, *, keep):
        try:
            async with self.machine.pool.lease(self.key, self.open, keep=keep) as session:
                self.session = session
                await self.done.wait()
        except (StoreFailed, StoreClosed):
            pass

    async def open(self):
        age, opening = (self.key, self.machine.age[self.key]), self.machine.opening
        opening[age] += 1
        assert opening[age] == 1, "nobody else opens it at the same time"
        try:
            await self.gate.wait()
            if self.fails:
                raise StoreFailed("The store is gone.", "Wait.")
            session = Fake()
            self.machine.opened[age] += 1
            self.machine.sessions.append(session)
            return session
        finally:
            opening[age] -= 1


TestPoolMachine = PoolMachine.TestCase
