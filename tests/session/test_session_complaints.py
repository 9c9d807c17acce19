"""What users of such tools complain about most, each as a test that it does not happen here."""

import asyncio

import pytest
from shown import changed, turn
from talks import SMALL, WORDS, Talk, Writer, chat, setup, texts, work

from refold.log import FoldFailed, FoldStarted, Message, Span
from refold.testing.wire import Asked, Responded
from refold.view.profiles import COPILOT, PROFILES
from refold.wire import Replace

COMPLETE = "session.compaction_complete"


# Compaction that frees nothing runs again and again.


@pytest.mark.parametrize("name", ["copilot", "inkeep", "balanced"])
async def test_death_loop_when_instructions_alone_exceed_the_threshold(log, name):
    profile = SMALL if name == "balanced" else PROFILES[name]
    share = 0.55 if name == "inkeep" else 0.85
    write = Writer()
    floor = int(share * 10_000)
    talk = await Talk.open(log, setup(profile, 10_000, instructions=floor), write=write)
    for nth in range(30):
        await talk.say(Asked(f"Question {nth}?"))
        decision = talk.session.decide()
        assert decision.act == "continue"
        if nth > 2:
            assert decision.why[-1].what == "floor"
            assert decision.why[-1].value == floor
        await talk.request()
        await talk.answer(Responded("Yes."))
    assert write.asked == 0
    assert await talk.folds() == (0, 0, 0)
    assert talk.events(COMPLETE) == []


async def test_death_loop_when_what_must_stay_leaves_nothing_to_gain(log):
    write = Writer()
    talk = await Talk.open(log, setup(window=4_000), write=write)
    await talk.go(*chat(1))
    await talk.say(Asked("A very long document. " * 640))
    for nth in range(20):
        assert talk.session.decide().act == "continue"
        await talk.request()
        await talk.answer(Responded(f"Note {nth}."))
    assert write.asked == 0


async def test_death_loop_when_each_fold_fails(log):
    write = Writer(fails=True)
    talk = await Talk.open(log, write=write)
    await talk.go(*work(*range(12)))
    for nth in range(40):
        await talk.go(*chat(nth))
    assert 1 <= write.asked <= 8
    assert len(await talk.values(FoldFailed)) == write.asked


@pytest.mark.parametrize("name", ["co-cli", "cowagent"])
async def test_death_loop_when_each_fold_fails_and_messages_are_counted(log, name):
    write = Writer(fails=True)
    talk = await Talk.open(log, setup(PROFILES[name], 100_000), write=write)
    for nth in range(60):
        await talk.go(*chat(nth))
        await talk.settled()
    assert 1 <= write.asked <= 15
    assert len(await talk.values(FoldFailed)) == write.asked


# Instructions and the current task are forgotten.


@pytest.mark.parametrize("name", [*PROFILES])
async def test_forgotten_task_the_latest_prompt_survives_every_fold(log, name):
    profile = changed(
        PROFILES[name],
        reserve=0,
        trigger={"at_least": 0, "tokens": 0, "savings": 0, "soft": 0.5, "hard": 0.6},
        fold={"apply": "inline"},
    )
    talk = await Talk.open(log, setup(profile, 1_500), write=Writer())
    await talk.go(*work(*range(3)))
    task = "Now fix src/part_1.py, but never touch src/part_2.py."
    await talk.say(Asked(task))
    for nth in range(12):
        _, *steps, _ = work(nth)
        await talk.request()
        await talk.answer(steps[0])
        await talk.say(steps[1])
        request = await talk.request()
        assert task in texts(request)
        assert b"Be kind." in request.body
    assert (await talk.folds())[1] >= 1


async def test_forgotten_task_the_users_words_survive_without_a_model(log):
    talk = await Talk.open(log, setup(window=8_000))
    rule = "Never commit to the main branch."
    await talk.go(*turn(rule, reply="Understood."), *work(*range(30)))
    for nth in range(30, 60, 10):
        await talk.session.compact()
        request = await talk.go(*work(*range(nth, nth + 10)))
        assert any(rule in text for text in texts(request))


# Kept messages vanish at the second compaction.


