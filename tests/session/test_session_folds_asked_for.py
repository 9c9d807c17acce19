"""The folds of a session: those that somebody asks for, and those that a death left."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest
from talks import Talk, Writer, chat, setup, texts, until, work

from refold.errors import FoldCancelled, FoldNotMade, FoldUnderWay, NothingToFold
from refold.fold.job import Job
from refold.log import Author, FoldFailed, FoldStarted, Span
from refold.testing.wire import Asked, Responded

START, COMPLETE = "session.compaction_start", "session.compaction_complete"


# Folds that are asked for.


async def test_a_second_fold_is_refused_while_one_is_made(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(window=8_000), write=write)
    await talk.go(*work(*range(4)))
    first = asyncio.create_task(talk.session.compact())
    await until(lambda: write.asked)
    with pytest.raises(FoldUnderWay):
        await talk.session.compact()
    other = await Talk.open(log, setup(window=8_000), format=None, write=Writer())
    with pytest.raises(FoldUnderWay):
        await other.session.compact()
    await talk.go(*chat(9))
    write.go.set()
    done = await first
    assert done.messages_removed > 4
    assert write.asked == 1
    assert await talk.folds() == (1, 1, 0)
    assert len(talk.events(START)) == len(talk.events(COMPLETE)) == 1
    assert texts(await talk.request())[-2:] == ["Question 9?", "Answer 9."]


async def test_fewer_than_two_messages_are_not_folded(log):
    talk = await Talk.open(log)
    with pytest.raises(NothingToFold):
        await talk.session.compact()
    await talk.say(Asked("Hello."))
    with pytest.raises(NothingToFold):
        await talk.session.compact()
    with pytest.raises(NothingToFold):
        await talk.session.preview()
    assert talk.events(START, COMPLETE) == []
    await talk.go(Responded("Yes?"))
    assert (await talk.session.compact()).messages_removed == 2


async def test_a_fold_that_is_asked_for_can_be_cancelled(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, write=write)
    await talk.go(*work(1, 2))
    before = texts(await talk.request())
    assert await talk.session.cancel() is False
    task = asyncio.create_task(talk.session.compact())
    await until(lambda: write.asked)
    assert await talk.session.cancel() is True
    with pytest.raises(FoldCancelled):
        await task
    write.go.set()
    assert texts(await talk.request()) == before
    assert [one.error for one in talk.events(COMPLETE)] == ["cancelled"]
    assert await talk.folds() == (1, 0, 1)


async def test_a_fold_that_is_asked_for_and_fails_changes_nothing(log):
    talk = await Talk.open(log, write=Writer(fails=True))
    await talk.go(*work(1, 2))
    before = await talk.request()
    with pytest.raises(FoldNotMade, match="The model is down"):
        await talk.session.compact()
    after = await talk.request()
    assert list(after.messages) == list(before.messages)
    assert after.plan.rewrites == before.plan.rewrites
    (failed,) = await talk.values(FoldFailed)
    assert failed.reason == "RuntimeError: The model is down."


async def test_memory_pressure_folds_where_there_is_something_to_fold(log, monkeypatch):
    collected = []
    monkeypatch.setattr("gc.collect", lambda: collected.append(len(talk.events(START))))
    talk = await Talk.open(log, write=Writer())
    assert await talk.session.relieve() is False
    await talk.go(*work(1, 2, 3))
    whole = await talk.request()
    assert await talk.session.relieve() is True
    less = await talk.request()
    assert less.plan.tokens < whole.plan.tokens
    assert [one.trigger for one in await talk.values(FoldStarted)] == ["memory pressure"]
    assert collected == [0, 0]  # before the fold


async def test_a_switch_to_a_smaller_window_folds_first(log):
    talk = await Talk.open(log, setup(window=20_000), write=Writer())
    await talk.go(*work(*range(16)))
    large = replace(setup(window=40_000), model="test:large")
    small = replace(setup(window=2_000), model="test:small")
    assert not talk.session.must_fold_for(large)
    assert talk.session.must_fold_for(small)
    await talk.session.switch(large)
    assert await talk.folds() == (0, 0, 0)
    await talk.session.switch(small)
    (started,) = await talk.values(FoldStarted)
    assert started.trigger == "model switch"
    assert not talk.session.must_fold_for(small)
    request = await talk.go(*chat(1))
    assert request.plan.account.limit == 2_000
    assert request.plan.left_out.messages == 0
    assert await talk.folds() == (1, 1, 0)
    await talk.all_rebuilt()


async def test_a_switch_whose_fold_fails_is_made_all_the_same(log):
    talk = await Talk.open(log, setup(window=20_000), write=Writer(fails=True))
    await talk.go(*work(*range(16)))
    await talk.session.switch(replace(setup(window=2_000), model="test:other"))
    assert not talk.events(COMPLETE)[-1].success  # whoever watches knows
    request = await talk.request()
    assert request.plan.account.limit == 2_000


async def test_a_switch_goes_on_where_there_is_nothing_to_fold(log):
    talk = await Talk.open(log, setup(window=20_000), write=Writer())
    await talk.say(Asked("A long question. " * 400))
    small = setup(window=1_750)
    assert talk.session.must_fold_for(small)
    await talk.session.switch(small)
    assert (await talk.request()).plan.account.limit == 1_750
    assert await talk.folds() == (0, 0, 0)


async def test_a_fold_whose_process_died_is_finished_when_the_session_is_opened(log):
    talk = await Talk.open(log, setup(window=20_000))
    await talk.go(*work(*range(4)))
    job = Job("s", uuid4(), (Span(8, 13),), "soft")
    await log.append("s", [Author().draft(job.started())], expected=None)
    again = await Talk.open(log, setup(window=20_000), format=None)
    assert await again.folds() == (1, 1, 0)
    assert "Please read src/part_1.py." not in texts(await again.request())
    assert texts(await talk.request()) == texts(await again.request())


async def test_a_fold_whose_process_died_is_finished_while_the_session_stays_open(log, monkeypatch):
    talk = await Talk.open(log, setup(window=20_000))
    await talk.go(*work(*range(4)))
    job = Job("s", uuid4(), (Span(8, 13),), "soft")
    await log.append("s", [Author().draft(job.started())], expected=None)
    for _ in range(3):
        await talk.request()
        await asyncio.sleep(0.01)
    assert await talk.folds() == (1, 0, 0)  # it may be alive: nobody looks at once
    monkeypatch.setattr("refold.session.guards._POLL_INTERVAL", 0.0)
    await talk.request()
    await until_ended(talk)
    assert await talk.folds() == (1, 1, 0)


async def until_ended(talk):
    async with asyncio.timeout(20):
        while talk.session.folding:
            await asyncio.sleep(0.01)
            await talk.session.catch_up()
