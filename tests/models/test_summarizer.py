"""Models as summarizers: which one is asked, and what a provider receives."""

import json
from dataclasses import replace
from uuid import UUID

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from scripted_providers import Refused, Said, Script, provider_model

from refold.errors import WindowExceeded
from refold.fold.compactor import MANUAL, context
from refold.fold.job import Job
from refold.fold.material import Material
from refold.fold.write.draft import Form
from refold.fold.write.transcript import GUARD
from refold.log import Span
from refold.models import ModelSettings
from refold.models.summarizer import INTERACTION, ModelSummarizer, Summarizers
from refold.view.profiles import BALANCED, CO_CLI, PROFILES

FORM = Form(title="Work")


def job(profile=BALANCED, trigger="soft", **models):
    given = context(profile.fold, {}, **models)
    return Job("s", UUID(int=1), (Span(2, 3),), trigger, None, given)


def saying(text, seen=None, **how):
    def answer(messages, info):
        if seen is not None:
            seen.append((messages, info))
        return ModelResponse([TextPart(text)])

    return FunctionModel(answer, **how)


@pytest.mark.req("R054", "R056", "R061", "R063")
async def test_the_summarizer_has_no_tools_and_is_told_so_in_its_instructions():
    seen = []
    told = await ModelSummarizer(saying("## State\n- Good.", seen)).ask(
        GUARD, "A record.", job(CO_CLI)
    )
    [(messages, info)] = seen
    assert told.text == "## State\n- Good."
    assert told.usage["input"] > 0
    assert info.function_tools == []
    assert info.output_tools == []
    assert info.allow_text_output
    assert info.instructions == GUARD.strip()
    assert len(messages) == 1
    assert info.model_settings["extra_headers"] == {"X-Interaction-Type": INTERACTION}
    assert INTERACTION == "conversation-compaction"


@pytest.mark.req("R061")
async def test_the_header_reaches_a_provider_and_no_tool_does():
    script = Script(Said("## State\n- Good."))
    model = provider_model("anthropic", script)
    told = await ModelSummarizer(model).ask(GUARD, "A record.", job(CO_CLI))
    [sent] = script.received
    assert "tools" not in sent or not sent["tools"]
    assert GUARD.strip() in json.dumps(sent["system"], ensure_ascii=False).replace(
        "\\n", "\n"
    ).replace('\\"', '"')
    assert told.usage == {"input": 10, "output": 5, "cache_read": 0}


async def test_a_model_that_can_fills_in_a_form():
    script = Script(Said(FORM.model_dump_json()))
    summarizer = ModelSummarizer(provider_model("openai", script))
    assert summarizer.structured
    told = await summarizer.ask(GUARD, "A record.", job())
    assert told.form == FORM
    [sent] = script.received
    assert sent["response_format"]["type"] == "json_schema"
    assert "tools" not in sent


@pytest.mark.parametrize("text", ["## State\n- Good.", '{"title": "Wo', "No."])
async def test_an_answer_that_is_no_form_is_read_as_it_came(text):
    summarizer = ModelSummarizer(provider_model("openai", Script(Said(text))))
    told = await summarizer.ask(GUARD, "A record.", job())
    assert (told.text, told.form) == (text, None)


def test_a_model_that_cannot_is_asked_for_a_text():
    assert not ModelSummarizer(TestModel()).structured


async def test_a_refusal_for_length_leaves_less_room():
    body = json.dumps(
        {
            "error": {
                "code": 400,
                "type": "exceed_context_size_error",
                "message": "request (3220 tokens) exceeds the available context size "
                "(2048 tokens), try increasing it",
                "n_prompt_tokens": 3220,
                "n_ctx": 2048,
            }
        }
    )
    model = provider_model("openai", Script(Refused(400, body)), "local")
    summarizer = ModelSummarizer(model)
    before = summarizer.room
    with pytest.raises(WindowExceeded):
        await summarizer.ask(GUARD, "A record. " * 1_000, job(CO_CLI))
    assert summarizer.room < 2048 < before


