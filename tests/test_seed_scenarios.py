"""The seeds' own scenarios, played through real sessions with the profiles named after them."""

import asyncio

import pytest
from shown import changed, turn, used
from talks import WORDS, Talk, Writer, chat, setup, texts, work

from refold.errors import FoldNotMade, NothingToFold
from refold.fold.replace import UNDERSTOOD
from refold.log import FoldFailed, Message, Span
from refold.recall import recall_tools
from refold.settings import load_settings
from refold.stores import MemoryStore
from refold.testing.wire import Answered, Asked, Responded, Return, Told
from refold.view.profiles import CO_CLI, COPILOT, COWAGENT, INKEEP, PROFILES

COMPLETE = "session.compaction_complete"
ROOMY = 1_000_000


@pytest.fixture
async def log():
    async with MemoryStore() as store:
        yield store.log()


async def until(truth):
    async with asyncio.timeout(20):
        while not truth():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)


# co-cli: a window of forty messages.


@pytest.mark.req("R023", "R024", "R027", "R065")
async def test_forty_messages_stay_and_the_forty_first_folds_the_middle(log):
    write = Writer()
    talk = await Talk.open(log, setup(CO_CLI, ROOMY), write=write)
    await talk.go(*chat(*range(19)))
    await talk.say(Asked("Number 39."), Asked("Number 40."))
    request = await talk.request()
    assert len(request.messages) == 40
    assert write.asked == 0
    before = texts(request)
    await talk.say(Asked("Number 41."))
    request = await talk.request()
    assert write.asked == 1
    assert texts(request) == [
        "Question 0?",
        "Answer 0.",
        f"[Summary of 19 earlier messages]\n{WORDS}",
        *before[-19:],
        "Number 41.",
    ]
    roles = [request.wire.describe(one).role for one in request.messages]
    assert roles[2] == "user"
    await talk.all_rebuilt()


@pytest.mark.req("R025")
async def test_a_first_run_of_more_than_two_messages_stays_whole(log):
    talk = await Talk.open(log, setup(CO_CLI, ROOMY), write=Writer())
    steps = [used(f"c{nth}", "read", f"Result {nth}.", path=f"{nth}") for nth in range(2)]
    await talk.go(*turn("Begin.", *steps, reply="It is read."), *chat(*range(17)))
    await talk.say(Asked("Number 41."))
    request = await talk.request()
    shown = texts(request)
    assert (shown[0], shown[2], shown[4], shown[5]) == (
        "Begin.",
        "Result 0.",
        "Result 1.",
        "It is read.",
    )
    assert shown[6] == f"[Summary of 15 earlier messages]\n{WORDS}"
    assert len(shown) == 6 + 1 + 20


@pytest.mark.req("R026")
async def test_without_a_text_response_nothing_is_pinned(log):
    talk = await Talk.open(log, setup(CO_CLI, ROOMY), write=Writer())
    pairs = [used(f"c{nth}", "read", f"Result {nth}.") for nth in range(19)]
    await talk.say(Asked("Begin."), *(one for pair in pairs[:10] for one in pair))
    await talk.say(Asked("Go on."), *(one for pair in pairs[10:] for one in pair))
    await talk.say(Asked("And now?"))
    assert len(await talk.values(Message)) == 41
    shown = texts(await talk.request())
    assert shown[:2] == [f"[Summary of 21 earlier messages]\n{WORDS}", "Go on."]
    assert len(shown) == 1 + 20


async def test_the_next_window_begins_with_the_summary_and_folds_it_in_once(log):
    talk = await Talk.open(log, setup(CO_CLI, ROOMY), write=Writer())
    request = await talk.go(*chat(*range(45)))
    found = [text for text in texts(request) if text.startswith("[Summary of")]
    assert len(found) == 1
    assert (await talk.folds())[1] == 3
    assert len(request.messages) <= 40
    await talk.all_rebuilt()


