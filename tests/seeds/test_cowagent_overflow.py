"""The profile `cowagent` when a provider refuses a request for its length: remember, cut, clear."""

import json

import pytest
from agents import logged
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent
from remembered import Kept, opened
from scripted_providers import Refused, Said, Script, provider_model
from shown import Talk as Looking
from shown import changed, turn, used
from talks import Writer, chat, texts, work

from refold import Refold
from refold.errors import ViewTooLarge
from refold.fold.events import CompactionComplete, CompactionStart
from refold.log import Message
from refold.recall import search
from refold.recall.text import Reader
from refold.testing.wire import Answered, Asked, Call, Responded, Return, conversations
from refold.view.profiles import COWAGENT, PROFILES, Emergency

# What is cut: the policy by itself.


def cut(talk, refused=1):
    talk.request()
    return talk.texts(refused=refused)


def test_results_are_cut_to_10000_characters_also_those_of_the_current_turn():
    talk = Looking(COWAGENT, *turn("First.", used("a", "read", "A" * 15_000)), Asked("Now."))
    talk.say(*used("b", "read", "B" * 12_000))
    assert [len(text) for text in talk.results()] == [15_000, 12_000]
    old, new = (text for text in cut(talk) if text[0] in "AB")
    mark = "\n[…truncated, {} chars total…]\n"
    assert old == mark.format(15_000).join(["A" * 4_983] * 2)
    assert new == mark.format(12_000).join(["B" * 4_983] * 2)
    assert len(old) == len(new) == 10_000


def test_user_texts_are_cut_to_10000_characters_but_for_the_latest_prompt():
    talk = Looking(COWAGENT, *turn("A" * 15_000), *turn("B" * 10_000), Asked("C" * 15_000))
    long, fits, latest = (text for text in cut(talk) if text[0] in "ABC")
    assert long == "\n[…truncated, 15000 chars total…]\n".join(["A" * 4_983] * 2)
    assert (fits, latest) == ("B" * 10_000, "C" * 15_000)


@pytest.mark.parametrize("count", [3, 5, 6, 15])
def test_five_turns_stay(count):
    talk = Looking(COWAGENT)
    for nth in range(count):
        talk.say(*turn(f"Ask {nth}.", used(f"c{nth}", "read", "ok")))
    talk.say(Asked(f"Ask {count}."))
    asked = [text for text in cut(talk) if text.startswith("Ask")]
    assert asked == [f"Ask {nth}." for nth in range(max(0, count - 4), count + 1)]


def test_what_was_cut_stays_cut_in_later_requests():
    talk = Looking(COWAGENT)
    for nth in range(8):
        talk.say(*turn(f"Ask {nth}.", used(f"c{nth}", "read", "x" * 15_000)))
    talk.say(Asked("Now."))
    before = cut(talk)
    talk.say(Responded("So."), *turn("Next.", used("d", "read", "y" * 15_000)), Asked("Then."))
    after = talk.texts()
    assert after[: len(before)] == before
    assert "y" * 15_000 in after


def test_refused_once_more_only_the_latest_prompt_is_sent():
    system = {"content": "Be kind.", "part_kind": "system-prompt"}
    prompt = {"content": "Ask 0.", "part_kind": "user-prompt"}
    talk = Looking(COWAGENT)
    talk.put(json.dumps({"parts": [system, prompt], "kind": "request"}).encode())
    talk.say(Responded("Reply."), *turn("Ask 1."), Asked("Now."), *used("c", "read", "x"))
    assert cut(talk, 2) == ["Be kind.", "Now."]
    talk.say(Responded("So."), Asked("Next."))
    assert talk.texts() == ["Be kind.", "Now.", "So.", "Next."]


def test_delegated_work_of_turns_that_went_is_not_told():
    talk = Looking(COWAGENT)
    for nth in range(8):
        talk.say(Asked(f"Ask {nth}."))
        talk.say(Responded(f"told {nth}"), scope="/a")
        talk.say(Responded(f"Reply {nth}."))
    talk.say(Asked("Now."))
    told = [text for text in cut(talk) if "told" in text]
    assert told == [f"[/a]\ntold {nth}" for nth in range(4, 8)]
    assert [text for text in talk.texts() if "told" in text] == told


def test_profiles_without_an_emergency_know_nothing_of_refusals():
    talk = Looking(changed(COWAGENT, emergency=Emergency().model_dump()))
    for nth in range(8):
        talk.say(*turn(f"Ask {nth}.", used(f"c{nth}", "read", "x" * 15_000)))
    talk.say(Asked("Now."))
    assert cut(talk, 2) == talk.texts()
    assert len(talk.texts()) == 8 * 4 + 1
    assert [one.name for one in PROFILES.values() if one.emergency.on] == ["cowagent"]


