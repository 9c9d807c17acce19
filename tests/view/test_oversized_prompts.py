"""One prompt that is longer than the window: it is refused, kept, and out of the way after that."""

import json
from contextlib import suppress

import pytest
from agents import Scripted, agent_with, check_rebuilt, echo, folds, logged, said
from gateway_edges import KEYS
from gateway_world import MESSAGES, PATHS, body_of, text_of, worlds
from hypothesis import given
from hypothesis import strategies as st
from scripted_providers import Refused, Said, Script, provider_model

from refold import Refold
from refold.errors import PromptTooLarge, ViewTooLarge, WindowExceeded
from refold.log import PartRef
from refold.models import ModelSettings
from refold.testing.upstream import Refusal, Reply

each_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
LONG = "word " * 60_000
WINDOW = 32_000
LINE = "too long for the context window"


def memory_of(**more):
    return Refold(models={"scripted": ModelSettings(window=WINDOW)}, **more)


async def ask(agent, prompt, *, stream):
    if not stream:
        return (await agent.run(prompt, conversation_id="c")).output
    async with agent.run_stream(prompt, conversation_id="c") as result:
        return await result.get_output()


@each_way
@pytest.mark.parametrize("turns", [0, 3], ids=["at first", "later"])
async def test_an_agent_answers_the_prompt_after_one_that_is_too_long(turns, stream):
    model = Scripted(echo)
    async with memory_of() as memory:
        agent = agent_with(memory, model, system_prompt="Be kind.")
        for nth in range(turns):
            await ask(agent, f"Question {nth}?", stream=stream)
        with pytest.raises(PromptTooLarge, match="The log keeps it") as raised:
            await ask(agent, LONG, stream=stream)
        asked = len(model.sent)
        assert asked == turns  # it was not sent
        for nth in range(3):
            await ask(agent, f"Hello again {nth}", stream=stream)
            words = said(model.sent[-1])
            assert words[0] == "Be kind."
            assert words[-1] == f"Hello again {nth}"
            [line] = [text for text in words if LINE in text]
            assert f"entry {raised.value.seq}" in line
            assert "\n" not in line
            assert all(len(text) < 1_000 for text in words)
            assert [text for text in words if text.startswith("Question")] == [
                f"Question {nth}?" for nth in range(turns)
            ]
        kept = await logged(memory, "c")
        assert LONG in kept
        assert kept[-2].startswith("Hello again 2")
        assert await folds(memory) == []  # nothing was compacted for its sake
        await check_rebuilt(memory, "c")


async def test_each_of_several_prompts_that_are_too_long_is_kept():
    model = Scripted(echo)
    async with memory_of() as memory:
        agent = agent_with(memory, model)
        for nth in range(3):
            with pytest.raises(PromptTooLarge):
                await agent.run(f"{nth} {LONG}", conversation_id="c")
        await agent.run("Hello again", conversation_id="c")
        assert [text[:2] for text in await logged(memory, "c")][:3] == ["0 ", "1 ", "2 "]
        assert sum(LINE in text for text in said(model.sent[-1])) == 3


async def test_a_larger_window_takes_what_a_smaller_one_refused():
    async with memory_of() as memory:
        agent = agent_with(memory, Scripted(echo))
        with pytest.raises(PromptTooLarge):
            await agent.run(LONG, conversation_id="c")
        script = Script(Said("Read."))
        served = provider_model("openai", script)
        answer = await agent.run(None, conversation_id="c", model=served)
        assert answer.output == "Read."
        assert LONG in json.dumps(script.received[-1])


async def test_a_prompt_is_kept_though_something_else_is_too_large():
    model = Scripted(echo)
    async with memory_of() as memory:
        agent = agent_with(memory, model)
        await agent.run("word " * 10_000, conversation_id="c")
        await agent.run("other " * 10_000, conversation_id="c")
        session = await memory.session("c", model.model)
        prompts = [row.seq for row in session.inputs.rows if row.has("prompt")]
        await session.pin(*(PartRef(seq, 0) for seq in prompts))
        smaller = agent_with(memory, model, instructions="x " * 16_000)
        for nth in range(2):
            with pytest.raises(ViewTooLarge):
                await smaller.run(f"Are you there? {nth}", conversation_id="c")
        assert (await logged(memory, "c"))[-2:] == ["Are you there? 0", "Are you there? 1"]


