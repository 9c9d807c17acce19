"""Recall's tools for clients that have none: the gateway adds them and answers their calls."""

import json
from hashlib import sha256
from itertools import pairwise

import anthropic
import httpx2
import openai
import pytest
from gateway_world import CHAT, MESSAGES, PATHS, RESPONSES, body_of, text_of, worlds

from refold.gateway.sent_body import sent_body
from refold.log import Requested
from refold.log.kinds import FoldCompleted
from refold.models.catalog import ModelSettings
from refold.recall import recall_tools
from refold.testing.upstream import Call, Refusal, Reply, RequestChecker

TURNS = 30
LOOK = {"type": "object", "properties": {"at": {"type": "string"}}}


@pytest.fixture
async def world():
    async with worlds() as make:
        yield make


def conversation(body):
    return body["input" if "input" in body else "messages"]


def newest(body):
    """The number of the newest prompt, and how many results came after it."""
    results = 0
    for message in reversed(conversation(body)):
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        text = content if isinstance(content, str) else "".join(b.get("text", "") for b in blocks)
        if message.get("role") == "user" and text.startswith("Turn"):
            return int(text.split()[1].strip(".")), results
        kind = message.get("type")
        results += message.get("role") == "tool" or kind == "function_call_output"
        results += sum(block.get("type") == "tool_result" for block in blocks)
    raise AssertionError(body)


def model(got):
    """Reads back in all ways that there are, turn by turn."""
    turn, results = newest(got.body)

    def search(nth=0):
        return Call(f"toolu_{turn:04d}_hidden_{nth}", "recall_search", {"query": "lantern"})

    def look(nth=0):
        return Call(f"toolu_{turn:04d}_client_{nth}", "look", {"at": str(turn)})

    history = Call(f"toolu_{turn:04d}_history", "recall_history", {})
    script = {
        0: [Reply("", (search(),), thought=f"I search {turn}.")],
        1: [Reply("I look.", (search(), history)), Reply("", (look(), look(1)), thought="Two.")],
        2: [Reply("Both.", (search(), look()), thought=f"Both at once {turn}.")],
        3: [Reply("Let me see.", (search(),), thought="One."), Reply("", (search(1),))],
        4: [],
    }[turn % 5]
    for reply in script:
        if not results:
            return reply
        results -= len(reply.calls)
    return Reply(f"Answer {turn}.", thought=f"Done {turn}." if turn % 2 else "")


class Chat:
    def __init__(self, http, *, stream):
        self.client = openai.AsyncOpenAI(
            api_key="k", base_url="http://gateway/v1", http_client=http, max_retries=0
        )
        self.stream, self.messages, self.usage = stream, [], []
        function = {"name": "look", "description": "Look.", "parameters": LOOK}
        self.tools = [{"type": "function", "function": function}]

    async def ask(self):
        options = {"model": "gpt-4o", "messages": self.messages, "tools": self.tools}
        if self.stream:
            more = {"stream_options": {"include_usage": True}}
            async with self.client.chat.completions.stream(**options, **more) as stream:
                answer = await stream.get_final_completion()
        else:
            answer = await self.client.chat.completions.create(**options)
        self.usage.append(answer.usage.prompt_tokens)
        message = answer.choices[0].message
        dumped = message.model_dump(exclude_none=True, exclude={"parsed"})
        for call in dumped.get("tool_calls", []):
            call["function"].pop("parsed_arguments", None)
        self.messages.append(dumped)
        calls = message.tool_calls or []
        assert bool(calls) == (answer.choices[0].finish_reason == "tool_calls")
        return message.content or "", [(call.id, call.function.name) for call in calls]

    def say(self, text):
        self.messages.append({"role": "user", "content": text})

    def give(self, results):
        for call, text in results:
            self.messages.append({"role": "tool", "tool_call_id": call, "content": text})


class Responses(Chat):
    def __init__(self, http, *, stream):
        super().__init__(http, stream=stream)
        self.tools = [{"type": "function", "name": "look", "parameters": LOOK, "strict": False}]

    async def ask(self):
        options = {"model": "gpt-4o", "input": self.messages, "tools": self.tools}
        options |= {"store": False, "include": ["reasoning.encrypted_content"]}
        if self.stream:
            async with self.client.responses.stream(**options) as stream:
                numbers = [event.sequence_number async for event in stream]
                answer = await stream.get_final_response()
            assert numbers == [*range(len(numbers))]
        else:
            answer = await self.client.responses.create(**options)
        self.usage.append(answer.usage.input_tokens)
        for item in answer.output:
            dumped = item.model_dump(exclude_none=True, exclude={"parsed_arguments"})
            for part in dumped.get("content", []):
                part.pop("parsed", None)
            self.messages.append(dumped)
        calls = [item for item in answer.output if item.type == "function_call"]
        return answer.output_text, [(call.call_id, call.name) for call in calls]

    def give(self, results):
        for call, text in results:
            output = {"type": "function_call_output", "call_id": call, "output": text}
            self.messages.append(output)


