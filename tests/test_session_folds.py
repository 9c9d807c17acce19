"""The folds of a session: when they begin, what is told of them, and how they go wrong."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest
from shown import changed
from talks import COUNTER, SMALL, WORDS, Talk, Writer, chat, setup, texts, work

from refold.engine import LocalEngine
from refold.errors import FoldCancelled, FoldNotMade, FoldUnderWay, InvalidInput, NothingToFold
from refold.fold.job import Job
from refold.fold.run import Folder
from refold.fold.workspace import Workspace
from refold.log import Author, FoldFailed, FoldStarted, PartRef, Span
from refold.stores import MemoryStore, open_store
from refold.testing.wire import Asked, Responded, Told

START, COMPLETE = "session.compaction_start", "session.compaction_complete"
SHARED = changed(SMALL, delegates="shared")
BACKGROUND = changed(SMALL, fold={"apply": "background", "wait": 0.05, "breadcrumb": False})


@pytest.fixture
async def log():
    async with MemoryStore() as store:
        yield store.log()


async def until(truth):
    """Wait for what another task does."""
    async with asyncio.timeout(20):
        while not truth():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)


# What is told.


@pytest.mark.req("R128")
async def test_usage_is_told_of_each_request(log):
    talk = await Talk.open(log, setup(tools=30))
    await talk.go(*work(1))
    await talk.session.compact()
    await talk.go(*chat(2))
    found = talk.events("session.usage_info")
    assert len(found) == 3
    assert [one.is_initial for one in found] == [True, False, False]
    for one in found:
        assert one.token_limit == 2_000
        assert one.tool_definitions_tokens == 30
        assert one.current_tokens == 30 + one.system_tokens + one.conversation_tokens
    assert [one.messages_length for one in found] == [1, 3, 2]


@pytest.mark.req("R125", "R126", "R133", "R134", "R110")
async def test_a_fold_is_told_from_its_start_before_the_hook_to_its_end(log, tmp_path):
    happened = []

    async def before(job):
        happened.append(("hook", job.trigger))

    write = Writer()
    talk = await Talk.open(
        log,
        setup(window=4_000, tools=30, instructions=50),
        write=write,
        before=before,
        workspace=Workspace(tmp_path),
        watch=happened.append,
    )
    await talk.say(Told("You are careful."))
    await talk.go(*work(*range(6)))
    last = (await talk.request()).plan
    happened.clear()
    done = await talk.session.compact("the values")
    start, hook, complete = happened
    assert hook == ("hook", "manual")
    assert start.NAME == START
    assert start.as_json() == {
        "type": START,
        "trigger": "manual",
        "systemTokens": last.account.system,
        "conversationTokens": last.account.conversation,
        "toolDefinitionsTokens": 30,
    }
    assert last.account.system > 50
    after = await talk.request()
    assert complete.as_json() == {
        "type": COMPLETE,
        "success": True,
        "error": None,
        "preCompactionTokens": last.tokens,
        "postCompactionTokens": after.plan.tokens,
        "tokensRemoved": last.tokens - after.plan.tokens,
        "messagesRemoved": write.material.messages,
        "summaryContent": done.summary.text,
        "checkpointNumber": 1,
        "checkpointPath": str(tmp_path / "checkpoints" / "001-a-title.md"),
        "checkpointError": None,
        "requestId": str(done.fold),
        "compactionTokensUsed": None,
        "report": None,
    }
    assert write.job.focus == "the values"
    assert WORDS in done.summary.text
    assert (done.messages_removed, done.tokens_removed) == (
        complete.messages_removed,
        complete.tokens_removed,
    )
    assert done.tokens_removed > 300


@pytest.mark.req("R125")
async def test_the_account_of_a_fold_does_not_need_a_request_before(log):
    talk = await Talk.open(log, setup(tools=30))
    await talk.say(*work(1, 2))
    await talk.session.compact()
    (start,) = talk.events(START)
    (end,) = talk.events(COMPLETE)
    assert start.conversation_tokens == end.pre_tokens > 200
    assert (start.system_tokens, start.tool_definitions_tokens) == (3, 30)


@pytest.mark.req("R129")
async def test_telemetry_has_figures_and_no_words(log):
    talk = await Talk.open(log, setup(window=4_000), write=Writer())
    await talk.go(*work(*range(6)))
    done = await talk.session.compact()
    start, complete = (one.telemetry() for one in talk.events(START, COMPLETE))
    assert start["type"] == "session_compaction_start"
    assert start["conversationTokens"] > 500
    took = complete.pop("durationMs")
    assert isinstance(took, int)
    assert complete == {
        "type": "session_compaction_complete",
        "success": True,
        "tokensRemoved": done.tokens_removed,
        "messagesRemoved": done.messages_removed,
        "checkpointNumber": None,
        "model": "model:x",
        "requestId": str(done.fold),
    }


@pytest.mark.req("R104", "R105")
async def test_checkpoints_are_there_when_the_end_is_told_and_follow_the_view(log, tmp_path):
    seen = []

    def watch(event):
        if event.NAME == COMPLETE:
            files = sorted(one.name for one in (tmp_path / "checkpoints").iterdir())
            counted = (tmp_path / "workspace.yaml").read_text()
            seen.append((event.checkpoint, len(files), counted))

    given = setup(window=4_000)
    talk = await Talk.open(log, given, workspace=Workspace(tmp_path), watch=watch)
    await talk.go(*work(*range(5)))
    await talk.session.compact()
    middle = talk.session.head
    await talk.go(*work(5, 6, 7))
    await talk.session.compact()
    assert seen == [(1, 2, "summary_count: 1\n"), (2, 3, "summary_count: 2\n")]
    await talk.session.rewind(middle)
    assert (tmp_path / "workspace.yaml").read_text() == "summary_count: 1\n"
    assert len([*(tmp_path / "checkpoints").glob("0*.md")]) == 1
    await talk.session.take_back()
    assert (tmp_path / "workspace.yaml").read_text() == "summary_count: 0\n"
    assert "No checkpoints yet" in (tmp_path / "checkpoints" / "index.md").read_text()


# Folds that fail.


@pytest.mark.req("R084", "R132")
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
    limited = changed(SMALL, window={"max_messages": 12}, fold={"placement": "message"})
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


async def test_when_a_request_has_waited_long_enough_the_log_writes_the_summary(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(changed(SMALL, fold={"wait": 0.5})), write=write)
    async with asyncio.timeout(30):
        request = await talk.go(*work(*range(12)))
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


# Folds that are asked for.


@pytest.mark.req("R137")
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


@pytest.mark.req("R043", "R137")
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


@pytest.mark.req("R138", "R083")
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


@pytest.mark.req("R136")
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


@pytest.mark.req("R086")
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


@pytest.mark.req("R085")
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


@pytest.mark.req("R085")
async def test_a_switch_whose_fold_fails_is_made_all_the_same(log):
    talk = await Talk.open(log, setup(window=20_000), write=Writer(fails=True))
    await talk.go(*work(*range(16)))
    await talk.session.switch(replace(setup(window=2_000), model="test:other"))
    assert not talk.events(COMPLETE)[-1].success  # whoever watches knows
    request = await talk.request()
    assert request.plan.account.limit == 2_000


@pytest.mark.req("R085")
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


# Pins, delegations.


async def test_what_is_pinned_stays_through_folds(log):
    talk = await Talk.open(log, setup(window=4_000), write=Writer())
    await talk.go(*work(1))
    rule = await talk.say(Asked("Never touch src/legacy.py."))
    await talk.go(Responded("I will not."), *work(2, 3))
    await talk.session.pin(PartRef(rule.first, 0))
    for nth in (4, 5):
        await talk.session.compact()
        request = await talk.go(*work(nth))
        assert sum("Never touch src/legacy.py." in text for text in texts(request)) == 1
    await talk.session.unpin(PartRef(rule.first, 0))
    request = await talk.request()
    assert not any("Never touch src/legacy.py." in text for text in texts(request))
    await talk.all_rebuilt()


async def test_delegated_work_is_never_folded_and_is_seen_by_who_does_it(log):
    main = await Talk.open(log, setup(SHARED), write=Writer())
    await main.go(*work(1))
    await main.say(Asked("Have the parts looked at."))
    part = await Talk.open(log, setup(SHARED), scope="/a", format=None, write=Writer())
    request = await part.go(*work(*range(10, 28)))
    assert await part.folds() == (0, 0, 0)
    assert "Have the parts looked at." in texts(request)
    assert any("value_27" in text for text in texts(request))
    with pytest.raises(NothingToFold):
        await part.session.compact()
    assert await part.session.relieve() is False
    await part.all_rebuilt()
    again = await Talk.open(log, setup(SHARED), scope="/a", format=None)
    assert any("value_27" in text for text in texts(await again.request()))
    reopened = await Talk.open(log, setup(SHARED), format=None)
    assert texts(await reopened.request()) == texts(await main.request())


async def test_a_session_opened_again_does_not_go_on_from_the_view_of_a_delegation(log):
    main = await Talk.open(log, setup(window=50_000))
    await main.go(*work(*range(3), size=2_000))
    before = await main.request()
    part = await Talk.open(log, setup(SHARED, window=1_200), scope="/a", format=None)
    await part.say(Asked("Look at it."))
    cut = await part.request()
    assert cut.plan.layout.changes
    again = await Talk.open(log, setup(window=50_000), format=None)
    assert [*(await again.request()).messages][: len(before.messages)] == [*before.messages]


async def test_one_who_closes_leaves_the_engine_of_others_open(log):
    one = await Talk.open(log, write=Writer())
    two = await Talk.open(log, engine=one.engine, format=None)
    await one.go(*work(1, 2))
    await two.session.close()
    assert (await one.session.compact()).messages_removed


async def test_closing_gives_up_the_fold_that_is_under_way(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(BACKGROUND), write=write)
    await talk.go(*work(*range(14)))
    await until(lambda: write.asked)
    await talk.session.close()
    assert await talk.folds() == (1, 0, 0)
    await talk.engine.close()
    assert await talk.folds() == (1, 0, 1)


async def test_what_is_not_folded_cannot_be_unfolded(log):
    talk = await Talk.open(log)
    await talk.go(*work(1))
    with pytest.raises(InvalidInput, match="No fold stands"):
        await talk.session.unfold(Span(2, 3))
    with pytest.raises(InvalidInput, match="No fold stands"):
        await talk.session.take_back()


async def test_a_store_in_a_file_folds_as_one_in_memory(tmp_path):
    """The whole way once more, where each call takes its time."""
    async with open_store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        write = Writer(slow=True)
        talk = await Talk.open(store.log(), setup(BACKGROUND), write=write)
        await talk.go(*work(*range(14)))
        await until(lambda: write.asked)
        assert not talk.events(COMPLETE)
        write.go.set()
        await talk.go(*work(*range(14, 22)))
        await talk.settled()
        started, completed, failed = await talk.folds()
        assert started == completed > 0
        assert not failed
        assert len(talk.events(START)) == len(talk.events(COMPLETE)) == started
        await talk.all_rebuilt()
        await talk.session.close()


async def test_a_fold_may_rest_on_one_that_was_made_after_all_it_covers(log):
    talk = await Talk.open(log, setup(window=100_000))
    await talk.go(*work(*range(6)))
    engine = LocalEngine(log, Folder(log, COUNTER))
    for spans in ((Span(4, 7),), (Span(2, 9),)):
        job = Job(talk.session.name, uuid4(), spans, "test")
        assert await engine.start(job)
        ended = await engine.wait(job.session, job.fold)
        assert ended
        assert ended.completed, ended.reason
    visible = await log.visible(talk.session.name)
    assert [one.spans for one in visible.outline.folds] == [(Span(2, 9),)]
