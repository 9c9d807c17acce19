"""The board, from one chat to the next: what one session leaves, a later one is told."""

import re
import time

import pytest
from terminal.pieces import Call

FACT = "The tests run with make check."


def answers(asked):
    """Who has the tool uses it, once; all others are told the same."""
    tools = [one["function"]["name"] for one in asked.body.get("tools", ())]
    if "context_board" not in tools:
        return FACT
    if asked.messages[-1]["role"] == "tool":
        return "done"
    [entry, *_] = re.findall(r"\[entry (\d+)\] assistant", str(asked.messages))
    return [Call("context_board", {"action": "add", "text": FACT, "entries": [int(entry)]})]


@pytest.mark.req("R095")
def test_what_one_session_leaves_the_next_is_told(talk):
    talk.provider.otherwise = answers
    talk.start("--profile", "copilot")
    for prompt in ("How do the tests run?", "Are you sure?", "Well then."):
        talk.say(prompt, FACT)
        talk.run("/history", "turn")
    talk.leave()
    assert "worth keeping goes to this branch's board" in talk.terminal.everything()
    talk.provider.wait_until(lambda: talk.provider.asked[-1].messages[-1]["role"] == "tool")
    system = []
    for nth in range(20):  # it is written a moment later
        talk.start("--profile", "copilot", f"later-{nth}")
        talk.say("Hello.", FACT)
        system = [one["content"] for one in talk.provider.asked[-1].messages[:-1]]
        if len(system) > 1:
            break
        time.sleep(0.2)
    assert system[-1].endswith(f"no instructions:\n- {FACT}")
    assert FACT in talk.run("/board", "The board of home")