class Messages(Chat):
    def __init__(self, http, *, stream):
        self.client = anthropic.AsyncAnthropic(
            api_key="k", base_url="http://gateway", http_client=http, max_retries=0
        )
        self.stream, self.messages, self.usage = stream, [], []
        self.tools = [{"name": "look", "description": "Look.", "input_schema": LOOK}]

    async def ask(self):
        options = {"model": "claude-scripted", "max_tokens": 1_000}
        options |= {"messages": self.marked(), "tools": self.tools}
        if self.stream:
            async with self.client.messages.stream(**options) as stream:
                answer = await stream.get_final_message()
        else:
            answer = await self.client.messages.create(**options)
        self.usage.append(answer.usage.input_tokens)
        blocks = [block.model_dump(exclude_none=True) for block in answer.content]
        for block in blocks:
            block.pop("parsed_output", None)
        self.messages.append({"role": "assistant", "content": blocks})
        calls = [block for block in answer.content if block.type == "tool_use"]
        assert bool(calls) == (answer.stop_reason == "tool_use")
        text = "".join(block.text for block in answer.content if block.type == "text")
        return text, [(call.id, call.name) for call in calls]

    def say(self, text):
        self.messages.append({"role": "user", "content": [{"type": "text", "text": text}]})

    def marked(self):
        """With a cache mark that moves, as agents do."""
        *before, last = self.messages
        blocks = last["content"]
        mark = {"cache_control": {"type": "ephemeral"}}
        return [*before, {**last, "content": [*blocks[:-1], blocks[-1] | mark]}]

    def give(self, results):
        blocks = [
            {"type": "tool_result", "tool_use_id": call, "content": text} for call, text in results
        ]
        self.messages.append({"role": "user", "content": blocks})


CLIENTS = {CHAT: Chat, RESPONSES: Responses, MESSAGES: Messages}


def own_tools(world, path):
    """The definitions of recall's tools, for a client that has them itself."""
    for tool in recall_tools(world.log, "any", outside=True):
        said = {"name": tool.name, "description": tool.description}
        if path == MESSAGES:
            yield {**said, "input_schema": tool.schema}
        elif path == RESPONSES:
            yield {"type": "function", **said, "parameters": tool.schema, "strict": False}
        else:
            yield {"type": "function", "function": {**said, "parameters": tool.schema}}


async def run(world, name, turn):
    """What a tool of the client says."""
    if name == "look":
        return f"Seen at {turn}."
    [session] = await world.sessions()
    tools = {tool.name: tool for tool in recall_tools(world.log, session, outside=True)}
    arguments = {"query": "lantern"} if name == "recall_search" else {}
    return await tools[name].run(arguments)


async def converse(world, path, *, stream, turns=TURNS, own=False):
    """A conversation of so many turns; what the client was shown, turn by turn.

    With `own`, the client has recall's tools by itself, as an agent with MCP.
    """
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(world.app))
    client, shown = CLIENTS[path](http, stream=stream), []
    if own:
        client.tools = [*client.tools, *own_tools(world, path)]
    for turn in range(turns):
        client.say(f"Turn {turn} says lantern.")
        words = []
        while True:
            text, calls = await client.ask()
            words.append(text)
            assert own or all(tool == "look" for _, tool in calls)
            if not calls:
                break
            client.give([(call, await run(world, tool, turn)) for call, tool in calls])
        shown.append(words)
    await http.aclose()
    return client, shown


def without_marks(value):
    if isinstance(value, list):
        return [*map(without_marks, value)]
    if isinstance(value, dict):
        return {key: without_marks(x) for key, x in value.items() if key != "cache_control"}
    return value