@given(conversations("pydantic-ai", legal=True, max_moves=12), st.integers(1, 3))
def test_whatever_was_said_a_refused_request_is_legal_and_no_larger(messages, refused):
    small = changed(COWAGENT, emergency={"turns": 2, "result_chars": 60, "user_chars": 50})
    talk = Looking(small)
    for one in messages:
        talk.put(one)
    before = talk.request()
    after = talk.request(refused=refused)
    assert after.wire.problems(after.messages) == []
    assert after.plan.tokens <= before.plan.tokens
    again = talk.request()
    assert again.plan.tokens == after.plan.tokens


# The ladder, as a session climbs it.


async def refuse(talk, times):
    """The provider refuses so often; what was sent each time."""
    sent = [await talk.request()]
    for _ in range(times):
        sent.append(await talk.request(forced=True))  # noqa: PERF401 - one after the other
    return [texts(one) for one in sent]


async def test_the_ladder_remembers_then_cuts_then_clears(log):
    sink, write = Kept(), Writer()
    talk = await opened(log, sink, write=write)
    await talk.go(*work(*range(12), size=11_000))
    await talk.say(Asked("And now?"))
    whole, less, least = await refuse(talk, 2)
    assert len(whole) == 12 * 4 + 1
    # First everything is remembered, by who writes the folds, and nothing is folded.
    assert [(one.reason, one.text, one.messages) for one in sink.notes] == [
        ("overflow", write.words, 49)
    ]
    assert write.material.messages == 49
    # Then it is cut: four whole turns and the prompt, results to both ends.
    assert len(less) == 4 * 4 + 1
    assert [text for text in less if text.startswith("Please")] == [
        f"Please read src/part_{nth}.py." for nth in range(8, 12)
    ]
    assert max(map(len, less)) < 10_100
    # Then only the prompt is left.
    assert least == ["And now?"]
    assert (write.asked, len(sink.notes)) == (1, 1)
    await talk.answer(Responded("Well."))
    # The next turn begins there, and the log has everything.
    await talk.say(Asked("And then?"))
    assert texts(await talk.request()) == ["And now?", "Well.", "And then?"]
    assert len(await talk.values(Message)) == 12 * 4 + 3
    await talk.all_rebuilt()


async def test_a_cleared_view_stays_cleared_for_whoever_opens_the_session(log):
    talk = await opened(log)
    await talk.go(*work(*range(4)))
    await talk.say(Asked("And now?"))
    await refuse(talk, 2)
    started, complete = talk.events("session.compaction_start", "session.compaction_complete")
    assert isinstance(started, CompactionStart)
    assert isinstance(complete, CompactionComplete)
    assert (started.trigger, complete.success, complete.messages_removed) == ("overflow", True, 16)
    again = await opened(log)
    assert texts(await again.request()) == ["And now?"]


async def test_after_a_clear_everything_is_found_and_can_be_taken_back(log):
    sink = Kept()
    talk = await opened(log, sink)
    await talk.go(*work(*range(4)))
    await talk.say(Asked("And now?"))
    await refuse(talk, 2)
    found = await search(log, "value_2", session="s", reader=Reader.model())
    assert (found[0].standing, "value_2" in found[0].excerpt) == ("folded", True)
    assert "part_2" in sink.notes[0].text
    await talk.session.take_back()
    assert len(texts(await talk.request())) == 4 * 4 + 1


async def test_a_clear_in_the_middle_of_a_turn_begins_it_anew(log):
    talk = await opened(log)
    await talk.go(*chat(0, 1))
    await talk.say(Asked("Read both."))
    await talk.request()
    calls = (Call("a", "read", {}), Call("b", "read", {}))
    await talk.answer(Responded("I look.", calls))
    await talk.say(Answered(tuple(Return(one.id, "read", "x" * 9_000) for one in calls)))
    assert (await refuse(talk, 2))[-1] == ["Read both."]
    await talk.answer(Responded("Once more.", (Call("c", "read", {}),)))
    await talk.say(Answered((Return("c", "read", "short"),)))
    assert len(texts(await talk.request())) == 3


@pytest.mark.parametrize("fails", ["write", "sink", "both", "slow"])
async def test_what_cannot_be_remembered_is_told_and_stops_nothing(log, fails):
    sink = Kept(fails=fails in {"sink", "both"})
    write = Writer(fails=fails in {"write", "both"}, slow=fails == "slow")
    profile = changed(COWAGENT, fold={"wait": 0.05})
    talk = await opened(log, sink, write=write, profile=profile)
    await talk.go(*work(*range(8)))
    await talk.say(Asked("And now?"))
    _, less, least = await refuse(talk, 2)
    assert (len(less), least) == (17, ["And now?"])
    failed = [one for one in talk.events("session.compaction_complete") if one.error]
    if sink.fails:
        assert [one.error for one in failed] == [
            "it was not remembered: NotRemembered: The disk is gone."
        ]
    else:
        assert failed == []
        [note] = sink.notes
        assert note.reason == "overflow"
        assert '"And now?"' in note.text  # in the log's own words