async def test_each_refusal_that_names_no_limit_leaves_less_room_still():
    body = json.dumps(
        {
            "error": {
                "message": "Your input exceeds the context window of this model.",
                "type": "invalid_request_error",
                "code": "context_length_exceeded",
            }
        }
    )
    model = provider_model("openai", Script(*[Refused(400, body)] * 4), "local")
    summarizer = ModelSummarizer(model)
    rooms = [summarizer.room]
    for _ in range(4):
        with pytest.raises(WindowExceeded):
            await summarizer.ask(GUARD, "word " * summarizer.room, job(CO_CLI))
        rooms.append(summarizer.room)
    assert rooms == sorted({*rooms}, reverse=True)


async def test_other_errors_stay_what_they_are():
    model = provider_model("openai", Script(Refused(401, '{"error": {"message": "No such key."}}')))
    with pytest.raises(Exception, match="No such key"):
        await ModelSummarizer(model).ask(GUARD, "A record.", job(CO_CLI))


def test_the_room_is_the_summarizers_own_window_less_its_own_reserve():
    named = ModelSummarizer(saying("")).name
    small = ModelSummarizer(saying(""), {named: ModelSettings(window=4_000)})
    assert 1_500 < small.room < 3_000
    own = ModelSummarizer(saying(""), {named: ModelSettings(window=4_000, output=100)})
    assert own.room > small.room


CHOICES = [
    # profile, summarizer, trigger -> who writes
    ("balanced", "", "soft", None),
    ("balanced", "", MANUAL, None),
    ("balanced", "cheap", "soft", "cheap"),
    ("balanced", "cheap", MANUAL, "main"),
    ("balanced", "primary", "soft", "main"),
    ("balanced", "primary", MANUAL, "main"),
    ("co-cli", "", "messages", "main"),
    ("co-cli", "cheap", "messages", "cheap"),
    ("co-cli", "cheap", MANUAL, "main"),
    ("inkeep", "cheap", "soft", "cheap"),
    ("copilot", "", "soft", "main"),
    ("cowagent", "", "turns", "main"),
]


@pytest.mark.parametrize(("profile", "summarizer", "trigger", "who"), CHOICES)
@pytest.mark.req("R058", "R059", "R118")
async def test_who_writes(profile, summarizer, trigger, who):
    models = {name: saying("", model_name=name) for name in ("main", "cheap")}
    choose = Summarizers(lambda name, _: models[name])
    asked = job(PROFILES[profile], trigger, model="main", summarizer=summarizer)
    found = (await choose(asked, Material(()))).summarizers
    assert [one.name.partition(":")[2] for one in found] == ([who] if who else [])


async def test_a_model_is_made_once():
    models = {name: saying("", model_name=name) for name in ("main", "other")}
    choose = Summarizers(lambda name, _: models[name])

    async def chosen(name):
        return (await choose(job(CO_CLI, model=name), Material(()))).summarizers[0]

    first = await chosen("main")
    assert await chosen("main") is first
    assert await chosen("other") is not first


async def test_two_models_of_one_name_are_two():
    models = [saying(text, model_name="same") for text in ("one", "two")]
    choose = Summarizers(lambda _, asked: models[asked.session == "s"])
    for session, text in (("r", "one"), ("s", "two"), ("r", "one")):
        asked = replace(job(CO_CLI, model="same"), session=session)
        [found] = (await choose(asked, Material(()))).summarizers
        assert (await found.ask(GUARD, "A record.", asked)).text == text


async def test_a_models_own_settings_stay():
    seen = []
    own = {"extra_headers": {"X-Gateway-Key": "k"}, "max_tokens": 500, "temperature": 0.1}
    await ModelSummarizer(saying("Good.", seen, settings=own)).ask(GUARD, "A.", job(CO_CLI))
    [(_, info)] = seen
    assert info.model_settings["extra_headers"] == {
        "X-Gateway-Key": "k",
        "X-Interaction-Type": INTERACTION,
    }
    assert info.model_settings["max_tokens"] == 500
    assert info.model_settings["temperature"] == 0.1
