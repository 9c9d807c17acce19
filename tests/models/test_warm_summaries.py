"""Summaries that nobody is named for: by the session's own model on its warm cache, or for less."""

import json
from dataclasses import dataclass
from uuid import uuid4

import pytest
from agents import small
from anthropic import AsyncAnthropic
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from scripted_providers import Said, Script, provider_model

from refold.fold.compactor import MANUAL, context
from refold.fold.job import Job
from refold.fold.material import Material, Passage
from refold.integrations.pydantic_ai import Refold
from refold.log import Span
from refold.models import counter_for
from refold.models.summarizer_choice import (
    CHEAPER,
    WARM_SECONDS,
    AgentRequest,
    WarmSummarizer,
    choose_cheapest,
    same_account,
)
from refold.view import Fold
from refold.view.profiles import Trigger
from refold.wire import Shape

KINDS = ["openai", "responses", "anthropic"]
ASKED = "This conversation is about to be compacted"
SUMMARY = """Title: Food for a dog
## Goal
- A plan for Brumbel's meals is wanted. "plan the meals of Brumbel"
"""
MODELS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-5", "responses": "gpt-5"}


async def talk(kind, *answers, turns=3, **options):
    """A conversation of some turns, and what its provider receives."""
    script = Script(*(Said(f"Noted, {'well ' * 800}") for _ in range(turns)), *answers)
    model = provider_model(kind, script)
    refold = Refold("memory:", **options)
    agent = Agent(model, capabilities=[refold], instructions="You feed dogs.")

    @agent.tool_plain
    def look_up(what: str) -> str:
        """Look something up."""
        return what

    for turn in range(turns):
        prompt = f"Please plan the meals of Brumbel for day {turn}."
        await agent.run(prompt, conversation_id="dog")
    return await refold.session("dog", model), script


def messages_of(body):
    return body.get("messages") or body["input"]


