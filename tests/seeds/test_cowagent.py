"""The profile `cowagent`: whole turns, and what becomes of the older ones."""

import json

import pytest
from shown import Talk, changed, turn, used

from refold.testing.wire import Answered, Asked, Call, Responded, Return, Thought
from refold.view.profiles import COWAGENT


def turns(count, result="ok", first=0):
    return [
        one
        for nth in range(first, first + count)
        for one in turn(f"Ask {nth}.", used(f"c{nth}", "read", result), reply=f"Reply {nth}.")
    ]


def test_cowagent_keeps_both_ends_of_results_over_20000_characters():
    halves = "A" * 10_000, "B" * 10_000
    talk = Talk(COWAGENT, *turns(1, "".join(halves)), *turns(1, "-".join(halves), 1))
    talk.say(*turns(1, ("-" * 80).join(halves), 2), Asked("Now."))
    fits, barely, long = talk.results()
    assert fits == "".join(halves)
    assert barely == "\n[…truncated, 20001 chars total…]\n".join(halves)  # the source's rule
    assert long == "\n[…truncated, 20080 chars total…]\n".join(halves)


def test_what_is_cut_to_both_ends_already_is_not_cut_again():
    always = changed(COWAGENT, trim={"inflate": True})
    [once] = Talk(always, *turns(1, "x" * 90_000), Asked("Now.")).results()
    assert "\n[…truncated, 90000 chars total…]\n" in once
    assert Talk(always, *turns(1, once), Asked("Now.")).results() == [once]


def test_cowagent_leaves_results_of_the_current_turn_alone():
    talk = Talk(COWAGENT, *turns(1), Asked("Now."))
    for nth in range(3):
        talk.say(*used(f"now{nth}", "read", "C" * 30_000))
    assert [len(text) for text in talk.results()] == [2, 30_000, 30_000, 30_000]
    talk.say(Responded("Done."), Asked("Next."))
    assert [len(text) for text in talk.results()] == [2, 20_034, 20_034, 20_034]


def test_cowagent_halves_the_turns_when_there_are_more_than_20():
    talk = Talk(COWAGENT, *turns(19), Asked("Ask 19."))
    assert len(talk.shapes()) == 19 * 4 + 1
    talk.say(Responded("Reply 19."), Asked("Ask 20."))
    texts = talk.texts()
    assert texts[0] == "Ask 10."
    assert [text for text in texts if text.startswith("Ask")] == [
        f"Ask {n}." for n in range(10, 21)
    ]
    assert len(talk.shapes()) == 9 * 4 + 3


def test_cowagent_counts_turns_also_where_system_content_is_left_of_one():
    system = {"content": "Be kind.", "part_kind": "system-prompt"}
    prompt = {"content": "Ask 0.", "part_kind": "user-prompt"}
    talk = Talk(COWAGENT)
    talk.put(json.dumps({"parts": [system, prompt], "kind": "request"}).encode())
    talk.say(Responded("Reply 0."), *turns(19, first=1), Asked("Ask 20."))
    assert talk.texts()[:2] == ["Be kind.", "Ask 10."]
    talk.say(Responded("Reply 20."), *turns(9, first=21))
    assert talk.texts()[:2] == ["Be kind.", "Ask 10."]  # twenty turns
    talk.say(Asked("Ask 30."))
    assert talk.texts()[:2] == ["Be kind.", "Ask 20."]


def long_turns(count, tokens):
    """So many turns with so many tokens of results in all, and a new prompt."""
    return [
        one
        for nth in range(count)
        for one in turn(
            f"Ask {nth}.",
            *(used(f"c{nth}.{k}", "read", "x" * (tokens // count)) for k in range(4)),
            reply=f"Reply {nth}.",
        )
    ] + [Asked("And now?")]


def test_cowagent_reduces_fewer_than_5_turns_to_their_first_prompt_and_last_reply():
    assert len(Talk(COWAGENT, *long_turns(3, 49_000)).shapes()) == 3 * 10 + 1
    talk = Talk(COWAGENT, *long_turns(3, 50_100))
    assert talk.texts() == [
        *(text for nth in range(3) for text in (f"Ask {nth}.", f"Reply {nth}.")),
        "And now?",
    ]
    talk.say(*used("now", "read", "ok"))
    assert talk.texts()[-2:] == ["{}", "ok"]


def test_cowagent_trims_the_first_half_of_5_turns_or_more():
    assert len(Talk(COWAGENT, *long_turns(4, 49_000)).shapes()) == 4 * 10 + 1
    talk = Talk(COWAGENT, *long_turns(4, 50_100))  # with the new prompt, five
    assert [text for text in talk.texts() if text.startswith("A")] == [
        "Ask 2.",
        "Ask 3.",
        "And now?",
    ]
    assert len(talk.shapes()) == 2 * 10 + 1


def test_cowagent_looks_at_tokens_after_turns():
    talk = Talk(COWAGENT, *long_turns(20, 90_000))
    assert len(talk.shapes()) == 10 * 10 + 1
    talk = Talk(COWAGENT, *long_turns(20, 110_000))
    assert len(talk.shapes()) == 5 * 10 + 1


@pytest.mark.parametrize(("count", "tokens", "kept"), [(3, 50_100, []), (4, 50_100, [2, 3])])
def test_delegated_work_goes_with_the_steps_that_delegated_it(count, tokens, kept):
    talk = Talk(COWAGENT)
    for one in long_turns(count, tokens):
        talk.say(one)
        if isinstance(one, Asked) and one.text.startswith("Ask"):
            talk.say(Responded(f"told after {one.text}"), scope="/a")
    told = [text for text in talk.texts() if "told" in text]
    assert told == [f"[/a]\ntold after Ask {nth}." for nth in kept]
    assert [text for text in talk.texts() if "told" in text] == told


@pytest.mark.parametrize("signed", [True, False])
def test_a_reply_keeps_the_thought_that_its_provider_signed(signed):
    calls = tuple(Call(f"c{nth}", "read", {}) for nth in range(12))
    talk = Talk(COWAGENT, Asked("Look."), Responded("I look.", calls, Thought("So.", signed)))
    talk.say(Answered(tuple(Return(one.id, "read", "x" * 19_000) for one in calls)))
    talk.say(Responded("Found.", thought=Thought("Then.", signed)), Asked("And now?"))
    thought = ["Then."] if signed else []
    assert talk.texts() == ["Look.", *thought, "Found.", "And now?"]
