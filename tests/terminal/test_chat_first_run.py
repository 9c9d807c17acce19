"""The first minute with `refold chat`, in every kind of terminal, and without one."""

import json
import re

import pytest
from terminal.chatting_in import PROMPT, piped
from terminal.pieces import Refuse

_CODES = re.compile(r"\x1b\[([\d;]*)m")
_COLOR = re.compile(r"(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])")


def colored(screen: str) -> bool:
    """Whether anything on it has a color; bold and faint are none."""
    return any(
        _COLOR.fullmatch(one) for codes in _CODES.findall(screen) for one in codes.split(";")
    )


def test_the_first_run_explains_itself_in_three_lines(talk, snapshot):
    assert talk.steady(talk.start()) == snapshot(name="80x24")
    talk.say("hello", "You said: hello")
    assert colored(talk.terminal.screen(colors=True))
    talk.leave()

    greeted = talk.start(columns=200, rows=60, env={"NO_COLOR": "1"})
    assert "Every word is kept" not in greeted  # it was said the first time
    talk.say("| a | b |\n|---|---|\n| `1` | **2** |", "You said:")
    assert not colored(talk.terminal.screen(colors=True))
    talk.shows(snapshot(name="200x60, later"))


@pytest.mark.parametrize("how", ["--plain", "TERM=dumb"])
def test_plain_lines_for_those_who_cannot_see_a_screen(talk, snapshot, how):
    words = ["refold", "chat", "--base-url", talk.provider.url, "-m", "local"]
    words = [*words, how] if how.startswith("--") else ["env", how, *words]
    talk.provider.script += ["# A title\n\nSome *words*, and `code`."]
    talk.terminal.start(words, env={"REFOLD_STORE": f"sqlite:///{talk.store}"})
    talk.terminal.wait_for("You:")
    talk.type("hello")
    talk.terminal.wait_for(lambda screen: screen.count("You:") == 2)
    assert "\x1b" not in talk.terminal.everything(colors=True)
    talk.shows(snapshot(name="plain"))
    talk.terminal.press("C-d")
    assert talk.terminal.wait_until_ended() == 0


def test_no_key_and_no_server_names_three_ways_on(talk, snapshot):
    talk.terminal.start(["refold", "chat"], env={"REFOLD_STORE": ""})
    assert talk.terminal.wait_until_ended() == 1
    shown = talk.terminal.everything()
    for way in ("ANTHROPIC_API_KEY", "--base-url", "refold demo"):
        assert way in shown
    assert "Traceback" not in shown
    assert talk.steady(shown[shown.index("error[") :].partition("Pane is dead")[0]) == snapshot


def test_a_pipe_is_talked_with_line_by_line(talk):
    words = ("chat", "--base-url", talk.provider.url, "-m", "local")
    done = piped(talk, *words, given="first thing\nsecond thing\n/history\n")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    first, second = (done.stdout.index(f"You said: {nth} thing") for nth in ("first", "second"))
    assert first < second < done.stdout.index("2 turns, 4 messages")


def test_one_prompt_and_its_answer_for_scripts(talk):
    words = ("chat", "--base-url", talk.provider.url, "-m", "local")
    done = piped(talk, *words, "-p", "Say hi", "--json", given="of the pipe")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["text"], told["ended"]) == ("You said: Say hi\n\nof the pipe", "answered")
    assert talk.provider.asked[-1].prompt == "Say hi\n\nof the pipe"

    talk.provider.script += 9 * [[Refuse(401, '{"error": {"message": "no such key"}}')]]
    failed = piped(talk, *words, "-p", "Again", "--json")
    assert failed.returncode == 1
    told = json.loads(failed.stdout.splitlines()[-1])
    assert (told["text"], told["ended"], told["error"]["code"]) == ("", "failed", "provider")
    assert "no such key" in told["error"]["what"]
    assert told["error"]["fix"]
    assert PROMPT not in done.stdout + failed.stdout
