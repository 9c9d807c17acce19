"""A conversation in a chat: turns, interrupts, failures, folds, and what its status says."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
import asyncio
import json
import re
from contextlib import asynccontextmanager

import pytest
from chatting import FakeSurface
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, TextPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from refold import Refold
from refold.cli.chat.chat import Chat
from refold.cli.chat.commands import run
from refold.cli.chat.conversation import Conversation, Parts, new_name
from refold.cli.chat.surface import ContextEvent, RemoteMessage, TextDelta, ToolCall, ToolResult
from refold.cli.chat.tail import SessionTail
from refold.errors import FoldCancelled, NothingToFold, SessionNotFound
from refold.fold.events import CompactionComplete, CompactionStart
from refold.log import CODEC, Message
from refold.settings import load_settings
from refold.stores import MemoryStore, SqliteStore
from refold.wire import wire_for


class Provider:
    """Answers as it is told; what it was sent is kept."""

    def __init__(self):
        self.sent = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.begun = asyncio.Event()
        self.how = self.echo

    async def stream(self, messages, info):
        self.sent.append(messages)
        async for piece in self.how(messages, info):
            yield piece

    async def echo(self, messages, _):
        yield "You said: "
        self.begun.set()
        await self.gate.wait()
        yield str(_prompts(messages)[-1].content)

    async def calls(self, messages, _):
        if isinstance(messages[-1].parts[-1], ToolReturnPart):
            yield "Done."
            return
        yield "Let me see. "
        yield {0: DeltaToolCall(name="slow", json_args='{"path": "a b"}', tool_call_id="c1")}
        yield {1: DeltaToolCall(name="quick", json_args="{}", tool_call_id="c2")}

    async def fails(self, messages, _):
        if messages:
            raise ModelHTTPError(429, "small", {"message": "slow down"})
        yield ""

    def model(self, name="small", window=20_000):
        return FunctionModel(
            stream_function=self.stream, model_name=name, profile={"context_window": window}
        )


def _prompts(messages):
    parts = [part for message in messages for part in message.parts]
    return [part for part in parts if isinstance(part, UserPromptPart)]


@asynccontextmanager
async def talking(provider, store=None, name="here", profile=None, tools=()):
    heard, changes = [], []
    models = {"small": provider.model(), "large": provider.model("large", 400_000)}
    models["tiny"] = provider.model("tiny", 3_000)
    parts = Parts(
        store=store or MemoryStore(),
        agent=Agent(),
        model=models["small"],
        settings=lambda: load_settings(profile),
        model_named=models.__getitem__,
        toolsets=[FunctionToolset([*tools])] if tools else (),
    )
    async with parts.store:
        made = Conversation(parts, name, heard.append, lambda: changes.append(1))
        made.happened, made.changes = heard, changes
        try:
            yield made
        finally:
            await made.close()


async def messages_of(conversation):
    entries = await conversation.log.read(conversation.name)
    return [json.loads(CODEC.decode(one).payload) for one in entries if one.kind == Message.KIND]


async def test_a_turn_is_heard_as_it_comes_and_kept():
    async with talking(Provider()) as talk:
        assert await talk.session() is None
        heard = []
        end = await talk.turn("Hello", heard.append)
        assert (end.how, end.text) == ("answered", "You said: Hello")
        assert "".join(one.text for one in heard if isinstance(one, TextDelta)) == end.text
        assert len(await messages_of(talk)) == 2
        assert await talk.session() is not None


@pytest.mark.req("R048")
async def test_a_turn_that_is_interrupted_keeps_what_was_said_and_the_next_one_works():
    provider = Provider()
    provider.gate.clear()
    async with talking(provider) as talk:
        turn = asyncio.create_task(talk.turn("Tell me everything", lambda _: None))
        await provider.begun.wait()
        assert talk.busy
        assert talk.interrupt()
        assert (await turn).how == "interrupted"
        assert not talk.busy
        assert not talk.interrupt()
        said = await messages_of(talk)
        assert said[-1]["parts"][0]["content"] == "You said: "
        provider.gate.set()
        assert (await talk.turn("And now?", lambda _: None)).text == "You said: And now?"
        seen = [str(one.content) for one in _prompts(provider.sent[-1])]
        assert seen == ["Tell me everything", "And now?"]


@pytest.mark.req("R048")
async def test_an_interrupt_in_the_middle_of_a_call_leaves_no_call_without_its_return():
    provider, begun = Provider(), asyncio.Event()

    async def slow(path: str) -> str:
        begun.set()
        await asyncio.sleep(60)
        return path

    async def quick() -> str:
        return "quick as that"

    provider.how = provider.calls
    async with talking(provider, tools=(slow, quick)) as talk:
        heard, returned = [], asyncio.Event()

        def on_event(one):
            heard.append(one)
            if isinstance(one, ToolResult):
                returned.set()

        turn = asyncio.create_task(talk.turn("Look", on_event))
        async with asyncio.timeout(20):
            await begun.wait()
            await returned.wait()
        assert talk.status.doing == "slow"
        talk.interrupt()
        assert (await turn).how == "interrupted"
        assert ToolCall("c1", "slow", 'path="a b"') in heard
        provider.how = provider.echo
        assert (await talk.turn("Go on", lambda _: None)).how == "answered"
        told = {
            part.tool_call_id: part.content
            for message in provider.sent[-1]
            for part in message.parts
            if isinstance(part, ToolReturnPart)
        }
        assert told == {"c1": "Interrupted by user.", "c2": "quick as that"}
        wire = wire_for("pydantic-ai")
        session = await talk.session()
        assert session is not None
        assert wire.problems(await session.next_messages()) == []


async def test_a_provider_that_fails_ends_the_turn_and_not_the_chat():
    provider = Provider()
    provider.how = provider.fails
    async with talking(provider) as talk:
        end = await talk.turn("Hello", lambda _: None)
        assert end.how == "failed"
        assert "429" in end.text
        assert "wait a moment" in end.fix
        provider.how = provider.echo
        assert (await talk.turn("Again", lambda _: None)).how == "answered"


@pytest.mark.req("R007", "R121")
async def test_a_turn_ends_at_its_limit_of_steps():
    provider = Provider()

    async def slow(path: str) -> str:
        return path

    async def quick() -> str:
        return ""

    async def forever(_messages, _info):
        yield {0: DeltaToolCall(name="quick", json_args="{}")}

    provider.how = forever
    async with talking(provider, profile="cowagent", tools=(slow, quick)) as talk:
        end = await talk.turn("Work", lambda _: None)
        assert end.how == "limit"
        assert len(provider.sent) == 15
        assert "max_steps" in end.fix


async def test_the_status_says_what_is_known_and_no_more():
    async with talking(Provider()) as talk:
        await talk.look()
        assert talk.status.filled is None
        assert talk.status.window == 20_000
        await talk.turn("Hello", lambda _: None)
        first = talk.status
        assert first.filled is not None
        assert first.filled.conversation > 0
        assert first.cost is None  # nobody knows this model's prices
        await talk.turn("x" * 4_000, lambda _: None)
        second = talk.status
        assert second.filled is not None
        assert second.filled.total > first.filled.total + 300
        assert talk.changes


@pytest.mark.req("R110", "R131")
async def test_a_fold_that_is_asked_for_changes_the_status_at_once():
    async with talking(Provider()) as talk:
        for at in range(6):
            await talk.turn(f"{at} " + "word " * 300, lambda _: None)
        before = talk.status.filled
        done = await talk.compact()
        after = talk.status.filled
        assert done.messages_removed
        assert before is not None
        assert after is not None
        assert after.total < before.total
        assert after.folds > 0
        told = [one.event for one in talk.happened if isinstance(one, ContextEvent)]
        assert any(isinstance(one, CompactionStart) for one in told)
        assert any(isinstance(one, CompactionComplete) for one in told)
        assert talk.status.folding is None


async def test_nothing_to_fold_is_said_and_changes_nothing():
    async with talking(Provider()) as talk:
        with pytest.raises(SessionNotFound):
            await talk.compact()
        await talk.turn("Hello", lambda _: None)
        await talk.compact()  # one turn can be folded, once it is over
        head = await talk.log.head("here")
        with pytest.raises(NothingToFold):
            await talk.compact()
        assert await talk.log.head("here") == head


@pytest.mark.req("R138")
async def test_a_fold_that_is_asked_for_can_be_cancelled(monkeypatch):
    """By a summarizer that never answers: the fold is given up, and the log says so."""
    provider, asked = Provider(), asyncio.Event()

    async def never(_messages, _info):
        asked.set()
        await asyncio.sleep(60)
        return ModelResponse([TextPart("never")])

    monkeypatch.setenv("REFOLD_SUMMARIZER", "primary")
    async with talking(provider) as talk:
        for at in range(6):
            await talk.turn(f"{at} " + "word " * 300, lambda _: None)
        talk.model = FunctionModel(never, stream_function=provider.stream, model_name="small")
        folding = asyncio.create_task(talk.compact())
        await asyncio.wait_for(asked.wait(), 20)
        assert talk.status.folding is not None
        assert talk.interrupt()
        with pytest.raises(FoldCancelled):
            await folding
        assert talk.status.folding is None
        assert (await talk.turn("Still there?", lambda _: None)).how == "answered"


@pytest.mark.req("R085")
async def test_a_switch_to_a_smaller_window_folds_first():
    async with talking(Provider()) as talk:
        for at in range(8):
            await talk.turn(f"{at} " + "word " * 400, lambda _: None)
        tiny, large = talk.model_named("tiny"), talk.model_named("large")
        assert not await talk.must_fold_for(large)
        assert await talk.must_fold_for(tiny)
        await talk.switch(tiny)
        assert talk.status.model.endswith("tiny")
        assert talk.status.window == 3_000
        assert talk.status.filled is not None
        assert talk.status.filled.folds > 0
        assert (await talk.turn("Fits?", lambda _: None)).how == "answered"


@pytest.mark.req("R113")
async def test_settings_that_change_apply_at_once(monkeypatch):
    async with talking(Provider()) as talk:
        await talk.turn("Hello", lambda _: None)
        monkeypatch.setenv("REFOLD_MAX_STEPS", "3")
        await talk.reload()
        assert talk.profile.max_steps == 3
        assert (await talk.turn("Again", lambda _: None)).how == "answered"
        assert len(await messages_of(talk)) == 4


async def test_what_another_terminal_says_is_told_here(tmp_path):
    path = tmp_path / "s.db"
    async with (
        talking(Provider(), SqliteStore(path)) as here,
        talking(Provider(), SqliteStore(path)) as there,
    ):
        surface = FakeSurface()
        news = SessionTail(here, surface)
        with news.quiet():
            await here.turn("Hello", lambda _: None)
        assert not await news.look()
        await there.turn("From there", lambda _: None)
        assert await news.look()
        assert surface.events == [
            RemoteMessage("you", "From there"),
            RemoteMessage("model", "You said: From there"),
        ]
        assert not await news.look()
        await here.turn("And here", lambda _: None)
        assert len(await messages_of(here)) == 6


async def test_nobody_clears_a_session_in_which_somebody_is_answered(tmp_path):
    """Else the request under way would go on without its prompt."""
    path, slow = tmp_path / "s.db", Provider()
    async with talking(slow, SqliteStore(path)) as here:
        await here.turn("Hello", lambda _: None)
        async with talking(Provider(), SqliteStore(path)) as there:
            slow.gate.clear()
            slow.begun.clear()
            turn = asyncio.create_task(here.turn("Go on", lambda _: None))
            await slow.begun.wait()
            surface = FakeSurface()
            for line in ("/clear", "/rewind 1", "/undo"):
                head = await there.log.head("here")
                await run(Chat(there, surface), line)
                assert "has not ended" in surface.last
                assert await there.log.head("here") == head
            slow.gate.set()
            assert (await turn).how == "answered"
            await run(Chat(there, surface), "/clear")
            assert "begins anew" in surface.last


async def test_the_memory_that_an_agent_has_already_is_used(tmp_path):
    provider = Provider()
    own = Refold(f"sqlite:///{tmp_path}/own.db")
    agent = Agent(provider.model(), capabilities=[own])
    parts = Parts(MemoryStore(), agent, provider.model(), load_settings, lambda _: None, own=own)
    talk = Conversation(parts, "here", lambda _: None, lambda: None)
    await talk.open()
    assert (await talk.log.sessions()).sessions == ()
    assert (await talk.turn("Hello", lambda _: None)).how == "answered"
    assert len(await messages_of(talk)) == 2
    assert talk.status.filled is not None
    await talk.close()


@pytest.mark.req("R085")
async def test_who_answered_until_then_folds_for_a_smaller_window(monkeypatch):
    asked = []

    def summary(_messages, info):
        asked.append(info)
        return ModelResponse([TextPart("Nothing much.")])

    monkeypatch.setenv("REFOLD_SUMMARIZER", "primary")
    provider = Provider()
    async with talking(provider) as talk:
        talk.model = FunctionModel(
            summary,
            stream_function=provider.stream,
            model_name="small",
            profile={"context_window": 20_000},
        )
        for at in range(8):
            await talk.turn(f"{at} " + "word " * 400, lambda _: None)
        await talk.switch(talk.model_named("tiny"))
        assert asked
        filled, window = talk.status.filled, talk.status.window
        assert filled is not None
        assert window is not None
        assert filled.total < window


async def test_tools_count_before_the_first_request_of_a_program(tmp_path):
    async def quick() -> str:
        """Return something, quickly, whenever it is called, whoever calls it."""
        return ""

    path = tmp_path / "s.db"
    async with talking(Provider(), SqliteStore(path), tools=(quick,)) as talk:
        await talk.turn("Hello", lambda _: None)
        told = talk.status.filled
    async with talking(Provider(), SqliteStore(path), tools=(quick,)) as talk:
        await talk.look()
        assert talk.status.filled is not None
        assert told is not None
        assert talk.status.filled.tools == told.tools > 0


async def test_a_chat_does_what_is_typed_until_the_person_leaves():
    class Typed(FakeSurface):
        def __init__(self, *lines):
            super().__init__()
            self.lines = list(lines)
            self.listening = None

        def begin(self, listening):
            self.listening = listening

        async def read(self):
            return self.lines.pop(0) if self.lines else None

    surface = Typed("Hello", "", "/nonsense", "/quit", "never said")
    async with talking(Provider(), name="") as talk:
        assert await Chat(talk, surface).run() == 0
        assert re.fullmatch(r"[0-9a-f-]+", talk.name)
        assert [one["kind"] for one in await messages_of(talk)] == ["request", "response"]
        assert surface.lines == ["never said"]
        assert surface.listening is not None
        assert not surface.listening.interrupt()
        assert not surface.listening.cancel()


def test_a_session_is_named_without_a_word_of_what_is_said():
    name = new_name()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-[0-9a-f]{6}", name)
    assert name != new_name()


async def test_the_window_fills_and_tokens_are_counted_while_an_answer_comes():
    provider, gates = Provider(), [asyncio.Event() for _ in range(2)]
    seen = []

    async def long(_messages, _info):
        for gate in gates:
            yield "many words " * 200
            await gate.wait()

    provider.how = long
    async with talking(provider) as talk:

        def on_event(event):
            seen.append(talk.status)
            if isinstance(event, TextDelta):
                gates[len(seen) - 1].set()

        assert talk.status.seconds is None
        await talk.turn("Tell me", on_event)
        first, second = seen
        assert second.seconds >= first.seconds >= 0
        assert 200 < first.tokens < second.tokens
        assert second.filled.total - first.filled.total == second.tokens - first.tokens
        # What the log counts afterwards is about what was shown while it came.
        assert talk.status.seconds is None
        assert talk.status.tokens == 0
        assert talk.status.filled.total == pytest.approx(second.filled.total, rel=0.1)


async def test_the_results_of_tools_fill_the_window_before_the_next_request():
    provider, statuses = Provider(), []

    async def slow(path: str) -> str:
        return path * 1_000

    async def quick() -> str:
        return ""

    provider.how = provider.calls
    async with talking(provider, tools=(slow, quick)) as talk:
        await talk.turn("Look", lambda event: statuses.append((event, talk.status)))
    calls = [one for event, one in statuses if isinstance(event, ToolCall)]
    results = [one for event, one in statuses if isinstance(event, ToolResult)]
    assert "slow" in calls[0].doing
    assert calls[0].seconds is not None
    assert results[-1].filled.total > calls[0].filled.total + 500