@each_way
async def test_a_window_that_only_the_provider_knows(stream):
    body = {"error": {"code": 400, "n_prompt_tokens": 60_000, "n_ctx": WINDOW}}
    body["error"] |= {"type": "exceed_context_size_error", "message": "request exceeds"}
    script = Script(Refused(400, json.dumps(body)), Said("Good."), Said("Better."))
    async with Refold() as memory:
        agent = agent_with(memory, Scripted(echo))
        served = provider_model("openai", script)
        agent.model = served
        with pytest.raises(WindowExceeded, match="keeps it as entry"):
            await ask(agent, LONG, stream=stream)
        for words in ("Good.", "Better."):
            assert await ask(agent, "Hello again", stream=stream) == words
            sent = json.dumps(script.received[-1])
            assert LINE in sent
            assert len(sent) < 10_000


@pytest.fixture
async def world():
    async with worlds() as make:
        yield make


def refusing(got):
    """A provider with a small window."""
    tokens = len(got.raw) // 4
    if tokens > WINDOW:
        message = f"This model's maximum context length is {WINDOW} tokens. However, "
        message += f"your messages resulted in {tokens} tokens."
        return Refusal(400, {"error": {"message": message, "code": "context_length_exceeded"}})
    return Reply("Hello there.")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("earlier", [(), ("Hello?", "Hello there.")], ids=["at first", "later"])
@pytest.mark.parametrize("told", [True, False], ids=["told", "untold"])
async def test_a_gateway_sends_one_line_for_it_in_every_later_request(world, path, earlier, told):
    w = world(refusing, models={"some-model": ModelSettings(window=WINDOW if told else 200_000)})
    if earlier:
        await w.ask(path, body_of(path, *earlier[:1]))
    key, refused = KEYS[path], body_of(path, *earlier, LONG)
    for _ in range(2):  # a client that does not believe it
        assert (await w.ask(path, refused)).status_code == 400
    said = list(refused[key])
    for nth in range(3):
        said.append({"role": "user", "content": f"Hello again {nth}"})
        answer = await w.ask(path, {**refused, key: said})
        assert answer.status_code == 200
        said.append({"role": "assistant", "content": text_of(path, answer.json())})
        sent = w.upstream.got[-1]
        assert LINE in sent.raw.decode()
        assert len(sent.raw) < 3_000
        assert sent.body[key][-1]["content"] == f"Hello again {nth}"
    assert len(w.upstream.got) == 3 + 2 + len(earlier) // 2
    await w.quiet()
    logs = [await w.values(name) for name in await w.sessions()]
    assert any(LONG.encode() in getattr(one, "payload", b"") for log in logs for one in log)


@pytest.mark.parametrize("path", [MESSAGES])
async def test_a_prompt_that_the_provider_takes_after_all_is_answered(world, path):
    w = world(lambda _: Reply("Read."), models={"some-model": ModelSettings(window=WINDOW)})
    answer = await w.ask(path, body_of(path, LONG))
    assert text_of(path, answer.json()) == "Read."
    assert w.upstream.got[-1].body["messages"][-1]["content"] == LONG


@given(
    st.lists(st.integers(1, 8_000), min_size=1, max_size=6),
    st.integers(600, 3_000),
    st.sampled_from(["balanced", "co-cli", "inkeep", "copilot", "cowagent"]),
)
async def test_after_any_prompts_a_short_one_is_answered(sizes, window, profile):
    model = Scripted(echo, window=None)
    models = {"scripted": ModelSettings(window=window)}
    async with Refold(profile=profile, models=models, recall=False) as memory:
        agent = agent_with(memory, model)
        for nth, words in enumerate(sizes):
            with suppress(ViewTooLarge):  # alone, or beside the summary of what came before
                await agent.run(f"{nth} " + "word " * words, conversation_id="c")
            before = len(model.sent)
            await agent.run(f"Hello {nth}", conversation_id="c")
            asked = [said(one)[-1] for one in model.sent[before:]]  # some profiles fold by a model
            assert asked.count(f"Hello {nth}") == 1
        prompts = [text for text in await logged(memory, "c") if text.endswith("word ")]
        assert len(prompts) == len(sizes)
