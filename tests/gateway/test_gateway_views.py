"""Long conversations in small windows: whatever a view shows, the upstream gets a request that is
legal, the client's own, and what the log says was sent.
"""

import json
import re
from random import Random
from types import SimpleNamespace

import pytest
from amounts import amount, seed_of
from gateway_world import CHAT, MESSAGES, PATHS, RESPONSES, World

from refold.errors import FoldError, InvalidInput
from refold.gateway.dialects import DIALECTS
from refold.gateway.dialects.cache_marks import marks_of
from refold.gateway.dialects.events import Events
from refold.gateway.history import match_rows
from refold.log import FoldCompleted, Span
from refold.models.catalog import ModelSettings
from refold.recall.text import rebuilt
from refold.testing.upstream import Call, Refusal, Reply
from refold.wire import wire_for

WORLDS, TURNS = amount(few=(1, 30), quick=(1, 30), ci=(2, 30), nightly=(10, 40), thorough=(60, 40))
KEYS = {CHAT: "messages", RESPONSES: "input", MESSAGES: "messages"}
WINDOWS = {"small": 7000, "smaller": 6000, "large": 24_000}
TOO_LONG = {
    "error": {
        "message": "This model's maximum context length is 6500 tokens. However, "
        "your messages resulted in 6900 tokens.",
        "code": "context_length_exceeded",
    }
}
WORDS = ["log", "keeps", "what", "was", "said", "and", "view", "shows", "some", "again", "every"]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5E"
MOST_MARKS = 4
CUT = re.compile(r"\n\[…[\d,]+ chars, cut to fit\]\n")


def words(random, most):
    return " ".join(random.choices(WORDS, k=random.randint(1, most)))


