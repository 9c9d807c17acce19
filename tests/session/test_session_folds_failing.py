"""The folds of a session: how they fail, are refused, or take too long."""

import asyncio

import pytest
from shown import changed
from talks import COUNTER, SMALL, WORDS, Talk, Writer, chat, setup, texts, until, work

from refold.engine import LocalEngine
from refold.errors import FoldNotMade
from refold.fold.compactor import Compactor
from refold.log import FoldFailed

START, COMPLETE = "session.compaction_start", "session.compaction_complete"
BACKGROUND = changed(SMALL, fold={"apply": "background", "wait": 0.05, "breadcrumb": False})


# Folds that fail.


async def test_a_background_fold_that_fails_is_told_and_harms_nothing(log):
    write = Writer(fails=True)
    talk = await Talk.open(log, setup(BACKGROUND), write=write)
    await talk.go(*work(*range(14)))
    await talk.settled()
    assert write.asked == 1
    request = await talk.request()
    (end,) = talk.events(COMPLETE)
    assert not end.success
    assert end.as_json()["error"] == "RuntimeError: The model is down."
    assert await talk.folds() == (1, 0, 1)
    assert "Please read src/part_0.py." in texts(request)
    await talk.all_rebuilt()


@pytest.mark.parametrize("apply", ["inline", "background"])
async def test_a_fold_that_failed_is_tried_again_only_when_there_is_more(log, apply):
    write = Writer(fails=True)
    talk = await Talk.open(log, setup(changed(SMALL, fold={"apply": apply})), write=write)
    for nth in range(20):
        await talk.go(*work(nth))
        await talk.settled()
        if write.asked:
            break
    assert await talk.folds() == (1, 0, 1)
    for nth in range(3):
        forced = talk.session.decide(forced=True)
        assert (forced.act, forced.why[-1].what) == ("continue", "failed before")
        await talk.go(*chat(nth))
        await talk.settled()
    assert write.asked == 1
    for nth in range(30, 50):
        await talk.go(*work(nth))
        await talk.settled()
    assert 1 < write.asked < 10
    write.fails = False
    await talk.go(*work(*range(50, 64)))
    await talk.settled()
    assert (await talk.folds())[1] >= 1
    await talk.all_rebuilt()


async def test_after_a_failure_a_fold_that_is_made_ends_the_fixed_limits(log):
    limited = changed(SMALL, window={"recent_messages": 12}, fold={"placement": "message"})
    write = Writer(fails=True)
    talk = await Talk.open(log, setup(limited), write=write)
    limits = False
    for nth in range(16):
        request = await talk.go(*work(nth))
        limits = limits or any("trimmed" in text for text in texts(request))
    assert limits
    write.fails = False
    await talk.session.compact()
    request = await talk.go(*chat(*range(100, 108)))
    assert len(request.messages) > 14
    assert not any("trimmed" in text for text in texts(request))
    await talk.all_rebuilt()


async def test_a_hook_may_refuse_a_fold(log):
    hooked = []

    async def before(job):
        hooked.append(job.trigger)
        raise PermissionError("not now")

    write = Writer()
    talk = await Talk.open(log, write=write, before=before)
    await talk.go(*work(*range(14)))
    assert hooked[0] in ("soft", "hard")
    assert len(hooked) <= 2
    seen = texts(await talk.request())
    with pytest.raises(FoldNotMade, match="not now"):
        await talk.session.compact()
    assert hooked[-1] == "manual"
    assert write.asked == 0
    assert await talk.folds() == (0, 0, 0)
    assert [one.success for one in talk.events(COMPLETE)] == [False] * len(hooked)
    assert texts(await talk.request()) == seen


class _SlowWriterEngine(LocalEngine):
    """Waits are as long as they should be, however slow the machine is.

    That for the writer's fold ends after it was asked; that for the log's, when the fold does.
    """

    def __init__(self, log, write):
        super().__init__(log, Compactor(log, COUNTER, write))
        self._write = write
        self.limits = []

    async def wait(self, session, fold, timeout=None):  # noqa: ASYNC109 - part of the protocol
        self.limits.append(timeout)
        if len(self.limits) > 1:
            return await super().wait(session, fold)
        await until(lambda: self._write.asked)
        return await super().wait(session, fold, timeout)


async def test_when_a_request_has_waited_long_enough_the_log_writes_the_summary(log):
    write = Writer(slow=True)
    engine = _SlowWriterEngine(log, write)
    given = setup(changed(SMALL, fold={"wait": 0.05}))
    talk = await Talk.open(log, given, engine=engine)
    async with asyncio.timeout(60):
        request = await talk.go(*work(*range(12)))
    assert engine.limits == [0.05, 0.05]
    assert await talk.folds() == (2, 1, 1)
    assert any("earlier messages are folded here" in text for text in texts(request))
    assert [one.error for one in talk.events(COMPLETE)] == ["cancelled", None]
    assert write.asked == 1


async def test_a_request_does_not_give_up_what_a_person_asked_for(log):
    write = Writer(slow=True)
    given = setup(changed(SMALL, fold={"wait": 0.05}))
    talk = await Talk.open(log, given, write=write)
    await talk.go(*work(*range(4)))
    asked = asyncio.create_task(talk.session.compact())
    await until(lambda: write.asked)
    other = await Talk.open(log, given, write=Writer())
    for one in (talk, other):
        await one.go(*work(*range(4, 12)))
    write.go.set()
    assert (await asked).summary.words == WORDS
    assert not await talk.values(FoldFailed)


async def test_a_request_waits_no_longer_than_it_may(log):
    write = Writer(slow=True)
    alone = changed(SMALL, fold={"wait": 0.05, "breadcrumb": False})
    talk = await Talk.open(log, setup(alone), write=write)
    async with asyncio.timeout(30):
        await talk.go(*work(*range(18)))
    assert await talk.folds() == (1, 0, 0)
    write.go.set()
    await talk.settled()
    request = await talk.request()
    assert any(WORDS in text for text in texts(request))
    assert await talk.folds() == (1, 1, 0)
    await talk.session.close()
