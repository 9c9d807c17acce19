"""What is the local engine's own: what it writes to the log when things go wrong around it."""

import asyncio
import gc
from dataclasses import replace
from uuid import uuid4

import pytest
from engines import JOB, begin, disturbed, end, folded, values

from refold.engine import LocalEngine, LocalSteps, fold_runner
from refold.engine.steps import FORGOTTEN_MEANWHILE
from refold.errors import InvalidInput, StoreBusy, StoreFull
from refold.log import Author, FoldCompleted, FoldFailed, FoldStarted, Message, Rewound, Span
from refold.stores import MemoryStore
from refold.testing.engine import Maker


@pytest.fixture
async def log(log):
    await begin(log)
    return log


async def test_what_a_cancelled_fold_made_is_thrown_away(log):
    maker = Maker(held=True, stubborn=True, summary="too late")
    async with LocalEngine(log, maker) as engine, LocalEngine(log, Maker()) as elsewhere:
        for canceller in (engine, elsewhere):
            job = replace(JOB, fold=uuid4())
            before = (await log.visible("s")).outline
            assert await engine.start(job)
            await maker.called()
            await canceller.cancel("s", job.fold)
            maker.let_go()
            await engine.wait("s", job.fold)
            assert (await log.visible("s")).outline == before
            assert (await values(log))[-2:] == [job.started(), FoldFailed(job.fold, "cancelled")]


async def test_an_automatic_fold_that_fails_has_an_end_and_the_session_goes_on(log):
    async with LocalEngine(log, Maker(error=OSError("no route to host"))) as engine:
        before = await log.visible("s")
        ended = await folded(engine)
    assert not ended.completed
    failed = FoldFailed(JOB.fold, "OSError: no route to host")
    assert await values(log) == [JOB.started(), failed]
    assert (await log.visible("s")).outline == before.outline
    await log.append("s", [Author().draft(Message(b'"more"'))], expected=7)


async def test_a_manual_fold_can_be_cancelled(log):
    maker, job = Maker(held=True), replace(JOB, trigger="manual")
    async with LocalEngine(log, maker) as engine:
        assert await engine.start(job)
        waiting = asyncio.create_task(engine.wait("s", job.fold))
        await maker.called()
        ended = await engine.cancel("s", job.fold)
        assert ended is not None
        assert ended.reason == "cancelled"
        assert await waiting == ended
    assert maker.cancelled == 1
    assert await values(log) == [job.started(), FoldFailed(job.fold, "cancelled")]


async def test_what_is_being_started_can_be_cancelled(log):
    async with LocalEngine(log, Maker(held=True)) as engine:
        starting = asyncio.create_task(engine.start(JOB))
        await asyncio.sleep(0)
        assert await values(log) == []
        ended = await engine.cancel("s", JOB.fold)
        assert await starting
    assert ended is not None
    assert await values(log) == [JOB.started(), FoldFailed(JOB.fold, "cancelled")]


@pytest.mark.parametrize("kind", [FoldStarted, FoldCompleted])
@pytest.mark.parametrize("written", [False, True])
async def test_a_busy_store_is_asked_again_with_the_same_draft(log, kind, written):
    async def fail(session, drafts):
        if written:  # and only the acknowledgement is lost
            await log.append(session, drafts, expected=None)
        raise StoreBusy("Not now.")

    asked = disturbed(log, kind, fail, times=3)
    async with LocalEngine(asked, Maker()) as engine:
        assert (await folded(engine)).completed
    assert len(asked.drafts) == 4
    assert len({draft.id for draft in asked.drafts}) == 1
    assert len(await values(log)) == 2


async def test_a_store_that_stays_full_leaves_the_fold_to_be_recovered(log, monkeypatch):
    monkeypatch.setattr("refold.engine.locks._PAUSES", (0.0, 0.0))
    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))

    async def fail(_session, _drafts):
        raise StoreFull("No room.")

    async with LocalEngine(disturbed(log, FoldCompleted, fail, times=99), Maker()) as engine:
        assert await engine.start(JOB)
        assert await engine.wait("s", JOB.fold, 3.0) is None
    assert await values(log) == [JOB.started()]
    async with LocalEngine(log, Maker()) as engine:
        (ended,) = await engine.recover("s")
        assert ended.completed
    assert not complaints


async def test_a_store_that_fails_at_the_start_is_told_to_who_asked(log, monkeypatch):
    monkeypatch.setattr("refold.engine.locks._PAUSES", (0.0, 0.0))

    async def fail(_session, _drafts):
        raise StoreFull("No room.")

    async with LocalEngine(disturbed(log, FoldStarted, fail, times=3), Maker()) as engine:
        with pytest.raises(StoreFull):
            await engine.start(JOB)
        assert await engine.start(JOB), "when there is room again"


