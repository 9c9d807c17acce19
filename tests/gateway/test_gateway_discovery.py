"""Clients that send their history in all the ways that clients do: each has its own session.

A client is right if the session that its answer names holds its own history and the answer, and
nothing of anybody else's.
"""

import json
from random import Random

import pytest
from amounts import amount, seed_of
from gateway_world import CHAT, MESSAGES, PATHS, RESPONSES, World

from refold.gateway.dialects import DIALECTS
from refold.testing.gateway.resending import sent_again
from refold.testing.upstream import Call, Refusal, Reply

WORLDS, STEPS = amount(few=(1, 25), quick=(2, 25), ci=(3, 40), nightly=(20, 60), thorough=(200, 80))
KEYS = {CHAT: "messages", RESPONSES: "input", MESSAGES: "messages"}
TOO_MANY = {"error": {"message": "Too many requests.", "type": "rate_limit_error"}}


class Client:
    """One conversation, as a client keeps it."""

    def __init__(self, world, path, random, name):
        self.world, self.path, self.random, self.name = world, path, random, name
        self.history = [self.prompt("hi")]
        self.session = None
        self.answered = False
        self.expected = None
        self.prefilled = False

    def prompt(self, text):
        return {"role": "user", "content": text}

    async def ask(self):
        """Send the history in some form, and check where it went."""
        dialect = DIALECTS[self.path]
        self.prefilled = dialect.fingerprint(json.dumps(self.history[-1]).encode()).answers
        sent = sent_again(dialect.name, self.random, self.history)
        stream = self.random.random() < 0.5
        body = {"model": "m", KEYS[self.path]: sent, "stream": stream, "max_tokens": 50}
        answer = await self.world.ask(self.path, body)
        self.answered = answer.status_code == 200
        if not self.answered:
            return
        before, self.session = self.session, answer.headers["refold-session"]
        if self.expected is not None and before is not None:
            assert (self.session == before) is (self.expected == "same")
        self.expected = None
        held = await self.world.said(self.session)
        like = [dialect.fingerprint(json.dumps(one).encode()).content for one in held]
        mine = [dialect.fingerprint(json.dumps(one).encode()).content for one in self.history]
        assert [*filter(None, like)][: len([*filter(None, mine)])] == [*filter(None, mine)]
        words = json.dumps(held)
        for other in self.world.clients:
            assert other is self or other.name not in words
        self.history = held

    def new_of(self, held):
        """How many messages the answer has: those at the end that a model made."""
        dialect, count = DIALECTS[self.path], 0
        for one in reversed(held):
            if not dialect.fingerprint(json.dumps(one).encode()).answers:
                break
            count += 1
        return count

    def go_on(self):
        """Answer what was called, or say something that is one's own."""
        self.expect_same()
        calls = [call for one in self.history[-3:] for call in calls_of(self.path, one)]
        done = {result for one in self.history for result in results_of(self.path, one)}
        for call in calls:
            if call not in done:
                self.history.append(result_for(self.path, call, self.name))
        if not calls or set(calls) <= done:
            self.history.append(self.prompt(f"{self.name} says {self.random.random()}"))

    def edit(self):
        """Write something said long ago anew, and leave out all that came after."""
        places = [at for at, one in enumerate(self.history) if one.get("role") == "user"]
        places = [at for at in places if "tool_result" not in json.dumps(self.history[at])]
        at = self.random.choice(places)
        self.expected = "other"
        self.history = [
            *self.history[:at],
            self.prompt(f"{self.name} edits {self.random.random()}"),
        ]

    def go_back(self):
        """Have something answered anew that was asked long ago."""
        places = [at for at, one in enumerate(self.history) if one.get("role") == "user"][:-1]
        places = [at for at in places if self.name in json.dumps(self.history[: at + 1])]
        if places:
            self.expected = "other"
            self.history = self.history[: self.random.choice(places) + 1]

    def lose(self):
        """The answer was lost on its way: it is asked again."""
        del self.history[-self.new_of(self.history) :]
        if not self.prefilled:  # else two answers were lost
            self.expect_same()

    def expect_same(self):
        """Where something was answered, and what is said is one's own, it goes on there."""
        fingerprint = DIALECTS[self.path].fingerprint
        told = any(fingerprint(json.dumps(one).encode()).answers for one in self.history)
        if told and self.name in json.dumps(self.history):
            self.expected = "same"


def calls_of(path, message):
    if path == CHAT:
        return [one["id"] for one in message.get("tool_calls") or []]
    if path == RESPONSES:
        return [message["call_id"]] if message.get("type") == "function_call" else []
    content = message["content"] if isinstance(message["content"], list) else []
    return [one["id"] for one in content if one.get("type") == "tool_use"]


def results_of(path, message):
    if path == CHAT:
        return [message["tool_call_id"]] if message["role"] == "tool" else []
    if path == RESPONSES:
        return [message["call_id"]] if message.get("type") == "function_call_output" else []
    content = message["content"] if isinstance(message["content"], list) else []
    return [one["tool_use_id"] for one in content if one.get("type") == "tool_result"]


def result_for(path, call, name):
    if path == CHAT:
        return {"role": "tool", "tool_call_id": call, "content": f"found by {name}"}
    if path == RESPONSES:
        return {"type": "function_call_output", "call_id": call, "output": f"found by {name}"}
    block = {"type": "tool_result", "tool_use_id": call, "content": f"found by {name}"}
    return {"role": "user", "content": [block]}


def replies(random):
    """Answers: to all who say hi the same, now and then a call, a thought, or a refusal."""
    count = iter(range(10_000))

    def reply(got):
        nth = next(count)
        said = got.body.get("messages") or got.body.get("input")
        if random.random() < 0.1:
            return Refusal(429, TOO_MANY)
        if len(said) == 1:
            return Reply("Hello! How can I help?")
        thought = "Let me think." if random.random() < 0.3 else ""
        if random.random() < 0.3:
            return Reply(
                "", (Call(f"call_{nth}", "look", {"b": [1.5, nth], "a": "x"}),), thought=thought
            )
        return Reply(random.choice(["Yes.", "No.", f"Answer {nth}."]), thought=thought)

    return reply


@pytest.mark.parametrize("seed", range(WORLDS))
@pytest.mark.parametrize("path", PATHS)
async def test_each_has_its_own_session(path, seed):
    name = f"{path} {seed}"
    random = Random(seed_of(name))  # noqa: S311 - worlds, not secrets
    world = World(replies(random))
    world.clients = [Client(world, path, random, f"client-{nth}-x") for nth in range(4)]
    try:
        for _ in range(STEPS):
            client = random.choice(world.clients)
            act = random.random()
            if client.answered and act < 0.6:
                client.go_on()
            elif client.answered and act < 0.7:
                client.edit()
            elif client.answered and act < 0.8:
                client.go_back()
            elif client.answered and act < 0.9:
                client.lose()
            await client.ask()
    finally:
        await world.aclose()
