"""Sessions and agents whose summaries a model writes."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.profiles import ModelProfile
from sessions import Quarter
from shown import changed
from summarizers import Scripted, writing
from talks import COUNTER, SMALL, Talk, setup, work

from refold import Refold
from refold.engine import LocalEngine
from refold.errors import FoldNotMade
from refold.fold.compactor import Compactor
from refold.fold.summary import parse
from refold.log import CODEC, FoldCompleted, FoldFailed, Message, Span
from refold.models import ModelSettings
from refold.models.experience import Setup
from refold.view import Budget
from refold.view.profiles import BALANCED

SAID = "## Decisions\n- src/part_1.py was read; value_1 is 1"


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.15, 0.2, 0.25, 0.5])
async def test_by_however_coarse_a_count_the_past_is_folded(log, spread):
    given = Setup("test:model", Quarter(spread), Budget(window=16_000, reserve=4_000), BALANCED)
    talk = await Talk.open(log, given)
    await talk.go(*work(*range(60), size=1_200))
    assert (await talk.folds())[1] >= 1


async def test_what_is_forgotten_while_it_is_folded_is_not_noted(log):
    notes = []

    async def remember(summary, _job):
        notes.append(summary.text)

    class Slow(Scripted):
        async def ask(self, guard, prompt, job):
            told = await super().ask(guard, prompt, job)
            await log.forget("s", Span(6, 6))
            return told

    engine = LocalEngine(log, Compactor(log, COUNTER, writing(Slow(SAID)), remember))
    talk = await Talk.open(log, setup(window=20_000), engine=engine)
    await talk.go(*work(*range(4)))
    with pytest.raises(FoldNotMade, match="forgotten"):
        await talk.session.compact()
    assert notes == []


def answering(text, name="same"):
    def answer(messages, info):  # noqa: ARG001 - as Pydantic AI calls it
        asked.append(bool(info.instructions and "summaries of recorded" in info.instructions))
        return ModelResponse([TextPart(text)])

    asked: list[bool] = []
    plain: ModelProfile = {"supports_json_schema_output": False}
    return FunctionModel(answer, model_name=name, profile=plain), asked


SIZES = {"function:same": ModelSettings(window=2_500)}


async def talk_long(agent, conversation, turns=8):
    for nth in range(turns):
        await agent.run(f"Look at part {nth}. " * 60, conversation_id=conversation)


async def ends(refold, conversation) -> list[Any]:
    values = map(CODEC.decode, await refold.log.read(conversation))
    return [one for one in values if isinstance(one, FoldCompleted | FoldFailed)]


@pytest.mark.parametrize("name", ["nonsense:model", "openai:gpt-4o-mini"])
async def test_a_summarizer_that_cannot_be_had_does_not_keep_a_session_from_folding(
    monkeypatch, name
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model, _ = answering("Looked at it.")
    async with Refold("memory:", summarizer=name, models=SIZES) as refold:
        await talk_long(Agent(model, capabilities=[refold]), "c")
        found = await ends(refold, "c")
    assert found
    assert all(isinstance(one, FoldCompleted) for one in found)
    reports = [parse(one.summary).report for one in found]
    assert all(report and report.refused for report in reports)


async def test_each_conversation_is_summarized_by_its_own_model():
    models = [answering("## State\n- Looked at part 1") for _ in range(2)]
    async with Refold("memory:", summarizer="primary", models=SIZES) as refold:
        agents = [Agent(model, capabilities=[refold]) for model, _ in models]
        for nth in range(8):
            for which, agent in enumerate(agents):
                await agent.run(f"Look at part {nth}. " * 60, conversation_id=f"c{which}")
        for which, (_, asked) in enumerate(models):
            assert await ends(refold, f"c{which}")
            assert sum(asked) >= 1


async def test_a_summarizer_with_the_agents_name_is_the_one_that_is_asked():
    (main, by_main), (own, by_own) = answering("Looked."), answering("## State\n- Looked at part 1")
    async with Refold("memory:", summarizer=own, models=SIZES) as refold:
        await talk_long(Agent(main, capabilities=[refold]), "c")
    assert sum(by_own) >= 1
    assert sum(by_main) == 0


async def test_every_word_is_there_whoever_summarizes(log):
    talk = await Talk.open(
        log, setup(changed(SMALL, fold={"apply": "background"})), write=writing(Scripted(SAID))
    )
    said = [*work(*range(30))]
    await talk.go(*said)
    await asyncio.sleep(0)
    assert len(await talk.values(Message)) == len(said)
    assert await talk.all_rebuilt() == len(talk.sent)
