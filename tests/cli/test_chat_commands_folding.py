"""`/compact`, `/unfold` and checkpoints: folding by hand, and what lies beneath."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportArgumentType=false
# Tests know what they look at: the fakes do as much as a command needs.

import asyncio
import re

import pytest
from chatting import (
    chat_with,
    place,  # noqa: F401 - for every test
    streamed,
    talked,
)
from pydantic_ai.models.function import FunctionModel

from refold.errors import FoldCancelled, FoldNotMade, FoldUnderWay
from refold.fold.checkpoints import EMPTY
from refold.log import CODEC, FoldStarted

BIG = "word " * 1_500


async def entries(chat):
    return [CODEC.decode(one) for one in await chat.conversation.log.read("talk")]


@pytest.mark.req("R110")
async def test_compact_previews_asks_folds_and_reports():
    chat = await talked()
    before = await chat.model_context()
    shown = await chat.type("/compact the order")
    assert chat.surface.questions == [("Fold now?", ("yes", "no"))]
    assert re.search(r"goes +6 messages", shown)
    assert re.search(r"stays +4 messages", shown)
    assert re.search(r"tokens +\d+ now → about \d+ then", shown)
    assert re.search(r"Removed from the view: 6 messages and -?\d+ tokens\.", shown)
    assert "It is checkpoint 1" in shown
    assert len(await chat.model_context()) == len(before) - 5
    [started] = [one for one in await entries(chat) if isinstance(one, FoldStarted)]
    assert started.focus == "the order"


async def test_compact_declined_changes_nothing():
    chat = await talked()
    head = await chat.head()
    chat.surface.answers = ["no"]
    assert "the conversation is as it was" in await chat.type("/compact")
    assert await chat.head() == head


@pytest.mark.req("R005", "R109")
async def test_compact_in_co_cli_leaves_two_messages_and_clear_none():
    chat = chat_with(profile="co-cli")
    words = "The quick brown fox jumps over the lazy dog near the river bank. " * 30
    await chat.say(f"first {words}", f"second {words}", f"third {words}")
    shown = await chat.type("/compact")
    assert "Removed from the view: 6 messages" in shown
    assert len(await chat.model_context()) == 2
    await chat.type("/clear")
    assert await chat.model_context() == []


@pytest.mark.req("R109", "R137", "R138")
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FoldUnderWay("A fold is being made."), "A fold is being made already."),
        (FoldCancelled("The fold was canceled."), "The fold was canceled."),
        (FoldNotMade("No model \x1b[31mthere."), "The fold could not be made."),
    ],
)
async def test_a_fold_that_is_not_made_leaves_the_conversation(monkeypatch, error, told):
    chat = await talked()
    head = await chat.head()

    async def refuse(_):
        raise error

    monkeypatch.setattr(chat.conversation, "compact", refuse)
    shown = await chat.type("/compact")
    assert told in shown
    assert "The conversation is unchanged." in shown
    assert "\x1b" not in shown
    assert await chat.head() == head


@pytest.mark.parametrize("way", ["interrupt", "escape"])
async def test_a_fold_that_is_cancelled_is_told_once(way):
    asked = asyncio.Event()

    async def held(*_):
        asked.set()
        await asyncio.sleep(60)

    model = FunctionModel(held, stream_function=streamed, model_name="held")
    chat = chat_with({"function:held": model}, profile="co-cli")
    await chat.say(f"first {BIG}", "second", "third")
    typed = asyncio.ensure_future(chat.type("/compact"))
    await asyncio.wait_for(asked.wait(), 30)
    if way == "interrupt":
        assert chat.conversation.interrupt()
    else:
        assert await chat.conversation.cancel_fold()
    assert "The fold was canceled." in await asyncio.wait_for(typed, 30)
    assert not [one for one in chat.surface.events if "cancelled" in str(one)]


@pytest.mark.req("R111")
async def test_a_summary_is_not_counted_as_yours():
    chat = await talked()
    await chat.type("/compact")
    roles = "5 messages (2 from you, 2 from the model, 0 tool results, 1 summary)"
    assert roles in await chat.type("/context")


@pytest.mark.req("R137")
async def test_too_little_is_not_compacted():
    chat = chat_with()
    assert "nothing to compact" in await chat.type("/compact")
    await chat.say("hello")
    head = await chat.head()
    await chat.type("/clear")
    assert "There is nothing to compact yet." in await chat.type("/compact")
    assert await chat.head() == head + 1


@pytest.mark.req("R106", "R114")
async def test_checkpoints_are_listed_and_read():
    chat = await talked()
    assert EMPTY in await chat.type("/session checkpoints")
    assert "created when context is compacted" in EMPTY
    await chat.type("/compact")
    listed = await chat.type("/session checkpoints")
    assert re.search(r"^1 .* just now +6 +\d+$", listed, re.MULTILINE)
    assert "read a.txt" in await chat.type("/session checkpoints 1")
    assert "numbered 1 to 1" in await chat.type("/session checkpoints 2")


async def test_unfold_reads_beneath_and_shows_it_again_when_asked():
    chat = chat_with()
    await chat.say("one", "two", "three")
    whole = await chat.model_context()
    await chat.type("/compact")
    folded = await chat.model_context()
    chat.surface.picks, chat.surface.answers = [0], ["no"]
    shown = await chat.type("/unfold")
    assert "entry 6, you\n  two" in shown
    assert "Show the model these" in chat.surface.questions[-1][0]
    assert await chat.model_context() == folded
    chat.surface.answers = ["yes"]
    await chat.type("/unfold 1")
    assert await chat.model_context() == whole


async def test_unfold_turns_pages():
    chat = chat_with()
    await chat.say("one", *(f"{nth} {BIG}" for nth in range(2)), "end")
    await chat.type("/compact")
    chat.surface.answers = ["more", "more", "no"]
    shown = await chat.type("/unfold 1")
    assert "characters 1 to" in shown
    assert [answers for _, answers in chat.surface.questions[1:]] == [("no", "more", "yes")] * 3