class Client:
    """One that keeps its history as a provider's own client does."""

    def __init__(self, world, path, random, *, strips):
        self.world, self.path, self.random = world, path, random
        self.dialect = DIALECTS[path]
        self.wire = wire_for(self.dialect.name)
        self.history = []
        self.session = None
        self.model = "small"
        self.tools = [self.tool("look")]
        self.strips = strips
        self.moved = 0
        self.edited = 0

    def tool(self, name):
        schema = {"type": "object", "properties": {"at": {"type": "integer"}}}
        match self.path:
            case "/v1/chat/completions":
                told = words(self.random, 9)
                function = {"name": name, "parameters": schema, "description": told}
                return {"type": "function", "function": function}
            case "/v1/responses":
                return {"type": "function", "name": name, "parameters": schema}
            case _:
                return {"name": name, "input_schema": schema}

    def say(self):
        """Something that the user says."""
        random, text = self.random, words(self.random, 300)
        kind = "input_text" if self.path == RESPONSES else "text"
        content = text
        if random.random() < 0.3:
            content = [{"type": kind, "text": text}]
            if random.random() < 0.5:
                content.insert(0, self.image())
            if random.random() < 0.2:
                content = [self.image()]
        self.history.append({"role": "user", "content": content})
        if self.path == CHAT and random.random() < 0.1:
            self.history.append({"role": "system", "content": words(random, 9)})
        if self.path == RESPONSES and random.random() < 0.1:
            self.history.append({"role": "developer", "content": words(random, 9)})
        if random.random() < 0.1:
            self.history.append({"role": "user", "content": words(random, 9)})

    def image(self):
        match self.path:
            case "/v1/chat/completions":
                return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
            case "/v1/responses":
                return {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
            case _:
                source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
                return {"type": "image", "source": source}

    def results(self, calls):
        """What the tools returned."""
        results = [words(self.random, self.random.choice([5, 500])) for _ in calls]
        if self.path == MESSAGES:
            blocks = [
                {"type": "tool_result", "tool_use_id": call, "content": text}
                for call, text in zip(calls, results, strict=True)
            ]
            if self.random.random() < 0.2:
                blocks[0]["content"] = [{"type": "text", "text": results[0]}, self.image()]
            if self.random.random() < 0.2:
                blocks.append({"type": "text", "text": words(self.random, 9)})
            return [{"role": "user", "content": blocks}]
        if self.path == RESPONSES:
            return [
                {"type": "function_call_output", "call_id": call, "output": text}
                for call, text in zip(calls, results, strict=True)
            ]
        return [
            {"role": "tool", "tool_call_id": call, "content": text}
            for call, text in zip(calls, results, strict=True)
        ]

    def sent(self):
        """The history as it is sent: thoughts may be left out, marks are on the newest."""
        messages = json.loads(json.dumps(self.history))
        if self.strips:
            messages = [stripped(self.path, one) for one in messages]
            messages = [one for one in messages if one]
        if self.path != RESPONSES:
            self.mark(messages)
        return messages

    def mark(self, messages):
        left = self.random.randint(0, 3)
        old = len(messages) // 3 if self.random.random() < 0.3 else len(messages)
        for message in reversed(messages[: old + 1]):
            if not left:
                return
            if message["role"] != "user":
                continue
            left -= 1
            if isinstance(message["content"], str):
                message["content"] = [{"type": "text", "text": message["content"]}]
            message["content"][-1]["cache_control"] = {"type": "ephemeral"}

    def body(self):
        random, system = self.random, f"Be brief. It is {self.random.random()}."
        messages = self.sent()
        body = {"model": self.model, KEYS[self.path]: messages, "stream": random.random() < 0.5}
        body |= {"tools": self.tools, "temperature": 1.5, "x_other": {"b": [1.0, None], "a": "ü"}}
        match self.path:
            case "/v1/chat/completions":
                role = random.choice(["system", "developer"])
                messages.insert(0, {"role": role, "content": system})
                body["max_completion_tokens"] = random.choice([50, 200])
            case "/v1/responses":
                body |= {"instructions": system, "store": False, "include": []}
            case _:
                mark = {"cache_control": {"type": "ephemeral"}}
                body["system"] = [{"type": "text", "text": system, **mark}]
                body["max_tokens"] = random.choice([50, 200])
        return body

    async def ask(self):
        """Send what was said, look at what reached the upstream; the calls of the answer."""
        body, before = self.body(), len(self.world.upstream.got)
        answer = await self.world.ask(self.path, body)
        assert answer.status_code == 200, answer.text[:300]
        for got in self.world.upstream.got[before:]:
            self.check(body, got)
        name, session = answer.headers["refold-request"], answer.headers["refold-session"]
        assert self.session in {None, session}
        self.session = session
        got = self.world.upstream.got[-1]
        if got.body != body:
            self.edited += 1
            await self.check_record(name, got)
        items = self.told(answer.content, stream=body["stream"])
        self.history += items
        return [call for one in items for call in calls_of(self.path, one)]

    def told(self, content, *, stream):
        if not stream:
            whole = self.dialect.answer(content)
        else:
            assembler = self.dialect.assembler()
            for event in Events().feed(content):
                assembler.take(event)
            whole = assembler.answer()
        assert whole.complete
        return [json.loads(one) for one in whole.payloads]

    def check(self, body, got):
        key = KEYS[self.path]
        sent = got.body
        assert {**sent, key: None} == {**body, key: None}
        ours, theirs = self.read(sent), self.read(json.loads(json.dumps(body)))
        assert self.wire.problems(ours) == []
        lead = len(sent[key]) - len(ours)
        assert sent[key][:lead] == body[key][:lead]
        assert is_own_or_cut_result(sent[key][-1], body[key][-1])
        if self.strips:
            kept = [stripped(self.path, one) for one in json.loads(got.raw)[key]]
            assert kept == sent[key]
        count = sum(len(marks_of(one)) for one in ours)
        had = [at for at, one in enumerate(theirs) if marks_of(one)]
        assert count <= sum(len(marks_of(one)) for one in theirs)
        assert bool(count) is bool(had)
        self.moved += bool(had) and not any(marks_of(one) for one in theirs if one in ours)
        if self.path == MESSAGES:
            assert count + 1 <= MOST_MARKS

    def read(self, body):
        return list(self.dialect.read(json.dumps(body).encode()).messages)

    async def check_record(self, name, got):
        session, seq = name.rsplit(":", 1)
        planned = await rebuilt(self.world.log, session, int(seq))
        fingerprint = self.dialect.fingerprint
        sent = [one.content for one in map(fingerprint, self.read(got.body)) if one.content]
        assert [one.content for one in map(fingerprint, planned) if one.content] == sent


def stripped(path, message):
    """The message without its thoughts."""
    if path == RESPONSES:
        return None if message.get("type") == "reasoning" else message
    message.pop("reasoning_content", None)
    if path == MESSAGES and message["role"] == "assistant" and isinstance(message["content"], list):
        message["content"] = [one for one in message["content"] if one["type"] != "thinking"]
    return message


def is_own_or_cut_result(sent, own):
    """Whether it is the client's message: whole, or a tool's results, of which some are cut.

    A refusal can teach so small a limit that nothing else is left to be cut.
    """
    results = own.get("role") == "tool" or own.get("type") == "function_call_output"
    if not results and isinstance(own.get("content"), list):
        kept = [one for one in own["content"] if one.get("type") != "tool_result"]
        results = [one for one in sent["content"] if one.get("type") != "tool_result"] == kept
    return sent == own or (results and is_cut(sent, own))


def is_cut(sent, own):
    if isinstance(sent, str) and isinstance(own, str) and (cut := CUT.search(sent)):
        return own.startswith(sent[: cut.start()]) and own.endswith(sent[cut.end() :])
    if isinstance(sent, dict) and isinstance(own, dict):
        return sent.keys() == own.keys() and all(is_cut(sent[key], own[key]) for key in own)
    if isinstance(sent, list) and isinstance(own, list) and len(sent) == len(own):
        return all(map(is_cut, sent, own))
    return sent == own


def calls_of(path, message):
    if path == CHAT:
        return [one["id"] for one in message.get("tool_calls") or []]
    if path == RESPONSES:
        return [message["call_id"]] if message.get("type") == "function_call" else []
    return [one["id"] for one in message["content"] if one.get("type") == "tool_use"]


def replies(random):
    count = iter(range(10_000))

    def reply(got):
        nth = next(count)
        if random.random() < 0.03 and got.body["model"] == "small" and len(got.raw) > 15_000:
            return Refusal(400, TOO_LONG)
        thought = words(random, 30) if random.random() < 0.4 else ""
        if random.random() < 0.4:
            many = range(random.randint(1, 3))
            calls = tuple(Call(f"call_{nth}_{one}", "look", {"at": one}) for one in many)
            return Reply(random.choice(["", "Let me look."]), calls, thought=thought, usage=None)
        return Reply(f"{nth}: {words(random, 120)}", thought=thought, usage=None)

    return reply


async def steer(world, session, random):
    """What people do with a session beside."""
    async with world.gateway.sessions.using("default", session) as one:
        try:
            match random.randrange(4):
                case 0:
                    await one.compact()
                case 1:
                    await one.take_back()
                case 2:
                    head = one.head
                    first = random.randint(1, head)
                    await one.unfold(Span(first, min(head, first + 3)))
                case _:
                    await one.next_messages()
        except (FoldError, InvalidInput):
            pass


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_a_first_message_that_is_said_again_before_the_tail_is_the_first(path):
    words = ["Go on.", "One.", "Go on.", "Two.", "And then?"]
    roles = ["user", "assistant"] * 3
    messages = [
        json.dumps({"role": role, "content": text}).encode()
        for role, text in zip(roles, words, strict=False)
    ]
    dialect = DIALECTS[path]
    shown = {1: messages[0], 4: messages[3], 5: messages[4]}
    rows = [SimpleNamespace(seq=seq, payload=payload) for seq, payload in shown.items()]
    inputs = SimpleNamespace(rows=rows, wire=wire_for(dialect.name))
    assert match_rows(dialect, messages, inputs) == {1: 0, 4: 3, 5: 4}


@pytest.mark.parametrize("seed", range(WORLDS))
@pytest.mark.parametrize("path", PATHS)
async def test_what_reaches_the_upstream_is_legal_and_the_clients_own(path, seed):
    random = Random(seed_of(f"{path} {seed}"))  # noqa: S311 - others in each run
    models = {name: ModelSettings(window=window) for name, window in WINDOWS.items()}
    world = World(replies(random), models=models)
    client = Client(world, path, random, strips=seed % 2 == 0)
    try:
        for turn in range(4 * TURNS):
            if turn >= TURNS and client.edited:
                break
            client.say()
            calls = await client.ask()
            while calls:
                client.history += client.results(calls)
                calls = await client.ask()
            act = random.random()
            if act < 0.1:
                client.model = random.choice([*WINDOWS])
            elif act < 0.2:
                client.tools = [client.tool(f"look{n}" if n else "look") for n in range(3)]
            elif act < 0.3:
                await steer(world, client.session, random)
        assert client.edited
        values = await world.values(client.session)
        assert any(isinstance(one, FoldCompleted) for one in values)
    finally:
        await world.aclose()