async def test_one_after_the_other_is_finished_until_the_engine_is_closed(log):
    jobs = [replace(JOB, fold=uuid4()) for _ in range(3)]
    for job in jobs:  # no engine of ours leaves more than one, but a session may be imported
        await log.append("s", [Author().draft(job.started())], expected=None)
    maker = Maker(held=True)
    engine = LocalEngine(log, maker)
    recovering = asyncio.create_task(engine.recover("s"))
    await maker.called()
    await engine.close()
    (ended,) = await recovering
    assert (ended.fold, ended.reason) == (jobs[0].fold, "cancelled")
    assert maker.jobs == jobs[:1]
    async with LocalEngine(log, Maker()) as engine:
        assert [one.fold for one in await engine.recover("s")] == [job.fold for job in jobs[1:]]


async def test_who_waits_for_another_process_is_told_that_the_engine_is_closed(log):
    maker = Maker(held=True)
    async with LocalEngine(log, maker) as engine, LocalEngine(log, Maker()) as other:
        await engine.start(JOB)
        waiting = asyncio.create_task(other.wait("s", JOB.fold))
        await maker.called()
        await other.close()
        with pytest.raises(InvalidInput, match="closed"):
            await waiting


async def test_nothing_forgotten_in_the_last_moment_is_told(log):
    """Forgotten after the engine looked and before its summary could be forgotten too."""

    async def forget(session, _drafts):
        await log.forget(session, Span(3, 3))

    maker = Maker(summary="it was about zebras")
    async with LocalEngine(disturbed(log, FoldCompleted, forget), maker) as engine:
        ended = await folded(engine)
    assert not ended.completed
    assert not any(b"zebras" in entry.body for entry in await log.read("s"))
    outline = (await log.visible("s")).outline
    assert (outline.folds, outline.running) == ((), ())


async def test_nothing_is_folded_that_was_rewound_in_the_last_moment(log):
    async def rewind(session, _drafts):
        await log.append(session, [Author().draft(Rewound(2))], expected=None)

    async with LocalEngine(disturbed(log, FoldCompleted, rewind), Maker()) as engine:
        ended = await folded(engine)
    assert ended.reason is not None
    assert "not on the session's line" in ended.reason


@pytest.mark.parametrize("stepping", [False, True])
async def test_what_was_forgotten_is_named_as_the_reason(log, stepping):
    maker = Maker(held=True)

    async def make(job, steps):
        return await maker(job, steps if stepping else LocalSteps())

    async with LocalEngine(log, make) as engine:
        await engine.start(JOB)
        await maker.called()
        await log.forget("s", Span(3, 3))
        maker.let_go()
        reason = (await end(engine)).reason
    assert reason is not None
    assert FORGOTTEN_MEANWHILE in reason


async def test_a_make_that_never_ends_is_given_up(log):
    async with LocalEngine(log, Maker(held=True), limit=0.05) as engine:
        ended = await folded(engine)
    assert ended.reason == "TimeoutError: it took longer than 0.05 seconds"


async def test_a_make_that_will_not_stop_is_left_alone(log, monkeypatch):
    monkeypatch.setattr(fold_runner, "STOP_TIMEOUT", 0.02)
    stop = asyncio.Event()

    async def make(_job, _steps):
        while not stop.is_set():
            try:
                await stop.wait()
            except asyncio.CancelledError:
                continue
        raise ValueError("nobody hears this")

    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    engine = LocalEngine(log, make)
    await engine.start(JOB)
    await asyncio.sleep(0)
    await engine.close()
    stop.set()
    await asyncio.sleep(0.01)
    gc.collect()
    assert not complaints
    assert await values(log) == [JOB.started(), FoldFailed(JOB.fold, "cancelled")]


async def test_a_make_that_cancels_itself_has_an_end(log):
    async with LocalEngine(log, Maker(error=asyncio.CancelledError())) as engine:
        assert (await folded(engine)).reason == "cancelled"


async def test_a_make_that_is_no_coroutine_has_an_end(log):
    def make(_job, _steps):
        raise KeyError("at once")

    async with LocalEngine(log, make) as engine:
        assert (await folded(engine)).reason == "KeyError: 'at once'"


@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("closing", [False, True])
def test_a_loop_that_is_torn_down_leaves_no_fold_without_an_end(turns, closing):
    """`asyncio.run` cancels what is left: the fold's task, and who closes the engine."""
    store = MemoryStore()
    log = store.log()

    async def main():
        await begin(log)
        engine = LocalEngine(log, Maker(held=True))
        if turns > 3:
            await engine.start(JOB)
        else:
            _starting.append(asyncio.create_task(engine.start(JOB)))
        for _ in range(turns):
            await asyncio.sleep(0)
        if closing:
            _starting.append(asyncio.create_task(engine.close()))
            await asyncio.sleep(0)

    _starting: list[asyncio.Task] = []
    asyncio.run(main())
    done = asyncio.run(values(log))
    assert done in ([], [JOB.started(), FoldFailed(JOB.fold, "cancelled")])
    assert done or turns <= 3

    async def again():
        async with LocalEngine(log, Maker()) as engine:
            job = replace(JOB, fold=uuid4())
            assert (await folded(engine, job)).completed, "the lock is free"

    asyncio.run(again())