async def test_silent_loss_nothing_vanishes_at_the_second_fold(log):
    talk = await Talk.open(log, setup(window=3_000), write=Writer())
    said = []
    for nth in range(60):
        said += [one.payload for one in await talk.values(Message)][len(said) :]
        request = await talk.go(*work(nth))
        folds = (await talk.log.visible("s", last=0)).outline.folds
        folded = {seq for fold in folds for span in fold.spans for seq in range(*_bounds(span))}
        seen = {*request.messages}
        for entry in await talk.log.read("s", Span(2, request.plan.head)):
            if entry.kind == Message.KIND and entry.seq not in folded:
                assert entry.body in seen or _replaced(request, entry)
    completed = (await talk.folds())[1]
    assert completed >= 3
    assert [one.payload for one in await talk.values(Message)][: len(said)] == said
    while (await talk.log.visible("s", last=0)).outline.folds:
        await talk.session.take_back()
    whole = changed(SMALL, fold={"breadcrumb": False})
    reader = await Talk.open(log, setup(whole, 1_000_000), format=None)
    assert [*(await reader.request()).messages] == [
        one.payload for one in await talk.values(Message)
    ]


def _bounds(span):
    return span.first, span.last + 1


def _replaced(request, entry):
    """Whether it is there, with a reference in the place of a long result."""
    edits = [one for ref, one in request.plan.layout.changes.items() if ref.seq == entry.seq]
    return any(isinstance(one, Replace) for one in edits)


# Slow and blocking; failed folds are billed again at each turn, and nobody sees it.


async def test_blocking_a_slow_fold_is_not_waited_for_at_each_request(log):
    write = Writer(slow=True)
    waiting = changed(COPILOT, fold={"wait": 0.01})
    talk = await Talk.open(log, setup(waiting), write=write)
    waited = []
    wait = talk.engine.wait

    async def counted(*given):
        waited.append(given)
        return await wait(*given)

    talk.engine.wait = counted
    await talk.go(*chat(*range(100, 104)), *turn("x" * 3_600, reply="y" * 3_600))
    for nth in range(10):
        await talk.go(*chat(nth))
    assert "under way" in {one.what for one in talk.session.decide(forced=True).why}
    assert len(waited) == 1
    write.go.set()
    await talk.settled()
    assert write.asked == 1
    assert any(WORDS in text for text in texts(await talk.request()))


async def test_hanging_a_fold_that_shows_nothing_has_an_end(log):
    talk = await Talk.open(log, write=Writer(words=""))
    async with asyncio.timeout(30):
        await talk.go(*work(*range(14)))
    started, completed, failed = await talk.folds()
    assert started == completed + failed > 0
    assert len(talk.events(COMPLETE)) == started


async def test_billed_again_each_failure_is_told_and_in_the_log(log):
    write = Writer(fails=True)
    talk = await Talk.open(log, write=write)
    await talk.go(*work(*range(24)))
    ends = talk.events(COMPLETE)
    assert [one.error for one in ends] == ["RuntimeError: The model is down."] * write.asked
    assert {*(one.fold for one in ends)} == {
        str(one.fold) for one in await talk.values(FoldStarted)
    }


# No undo.


async def test_no_undo_every_fold_is_taken_back_to_the_byte(log):
    talk = await Talk.open(log, setup(window=20_000), write=Writer())
    await talk.go(*work(*range(6)))
    first = await talk.request()
    await talk.session.compact()
    between = await talk.request()
    await talk.go(*work(6))
    second = await talk.request()
    await talk.session.compact()
    assert (await talk.request()).plan.tokens < second.plan.tokens
    await talk.session.take_back()
    assert [*(await talk.request()).messages] == [*second.messages]
    await talk.session.take_back()
    assert [*(await talk.request()).messages][: len(first.messages)] == [*first.messages]
    assert len(between.messages) < len(first.messages)
    await talk.all_rebuilt()


async def test_no_undo_one_span_is_opened_and_the_rest_stays_folded(log):
    talk = await Talk.open(log, setup(window=20_000), write=Writer())
    await talk.go(*work(*range(6)))
    whole = await talk.request()
    await talk.session.compact()
    folded = await talk.request()
    (asked,) = [one.seq for one in await log.read("s") if b"Please read src/part_2.py" in one.body]
    await talk.session.unfold(Span(asked, asked + 5))
    opened = await talk.request()
    assert "Please read src/part_2.py." in texts(opened)
    assert "Please read src/part_3.py." not in texts(opened)
    assert len(folded.messages) < len(opened.messages) < len(whole.messages)
    assert sum(WORDS in text for text in texts(opened)) == 1
    assert len(talk.events("session.compaction_start")) == len(talk.events(COMPLETE)) == 1
    again = await Talk.open(log, setup(window=20_000), format=None)
    assert [*(await again.request()).messages] == [*opened.messages]
    await talk.all_rebuilt()
