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
    assert "the-code-is-4711" in talk.leave()


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
