"""After folds, each reasoning item stands before its own output, or neither is sent."""

import pytest
from coding_agents import Agent, bench, scripted
from gateway_world import MESSAGES, RESPONSES

from refold.testing.upstream import Call, Reply

CALLS = 60
LONG = "what the tool found in this file, line by line. " * 40


def answers(text="", calls=1):
    return [
        Reply(
            text and f"{text} ({nth})",
            tuple(Call(f"call_{nth:02d}x{n}Zk7qPw", "shell", {"at": nth}) for n in range(calls)),
            thought=f"I think of step {nth}.",
        )
        for nth in range(CALLS)
    ]


def as_codex(messages):
    """Without ids and statuses, as Codex sends items back."""
    return [
        {key: one for key, one in item.items() if key not in {"id", "status"}} for item in messages
    ]


def as_pi(messages):
    return messages


def without_summary(messages):
    return [
        {**item, "summary": []} if item["type"] == "reasoning" else item
        for item in as_codex(messages)
    ]


def folds_of(sent):
    """How often the beginning of what was sent changed."""
    openings = [str(one.body["input"][:3]) for one in sent if "input" in one.body]
    return len(dict.fromkeys(openings)) - 1


@pytest.mark.parametrize("rewrite", [as_codex, as_pi, without_summary])
@pytest.mark.parametrize(("text", "calls"), [("", 1), ("I look at it.", 1), ("Both.", 3)])
async def test_reasoning_stands_before_its_own_output(rewrite, text, calls):
    async with bench(scripted(answers(text, calls)), window=16_000) as b:
        agent = Agent(b, RESPONSES, rewrite, result=lambda _: LONG)
        await agent.say("Read all of the files, please.")
        assert b.faults == []
        assert len(b.upstream.got) == CALLS + 1
        assert len(set(agent.served_by)) == 1
        assert folds_of(b.upstream.got) >= 3


@pytest.mark.parametrize(("text", "calls"), [("", 1), ("I look at it.", 3)])
async def test_thinking_goes_with_its_calls_and_signature(text, calls):
    async with bench(scripted(answers(text, calls)), window=16_000) as b:
        agent = Agent(b, MESSAGES, result=lambda _: LONG)
        await agent.say("Read all of the files, please.")
        assert b.faults == []
        assert len(b.upstream.got) == CALLS + 1
        assert len(set(agent.served_by)) == 1
