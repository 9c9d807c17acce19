"""The steps that a fold keeps in the log: what is written, when, and what is read again."""

import asyncio
import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from engines import JOB, Work, begin, disturbed, folded, recorded, steps_of
from hypothesis import given

from refold.engine import LocalEngine, LocalSteps
from refold.errors import InvalidEntry, InvalidInput, StoreBusy, StoreFull
from refold.log import (
    CODEC,
    Author,
    FoldStepped,
    Note,
    Span,
    Unknown,
    export_session,
    import_session,
)
from refold.log.artifact import INLINE_LIMIT
from refold.log.codec import Codec
from refold.log.kinds import KINDS
from refold.stores import MemoryStore
from refold.testing.crash import FOLD_POINTS
from refold.testing.engine import Stepper
from refold.testing.strategies import json_values


@pytest.fixture
async def log(log):
    await begin(log)
    return log


async def test_a_step_is_an_entry_that_rests_on_what_is_folded(log):
    steps = await steps_of(log)
    assert await steps.step("chunk 1", Work({"said": ["x"]})) == {"said": ["x"]}
    *_, entry = await log.read("s")
    assert CODEC.decode(entry) == FoldStepped(JOB.fold, "chunk 1", {"said": ["x"]})
    assert entry.rests_on == (*JOB.spans, Span(6, 6)), "and on the start, for its focus"


async def test_a_later_run_is_given_what_an_earlier_one_recorded(log):
    await (await steps_of(log)).step("a", Work("first"))
    await log.append("s", [Author().draft(Note("x")) for _ in range(450)], expected=None)
    await (await steps_of(log)).step("b", Work("second"))
    steps, again = await steps_of(log), Work("third")
    assert [await steps.step(name, again) for name in "abc"] == ["first", "second", "third"]
    assert again.times == 1
    assert [one.name for one in await recorded(log)] == ["a", "b", "c"]


async def test_what_came_before_the_start_is_not_read(log):
    stray = FoldStepped(JOB.fold, "a", "of another time")
    await log.append("s", [Author().draft(stray)], expected=None)
    assert await (await steps_of(log)).step("a", Work("new")) == "new"


async def test_only_the_folds_own_steps_are_read(log):
    steps = await steps_of(log)
    other = FoldStepped(uuid4(), "a", "of another fold")
    await log.append("s", [Author().draft(other)], expected=None)
    assert await steps.step("a", Work("own")) == "own"


@given(json_values)
def test_the_first_run_sees_what_later_ones_do(value):
    async def runs():
        async with MemoryStore() as store:
            await begin(store.log())
            first = await (await steps_of(store.log())).step("a", Work(value))
            return first, await (await steps_of(store.log())).step("a", Work("not done"))

    first, later = asyncio.run(runs())
    assert json.dumps(first) == json.dumps(later) == json.dumps(value)


async def test_what_is_given_is_json_from_the_first(log):
    steps = await steps_of(log)
    assert await steps.step("a", Work({1: (2, 3)})) == {"1": [2, 3]}


@pytest.mark.parametrize("result", [object(), "\ud800"])
async def test_what_is_no_json_is_refused(log, result):
    steps = await steps_of(log)
    with pytest.raises(InvalidInput, match="'a' gave is not JSON"):
        await steps.step("a", Work(result))
    assert await recorded(log) == []


async def test_what_no_later_run_could_read_is_not_recorded(log):
    deep = []
    for _ in range(230):
        deep = [deep]
    with pytest.raises(InvalidEntry):
        await (await steps_of(log)).step("a", Work(deep))
    assert await recorded(log) == []


async def test_who_changes_what_it_was_given_changes_nothing_else(log):
    steps = await steps_of(log)
    given: Any = await steps.step("a", Work(["x"]))
    given.append("y")
    assert await steps.step("a", Work()) == ["x"]


async def test_two_of_one_name_are_one(log):
    steps, work = await steps_of(log), Work("once")
    assert await asyncio.gather(*(steps.step("a", work) for _ in range(5))) == ["once"] * 5
    assert work.times == 1
    assert len(await recorded(log)) == 1


async def test_many_may_be_done_at_once(log):
    steps, together = await steps_of(log), asyncio.Barrier(20)

    async def work():
        await together.wait()  # none ends before all have begun
        return "x"

    async with asyncio.timeout(30):
        await asyncio.gather(*(steps.step(f"{at}", work) for at in range(20)))
    assert sorted(int(one.name) for one in await recorded(log)) == list(range(20))


async def test_a_step_that_raises_is_done_again(log):
    steps = await steps_of(log)
    with pytest.raises(ValueError, match="no"):
        await steps.step("a", Work(ValueError("no")))
    assert await recorded(log) == []
    assert await steps.step("a", Work("yes")) == "yes"


async def test_a_cancelled_step_leaves_nothing(log):
    steps, begun = await steps_of(log), asyncio.Event()

    async def work():
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(steps.step("a", work))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await recorded(log) == []
    assert await steps.step("a", Work("later")) == "later"


