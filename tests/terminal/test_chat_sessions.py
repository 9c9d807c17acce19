"""Coming back: after leaving, after a crash, in another terminal."""

import json
import os
import re
from pathlib import Path

import pytest
from terminal.chatting_in import PROMPT, piped
from terminal.pieces import Call, Gate


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
    talk.shows(snapshot(name="picker, 80x24"))
    talk.terminal.resize(200, 60)
    talk.terminal.wait_for("│")
    talk.shows(snapshot(name="picker, 200x60"))
    talk.terminal.type("code")
    talk.terminal.wait_for("1 of 2")
    talk.terminal.press("Enter")
    talk.terminal.wait_for("Say something long")
    talk.shows(snapshot(name="gone on with"))
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
    one.shows(snapshot(name="the first"))

    one.provider.script += [["Slowly, ", Gate("slow"), "but surely."]]
    one.type("Take your time")
    one.provider.wait_for_gate("slow")
    two.terminal.wait_for("Take your time")
    two.type("Me, too")
    two.terminal.wait_for("waiting for another terminal")
    two.shows(snapshot(name="the second waits"))
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


def test_a_resumed_chat_shows_whole_exchanges_with_their_tools(talk):
    notes = talk.terminal.home / "notes"
    notes.mkdir()
    (notes / "a.txt").write_text("one\ntwo\nthree\n", "utf-8")
    talk.start("talk", "--files", str(notes))
    talk.say("The first", "You said: The first")
    talk.say("The second", "You said: The second")
    talk.provider.script += [[Call("read_file", {"path": "a.txt"})], "It has **three** lines."]
    talk.say("How long is it?", "It has three lines.")
    talk.say("Thanks", "You said: Thanks")
    calls = re.findall(r"● read_file.*\n  └ \d+ lines", talk.terminal.everything())
    talk.leave()

    screen = talk.start("--resume", "talk", "--files", str(notes))
    in_order(
        screen,
        "… 2 earlier messages (refold show talk ",
        f"{PROMPT}The second",
        "You said: The second",
        f"{PROMPT}How long is it?",
        *calls,
        "It has three lines.",
        f"{PROMPT}Thanks",
        "You said: Thanks",
    )
    assert len(calls) == 1
    assert "The first" not in screen


@pytest.fixture
def in_shell(talk):
    """A chat that a shell started, as people do."""
    env = {"REFOLD_STORE": f"sqlite:///{talk.store}", "PS1": "shell: "}
    talk.terminal.start("exec sh -i", env=env)
    talk.terminal.wait_for("shell:")
    talk.type(f"refold chat talk --base-url {talk.provider.url} -m local")
    talk.terminal.wait_for("nothing said yet")
    return talk


def suspend(talk):
    prompts = talk.terminal.everything().count("shell:")
    talk.terminal.press("C-z")
    talk.terminal.wait_for(lambda shown: shown.count("shell:") > prompts, scrolled=True)


def test_a_suspended_chat_goes_on_where_it_was(in_shell):
    talk = in_shell
    talk.terminal.type("half a line")
    talk.terminal.wait_for("half a line")
    suspend(talk)
    talk.type("echo typed in the $((1 + 1))nd program")
    talk.terminal.wait_for("typed in the 2nd program")
    talk.type("fg")
    talk.terminal.wait_for(f"{PROMPT}half a line")
    talk.say(" more", "You said: half a line more")

    talk.provider.script += [["Slowly ", Gate("slow"), "said."]]
    talk.type("Take your time")
    talk.provider.wait_for_gate("slow")
    talk.terminal.wait_for("Slowly")
    suspend(talk)
    talk.terminal.resize(60, 20)
    talk.provider.release("slow")
    talk.type("fg")
    talk.terminal.wait_for("Slowly said.")
    talk.terminal.wait_for(lambda screen: "assumed" in screen.splitlines()[-1])
    talk.terminal.resize(100, 30)
    talk.say("Still there?", "You said: Still there?")
    assert talk.terminal.everything().count(f"{PROMPT}Still there?") == 1


def test_a_closed_terminal_ends_the_chat_and_keeps_what_was_said(talk):
    talk.start("talk")
    talk.provider.script += [["Half an ", Gate("never"), "answer"]]
    talk.type("Say something long")
    talk.terminal.wait_for("Half an")
    pid = talk.terminal.pid()
    talk.terminal.close()  # the system sends SIGHUP
    talk.provider.wait_until(lambda: not running(pid))
    shown = piped(talk, "show", "talk").stdout
    assert "Say something long" in shown
    assert "Half an" in shown


def running(pid):
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or ") Z " not in stat.read_text()  # nobody may wait for it
    except (ProcessLookupError, FileNotFoundError):
        return False


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


def test_commands_and_folds_of_another_terminal_are_shown_in_order(talks):
    one = talks(window=20_000)
    one.start("shared")
    for nth in range(4):
        one.say(f"{nth} " + 60 * "word ", f"You said: {nth}")
    two = talks(one)
    two.start("shared")
    two.say("Before", "You said: Before")
    two.type("/compact")
    two.terminal.wait_for("Fold now?")
    two.type("y")
    two.terminal.wait_for("as fold 1.")
    two.say("/undo", "Took back the newest fold")
    two.say("After", "You said: After")
    one.terminal.wait_for("You said: After")
    seen = one.idle() and one.terminal.everything()
    places = [
        seen.index(each)
        for each in (
            "You said: Before",
            "In another process: the conversation is being folded.",
            "In another process: conversation folded: ",
            "In another terminal: the last step was taken back (/undo).",
            "You said: After",
        )
    ]
    assert places == sorted(places), seen
    assert "another process" not in two.terminal.everything()