@pytest.mark.req("R067", "R109")
async def test_compact_leaves_exactly_two_messages(log):
    talk = await Talk.open(log, setup(CO_CLI, ROOMY), write=Writer())
    with pytest.raises(NothingToFold):
        await talk.session.compact()
    await talk.go(*work(*range(4)))
    done = await talk.session.compact()
    assert done.messages_removed == 16
    request = await talk.request()
    assert texts(request) == [f"[Compacted conversation summary]\n{WORDS}", UNDERSTOOD]
    assert UNDERSTOOD == "Understood. I have the conversation context."
    assert [request.wire.describe(one).role for one in request.messages] == ["user", "assistant"]
    request = await talk.go(*chat(9))
    assert texts(request)[2:] == ["Question 9?"]
    await talk.session.compact()
    assert texts(await talk.request()) == texts(request)[:2]


@pytest.mark.req("R066", "R135")
async def test_when_summarising_fails_a_fixed_marker_stands_in_and_the_turn_goes_on(log):
    write = Writer(fails=True)
    talk = await Talk.open(log, setup(CO_CLI, ROOMY), write=write)
    await talk.go(*chat(*range(20)))
    await talk.say(Asked("Number 41."))
    request = await talk.request()
    marker = "[Earlier conversation trimmed — 19 messages removed to stay within context budget]"
    assert texts(request)[:3] == ["Question 0?", "Answer 0.", marker]
    assert len(request.messages) == 2 + 1 + 20
    assert texts(request)[-1] == "Number 41."
    await talk.answer(Responded("Gladly."))
    assert texts(await talk.request())[-1] == "Gladly."
    assert write.asked == 1
    await talk.all_rebuilt()


@pytest.mark.req("R136")
async def test_when_compact_fails_everything_stays(log):
    talk = await Talk.open(log, setup(INKEEP, ROOMY), write=Writer(fails=True))
    await talk.go(*chat(*range(40)))
    before = await talk.request()
    assert len(before.messages) == 80
    with pytest.raises(FoldNotMade):
        await talk.session.compact()
    after = await talk.request()
    assert [*after.messages] == [*before.messages]