def without_marks(value):
    """A part of a request without the marks that say where a cache may end."""
    if isinstance(value, dict):
        return {key: without_marks(one) for key, one in value.items() if key != "cache_control"}
    return [without_marks(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", KINDS)
async def test_the_request_is_the_last_one_with_an_instruction_below_it(kind):
    session, script = await talk(kind, Said(SUMMARY))
    compacted = await session.compact()
    last, asked = script.received[-2:]
    for key in {*last, *asked} - {"messages", "input"}:
        assert asked.get(key) == last.get(key), key
    before, after = messages_of(last), messages_of(asked)
    assert without_marks(after[: len(before)]) == without_marks(before)
    # Below it: what the model answered to it, and the instruction.
    assert len(after) == len(before) + 2
    assert ASKED in json.dumps(after[-1])
    assert compacted.summary.by == f"{session.setup.model}"
    assert "Brumbel's meals" in compacted.summary.text
    [first, *_] = compacted.summary.report.offers
    assert first.how == "warm"


async def test_marks_of_the_cache_stay_where_they_were():
    session, script = await talk("anthropic", Said(SUMMARY))
    await session.compact()
    last, asked = script.received[-2:]
    assert asked["system"] == last["system"]
    assert asked["tools"] == last["tools"]
    assert "cache_control" in json.dumps(last)
    assert json.dumps(asked).count("cache_control") == json.dumps(last).count("cache_control")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_focus_is_heeded(kind):
    session, script = await talk(kind, Said(SUMMARY))
    await session.compact("the allergies of the dog")
    assert "the allergies of the dog" in json.dumps(messages_of(script.received[-1])[-1])


class Answering:
    """A model that answers by a function, where a script of HTTP could not call tools."""

    def __init__(self, summary, *, window=200_000):
        self.asked = []
        self.summary = summary
        self.model = FunctionModel(self.answer, profile={"context_window": window})

    def answer(self, messages, info):
        last = str(messages[-1].parts[-1].content)
        if ASKED in last or "Summarize the record" in last:
            self.asked.append((messages, info))
            return self.summary(last)
        return ModelResponse([TextPart(f"Noted, {'well ' * 800}")])


async def folded(answering, output_type=str, turns=3, **options):
    refold = Refold("memory:", **options)
    agent = Agent(answering.model, capabilities=[refold], output_type=output_type)
    for turn in range(turns):
        await agent.run(f"Please plan the meals of Brumbel for day {turn}.", conversation_id="dog")
    return await refold.session("dog", answering.model)


async def test_a_tool_call_is_a_failure_and_the_transcript_is_asked_next():
    def summary(last):
        calls = [ToolCallPart("look_up", {})]
        return ModelResponse(calls if ASKED in last else [TextPart(SUMMARY)])

    answering = Answering(summary)
    done = await (await folded(answering)).compact()
    assert len(answering.asked) == 2
    assert "Brumbel's meals" in done.summary.text
    assert done.summary.usage["calls"] == 2  # the failed one was paid for, too


async def test_an_agent_that_may_not_answer_in_words_is_asked_with_a_transcript():
    class Meal(BaseModel):
        name: str

    class Cooking(Answering):
        def answer(self, messages, info):
            if info.output_tools:
                meal = {"name": "meat " * 800}
                return ModelResponse([ToolCallPart(info.output_tools[0].name, meal)])
            return super().answer(messages, info)

    answering = Cooking(lambda _: ModelResponse([TextPart(SUMMARY)]))
    done = await (await folded(answering, Meal)).compact()
    assert [one.how for one in done.summary.report.offers] == ["transcript"]
    assert not any(ASKED in str(messages) for messages, _ in answering.asked)


async def test_who_waits_gets_the_logs_own_summary_at_once():
    answering = Answering(lambda _: ModelResponse([TextPart(SUMMARY)]), window=6_000)
    profile = small(summarizer="auto", trigger=Trigger(soft=0, hard=0.5))
    session = await folded(answering, turns=6, profile=profile)
    assert session.inputs.foldings
    assert not answering.asked


OWN, CHEAP = "anthropic:claude-sonnet-4-5", f"anthropic:{CHEAPER['anthropic']}"


@dataclass
class Writer:
    name: str
    room: int = 100_000
    warm: bool = False
    structured: bool = False

    @property
    def counter(self):
        return counter_for(self.name)


def last_request(tokens, *, at=0.0, cache=True):
    settings = {"cache": True} if cache else {}
    answer = ModelResponse([TextPart("Yes.")])
    return AgentRequest(None, (), settings, ModelRequestParameters(), answer, 9, (), tokens, at)


def chosen(folded=80_000, *, trigger="soft", now=1.0, cache=True):
    """The choice where so many tokens are folded, of 100,000 that were sent."""
    given = context(Fold(), {}, folded, model=OWN, summarizer="auto")
    job = Job("s", uuid4(), (Span(2, 5),), trigger, context=given)
    turns = range(max(1, folded // 500))
    said = (Passage(seq, "assistant", (Shape("text", "word " * 400),)) for seq in turns)
    material = Material(tuple(said))
    warm = WarmSummarizer(OWN, last_request(100_000, cache=cache), counter_for(OWN), {})
    return choose_cheapest(
        job, material, OWN, warm, [Writer(OWN), Writer(CHEAP)], clock=lambda: now
    )


def test_the_cheapest_is_asked_first_and_all_prices_are_told():
    choice = chosen()
    prices = [one.dollars for one in choice.offers]
    assert prices == sorted(prices)
    assert {(one.model, one.how) for one in choice.offers} == {
        (OWN, "warm"),
        (OWN, "transcript"),
        (CHEAP, "transcript"),
    }
    assert choice.offers[0].how == "warm"
    assert choice.summarizers[0].warm
    assert len(choice.summarizers) == 2


@pytest.mark.parametrize("cold", [{"now": WARM_SECONDS + 1}, {"cache": False}])
def test_a_cold_cache_is_priced_as_one(cold):
    [warm] = [one for one in chosen(**cold).offers if one.how == "warm"]
    [cached] = [one for one in chosen().offers if one.how == "warm"]
    assert warm.dollars > 5 * cached.dollars


def test_a_summary_that_costs_more_than_what_it_stands_for_is_not_asked_for():
    choice = chosen(300)
    assert not choice.summarizers
    assert "would cost $" in choice.why
    # Unless somebody asked for it.
    assert chosen(300, trigger=MANUAL).summarizers


def model_at(host, key="k"):
    made = AsyncAnthropic(api_key=key, base_url=host)
    return AnthropicModel("claude-scripted", provider=AnthropicProvider(anthropic_client=made))


def test_a_conversation_goes_nowhere_but_where_it_goes_anyway():
    official = "https://api.anthropic.com"
    assert same_account(model_at(official), model_at(official))
    assert not same_account(model_at(official), model_at(official, "another"))
    assert not same_account(model_at("http://localhost:8080"), model_at(official))
    assert not same_account(model_at("http://localhost:8080"), model_at("http://localhost:8080"))
