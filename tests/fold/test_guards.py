"""What keeps a session from folding in vain is told, once, with what to do about it."""

from summarizers import Scripted, writing
from talks import SMALL, Talk, Writer, chat, setup, work

from refold.fold.events import CompactionHeld
from refold.fold.summary import Summary
from refold.fold.write.by_model import FAILURES
from refold.log import FoldFailed
from refold.session.guards import Guards
from refold.testing.wire import Asked

HELD = CompactionHeld.NAME


def guards_of(talk):
    return [one.guard for one in talk.events(HELD)]


async def test_that_fixed_content_alone_is_above_the_trigger_is_said_once(log):
    talk = await Talk.open(log, setup(SMALL, 10_000, instructions=8_500))
    for nth in range(10):
        await talk.say(Asked(f"Question {nth}?"))
        await talk.request()
    [held] = talk.events(HELD)
    assert held.guard == "floor above trigger"
    assert "8,500" in held.why
    assert "Shorten" in held.remedy
    assert held.as_json()["remedy"] == held.remedy


async def test_it_is_said_again_when_it_was_otherwise_meanwhile(log):
    talk = await Talk.open(log, setup(SMALL, 10_000, instructions=8_500))
    await talk.go(*chat(1))
    await talk.session.switch(setup(SMALL, 2_000))
    await talk.go(*work(*range(12)))
    await talk.session.switch(setup(SMALL, 10_000, instructions=8_500))
    await talk.go(*chat(2))
    assert guards_of(talk).count("floor above trigger") == 2


async def test_a_failure_that_comes_again_is_told(log):
    talk = await Talk.open(log, write=Writer(fails=True))
    await talk.go(*work(*range(40)))
    assert len(await talk.values(FoldFailed)) > 2
    assert guards_of(talk) == ["repeated failure"]
    [held] = talk.events(HELD)
    assert "The model is down." in held.why


async def test_a_summary_that_is_not_believed_is_told_and_the_log_writes(log):
    talk = await Talk.open(log, write=writing(Scripted("")))
    await talk.go(*work(*range(12)))
    assert guards_of(talk)[0] == "not believed"
    assert (await talk.folds())[2] == 0
    assert all(one.model == "breadcrumb" for one in talk.events("session.compaction_complete"))


async def test_a_summarizer_that_is_left_alone_is_told(log):
    down = Scripted(RuntimeError("down"))
    talk = await Talk.open(log, write=writing(down))
    await talk.go(*work(*range(60)))
    told = guards_of(talk)
    assert told[:FAILURES] == ["not believed"] * FAILURES
    assert "summarizer left alone" in told
    assert down.calls < (await talk.folds())[1]


def test_a_fold_that_frees_nothing_is_told():
    told = []
    guards = Guards(told.append)
    assert guards.completed(Summary("x"), 1)
    assert guards.completed(Summary("x"), None)
    assert told == []
    assert not guards.completed(Summary("x"), 0)
    assert [one.guard for one in told] == ["no progress"]


def test_a_guard_counts_failures_that_are_alike():
    told = []
    guards = Guards(told.append)
    for reason in ("a", "b", "a", "b"):
        guards.failed(reason)
    assert told == []
    guards.failed("b")
    guards.failed("b")
    assert [one.why for one in told] == ["b"]
    guards.completed(Summary("x"), 10)
    guards.failed("b")
    assert len(told) == 1
