"""What those who watch an agent are told: events in its stream, spans, and recall when needed."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportTypedDictNotRequiredAccess=false
# Tests know which of many kinds of parts they look at.

import events_reference
import pytest
from agents import Scripted, agent_with, call, folds, last, looks_up, said, small, with_look_up
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import TypeAdapter
from pydantic_ai import Agent, InstrumentationSettings
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import AgentStreamEvent

from refold import Refold
from refold.errors import InvalidInput
from refold.integrations.pydantic_ai import SessionEvent
from refold.session import CompactionComplete, CompactionStart, UsageInfo, event_from_json
from refold.view.profiles import PROFILES

START, COMPLETE = "session.compaction_start", "session.compaction_complete"


async def events(agent, prompt) -> list[SessionEvent]:
    async with agent.run_stream_events(prompt, conversation_id="c") as stream:
        return [event async for event in stream if isinstance(event, SessionEvent)]


def folding_agent(memory, model, *beside) -> Agent:
    return with_look_up(agent_with(memory, model, *beside), size=300)


@pytest.mark.req("R128", "R040")
async def test_each_request_says_how_full_the_window_is():
    agent = folding_agent(Refold(), Scripted(looks_up))
    told = await events(agent, "look up x")
    assert [one.name for one in told] == ["session.usage_info"] * 2
    assert [one.session for one in told] == ["c", "c"]
    first, second = (one.details for one in told)
    assert (first["isInitial"], second["isInitial"]) == (True, False)
    assert first["tokenLimit"] == 200_000 - 16_384
    assert second["messagesLength"] == 3
    assert second["currentTokens"] > first["currentTokens"]
    assert first["toolDefinitionsTokens"] > 0


@pytest.mark.req("R125", "R126")
async def test_folds_are_told_from_start_to_end():
    agent = folding_agent(Refold(profile=small()), Scripted(looks_up, window=4_000))
    told = [one for nth in range(20) for one in await events(agent, f"look up {nth}")]
    names = [one.name for one in told if one.name != "session.usage_info"]
    # The last fold may still be made when the last run ends; each other one was told to the end.
    assert names.count(START) - (names[-1] == START) == names.count(COMPLETE) > 0
    done = next(one for one in told if one.name == COMPLETE)
    assert done.details["success"]
    assert done.details["messagesRemoved"] > 0


async def test_events_are_typed_and_their_json_stays_as_it_is():
    watched = []
    memory = Refold(profile=small(), watch=lambda session, event: watched.append((session, event)))
    agent = folding_agent(memory, Scripted(looks_up, window=4_000))
    told = [one for nth in range(20) for one in await events(agent, f"look up {nth}")]
    typed = [one.event for one in told]
    assert {UsageInfo, CompactionStart, CompactionComplete} <= {*map(type, typed)}
    assert all(event in [each for _, each in watched] for event in typed)
    assert [event.as_json() for event in typed] == [one.details for one in told]
    adapter = TypeAdapter(AgentStreamEvent)
    for one in told:
        sent = adapter.dump_python(one, mode="json")
        assert "event" not in sent
        assert sent["details"] == one.details
        again = SessionEvent(name=sent["name"], session=sent["session"], details=sent["details"])
        assert type(again.event) is type(one.event)
        assert again.event.as_json() == one.details


@pytest.mark.parametrize("event", events_reference.SAMPLES, ids=lambda event: event.NAME)
def test_each_event_is_read_back_from_its_json(event):
    again = event_from_json(event.as_json())
    assert type(again) is type(event)
    assert again == event


@pytest.mark.parametrize("payload", [{}, {"type": "session.other"}, {"type": "session.reread"}])
def test_what_is_no_event_is_refused_with_the_reason(payload):
    with pytest.raises(InvalidInput) as refused:
        event_from_json(payload)
    assert refused.value.fix


async def test_spans_follow_the_conventions_and_say_what_was_sent():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings = InstrumentationSettings(tracer_provider=provider)
    model = Scripted(looks_up, window=4_000)
    agent = folding_agent(Refold(profile=small()), model, Instrumentation(settings))
    for nth in range(12):
        await agent.run(f"look up {nth}", conversation_id="c")
    spans = exporter.get_finished_spans()
    views = [span for span in spans if span.name == "refold.view"]
    assert len(views) == len(model.sent)
    for span in spans:
        if span.name.startswith("refold."):
            assert span.attributes["gen_ai.conversation.id"] == "c"
    assert views[-1].attributes["gen_ai.request.model"] == "function:scripted"
    assert views[0].attributes["refold.view.messages"] == len(model.sent[0])
    folds = [span for span in spans if span.name == "refold.fold"]
    assert any(span.attributes.get("refold.fold.messages_removed") for span in folds)
    # no one's words
    assert not any("look up" in str(span.attributes) for span in (*views, *folds))


# Recall.


def tools(info) -> set[str]:
    return {one.name for one in info.function_tools}


@pytest.mark.req("R021")
async def test_recall_is_offered_when_something_is_out_of_sight_and_reads_it_back():
    def script(scripted, messages):
        words = last(messages)
        if words.startswith("recall "):
            return [call("recall_search", "s1", query=words[7:])]
        if words.startswith("read "):
            return [call("recall_read", f"r{len(scripted.sent)}", at=words[5:])]
        return looks_up(scripted, messages)

    memory, model = Refold(profile=small()), Scripted(script, window=4_000)
    agent = folding_agent(memory, model)
    for nth in range(12):
        await agent.run(f"look up {nth}", conversation_id="c")
    assert tools(model.infos[0]) == {"look_up"}
    assert await folds(memory)
    await agent.run("look up 12", conversation_id="c")
    assert tools(model.infos[-1]) == {"look_up", "recall_search", "recall_read"}
    await agent.run("recall answer 2", conversation_id="c")
    assert "answer 2" in last(model.sent[-1])
    await agent.run("read 2-9", conversation_id="c")
    found = last(model.sent[-1])
    assert "look up 0" in found
    assert len(found) <= 8_000


@pytest.mark.req("R020", "R021")
async def test_what_was_read_back_is_not_archived_as_something_new():
    def script(scripted, messages):
        if last(messages).startswith("read "):
            return [call("recall_read", f"r{len(scripted.sent)}", at=f"2-{9 + len(scripted.sent)}")]
        return looks_up(scripted, messages)

    rewrite = PROFILES["balanced"].rewrite.model_copy(update={"target_tokens": 2_000})
    memory = Refold(profile=small(rewrite=rewrite))
    model = Scripted(script, window=100_000)
    agent = folding_agent(memory, model)
    for nth in range(6):
        await agent.run(f"look up {nth}", conversation_id="c")
    for nth in range(12):
        await agent.run(f"read {nth}", conversation_id="c")
    shown = [
        part
        for message in model.sent[-1]
        for part in message.parts
        if part.part_kind == "tool-return" and part.tool_name == "recall_read"
        if not part.content.startswith("Unknown")  # before anything was out of sight
    ]
    references = [part.content for part in shown if "archived" in str(part.content)]
    assert not references
    assert any(len(part.content) < 200 for part in shown)  # but they do not pile up


async def test_no_recall_when_it_is_not_wanted():
    model = Scripted(looks_up, window=4_000)
    agent = folding_agent(Refold(profile=small(), recall=False), model)
    for nth in range(12):
        await agent.run(f"look up {nth}", conversation_id="c")
    assert all(tools(info) == {"look_up"} for info in model.infos)
    assert said(model.sent[-1])