async def test_work_that_will_not_be_cancelled_leaves_nothing(log):
    steps, begun = await steps_of(log), asyncio.Event()

    async def work():
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "all the same"

    task = asyncio.create_task(steps.step("a", work))
    await begun.wait()
    task.cancel()
    assert await task == "all the same"
    assert await recorded(log) == []


async def test_who_is_cancelled_while_it_is_recorded_has_recorded_it(log):
    async def cancel(_session, _drafts):
        task.cancel()
        await asyncio.sleep(0)

    steps = await steps_of(disturbed(log, FoldStepped, cancel))

    async def caller():
        await steps.step("a", Work("paid for"))
        await asyncio.sleep(0)

    task = asyncio.create_task(caller())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [one.result for one in await recorded(log)] == ["paid for"]


@pytest.mark.parametrize("written", [False, True])
async def test_a_busy_store_is_asked_again_with_the_same_draft(log, written):
    async def fail(session, drafts):
        if written:  # and only the acknowledgement is lost
            await log.append(session, drafts, expected=None)
        raise StoreBusy("Not now.")

    asked = disturbed(log, FoldStepped, fail, times=3)
    assert await (await steps_of(asked)).step("a", Work("x")) == "x"
    assert len(asked.drafts) == 4
    assert len(await recorded(log)) == 1


async def test_a_full_store_does_not_keep_a_fold_from_going_on(log, monkeypatch):
    monkeypatch.setattr("refold.engine.locks._PAUSES", (0.0, 0.0))

    async def fail(_session, _drafts):
        raise StoreFull("No room.")

    asked = disturbed(log, FoldStepped, fail, times=99)
    steps, work, reached = await steps_of(asked), Work("x"), []
    steps._reach = reached.append
    for name in ("a", "b", "a"):
        assert await steps.step(name, work) == "x"
    assert work.times == 2, "what it has it gives again"
    assert len(asked.drafts) == 3 + 1, "it was patient once"
    assert await recorded(log) == []
    assert "fold.stepped" not in reached


async def test_large_results_are_kept_apart(log):
    long, many = "x" * 2 * INLINE_LIMIT, ["y"] * INLINE_LIMIT
    steps = await steps_of(log)
    await steps.step("long", Work(long))
    await steps.step("many", Work(many))
    lean = await log.read("s", Span(7, 8), whole=False)
    assert all(entry.holes and len(entry.body) <= INLINE_LIMIT for entry in lean)
    steps = await steps_of(log)
    assert await steps.step("long", Work()) == long
    assert await steps.step("many", Work()) == many


@pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", " edge", "lone \ud800"])
async def test_a_name_must_be_one(log, name):
    work = Work()
    for steps in (await steps_of(log), LocalSteps()):
        with pytest.raises(InvalidInput, match="not a valid name for a step"):
            await steps.step(name, work)
        assert await steps.step("x" * 200, Work("y")) == "y"
    assert work.times == 0


async def test_local_steps_keep_nothing():
    steps, work = LocalSteps(), Work("x")
    assert [await steps.step("a", work) for _ in range(2)] == ["x", "x"]
    assert work.times == 2


async def test_a_fork_takes_along_what_was_done(log):
    await (await steps_of(log)).step("one", Work("from before the fork"))
    await log.fork("s", "fork")
    stepper = Stepper()
    async with LocalEngine(log, stepper) as engine:
        (ended,) = await engine.recover("fork")
        summary: Any = ended.summary
        assert summary[0] == "from before the fork"
        assert stepper.begun == ["two", "three", "four"]
        await engine.recover("s")
    assert len(stepper.begun) == 6, "and both go their own way"


async def test_the_points_are_reached_in_order(log):
    reached = []
    async with LocalEngine(log, Stepper(), reach=reached.append) as engine:
        await folded(engine)
    steps = ["fold.stepping", "fold.stepped"] * 4
    assert reached == ["fold.locked", "fold.started", *steps, "fold.made", "fold.completed"]
    assert set(steps) < set(FOLD_POINTS)


async def test_steps_travel_with_their_session(log):
    await (await steps_of(log)).step("one", Work("here"))
    lines = [line async for line in export_session(log, "s")]

    async def read():
        for line in lines:
            yield line

    async with MemoryStore() as store:
        await import_session(store.log(), read())
        assert await store.log().read("s") == await log.read("s")
        stepper = Stepper()
        async with LocalEngine(store.log(), stepper) as engine:
            await engine.recover("s")
        assert stepper.begun == ["two", "three", "four"]


async def test_an_older_refold_keeps_them_as_they_are(log):
    await (await steps_of(log)).step("a", Work("x"))
    *_, entry = await log.read("s")
    older = Codec(kind for kind in KINDS if kind is not FoldStepped)
    assert older.decode(entry) == Unknown("fold.step", 1, entry.body)


async def test_steps_are_neither_messages_nor_found(log):
    before = await log.visible("s")
    await (await steps_of(log)).step("a", Work("zebras"))
    after = await log.visible("s")
    assert after.info.messages == before.info.messages
    assert after.outline == replace(before.outline, running=after.outline.running)
    assert await log.search("zebras") == []
