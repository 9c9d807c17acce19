"""What systems say in the middle of a conversation, where a provider wants it in one place only."""

import json
from random import Random

import pytest

from refold.log import Span
from refold.models.catalog import ModelSettings
from refold.models.experience import Setup
from refold.recall.text import rebuilt
from refold.session import Session
from refold.stores import MemoryStore
from refold.view import PROFILES
from refold.wire import wire_for

WIRE = wire_for("anthropic-messages")
WORDS = ["read", "the", "next", "part", "of", "the", "plan", "and", "say", "what", "it", "is"]


def message(role, content):
    return json.dumps({"role": role, "content": content}).encode()


class Agent:
    """A client whose host speaks up now and then, as Anthropic allows: before the model does."""

    def __init__(self, seed):
        self.random = Random(seed)  # noqa: S311 - the same in every run
        self.reminded = []
        self.calls = 0

    def words(self, most):
        return " ".join(self.random.choices(WORDS, k=self.random.randint(1, most)))

    def reminder(self):
        if self.random.random() < 0.4:
            text = f"Reminder {len(self.reminded)}: {self.words(9)}"
            self.reminded.append(text)
            blocks = [{"type": "text", "text": text}]
            yield message("system", self.random.choice([text, blocks]))

    def asks(self):
        yield message("user", self.words(120))
        yield from self.reminder()

    def returns(self, call):
        text = self.words(150)
        yield message("user", [{"type": "tool_result", "tool_use_id": call, "content": text}])
        yield from self.reminder()

    def calls_or_answers(self):
        if self.random.random() < 0.6:
            self.calls += 1
            block = {"type": "tool_use", "id": f"c{self.calls}", "name": "look", "input": {}}
            return message("assistant", [block]), f"c{self.calls}"
        return message("assistant", self.words(60)), None


@pytest.mark.parametrize("profile", ["balanced", "copilot", "inkeep", "cowagent", "co-cli"])
@pytest.mark.parametrize("seed", range(3))
async def test_requests_are_legal_and_systems_are_heard_whatever_was_folded(profile, seed):
    agent = Agent(seed)
    models = {"small": ModelSettings(window=3_000, output=200)}
    setup = Setup.of("small", PROFILES[profile], models=models)
    async with MemoryStore() as store:
        log = store.log()
        session = await Session.open(log, "s", setup, format="anthropic-messages")
        for turn in range(14):
            await session.say(*agent.asks())
            while True:
                request = await session.request()
                assert WIRE.problems(request.messages) == []
                assert list(await rebuilt(log, "s", session.record)) == list(request.messages)
                heard = [
                    one for one in map(json.loads, request.messages) if one["role"] == "system"
                ]
                text = json.dumps(heard)
                assert [one for one in agent.reminded if json.dumps(one)[1:-1] not in text] == []
                if agent.random.random() < 0.2:  # the model is not heard, and the user goes on
                    break
                answer, call = agent.calls_or_answers()
                await session.answer(answer)
                if call is None:
                    break
                await session.say(*agent.returns(call))
            if turn == 9 and session.inputs.foldings:
                await session.unfold(Span(3, 6))
        assert session.shows_less
        await session.close()