async def test_what_is_said_beside_system_content_is_remembered_too(log):
    sink = Kept()
    talk = await opened(log, sink)
    system = {"content": "Be kind.", "part_kind": "system-prompt"}
    prompt = {"content": "Never push.", "part_kind": "user-prompt"}
    await talk.session.say(json.dumps({"parts": [system, prompt], "kind": "request"}).encode())
    await talk.request()
    await talk.answer(Responded("Well."))
    await talk.go(*work(*range(3)))
    await talk.say(Asked("And now?"))
    assert (await refuse(talk, 2))[-1] == ["Be kind.", "And now?"]
    assert '"Never push."' in sink.notes[0].text
    assert "Be kind" not in sink.notes[0].text


async def test_without_a_memory_the_ladder_is_the_same(log):
    talk = await opened(log, write=Writer())
    await talk.go(*work(*range(8)))
    await talk.say(Asked("And now?"))
    assert [len(one) for one in await refuse(talk, 2)] == [33, 17, 1]


async def test_each_refusal_is_answered_with_less_though_nothing_is_long(log):
    talk = await opened(log, Kept())
    await talk.go(*chat(0, 1))
    await talk.say(Asked("And now?"))
    sizes = [sum(map(len, one)) for one in await refuse(talk, 2)]
    assert sizes == sorted(set(sizes), reverse=True)


async def test_a_prompt_that_is_nearly_all_of_it_is_tried_alone(log):
    talk = await opened(log)
    await talk.go(*chat(0, 1, 2))
    long = "Look at this. " * 1_000
    await talk.say(Asked(long))
    assert (await refuse(talk, 1))[-1] == [long]
    with pytest.raises(ViewTooLarge):
        await talk.request(forced=True)


@pytest.mark.req("R081", "R140")
async def test_an_agent_goes_on_with_its_prompt_when_all_else_is_refused():
    body = json.dumps({"error": {"message": "prompt is too long", "type": "invalid_request_error"}})
    refused = Refused(400, body)
    said = [Said(f"Answer {nth}.") for nth in range(8)]
    note = Said("# The goal\n- The user asks eight questions, and each is answered.")
    script = Script(*said, refused, note, refused, Said("Good."), Said("Better."))
    sink = Kept()
    async with Refold(profile="cowagent", memory=sink) as memory:
        agent = Agent(provider_model("anthropic", script), capabilities=[memory])
        for nth in range(8):
            await agent.run(f"Question {nth}?", conversation_id="c")
        assert (await agent.run("And now?", conversation_id="c")).output == "Good."
        assert (await agent.run("And then?", conversation_id="c")).output == "Better."
        words = await logged(memory, "c")
    assert [len(one["messages"]) for one in script.received[8:]] == [17, 1, 9, 1, 3]
    [noted] = sink.notes
    assert (noted.reason, "eight questions" in noted.text) == ("overflow", True)
    assert len(words) == 20


async def test_a_fold_that_is_under_way_shows_nothing_after_a_clear(log):
    write = Writer(slow=True)
    talk = await opened(log, write=write)
    await talk.go(*chat(*range(21)))
    await talk.say(Asked("And now?"))
    assert len((await log.visible("s", last=0)).outline.running) == 1
    assert (await refuse(talk, 2))[-1] == ["And now?"]
    write.go.set()
    await talk.settled()
    assert texts(await talk.request()) == ["And now?"]
    assert (await talk.folds())[1:] == (1, 1)


async def test_the_next_overflow_is_an_overflow_of_its_own(log):
    sink = Kept()
    talk = await opened(log, sink)
    for nth in range(2):
        await talk.go(*work(*range(10 * nth, 10 * nth + 6)))
        await talk.say(Asked(f"Now {nth}?"))
        assert (await refuse(talk, 2))[-1] == [f"Now {nth}?"]
        await talk.answer(Responded("Well."))
    assert [one.messages for one in sink.notes] == [25, 24 + 27]
    assert len({one.digest for one in sink.notes}) == 2


async def test_a_delegation_is_no_emergency(log):
    talk = await opened(log, Kept())
    await talk.go(*chat(0))
    inner = await opened(log, sink := Kept(), scope="/a")
    await inner.say(Asked("Look around."))
    sent = await inner.session.request()
    assert sent.messages
    assert inner.session._emergencies.on is False
    assert sink.notes == []
