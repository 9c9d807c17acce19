"""The steps of folds that are given up or whose messages are forgotten: nothing is left of them."""

from dataclasses import replace
from uuid import uuid4

import pytest
from engines import JOB, Work, begin, disturbed, folded, recorded, steps_of

from refold.engine import LocalEngine, LoggedSteps
from refold.engine.steps import FORGOTTEN_MEANWHILE, forgotten_since, gather_inputs
from refold.errors import FoldCancelled
from refold.log import CODEC, Author, FoldFailed, FoldStepped, Forgotten, Rewound, Span
from refold.stores import SqliteStore
from refold.testing.engine import Stepper


@pytest.fixture
async def log(log):
    await begin(log)
    return log


async def test_a_step_rests_on_the_folds_beneath_it(log):
    async with LocalEngine(log, Stepper()) as engine:
        await folded(engine)
    (inputs,) = (await log.visible("s")).outline.folds
    job = replace(JOB, fold=uuid4(), spans=(Span(2, 5),))
    await (await steps_of(log, job)).step("over it", Work("zebras"))
    await log.forget("s", Span(inputs.seq, inputs.seq))
    *_, entry = await log.read("s")
    assert CODEC.decode(entry) == Forgotten("fold.step", {"fold": str(job.fold)})


async def test_nothing_is_begun_for_a_fold_that_has_ended(log):
    steps, work = await steps_of(log), Work()
    await log.append("s", [Author().draft(FoldFailed(JOB.fold, "cancelled"))], expected=None)
    with pytest.raises(FoldCancelled):
        await steps.step("a", work)
    late = LoggedSteps(log, JOB, Author(), await gather_inputs(log, JOB))
    with pytest.raises(FoldCancelled):
        await late.step("a", work)
    assert work.times == 0


async def test_nothing_is_recorded_for_a_fold_that_ended_during_the_step(log):
    steps = await steps_of(log)

    async def work():
        await log.append("s", [Author().draft(FoldFailed(JOB.fold, "cancelled"))], expected=None)
        return "too late"

    assert await steps.step("a", work) == "too late"
    assert await recorded(log) == []


async def test_nothing_is_begun_of_what_was_forgotten(log):
    steps, work = await steps_of(log), Work()
    await log.forget("s", Span(3, 3))
    with pytest.raises(FoldCancelled, match=FORGOTTEN_MEANWHILE):
        await steps.step("a", work)
    assert work.times == 0


async def test_nothing_forgotten_in_the_last_moment_is_kept(log):
    """Forgotten after it was looked for and before the result could be forgotten too."""

    async def forget(session, _drafts):
        await log.forget(session, Span(3, 3))

    steps = await steps_of(disturbed(log, FoldStepped, forget))
    await steps.step("a", Work("zebras"))
    assert not any(b"zebras" in entry.body for entry in await log.read("s"))
    *_, entry = await log.read("s")
    assert (entry.kind, entry.forgotten) == ("fold.step", True)


async def test_what_died_before_it_saw_that_it_must_forget_is_erased_by_who_recovers(log):
    await steps_of(log)
    await log.forget("s", Span(3, 3))
    left = Author().draft(FoldStepped(JOB.fold, "a", "zebras"))._replace(rests_on=JOB.spans)
    other = Author().draft(FoldStepped(uuid4(), "a", "horses"))
    await log.append("s", [left, other], expected=None)
    async with LocalEngine(log, Stepper()) as engine:
        (ended,) = await engine.recover("s")
    assert not ended.completed
    bodies = [entry.body for entry in await log.read("s")]
    assert not any(b"zebras" in body for body in bodies)
    assert any(b"horses" in body for body in bodies)


async def test_the_steps_of_a_fold_that_is_only_closed_stay(log):
    await (await steps_of(log)).step("a", Work("zebras"))
    await log.append("s", [Author().draft(Rewound(2))], expected=None)
    async with LocalEngine(log, Stepper()) as engine:
        (ended,) = await engine.recover("s")
    assert ended.reason == "interrupted"
    assert len(await recorded(log)) == 1


@pytest.mark.parametrize("rests_on", [(), (Span(2, 2),), JOB.spans])
async def test_what_is_forgotten_is_noticed_whatever_the_start_rests_on(log, rests_on):
    await log.forget("s", Span(4, 4))
    draft = Author().draft(JOB.started())._replace(rests_on=rests_on)
    await log.append("s", [draft], expected=None)
    inputs = await gather_inputs(log, JOB)
    assert inputs.forgotten == (set() if rests_on == JOB.spans else {4}), "the start tells for it"
    assert not await forgotten_since(log, JOB, inputs)
    await log.forget("s", Span(5, 5))
    assert not await forgotten_since(log, JOB, inputs), "it is not beneath"
    await log.forget("s", Span(3, 3))
    assert await forgotten_since(log, JOB, inputs)


async def test_a_long_span_is_not_read_for_each_step(log):
    job = replace(JOB, spans=(Span(2, 5),))
    steps, spans = await steps_of(log, job), []

    class Listening:
        def __getattr__(self, name):
            return getattr(log, name)

        async def read(self, session, span, **options):
            spans.append(span)
            return await log.read(session, span, **options)

    vars(steps)["_log"] = Listening()
    await steps.step("a", Work())
    assert spans
    assert all(span.first >= 6 for span in spans)


async def test_no_byte_of_a_forgotten_step_stays_in_the_file(tmp_path):
    async with SqliteStore(tmp_path / "refold.db") as store:
        log = store.log()
        await begin(log)
        steps = await steps_of(log)
        await steps.step("small", Work("zebras"))
        await steps.step("large", Work("zebras " * 10_000))
        assert any(b"zebras" in file.read_bytes() for file in tmp_path.iterdir())
        await log.forget("s", Span(3, 3))
        assert not any(b"zebras" in file.read_bytes() for file in tmp_path.iterdir())