@pytest.mark.req("R150")
@pytest.mark.parametrize("name", [*PROFILES])
async def test_no_automatic_folds_with_0_messages_but_compact_works(
    log, name, monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("CO_CLI_MAX_HISTORY_MESSAGES", "0")
    profile = changed(load_settings(name, folder=tmp_path).profile, reserve=0)
    write = Writer()
    talk = await Talk.open(log, setup(profile, 2_000), write=write)
    await talk.go(*work(*range(24)))
    assert write.asked == 0
    assert await talk.folds() == (0, 0, 0)
    assert (await talk.session.compact()).messages_removed > 70
    assert write.asked == 1


# Inkeep: planning a software project, until half of the window is used.

PLANNED = "The shop needs a catalogue and a basket; they chose small services and looked at logins."
STAGES = ("requirements", "architecture", "catalogue", "login", "review")


def planning():
    """Twenty messages, each stage with a long tool result."""
    for nth, stage in enumerate(STAGES):
        result = f"{stage}_report: " + f"finding about {stage}. " * 150
        step = used(f"p{nth}", "inspect", result, stage=stage)
        yield from turn(f"Let us talk about {stage}.", step, reply=f"Noted: {stage}.")


@pytest.mark.req("R032", "R035", "R092", "R149", "R141")
async def test_a_planning_chat_that_reaches_half_of_the_window(log):
    write = Writer(PLANNED)
    talk = await Talk.open(log, setup(INKEEP, 10_000), write=write)
    whole = [*planning()]
    assert len(whole) == 20
    await talk.go(*whole)
    assert write.asked == 0
    assert max(one.current_tokens for one in talk.events("session.usage_info")) < 5_000
    await talk.say(Asked("And what does the login need? " + "Think of everything. " * 80))
    latest = texts(await talk.request())
    assert write.asked == 1
    assert latest[0].startswith(f"[Summary of 20 earlier messages]\n{PLANNED}\n\n## Large results")
    assert latest[1].startswith("And what does the login need?")
    assert len(latest) == 2
    # What the tools returned is kept to the letter, and found and read again.
    search, read = recall_tools(log, "s")
    for stage in STAGES:
        found = await search.run({"query": f"{stage}_report"})
        assert stage in found
    (there,) = [one.seq for one in await log.read("s") if b"login_report" in one.body]
    assert "finding about login." in await read.run({"at": f"{there}.0"})
    # The agent goes on as before.
    await talk.answer(Responded("A second factor."))
    request = await talk.go(*work(*range(4)))
    assert PLANNED in texts(request)[0]
    assert await talk.folds() == (1, 1, 0)
    await talk.all_rebuilt()


@pytest.mark.req("R038")
async def test_fixed_limits_apply_while_nothing_can_be_summarised(log):
    write = Writer(fails=True)
    talk = await Talk.open(log, setup(INKEEP, 40_000), write=write)
    request = await talk.go(*of_500(40))
    assert len(request.messages) == 39
    await talk.say(Asked(SAID))
    request = await talk.request()
    assert write.asked == 1
    assert texts(request) == [*texts_of(40)[-16:], SAID]  # 8,000 tokens before the latest
    await talk.go(Responded("Yes."), *chat(*range(20)))
    await talk.say(Asked("And now?"), Asked("Well?"))
    request = await talk.request()
    assert len(request.messages) == 50
    assert write.asked == 1
    await talk.all_rebuilt()


def texts_of(count):
    return [one.text for one in of_500(count)]


@pytest.mark.req("R037", "R059")
async def test_without_a_summariser_fixed_limits_apply_from_the_start(log):
    talk = await Talk.open(log, setup(INKEEP, ROOMY))
    await talk.go(*chat(*range(40)))
    await talk.say(Asked("And now?"), Asked("Well?"))
    request = await talk.request()
    assert len(request.messages) == 50
    assert await talk.folds() == (0, 0, 0)


# Copilot: background folds, and what a request does while one is made.

LIMIT = 10_000
SAID = "x" * 1_980
"""With it, a message has 500 tokens."""


def of_500(count):
    """So many messages of 500 tokens each, in turns."""
    return [Responded(SAID) if nth % 2 else Asked(f"{nth:04}{SAID[4:]}") for nth in range(count)]


@pytest.mark.req("R041", "R042", "R044", "R070", "R082")
async def test_the_decision_for_each_state_of_a_background_fold(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(COPILOT, LIMIT), write=write)
    # None pending, below the threshold: continue.
    await talk.go(*of_500(14))
    await talk.say(of_500(15)[-1])
    assert talk.session.decide() == ("continue", ())
    # At 8,000 of 10,000 tokens: start one, and continue the current request.
    await talk.request()
    await talk.answer(Responded(SAID))
    await talk.say(Asked("The seventeenth."))
    assert [one.what for one in talk.session.decide().why] == ["soft"]
    request = await talk.request()
    assert len(request.messages) == 17
    await until(lambda: write.asked)
    # Running, with room: continue; no second one is started.
    await talk.answer(Responded("A short answer."))
    await talk.say(Asked("A short question."))
    assert talk.session.decide().why[-1].what == "under way"
    assert len((await talk.request()).messages) == 19
    # Running, and the buffer exhausted: wait for it, and apply it.
    await talk.answer(Responded(SAID))
    await talk.say(Asked(SAID), Asked(SAID))
    assert {one.what for one in talk.session.decide().why} == {"hard", "soft", "under way"}
    waiting = asyncio.create_task(talk.request())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    write.go.set()
    shown = texts(await waiting)
    assert WORDS in shown[0]
    assert shown[1:] == [
        "The seventeenth.",
        "A short answer.",
        "A short question.",
        SAID,
        SAID,
        SAID,
    ]
    assert write.asked == 1
    assert await talk.folds() == (1, 1, 0)
    await talk.all_rebuilt()


@pytest.mark.req("R044", "R082", "R102")
async def test_a_completed_background_fold_is_applied_before_a_later_request(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(COPILOT, LIMIT), write=write)
    await talk.go(*of_500(16))
    await talk.say(Asked("The seventeenth."))
    assert len((await talk.request()).messages) == 17
    write.go.set()
    await talk.settled()
    await talk.answer(Responded("Yes."))
    request = await talk.request()
    assert WORDS in texts(request)[0]
    assert texts(request)[1:] == ["The seventeenth.", "Yes."]
    again = await Talk.open(log, setup(COPILOT, LIMIT), format=None, write=Writer())
    assert [*(await again.request()).messages] == [*request.messages]


@pytest.mark.req("R045")
async def test_after_a_context_limit_error_the_next_try_folds_first_and_waits(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(COPILOT, LIMIT), write=write)
    await talk.go(*of_500(8))
    await talk.say(Asked("The ninth."))
    await talk.request()
    retry = asyncio.create_task(talk.request(forced=True))
    await until(lambda: write.asked)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not retry.done()
    write.go.set()
    shown = texts(await retry)
    assert WORDS in shown[0]
    assert shown[1:] == ["The ninth."]


@pytest.mark.req("R083")
async def test_the_result_of_a_cancelled_background_fold_is_thrown_away(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(COPILOT, LIMIT), write=write)
    await talk.go(*of_500(16))
    await talk.say(Asked("The seventeenth."))
    before = await talk.request()
    await until(lambda: write.asked)
    assert await talk.session.cancel() is True
    write.go.set()
    await asyncio.sleep(0)
    after = await talk.request()
    assert [*after.messages] == [*before.messages]
    assert [one.reason for one in await talk.values(FoldFailed)] == ["cancelled"]
    assert [one.error for one in talk.events(COMPLETE)] == ["cancelled"]


@pytest.mark.req("R043")
async def test_an_automatic_fold_needs_four_messages(log):
    write = Writer()
    talk = await Talk.open(log, setup(COPILOT, 2_200), write=write)
    await talk.go(*of_500(2))
    await talk.say(Asked(SAID + SAID))
    decision = talk.session.decide(forced=True)
    assert decision.act == "continue"
    assert decision.why[-1].what == "too few messages"
    await talk.request()
    assert write.asked == 0
    await talk.answer(Responded("Yes."))
    await talk.say(Asked("And now?"))
    await talk.request()
    await talk.settled()
    assert write.asked == 1


@pytest.mark.req("R040")
async def test_tool_definitions_count_towards_utilisation(log):
    bare = await Talk.open(log, setup(COPILOT, LIMIT), name="bare", write=Writer())
    armed = await Talk.open(log, setup(COPILOT, LIMIT, tools=500), name="armed", write=Writer())
    for talk in (bare, armed):
        await talk.go(*of_500(14))
        await talk.say(of_500(15)[-1])
    assert bare.session.decide().act == "continue"
    started = armed.session.decide()
    assert started.act == "start"
    assert started.why[0] == ("soft", 8_003, 8_000)


@pytest.mark.req("R052", "R077", "R103")
async def test_truncation_is_of_one_request_and_is_no_entry(log):
    talk = await Talk.open(log, setup(COPILOT, 4_000))
    await talk.say(Told("You are careful."))
    for one in work(*range(12), size=1_200):
        if isinstance(one, Responded):
            request = await talk.request()
            shown = texts(request)
            assert shown[0] == "You are careful."
            assert any(text.startswith("Please read") for text in shown)
            await talk.answer(one)
        else:
            await talk.say(one)
            latest = one
    await talk.say(Asked("The latest."))
    shown = texts(await talk.request())
    assert latest
    assert shown[0] == "You are careful."
    assert shown[-1] == "The latest."
    assert talk.events("session.truncation")
    kinds = {entry.kind for entry in await log.read("s")}
    assert kinds <= {"session", "message", "request", "usage"}
    whole = await Talk.open(log, setup(COPILOT, 100_000), format=None)
    assert [*(await whole.request()).messages] == [
        one.payload for one in await talk.values(Message)
    ]


@pytest.mark.req("R050")
async def test_results_without_a_call_are_not_sent_though_they_fit(log):
    talk = await Talk.open(log, setup(COPILOT, LIMIT))
    await talk.go(*chat(1))
    await talk.say(Asked("And?"), Answered((Return("nobody", "read", "An orphan."),)))
    assert texts(await talk.request()) == ["Question 1?", "Answer 1.", "And?"]


@pytest.mark.req("R046", "R051")
@pytest.mark.parametrize("name", [*PROFILES])
async def test_no_fold_leaves_a_result_without_its_call(log, name):
    """Every request is looked at by `Talk.request`; here each has a call under way."""
    profile = changed(
        PROFILES[name],
        reserve=0,
        trigger={"messages": 9, "at_least": 0, "soft": 0.5, "hard": 0.6},
        fold={"apply": "inline", "keep": {"unit": "messages", "amount": 3}},
    )
    talk = await Talk.open(log, setup(profile, 3_000), write=Writer())
    await talk.say(Asked("Read everything."))
    for nth in range(16):
        _, call, result, reply = work(nth, size=80)
        await talk.request()
        await talk.answer(call)
        await talk.say(result)
        if nth % 5 == 4:
            await talk.request()
            await talk.answer(reply)
            await talk.say(Asked(f"Go on from {nth}."))
    assert (await talk.folds())[1] >= 2
    await talk.all_rebuilt()


# cowagent: more than twenty turns, or more than fifty thousand tokens.


@pytest.mark.req("R029", "R030", "R047")
async def test_above_twenty_turns_the_oldest_half_is_folded(log):
    write = Writer()
    talk = await Talk.open(log, setup(COWAGENT, ROOMY), write=write)
    await talk.go(*work(*range(20), size=20))
    assert write.asked == 0
    await talk.go(*work(20, size=20))
    await talk.settled()
    assert write.asked == 1
    assert write.material.messages == 40
    await talk.say(Asked("And now?"))
    shown = texts(await talk.request())
    assert len(shown) == 11 * 4 + 1
    assert shown[0] == (f"[Summary of 40 earlier messages]\n{WORDS}\n\nPlease read src/part_10.py.")
    assert shown[-1] == "And now?"
    await talk.all_rebuilt()


async def test_the_summary_of_trimmed_turns_takes_effect_from_the_next_turn_on(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(COWAGENT, ROOMY), write=write)
    await talk.go(*chat(*range(20)))
    await talk.say(Asked("Number 21."))
    during = texts(await talk.request())
    assert await talk.folds() == (0, 0, 0)
    assert during[0] == "Question 0?"
    assert len(during) == 41
    await talk.answer(Responded("It is over."))
    await until(lambda: write.asked)
    assert not any("[Summary of" in text for text in texts(await talk.request()))
    write.go.set()
    await talk.settled()
    await talk.say(Asked("Number 22."))
    shown = texts(await talk.request())
    assert shown[0] == f"[Summary of 20 earlier messages]\n{WORDS}\n\nQuestion 10?"
    assert shown[-1] == "Number 22."
    assert not any("Question 9?" in text for text in shown)


async def test_above_fifty_thousand_tokens_the_oldest_half_is_folded(log):
    write = Writer()
    talk = await Talk.open(log, setup(COWAGENT, ROOMY), write=write)
    long = "y" * 3_960  # 995 tokens with its message
    for nth in range(6):
        step = [used(f"c{nth}{at}", "read", long) for at in range(8)]
        await talk.go(*turn(f"Turn {nth}.", *step))
        await talk.settled()
    assert write.asked == 0
    await talk.go(*turn("Turn 6.", *[used(f"d{at}", "read", long) for at in range(8)]))
    await talk.settled()
    assert write.asked == 1
    shown = texts(await talk.go(*chat(7)))
    assert shown[0].endswith("\n\nTurn 3.")
    assert "Turn 6." in shown


# Every profile: the log is the truth.


@pytest.mark.req("R102", "R141")
@pytest.mark.parametrize("name", [*PROFILES])
async def test_replaying_a_completed_fold_gives_the_same_view(log, name):
    given = setup(changed(PROFILES[name], reserve=0), 20_000)
    talk = await Talk.open(log, given, write=Writer())
    await talk.go(*work(*range(6)))
    await talk.session.compact()
    before = await talk.go(*work(6, 7))
    again = await Talk.open(log, given, format=None, write=Writer())
    after = await again.request()
    assert [*after.messages][: len(before.messages)] == [*before.messages]
    assert len(after.messages) == len(before.messages) + 1
    (fold,) = (await log.visible("s", last=0)).outline.folds
    assert all(isinstance(span, Span) for span in fold.spans)
    request = await again.go(*work(8))
    assert any("value_8" in text for text in texts(request))
    await again.all_rebuilt()