def prompts_of(world):
    return [without_marks(conversation(got.body)) for got in world.upstream.got]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_thirty_turns_with_official_clients_stay_whole(world, path, stream):
    checker = RequestChecker()
    here = world(model, recall=True, checker=checker)
    client, shown = await converse(here, path, stream=stream)
    assert checker.faults == []
    assert len(await here.sessions()) == 1
    assert "recall_" not in json.dumps(client.messages)
    assert [words[-1].endswith(f"Answer {turn}.") for turn, words in enumerate(shown)] == (
        [True] * TURNS
    )
    prompts = prompts_of(here)
    for before, after in pairwise(prompts):  # byte for byte: what is cached stays so
        assert json.dumps(after).startswith(json.dumps(before)[:-1])
    hidden = sum(json.dumps(prompts[-1]).count(f"_hidden_{nth}") for nth in (0, 1))
    assert hidden >= 2 * (4 * TURNS // 5 + TURNS // 5)  # each call, with its result
    assert sum(client.usage) == 10 * len(here.upstream.got)


def cached_sizes(path, bodies):
    """Of each request, how much of it a provider has in its cache, and its size.

    OpenAI caches each beginning that it has seen. Anthropic caches up to the marks, and looks
    for that up to 20 blocks before a mark.
    """
    written, sizes = set(), []
    for body in bodies:
        digest, size = sha256(), 0
        prefixes, marks = [], []
        for text, marked in pieces_of(body):
            digest.update(text.encode())
            size += len(text)
            if marked or path != MESSAGES:
                marks.append(len(prefixes))
            prefixes.append((digest.hexdigest(), size))
        near = {place for mark in marks for place in range(max(0, mark - 20), mark + 1)}
        cached = max((prefixes[n][1] for n in near if prefixes[n][0] in written), default=0)
        sizes.append((cached, size))
        written |= {prefixes[mark][0] for mark in marks}
    return sizes


def cached_share(path, bodies):
    cached, sizes = zip(*cached_sizes(path, bodies), strict=True)
    return sum(cached) / sum(sizes)


def pieces_of(body):
    """The parts of a request in the order in which they are cached, and which have a mark."""
    yield json.dumps([body.get("tools"), body.get("system")]), False
    for message in conversation(body):
        content = message.get("content")
        for block in content if isinstance(content, list) else [message]:
            yield json.dumps([message.get("role"), without_marks(block)]), "cache_control" in block


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_the_provider_caches_as_much_as_with_tools_of_the_client(world, path, stream):
    hidden = world(model, recall=True, checker=RequestChecker())
    await converse(hidden, path, stream=stream)
    shown = world(model, checker=RequestChecker())
    await converse(shown, path, stream=stream, own=True)
    assert shown.upstream.checker.faults == []
    shares = [
        cached_share(path, [got.body for got in each.upstream.got]) for each in (hidden, shown)
    ]
    assert shares[0] > shares[1] - 0.01


async def test_long_rounds_leave_the_providers_cache_whole(world):
    def reply(got):
        turn, results = newest(got.body)
        if results < 20 and turn == 1:  # five rounds of four calls each
            calls = [
                Call(f"toolu_{results + nth:04d}_hidden", "recall_search", {"query": "lantern"})
                for nth in range(4)
            ]
            return Reply("I look.", tuple(calls), thought="Where is it?")
        return Reply(f"Answer {turn}.")

    here = world(reply, recall=True, checker=RequestChecker())
    await converse(here, MESSAGES, stream=False, turns=4)
    bodies = [got.body for got in here.upstream.got]
    assert len(bodies) == 4 + 5
    assert here.upstream.checker.faults == []
    marks = [got.raw.count(b"cache_control") for got in here.upstream.got]
    assert marks == [1] * len(bodies)  # no more than the client has
    cached, size = cached_sizes(MESSAGES, bodies)[-2]  # the first after these rounds
    assert cached > 0.9 * size


@pytest.mark.parametrize("path", PATHS)
async def test_another_gateway_continues_with_what_is_hidden(world, path):
    first = world(model, recall=True, checker=RequestChecker())
    client, _ = await converse(first, path, stream=True, turns=4)
    second = world(model, recall=True, checker=first.upstream.checker, store=first.store)
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(second.app))
    other = CLIENTS[path](http, stream=False)
    other.messages = client.messages
    other.say("Turn 4 says lantern.")
    await other.ask()
    await http.aclose()
    assert second.upstream.checker.faults == []
    assert len(await second.sessions()) == 1
    before, after = prompts_of(first)[-1], prompts_of(second)[-1]
    assert json.dumps(after).startswith(json.dumps(before)[:-1])


def searching(got, times=99):
    """A model that reads back so many times in a turn, and then answers."""
    results = newest(got.body)[1]
    if results < times:
        return Reply("", (Call(f"call_{results}_5e81c09d", "recall_search", {"query": "turn"}),))
    return Reply("Enough.", pieces=1)


