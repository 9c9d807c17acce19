"""The slash commands that do something: going back, elsewhere, and on in another way."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportArgumentType=false
# Tests know what they look at: the fakes do as much as a command needs.

import asyncio
import json

import pytest
from chatting import (
    OfferingSurface,
    chat_with,
    model_of,
    place,  # noqa: F401 - for every test
    prompt_in,
    streamed,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.function import FunctionModel

from refold.cli.chat.commands import completions
from refold.log import CODEC, FoldCompleted
from refold.settings import load_settings

BIG = "word " * 1_500


async def talked(**options):
    chat = chat_with(**options)
    await chat.say("one", "two", "three")
    return chat


@pytest.mark.req("R107", "R112")
@pytest.mark.parametrize("line", ["/clear", "/context clear"])
async def test_clear_begins_anew_and_the_log_keeps_everything(line):
    chat = await talked()
    before = await chat.model_context()
    shown = await chat.type(line)
    assert await chat.model_context() == []
    assert "The log keeps all 6 messages" in shown
    assert "/undo" in shown
    info = await chat.conversation.log.info("talk")
    assert info.messages == 6
    await chat.type("/undo")
    assert await chat.model_context() == before


@pytest.mark.req("R114")
async def test_undo_takes_back_the_newest_act_and_redo_brings_it_back():
    chat = await talked()
    whole = await chat.model_context()
    await chat.type("/compact")
    folded = await chat.model_context()
    assert "the newest fold" in await chat.type("/undo")
    assert await chat.model_context() == whole
    assert 'your last turn: "three"' in await chat.type("/undo")
    assert await chat.model_context() == whole[:4]
    await chat.type("/redo")
    await chat.type("/redo")
    assert await chat.model_context() == folded
    assert "nothing to bring back" in await chat.type("/redo")
    assert (await chat.conversation.log.info("talk")).messages == 6


async def test_where_a_fold_was_made_in_the_turn_undo_asks_which():
    chat = await talked()
    await chat.type("/compact")
    session = await chat.conversation.session()
    answer = b'{"parts":[{"content":"late","part_kind":"text"}],"kind":"response"}'
    await session.say(answer)  # the fold ended while the turn was under way
    chat.surface.answers = ["nothing"]
    head = await chat.head()
    await chat.type("/undo")
    assert chat.surface.questions[-1][1] == ("turn", "fold", "nothing")
    assert await chat.head() == head
    chat.surface.answers = ["fold"]
    assert "the newest fold" in await chat.type("/undo")
    assert "late" in await chat.model_context()


@pytest.mark.parametrize("compacted", [False, True])
async def test_a_prompt_that_is_refused_for_its_length_is_taken_back_before_any_fold(compacted):
    refusal = {"error": {"code": "context_length_exceeded", "message": "It is too long."}}

    async def refusing(messages, info):
        if "too long" in prompt_in(messages):
            raise ModelHTTPError(400, "large", refusal)
        async for part in streamed(messages, info):
            yield part

    model = FunctionModel(
        stream_function=refusing, model_name="large", profile={"context_window": 200_000}
    )
    chat = chat_with({"function:large": model})
    await chat.say("one", "two", "three", "four")
    end = await chat.conversation.turn("too long", chat.surface.on_event)
    assert end.code == "window-exceeded"
    assert "/undo takes the prompt back" in end.fix
    kinds = [entry.kind for entry in await chat.conversation.log.read("talk")]
    assert "fold.complete" in kinds
    if compacted:
        await chat.type("/compact")
        assert "the newest fold" in await chat.type("/undo")
    assert 'your last turn: "too long"' in await chat.type("/undo")
    assert not [asked for asked in chat.surface.questions if "last turn" in asked[0]]
    assert "too long" not in str(await chat.model_context())
    assert not (await chat.conversation.log.visible("talk", last=0)).outline.folds


@pytest.mark.req("R114")
async def test_rewind_goes_back_to_before_a_message_of_yours():
    chat = await talked(surface=OfferingSurface())
    whole = await chat.model_context()
    chat.surface.picks = [1]
    await chat.type("/rewind")
    assert [row.label for row in chat.surface.rows] == ["three", "two", "one"]
    assert await chat.model_context() == whole[:2]
    assert chat.surface.offered == "two"
    assert "the rewind" in await chat.type("/undo")
    assert await chat.model_context() == whole
    head = await chat.head()
    assert "1 (your last message) to 3" in await chat.type("/rewind 4")
    chat.surface.picks = [None]
    await chat.type("/rewind")
    assert await chat.head() == head


async def test_rewind_shows_the_text_where_it_cannot_be_offered():
    chat = await talked()
    assert "You had said:\n  three" in await chat.type("/rewind 1")


async def test_rewind_reaches_beneath_folds():
    chat = await talked()
    whole = await chat.model_context()
    await chat.type("/compact")
    await chat.type("/rewind 3")
    assert await chat.model_context() == []
    await chat.type("/undo")
    await chat.type("/undo")
    assert await chat.model_context() == whole


ACTS = st.sampled_from(
    ["say", "say", "/compact", "/clear", "/rewind 1", "/rewind 2", "/unfold 1", "/undo", "/redo"]
)


@settings(max_examples=15)
@example(["say", "/compact", "/compact", "/unfold 1", "/unfold 1", "/undo", "/undo", "/redo"])
@given(st.lists(st.one_of(ACTS, st.sampled_from(["/undo", "/redo"])), max_size=10))
def test_undo_and_redo_walk_through_what_was_done(acts):
    asyncio.run(_walk(acts))


async def _walk(acts):
    chat = chat_with()
    await chat.say("begin")
    past, future = [[]], []
    for nth, act in enumerate(acts):
        now, head = await chat.model_context(), await chat.head()
        if act == "/undo":
            await chat.type(act)
            if past:
                future.append(now)
                now = past.pop()
            assert await chat.model_context() == now, (acts, nth)
        elif act == "/redo":
            await chat.type(act)
            if future:
                past.append(now)
                now = future.pop()
            assert await chat.model_context() == now, (acts, nth)
        else:
            chat.surface.answers = ["yes"]
            await (chat.say(f"turn {nth}") if act == "say" else chat.type(act))
            if await chat.head() != head:
                past.append(now)
                future = []


@pytest.mark.req("R115")
async def test_sessions_are_searched_previewed_and_gone_to():
    chat = await talked()
    await chat.conversation.go_to("other")
    await chat.say("the parcel is in Zürich")
    assert "No session holds 'giraffe'" in await chat.type("/sessions giraffe")
    chat.surface.picks = [lambda rows: [row.label for row in rows].index("one")]
    shown = await chat.type("/sessions")
    assert chat.conversation.name == "talk"
    assert chat.tails == 1
    assert "Now in session talk: 6 messages" in shown
    here, there = chat.surface.rows
    assert "you are here" in here.detail
    assert "6 messages" in there.detail
    assert "Last words:\nI heard: three" in there.preview
    chat.surface.picks = [0]
    await chat.type("/sessions zurich")
    assert chat.conversation.name == "other"
    await chat.type("/sessions talk")
    assert chat.conversation.name == "talk"
    assert "already" in await chat.type("/sessions talk")


async def test_fork_goes_on_elsewhere():
    chat = await talked()
    whole = await chat.model_context()
    await chat.type("/fork what if")
    assert chat.conversation.name == "what if"
    await chat.say("four")
    await chat.type("/sessions talk")
    assert await chat.model_context() == whole
    await chat.type("/fork")
    assert chat.conversation.name == "talk-2"
    await chat.type("/sessions talk")
    await chat.say("five")
    assert "Choose another session name." in await chat.type("/fork what if")
    assert chat.conversation.name == "talk"


async def test_pinned_parts_survive_a_fold_and_can_be_let_go():
    chat = await talked()
    chat.surface.picks = [lambda rows: [row.label for row in rows].index("you: two")]
    assert "Entry 6 is pinned." in await chat.type("/pin")
    await chat.type("/compact")
    assert any("two" in one and "[Pinned]" in one for one in await chat.model_context()) or (
        "two" in await chat.model_context()
    )
    chat.surface.picks = [0]
    assert "Entry 6 is pinned no longer." in await chat.type("/pin")
    assert "Enter lets it go" in chat.surface.rows[0].detail
    assert "Entry 10 is pinned." in await chat.type("/pin 10")
    assert "Entry 10 is pinned no longer." in await chat.type("/pin 10")
    assert "No entry '99'" in await chat.type("/pin 99")


async def test_a_tool_is_allowed_until_that_is_taken_back():
    chat = await talked()
    assert "Nothing is allowed that needs permission." in await chat.type("/allow")
    shown = await chat.type("/allow drop_table")
    entry = await chat.conversation.log.head("talk")
    assert f"drop_table is allowed: entry {entry}." in shown
    shown = await chat.type("/allow")
    assert "drop_table" in shown
    assert f"entry {entry}" in shown
    await chat.type("/compact")
    assert "drop_table" in await chat.type("/allow")  # it is looked up in the log
    assert "drop_table is no longer allowed" in await chat.type("/allow drop_table no")
    assert "Nothing is allowed that needs permission." in await chat.type("/allow")


@pytest.mark.req("R113")
async def test_config_sets_keeps_and_applies(tmp_path):
    chat = await talked()
    shown = await chat.type("/config agent_max_context_tokens 80000")
    assert "agent_max_context_tokens is 80,000" in shown
    await chat.type("/config agent_max_context_turns 30")
    await chat.type("/config agent_max_steps 7")
    profile = chat.conversation.profile
    assert (profile.trigger.tokens, profile.trigger.turns, profile.max_steps) == (80_000, 30, 7)
    assert load_settings().profile == profile
    assert "80000" in (tmp_path / "config" / "refold" / "config.toml").read_text()
    assert "trigger.tokens is 80,000" in await chat.type("/config trigger.tokens")
    assert "trigger.tokens" in await chat.type("/config")
    head = await chat.head()
    assert "lots" in await chat.type("/config max_steps lots")
    assert await chat.head() == head
    assert chat.conversation.profile.max_steps == 7
    await chat.say("it goes on")


@pytest.mark.req("R085")
async def test_a_smaller_window_asks_and_folds_before_switching():
    chat = chat_with()
    await chat.say("one", f"two {BIG}", "three")
    chat.surface.answers = ["no"]
    head = await chat.head()
    shown = " ".join((await chat.type("/model function:small")).split())
    assert "function:small has a window of 3,000 tokens" in shown
    assert chat.conversation.model.model_id == "function:large"
    assert await chat.head() == head
    chat.surface.answers = ["yes"]
    shown = await chat.type("/model function:small")
    assert chat.conversation.model.model_id == "function:small"
    assert "was folded for it" in shown
    entries = await chat.conversation.log.read("talk")
    assert any(isinstance(CODEC.decode(one), FoldCompleted) for one in entries)
    await chat.say("and it answers")


async def test_the_list_of_models_says_which_key_is_missing(monkeypatch):
    monkeypatch.setenv("XAI_API_KEY", "x")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    names = ("openai:gpt-4o", "xai:grok-4.7")
    chat = chat_with()
    chat.known_models = names
    monkeypatch.setattr(
        "refold.cli.chat.commands.model.local_models", lambda *_: {"local:qwen": 4_096}
    )
    await chat.type("/model")
    assert [row.label for row in chat.surface.rows] == ["local:qwen", *names[::-1]]
    assert "window 4,096" in chat.surface.rows[0].detail
    assert "needs" not in chat.surface.rows[1].detail
    assert "needs OPENAI_API_KEY" in chat.surface.rows[2].detail
    assert completions(chat, "/model ") == [
        ("/model xai:grok-4.7", ""),
        ("/model openai:gpt-4o", "needs OPENAI_API_KEY"),
    ]


async def test_a_model_that_fits_is_switched_to_at_once():
    chat = await talked(models={"function:a": model_of("a"), "function:b": model_of("b", 90_000)})
    assert "answers already" in await chat.type("/model function:a")
    chat.surface.picks = [1]
    assert "90,000 tokens" in await chat.type("/model")
    assert chat.surface.questions == []
    assert chat.conversation.model.model_id == "function:b"
    assert "answers now" in chat.surface.rows[0].detail


@pytest.mark.req("R130")
async def test_export_writes_each_form_and_replaces_nothing_unasked(tmp_path):
    chat = await talked(name="my/talk")
    await chat.type("/compact")
    await chat.type("/export")
    assert "I heard: three" in (tmp_path / "my-talk.md").read_text()
    await chat.type("/export html")
    assert "Conversation Compacted" in (tmp_path / "my-talk.html").read_text()
    await chat.type("/export jsonl")
    assert json.loads((tmp_path / "my-talk.jsonl").read_text().splitlines()[0])
    await chat.type("/export json a file.json")
    assert json.loads((tmp_path / "a file.json").read_text())
    await chat.type("/export notes.html")
    assert "<html" in (tmp_path / "notes.html").read_text()
    (tmp_path / "my-talk.md").write_text("mine")
    assert "nothing was written" in await chat.type("/export markdown")
    assert (tmp_path / "my-talk.md").read_text() == "mine"
    chat.surface.answers = ["yes"]
    await chat.type("/export md")
    assert "I heard: three" in (tmp_path / "my-talk.md").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a file.json",
        "my-talk.html",
        "my-talk.jsonl",
        "my-talk.md",
        "notes.html",
    ]


async def test_allow_says_how_to_take_a_permission_back():
    chat = await talked()
    shown = await chat.type("/allow")
    assert "/allow TOOL allows one; /allow TOOL no takes that back." in shown
    await chat.type("/allow drop_table")
    assert "drop_table" in await chat.type("/allow")
    await chat.type("/allow drop_table no")
    assert "Nothing is allowed" in await chat.type("/allow")
