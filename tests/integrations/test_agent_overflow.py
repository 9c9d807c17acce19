"""Requests that providers refuse for their length, and how an agent goes on."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportTypedDictNotRequiredAccess=false
# Tests know which of many kinds of parts they look at.

import json

import pytest
from agents import EXTRACTIVE, Scripted, agent_with, check_rebuilt, logged
from overflow_rows import NEAR_MISSES, OVERFLOWS, named, said_in
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage
from scripted_providers import Broken, Empty, Refused, Said, Script, provider_model

from refold import Refold
from refold.errors import WindowExceeded
from refold.log import Author, Message, Opened
from refold.models import ModelSettings
from refold.session.session import TIGHTER

each_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
TURNS = 12


async def grown(memory, session="c"):
    """A conversation of some thousand tokens."""
    author = Author()
    await memory.log.append(session, [author.draft(Opened("pydantic-ai", "balanced"))], expected=0)
    for nth in range(TURNS):
        prompt = {"part_kind": "user-prompt", "content": f"Question {nth}?"}
        text = {"part_kind": "text", "content": f"answer {nth} " * 300}
        said = (
            {"kind": "request", "parts": [prompt]},
            {"kind": "response", "parts": [text]},
        )
        drafts = [author.draft(Message(json.dumps(one).encode())) for one in said]
        await memory.log.append(session, drafts, expected=None)


async def asked(agent, prompt="And now?", *, stream):
    if not stream:
        return (await agent.run(prompt, conversation_id="c")).output
    async with agent.run_stream(prompt, conversation_id="c") as result:
        return await result.get_output()


def kind_of(row):
    return row["api"] if row["api"] in ("openai", "anthropic") else "openai"


def size(body):
    return len(json.dumps(body.get("messages", body.get("input"))))


@pytest.mark.req("R045", "R079", "R080")
@each_way
@named([row for row in OVERFLOWS if not row.get("stream")])
async def test_every_refusal_that_was_seen_is_recovered_from(row, stream):
    script = Script(Refused(row["status"], row["body"]), Said("Good."), Said("Better."))
    async with Refold() as memory:
        await grown(memory)
        model = provider_model(kind_of(row), script)
        agent = Agent(model, capabilities=[memory])
        assert await asked(agent, stream=stream) == "Good."
        first, second = script.received
        assert size(second) < size(first)
        assert memory._models.experiences.of(model.model_id).window == said_in(row).limit
        assert await asked(agent, stream=stream) == "Better."
        assert len(script.received) == 3
        words = await logged(memory, "c")
        assert len(words) == 2 * TURNS + 4
        assert words[-4:] == ["And now?", "Good.", "And now?", "Better."]
        assert await check_rebuilt(memory, "c") == 3


@each_way
@named(NEAR_MISSES)
async def test_what_only_sounds_like_it_is_the_callers_to_know(row, stream):
    script = Script(Refused(row["status"], row["body"]), Said("Good."))
    async with Refold() as memory:
        await grown(memory)
        agent = Agent(provider_model(kind_of(row), script), capabilities=[memory])
        with pytest.raises(ModelHTTPError):
            await asked(agent, stream=stream)
        assert len(script.received) == 1
        assert (await logged(memory, "c"))[-1] == "And now?"


@named([row for row in OVERFLOWS if row.get("stream")])
async def test_a_refusal_inside_a_stream_is_recovered_from(row):
    script = Script(Broken(row["body"]), Said("Good."))
    async with Refold() as memory:
        await grown(memory)
        agent = Agent(provider_model(kind_of(row), script), capabilities=[memory])
        assert await asked(agent, stream=True) == "Good."


@pytest.mark.req("R080", "R140")
@each_way
@pytest.mark.parametrize("folds", [False, True], ids=["cut", "folded"])
async def test_no_more_attempts_than_the_ladder_has(stream, folds):
    body = json.dumps({"error": {"message": "prompt is too long", "type": "invalid_request_error"}})
    script = Script(*[Refused(400, body)] * 9)
    fold = EXTRACTIVE.fold.model_copy(update={"breadcrumb": folds})
    async with Refold(profile=EXTRACTIVE.model_copy(update={"fold": fold})) as memory:
        await grown(memory)
        agent = Agent(provider_model("anthropic", script), capabilities=[memory])
        with pytest.raises(WindowExceeded, match=r"\d times") as raised:
            await asked(agent, stream=stream)
        assert isinstance(raised.value.__cause__, ModelHTTPError)
        assert 2 < len(script.received) <= 1 + len(TIGHTER)
        # A fold leaves too little for all of them.
        assert folds or len(script.received) == 1 + len(TIGHTER)
        sizes = [size(body) for body in script.received]
        assert sizes == sorted(sizes, reverse=True)
        words = await logged(memory, "c")
        assert (len(words), words[-1]) == (2 * TURNS + 1, "And now?")
        script.answers[:] = [Said("Good.")]
        assert await asked(agent, "Once more?", stream=stream) == "Good."


@pytest.mark.req("R080")
async def test_a_limit_is_remembered_for_the_model():
    body = {"error": {"code": 400, "n_prompt_tokens": 4_000, "n_ctx": 2_048}}
    body["error"] |= {"type": "exceed_context_size_error", "message": "request exceeds"}
    script = Script(Refused(400, json.dumps(body)), *[Said("Good.", input_tokens=1_200)] * 3)
    async with Refold(profile=EXTRACTIVE) as memory:
        for session in ("c", "other"):
            await grown(memory, session)
        agent = Agent(provider_model("openai", script, "local"), capabilities=[memory])
        await asked(agent, stream=False)
        await agent.run("And here?", conversation_id="other")
        assert len(script.received) == 3
        assert all(size(body) < 2_048 * 4 for body in script.received[1:])


async def test_an_answer_that_is_asked_too_long_is_asked_shorter():
    text = "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000"
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
    script = Script(Refused(400, json.dumps(body)), Said("Good."))
    async with Refold() as memory:
        await grown(memory)
        model = provider_model("anthropic", script)
        agent = Agent(model, capabilities=[memory], model_settings={"max_tokens": 199_000})
        assert await asked(agent, stream=False) == "Good."
        first, second = script.received
        assert first["max_tokens"] == 199_000
        assert second["max_tokens"] < 199_000


# A full window that the provider does not call an error.


def full(scripted, _):
    """The first answer is cut because the window was full."""
    if len(scripted.sent) > 1:
        return "whole"
    response = ModelResponse([TextPart("cut off in the mid")], finish_reason="length")
    response.usage = RequestUsage(input_tokens=3_990, output_tokens=10)
    return response


async def test_an_answer_cut_by_a_full_window_is_asked_for_again():
    async with Refold() as memory:
        await grown(memory)
        model = Scripted(full, window=4_000)
        assert await asked(agent_with(memory, model), stream=False) == "whole"
        assert len(model.sent) == 2
        assert (await logged(memory, "c"))[-1] == "whole"


async def test_an_answer_cut_by_its_own_limit_is_the_callers_to_know():
    def short(*_):
        response = ModelResponse([TextPart("cut")], finish_reason="length")
        response.usage = RequestUsage(input_tokens=3_000, output_tokens=10)
        return response

    async with Refold() as memory:
        model = Scripted(short, window=200_000)
        agent = agent_with(memory, model, model_settings={"max_tokens": 10})
        assert await asked(agent, stream=False) == "cut"
        assert len(model.sent) == 1


async def test_an_empty_stream_near_the_limit_is_a_refusal():
    models = {"local": ModelSettings(window=7_200, output=10)}
    async with Refold(profile="co-cli", models=models) as memory:
        await grown(memory)
        script = Script(Empty(), Said("A summary."), Said("Good."))
        model = provider_model("openai", script, "local")
        agent = Agent(model, capabilities=[memory])
        assert await asked(agent, stream=True) == "Good."
        assert len(script.received) == 3
