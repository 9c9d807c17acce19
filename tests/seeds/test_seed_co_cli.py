"""co-cli's own scenarios, played through real sessions: a window of forty messages."""

import pytest
from shown import changed, turn, used
from talks import WORDS, Talk, Writer, chat, setup, texts, work

from refold.errors import FoldNotMade, NothingToFold
from refold.fold.replace import UNDERSTOOD
from refold.log import Message
from refold.settings import load_settings
from refold.testing.wire import Asked, Responded
from refold.view.profiles import CO_CLI, INKEEP, PROFILES

ROOMY = 1_000_000


# co-cli: a window of forty messages.


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


async def test_when_summarizing_fails_a_fixed_marker_stands_in_and_the_turn_goes_on(log):
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


async def test_when_compact_fails_everything_stays(log):
    talk = await Talk.open(log, setup(INKEEP, ROOMY), write=Writer(fails=True))
    await talk.go(*chat(*range(40)))
    before = await talk.request()
    assert len(before.messages) == 80
    with pytest.raises(FoldNotMade):
        await talk.session.compact()
    after = await talk.request()
    assert [*after.messages] == [*before.messages]


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
