"""Overflows as they surface in Pydantic AI, from real clients with scripted HTTP."""

import json
from typing import Any

import pytest
from overflow_rows import NEAR_MISSES, OVERFLOWS, named, parsed, row_of, said_in
from pydantic_ai import Agent, ModelResponse, RequestUsage
from pydantic_ai.exceptions import (
    FallbackExceptionGroup,
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelRequestRejectedError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.fallback import FallbackModel
from scripted_providers import Broken, Empty, Refused, Said, Script, provider_model

from refold.models.overflow import Overflow
from refold.models.overflow_errors import filled, overflow_in

INSTALLED = {"openai", "anthropic"}
LONG_PROMPT = {"message": "prompt is too long: 5 tokens > 3 maximum"}


async def raised(kind, answer, *, stream):
    """What Pydantic AI raises when a provider answers this; a good answer follows."""
    script = Script(answer, Said("Good."))
    agent = Agent(provider_model(kind, script))
    with pytest.raises(Exception, match=r".") as caught:
        await asked(agent, stream=stream)
    assert await asked(agent, stream=stream) == "Good."
    assert len(script.received) == 2
    return caught.value


async def asked(agent, *, stream):
    if not stream:
        return (await agent.run("Hello.")).output
    async with agent.run_stream("Hello.") as result:
        return await result.get_output()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@named([row for row in OVERFLOWS if not row.get("stream")])
async def test_an_overflow_is_seen_through_the_clients(row, stream):
    # Bodies of providers whose client is not installed come through OpenAI's, as from a gateway.
    kind = row["api"] if row["api"] in INSTALLED else "openai"
    error = await raised(kind, Refused(row["status"], row["body"]), stream=stream)
    assert overflow_in(error) == said_in(row)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@named(NEAR_MISSES)
async def test_a_near_miss_is_none_through_the_clients(row, stream):
    kind = row["api"] if row["api"] in INSTALLED else "openai"
    error = await raised(kind, Refused(row["status"], row["body"]), stream=stream)
    assert isinstance(error, ModelHTTPError)
    assert overflow_in(error, window=100, sent=100) is None


def in_stream(rows):
    """Those that have an error in a stream as their clients look for it."""
    return [row for row in rows if isinstance(parsed(row), dict) and "error" in parsed(row)]


@named(in_stream(OVERFLOWS))
async def test_an_overflow_inside_a_stream_is_seen(row):
    kind = row["api"] if row["api"] in INSTALLED else "openai"
    error = await raised(kind, Broken(row["body"]), stream=True)
    assert overflow_in(error) == said_in(row)


@named(in_stream(NEAR_MISSES))
async def test_a_near_miss_inside_a_stream_is_none(row):
    kind = row["api"] if row["api"] in INSTALLED else "openai"
    assert overflow_in(await raised(kind, Broken(row["body"]), stream=True)) is None


async def test_a_response_that_failed_in_its_stream_is_seen():
    row = row_of("openai-responses-failed")
    for body in (row["body"], json.dumps(parsed(row)["response"])):
        error = await raised("responses", Refused(400, body), stream=False)
        assert overflow_in(error) == Overflow()
    event = {"type": "error", "sequence_number": 1, "param": None}
    said = parsed(row)["response"]["error"]
    error = await raised("responses", Broken(json.dumps({**event, **said})), stream=True)
    assert overflow_in(error) == Overflow()


# The clients of Google, Bedrock, Mistral and Cohere are not installed: errors made by hand.
@named([row for row in OVERFLOWS if row["api"] not in INSTALLED])
def test_an_overflow_is_seen_in_an_error_of_any_category(row):
    for category in (None, ModelRequestRejectedError, ModelContextWindowExceededError):
        error = ModelHTTPError.for_category(
            category, status_code=row["status"], model_name="m", body=parsed(row)
        )
        assert overflow_in(error) == said_in(row)


def test_what_pydantic_ai_takes_for_an_overflow_is_one_unless_the_body_says_otherwise():
    def error(body):
        return ModelHTTPError.for_category(
            ModelContextWindowExceededError, status_code=400, model_name="m", body=body
        )

    assert overflow_in(error({"message": "Trop long."})) == Overflow()
    assert overflow_in(ModelContextWindowExceededError("m", "Trop long.")) == Overflow()
    assert overflow_in(ModelAPIError("m", LONG_PROMPT["message"])) == Overflow(3, 5)
    # Pydantic AI 2.66 takes Cohere's refusal of a long answer for one.
    row = row_of("cohere-output")
    assert overflow_in(error(parsed(row))) is None


async def test_of_several_models_the_first_overflow_counts():
    small, large = (
        Refused(
            400, json.dumps({"error": {"message": f"prompt is too long: 9 tokens > {n} maximum"}})
        )
        for n in (3, 7)
    )
    down = Refused(503, '{"error": {"message": "down"}}')
    for answers, limit in (((down, small, large), 3), ((large, down, small), 7)):
        models = [provider_model("openai", Script(answer)) for answer in answers]
        with pytest.raises(FallbackExceptionGroup) as caught:
            await Agent(FallbackModel(*models)).run("Hello.")
        assert overflow_in(caught.value) == Overflow(limit, 9)
    models = [provider_model("openai", Script(down)) for _ in range(2)]
    with pytest.raises(FallbackExceptionGroup) as caught:
        await Agent(FallbackModel(*models)).run("Hello.")
    assert overflow_in(caught.value) is None


def test_an_overflow_is_seen_in_what_an_error_came_from():
    error = RuntimeError("wrapped")
    error.__cause__ = ModelHTTPError(400, "m", LONG_PROMPT)
    assert overflow_in(error) == Overflow(3, 5)
    error.__cause__ = error
    assert overflow_in(error) is None
    assert overflow_in(UnexpectedModelBehavior("odd", json.dumps(LONG_PROMPT))) == Overflow(3, 5)
    assert overflow_in(KeyError(LONG_PROMPT["message"])) is None


@pytest.mark.parametrize("kind", ["openai", "anthropic", "responses"])
async def test_a_stream_in_which_nothing_came_is_an_overflow_only_near_the_window(kind):
    error = await raised(kind, Empty(), stream=True)
    assert overflow_in(error, window=2048, sent=1_900) == Overflow(2048)
    assert overflow_in(error, window=2048, sent=1_000) is None
    assert overflow_in(error, window=None, sent=1_900) is None
    assert overflow_in(error) is None


# Answers that a full window cut


def answer(*parts, finish: Any = "length", used=(0, 0)):
    return ModelResponse(
        list(parts) or [TextPart("Well")],
        usage=RequestUsage(input_tokens=used[0], output_tokens=used[1]),
        finish_reason=finish,
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_the_stop_reason_of_a_full_window_is_believed(stream):
    finish = "model_context_window_exceeded"
    responses = {}
    for reason in (finish, "max_tokens"):
        script = Script(Said("Well", finish=reason))
        agent = Agent(provider_model("anthropic", script))
        if stream:
            async with agent.run_stream("Hello.") as result:
                await result.get_output()
                responses[reason] = result.response
        else:
            responses[reason] = (await agent.run("Hello.")).response
    assert filled(responses[finish], None, 0)
    assert not filled(responses["max_tokens"], None, 0)
    assert not filled(responses["max_tokens"], 200_000, 190_000)


async def test_an_answer_that_met_the_end_of_the_window_was_cut_by_it():
    for used, cut in (((2_000, 48), True), ((2_000, 40), True), ((2_000, 8), False)):
        script = Script(Said("Well", *used, finish="length"))
        response = (await Agent(provider_model("openai", script)).run("Hello.")).response
        assert filled(response, 2_048, 2_000) is cut
        assert not filled(response, None, 2_000)


def test_without_usage_what_was_sent_decides():
    assert filled(answer(), 2_048, 1_900)
    assert not filled(answer(), 2_048, 500)
    assert not filled(answer(used=(500, 100)), 2_048, 1_900)


def test_an_answer_that_ended_by_itself_was_not_cut():
    assert not filled(answer(finish="stop", used=(2_000, 48)), 2_048, 2_000)
    assert not filled(answer(finish="tool_call", used=(2_000, 48)), 2_048, 2_000)


def test_an_empty_answer_at_the_end_of_the_window_was_cut():
    for parts in ([TextPart("")], [ThinkingPart("")]):
        assert filled(answer(*parts, finish="stop", used=(36_000, 0)), 32_768, 30_000)
        assert filled(answer(*parts, finish=None), 32_768, 30_000)
        assert not filled(answer(*parts, finish="stop", used=(10_000, 0)), 32_768, 30_000)
    for part in (ToolCallPart("look"), ThinkingPart("Hm."), TextPart("Yes.")):
        assert not filled(answer(part, finish="stop", used=(36_000, 0)), 32_768, 30_000)
    nothing = ModelResponse([], finish_reason=None)
    assert filled(nothing, 32_768, 30_000)
