"""Coming back: after leaving, after a crash, in another terminal."""

import json
import re

import pytest
from terminal.chatting_in import PROMPT, piped
from terminal.pieces import Gate


def names(talk):
    """The sessions there are, the last used first."""
    done = piped(talk, "sessions", "--json")
    assert done.returncode == 0, done.stderr
    return [one["name"] for one in json.loads(done.stdout)]


@pytest.mark.req("R097", "R115")
def test_nothing_said_is_lost_when_the_power_fails(talk, snapshot):
    talk.start()
    talk.say("The code is 4711", "You said: The code is 4711")
    talk.provider.script += [["Half an ", Gate("never"), "answer"]]
    talk.type("Say something long")
    talk.terminal.wait_for("Half an")
    talk.terminal.kill9()

    words = ["refold", "chat", "--base-url", talk.provider.url, "-m", "local"]
    assert piped(talk, *words[1:], "-p", "Elsewhere: apples").returncode == 0
    env = {"REFOLD_STORE": f"sqlite:///{talk.store}"}
    talk.terminal.start([*words, "--resume"], env=env)
    talk.terminal.wait_for("Elsewhere: apples", timeout=120)
    assert talk.steady(talk.terminal.wait_until_still()) == snapshot(name="picker, 80x24")
    talk.terminal.resize(200, 60)
    talk.terminal.wait_for("│")
    assert talk.steady(talk.terminal.wait_until_still()) == snapshot(name="picker, 200x60")
    talk.terminal.type("code")
    talk.terminal.wait_for("1 of 2")
    talk.terminal.press("Enter")
    talk.terminal.wait_for("Say something long")
    assert talk.steady(talk.idle()) == snapshot(name="gone on with")
    talk.say("What is the code?", "You said: What is the code?")
    sent = "\n".join(str(one["content"]) for one in talk.provider.asked[-1].messages)
    assert "The code is 4711" in sent
    assert "Say something long" in sent
    assert "apples" not in sent
    hint = talk.leave()
    assert re.match(r"--resume \d{4}-\d\d-\d\d-[0-9a-f]{6} ", hint)
    assert "code" not in hint.partition("--store")[0]  # a name holds no word of what was said


def test_two_terminals_talk_in_one_session(talks, snapshot):
    one = talks()
    one.start("shared")
    one.say("I am the first", "You said: I am the first")
    two = talks(one)
    two.start("shared")
    assert "I am the first" in two.terminal.screen()
    two.say("I am the second", "You said: I am the second")
    one.terminal.wait_for("You said: I am the second")
    assert one.steady(one.idle()) == snapshot(name="the first")

    one.provider.script += [["Slowly, ", Gate("slow"), "but surely."]]
    one.type("Take your time")
    one.provider.wait_for_gate("slow")
    two.terminal.wait_for("Take your time")
    two.type("Me, too")
    two.terminal.wait_for("waiting for another terminal")
    assert two.steady(two.settled()) == snapshot(name="the second waits")
    assert not any(asked.prompt == "Me, too" for asked in one.provider.asked)
    one.provider.release("slow")
    two.terminal.wait_for("You said: Me, too")
    one.terminal.wait_for("You said: Me, too")
    one.idle()
    two.idle()
    two.terminal.wait_for(re.compile(r"Slowly, but surely\."), scrolled=True)

    sent = [(said["role"], said["content"]) for said in one.provider.asked[-1].messages]
    talked = [said for role, said in sent if role in {"user", "assistant"}]
    assert talked == [
        "I am the first",
        "You said: I am the first",
        "I am the second",
        "You said: I am the second",
        "Take your time",
        "Slowly, but surely.",
        "Me, too",
    ]
    assert names(one) == ["shared"]
    for seen in (one.terminal.everything(), two.terminal.everything()):
        assert seen.count("Me, too") == 2
        assert seen.count(f"{PROMPT}Take your time") == 1
    in_order(
        two.terminal.everything(),
        f"From another terminal:\n{PROMPT}Take your time",
        f"{PROMPT}Me, too",
        "Answer in another terminal:\nSlowly, but surely.",
        "Answer to your message:",
        "You said: Me, too",
    )
    in_order(
        one.terminal.everything(),
        f"{PROMPT}Take your time",
        "Slowly, but surely.",
        f"From another terminal:\n{PROMPT}Me, too",
        "Answer in another terminal:\nYou said: Me, too",
    )


def in_order(shown, *wanted):
    """Check that these stand there, one after the other, and each once."""
    places = [shown.find(text) for text in wanted]
    assert -1 not in places, (wanted[places.index(-1)], shown)
    assert places == sorted(places), shown


def test_the_same_words_from_two_terminals_are_told_apart(talks):
    one = talks()
    one.provider.script += [
        ["First ", Gate("first"), "of all."],
        ["Then ", Gate("second"), "this one."],
    ]
    one.start("shared")
    one.type("yes")
    one.provider.wait_for_gate("first")
    two = talks(one)
    two.start("shared")
    two.type("yes")
    two.terminal.wait_for("waiting for another terminal")
    one.provider.release("first")
    one.provider.wait_for_gate("second")
    two.terminal.wait_for("Then")
    one.terminal.wait_for("From another terminal:")
    one.provider.release("second")
    two.terminal.wait_for("this one.")
    one.terminal.wait_for("Then this one.")
    in_order(
        two.terminal.everything(),
        "Answer in another terminal:\nFirst of all.",
        "Answer to your message:",
        "Then this one.",
    )
    in_order(
        one.terminal.everything(),
        f"{PROMPT}yes",
        "First of all.",
        f"From another terminal:\n{PROMPT}yes",
        "Answer in another terminal:\nThen this one.",
    )
