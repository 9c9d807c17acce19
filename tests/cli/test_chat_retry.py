"""Answers that are cut off, and `/retry`: the prompt is sent again, and written once."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

import json
from dataclasses import replace

import pytest
from chatting import (
    FakeSurface,
    chat_with,
    place,  # noqa: F401 - for every test
    streamed,
)
from pydantic_ai import FunctionToolset
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import UserPromptPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from scripted_providers import Said, Script, provider_model

from refold.cli.chat.chat import Chat
from refold.cli.chat.conversation import TurnEnd
from refold.log import Message

RETRY = "/retry sends your message again"


class Typed(FakeSurface):
    """Types one line after another; a function among them is called instead."""

    def __init__(self, *lines):
        super().__init__()
        self.lines = [*lines]

    def begin(self, listening): ...

    async def read(self):
        while self.lines and callable(self.lines[0]):
            self.lines.pop(0)()
        return self.lines.pop(0) if self.lines else None


class Flaky:
    """A provider that refuses requests where a test says so."""

    def __init__(self):
        self.fails = lambda _: False
        self.model = FunctionModel(stream_function=self.answer, model_name="flaky")

    async def answer(self, messages, info):
        kind = self.fails(messages[-1].parts[-1])
        if kind == "after words":
            yield "The first half, "
        if kind:
            raise ModelHTTPError(503, "flaky", {"message": "busy"})
        async for part in streamed(messages, info):
            yield part

    def works(self):
        self.fails = lambda _: False


def is_result(part):
    return not isinstance(part, UserPromptPart)


async def played(flaky, *lines, tools=()):
    chat = chat_with({"function:flaky": flaky.model}, surface=(surface := Typed(*lines)))
    talk = chat.conversation
    if tools:
        talk._parts = replace(talk._parts, toolsets=(FunctionToolset([*tools]),))
    assert await Chat(talk, surface).run() == 0
    entries = [one for one in await talk.log.read("talk") if one.kind == Message.KIND]
    messages = [json.loads(one.body) for one in entries]
    kinds = [part["part_kind"] for message in messages for part in message["parts"]]
    return surface, kinds, await chat.model_context()


@pytest.mark.parametrize("again", ["/retry", "hello"])
@pytest.mark.parametrize("how", [True, "after words"])
async def test_a_prompt_that_failed_is_sent_again_and_written_once(again, how):
    flaky = Flaky()
    flaky.fails = lambda _: how
    surface, kinds, context = await played(flaky, "hello", flaky.works, again, "/retry")
    assert RETRY in surface.shown[0]
    # The beginning of an answer stays in the log, and is not sent.
    assert kinds == ["user-prompt", *(["text"] if how == "after words" else []), "text"]
    assert context == ["hello", "I heard: hello"]
    assert "There is nothing to send again" in surface.last


async def test_other_words_are_another_prompt():
    flaky = Flaky()
    flaky.fails = lambda _: True
    _, kinds, context = await played(flaky, "hello", flaky.works, "hello?")
    assert kinds == ["user-prompt", "user-prompt", "text"]
    assert context[-1] == "I heard: hello?"


async def test_the_same_words_after_an_answer_are_another_prompt():
    _, kinds, _ = await played(Flaky(), "hello", "hello")
    assert kinds == 2 * ["user-prompt", "text"]


@pytest.mark.parametrize("again", ["/retry", "read a.txt"])
async def test_a_tool_that_ran_is_not_run_again(again):
    runs = []

    def read_file(path: str) -> str:
        runs.append(path)
        return "its content"

    flaky = Flaky()
    flaky.fails = is_result
    _, kinds, context = await played(flaky, "read a.txt", flaky.works, again, tools=(read_file,))
    assert runs == ["a.txt"]
    assert kinds == ["user-prompt", "tool-call", "tool-return", "text"]
    assert context[-1] == "I heard: read a.txt"


async def test_a_prompt_that_was_never_logged_is_sent_all_the_same(monkeypatch):
    flaky = Flaky()
    surface = Typed("hello", flaky.works, "/retry")
    chat = chat_with({"function:flaky": flaky.model}, surface=surface)
    turn, turns = chat.conversation.turn, []

    async def refused(prompt, on_event, **more):
        turns.append(prompt)
        if len(turns) == 1:
            return TurnEnd("failed", "The model left.", "Wait.", "provider")
        return await turn(prompt, on_event, **more)

    monkeypatch.setattr(chat.conversation, "turn", refused)
    assert await Chat(chat.conversation, surface).run() == 0
    assert turns == ["hello", "hello"]
    assert await chat.model_context() == ["hello", "I heard: hello"]


KINDS = ("openai", "responses", "anthropic")
OFFICIAL = [pytest.param(kind, id=kind) for kind in KINDS]


async def scripted(model, *lines):
    """What was shown, the states of the answers in the log, and the context at the end."""
    surface = Typed(*lines)
    chat = chat_with({model.model_id: model}, surface=surface)
    assert await Chat(chat.conversation, surface).run() == 0
    entries = [one for one in await chat.conversation.log.read("talk") if one.kind == Message.KIND]
    messages = [json.loads(one.body) for one in entries]
    states = [one["state"] for one in messages if one["kind"] == "response"]
    return surface, states, await chat.model_context()


@pytest.mark.parametrize("kind", OFFICIAL)
async def test_an_answer_whose_stream_ends_without_a_reason_was_cut_off(kind):
    script = Script(Said("Half an ans", cut="ended"), Said("A whole answer."))
    surface, states, context = await scripted(provider_model(kind, script), "hello", "/retry")
    [problem] = surface.shown
    assert problem.split("\n")[0] == "The answer stopped before its end."
    assert problem.split("\n")[1].startswith(RETRY)
    assert states == ["interrupted", "complete"]
    assert context == ["hello", "A whole answer."]
    assert "Half an ans" not in json.dumps(script.received[-1])


def elsewhere(script):
    """A model of another server, which speaks the same API."""
    client = provider_model("openai", script).client
    client.base_url = "http://127.0.0.1:9/v1"
    return OpenAIChatModel("served", provider=OpenAIProvider(openai_client=client))


async def test_a_server_that_gives_no_reason_is_believed_until_it_has_given_one():
    silent, cut = Said("All of it.", cut="ended"), Said("Half an ans", cut="ended")
    surface, states, _ = await scripted(elsewhere(Script(silent, silent)), "hello", "and?")
    assert surface.shown == []
    assert states == ["complete", "complete"]
    surface, states, _ = await scripted(elsewhere(Script(Said("Hi."), cut)), "hello", "and?")
    assert surface.shown[0].startswith("The answer stopped before its end.")
    assert states == ["complete", "interrupted"]


@pytest.mark.parametrize(("kind", "finish"), [("openai", "length"), ("anthropic", "max_tokens")])
async def test_an_answer_that_stopped_at_a_limit_is_one_and_it_is_said_how_it_goes_on(kind, finish):
    script = Script(Said("One, two", finish=finish), Said(", three."))
    surface, states, context = await scripted(
        provider_model(kind, script), "count", "/retry", "go on"
    )
    limit, retried = surface.shown
    assert limit == "The model stopped at its output limit. Say `go on`.\n"
    assert "There is nothing to send again" in retried
    assert states == ["complete", "complete"]
    assert context == ["count", "One, two", "go on", ", three."]


@pytest.mark.parametrize("kind", OFFICIAL)
async def test_a_connection_that_is_lost_in_mid_answer_is_not_one_that_was_never_made(kind):
    script = Script(Said("Half an ans", cut="lost"), Said("A whole answer."))
    model = provider_model(kind, script)
    surface, states, context = await scripted(model, "hello", "/retry")
    what, fix, *_ = surface.text.split("\n")
    assert what == f"The connection to {model.model_id} broke in the middle of the answer."
    assert fix.startswith(RETRY)
    assert states == ["interrupted", "complete"]
    assert context == ["hello", "A whole answer."]
