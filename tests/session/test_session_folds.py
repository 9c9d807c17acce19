"""The folds of a session: what is told of them, and what they leave as it is."""

from uuid import uuid4

import pytest
from shown import changed
from talks import COUNTER, SMALL, WORDS, Talk, Writer, chat, setup, texts, until, work

from refold.engine import LocalEngine
from refold.errors import InvalidInput, NothingToFold
from refold.fold.checkpoints import Workspace
from refold.fold.compactor import Compactor
from refold.fold.job import Job
from refold.log import PartRef, Span
from refold.stores import open_store
from refold.testing.wire import Asked, Responded, Told

START, COMPLETE = "session.compaction_start", "session.compaction_complete"
SHARED = changed(SMALL, delegates="shared")
BACKGROUND = changed(SMALL, fold={"apply": "background", "wait": 0.05, "breadcrumb": False})


# What is told.


async def test_usage_is_told_of_each_request(log):
    talk = await Talk.open(log, setup(tools=30))
    await talk.go(*work(1))
    await talk.session.compact()
    await talk.go(*chat(2))
    found = talk.events("session.usage_info")
    assert [one.is_initial for one in found] == [True, False, False, False]
    for one in found:
        assert one.token_limit == 2_000
        assert one.tool_definitions_tokens == 30
        assert one.current_tokens == 30 + one.system_tokens + one.conversation_tokens
    # The third is of the fold that was asked for.
    assert [one.messages_length for one in found] == [1, 3, 1, 2]


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
    start, hook, wait, complete, usage = happened
    assert wait.as_json() == {"type": "session.compaction_wait", "trigger": "manual"}
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
    assert usage.current_tokens == after.plan.account.sent
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
        "fold": str(done.fold),
        "requestId": None,
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


async def test_the_account_of_a_fold_does_not_need_a_request_before(log):
    talk = await Talk.open(log, setup(tools=30))
    await talk.say(*work(1, 2))
    await talk.session.compact()
    (start,) = talk.events(START)
    (end,) = talk.events(COMPLETE)
    assert start.conversation_tokens == end.pre_tokens > 200
    assert (start.system_tokens, start.tool_definitions_tokens) == (3, 30)


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
        "fold": str(done.fold),
        "requestId": None,
    }


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
    with pytest.raises(InvalidInput, match="No fold replaces"):
        await talk.session.unfold(Span(2, 3))
    with pytest.raises(InvalidInput, match="No fold is in effect"):
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
    engine = LocalEngine(log, Compactor(log, COUNTER))
    for spans in ((Span(4, 7),), (Span(2, 9),)):
        job = Job(talk.session.name, uuid4(), spans, "test")
        assert await engine.start(job)
        ended = await engine.wait(job.session, job.fold)
        assert ended
        assert ended.completed, ended.reason
    visible = await log.visible(talk.session.name)
    assert [one.spans for one in visible.outline.folds] == [(Span(2, 9),)]