def asking(path, *, stream=False, **more):
    stored = {"store": False} if path == RESPONSES else {}
    return body_of(path, "Turn 0.", stream=stream, **stored, **more)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_a_model_that_reads_back_without_end_is_stopped(world, path, stream):
    here = world(searching, recall=True, checker=RequestChecker())
    answer = await here.ask(path, asking(path, stream=stream))
    assert answer.status_code == 200
    assert "recall_" not in answer.text
    assert "tool_use" not in answer.text
    assert '"tool_calls"' not in answer.text
    choices = [got.body.get("tool_choice") for got in here.upstream.got]
    last = {"type": "none"} if path == MESSAGES else "none"
    assert choices == [None] * 5 + [last]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_an_error_in_a_later_round_reaches_the_client_and_a_retry_starts_again(
    world, path, stream
):
    refusing = True

    def reply(got):
        if refusing and newest(got.body)[1]:
            return Refusal(529, {"error": {"type": "overloaded_error", "message": "Busy."}})
        return searching(got, 1)

    here = world(reply, recall=True, checker=RequestChecker())
    answer = await here.ask(path, asking(path, stream=stream))
    assert answer.status_code == (200 if stream else 529)
    assert not stream or "recall-broke-off" in answer.text or "read back" in answer.text
    refusing = False
    again = await here.ask(path, asking(path, stream=stream))
    assert "Enough." in again.text
    assert len(await here.sessions()) == 1
    assert here.upstream.checker.faults == []


async def test_a_connection_that_breaks_in_a_later_round_ends_the_stream_with_an_error(world):
    def reply(got):
        if newest(got.body)[1]:
            raise httpx2.ConnectError("Nobody is there.")
        return searching(got, 1)

    here = world(reply, recall=True)
    answer = await here.ask(MESSAGES, asking(MESSAGES, stream=True))
    assert answer.text.endswith("\n\n")
    assert "event: error" in answer.text
    await here.quiet()


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (CHAT, {"functions": [{"name": "look", "parameters": LOOK}]}),
        (MESSAGES, {"tools": [{"name": "mcp__refold__recall_read", "input_schema": LOOK}]}),
        (RESPONSES, {"store": True}),
        (RESPONSES, {"store": None}),
    ],
)
async def test_requests_to_which_the_tools_are_not_added_pass_as_they_came(world, path, more):
    here = world(recall=True)
    body = {**asking(path), **more}
    await here.ask(path, body)
    [got] = here.upstream.got
    assert got.raw == json.dumps(body).encode()


@pytest.mark.parametrize("path", PATHS)
async def test_without_the_setting_nothing_is_added(world, path):
    here = world()
    await here.ask(path, asking(path))
    assert here.upstream.got[0].raw == json.dumps(asking(path)).encode()


@pytest.mark.parametrize("path", PATHS)
async def test_a_request_with_hidden_calls_can_be_made_again_byte_for_byte(world, path):
    here = world(lambda got: searching(got, 2), recall=True)
    await here.ask(path, asking(path))
    [session] = await here.sessions()
    records = [entry.seq for entry in await here.log.read(session) if entry.kind == Requested.KIND]
    assert len(records) == len(here.upstream.got) == 3
    for seq, got in zip(records, here.upstream.got, strict=True):
        made = await sent_body(here.log, session, seq)
        assert (made.state, made.body) == ("exact", got.raw)


@pytest.mark.parametrize("path", PATHS)
async def test_folds_cover_what_is_hidden(world, path):
    def reply(got):
        turn, results = newest(got.body)
        if not results:
            return Reply("", (Call(f"call_{turn}_9b3ce07f", "recall_search", {"query": "word"}),))
        return Reply(f"Answer {turn}. " + "word " * 300)

    small = {"some-model": ModelSettings(window=8_000)}
    here = world(reply, recall=True, checker=RequestChecker(), models=small)
    body = asking(path)
    history = conversation(body)
    for turn in range(20):
        history[-1] = {"role": "user", "content": f"Turn {turn}. " + "word " * 100}
        answer = (await here.ask(path, body)).json()
        text = text_of(path, answer)
        assert text.startswith(f"Answer {turn}.")
        history += [{"role": "assistant", "content": text}, {}]
    assert here.upstream.checker.faults == []
    [session] = await here.sessions()
    kinds = {entry.kind for entry in await here.log.read(session)}
    assert FoldCompleted.KIND in kinds
