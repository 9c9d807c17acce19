"""`/compact`, `/unfold` and checkpoints: folding by hand, and what lies beneath."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportArgumentType=false
# Tests know what they look at: the fakes do as much as a command needs.

import asyncio
import json
import re
from dataclasses import replace

import pytest
from chatting import (
    answer,
    chat_with,
    model_of,
    place,  # noqa: F401 - for every test
    streamed,
    talked,
)
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.function import FunctionModel
from typer.testing import CliRunner

from refold.cli.app import app
from refold.cli.chat.surface import ContextEvent
from refold.cli.chat.text import event_lines
from refold.errors import FoldCancelled, FoldNotMade, FoldUnderWay
from refold.fold.checkpoints import EMPTY, checkpoints
from refold.log import CODEC, FoldStarted
from refold.session.explain import explanation
from refold.stores import open_store
from refold.terminal_text import counted

BIG = "word " * 1_500


async def entries(chat):
    return [CODEC.decode(one) for one in await chat.conversation.log.read("talk")]


@pytest.mark.req("R110")
async def test_compact_previews_asks_folds_and_reports():
    chat = await long_talk()
    before = await chat.model_context()
    shown = await chat.type("/compact the order")
    assert chat.surface.questions == [("Fold now?", ("yes", "no"))]
    assert re.search(r"goes +8 messages", shown)
    assert re.search(r"stays +4 messages", shown)
    assert re.search(r"tokens +[\d,]+ now → about [\d,]+ then", shown)
    assert re.search(r"Folded 8 messages as fold 1\. The next .+ [\d,]+ tokens less\.", shown)
    assert len(await chat.model_context()) == len(before) - 7
    [started] = [one for one in await entries(chat) if isinstance(one, FoldStarted)]
    assert started.focus == "the order"


async def long_talk(**more):
    """A chat that a fold makes shorter, in a window that is large enough for all of it."""
    chat = chat_with(**more)
    await chat.say(*(f"{nth} {BIG}" for nth in range(3)), "read a.txt", "end")
    return chat


@pytest.mark.parametrize(("times", "economics"), [(1_000, "off"), (0, "open-fold"), (0, "off")])
async def test_context_says_what_a_compaction_would_cost_where_that_is_weighed(
    monkeypatch, times, economics
):
    for name, value in {
        "ECONOMICS": economics,
        "TRIGGER__AT_LEAST": 0,
        "TRIGGER__SAVINGS": times,
        "FOLD__KEEP__AMOUNT": 0,
    }.items():
        monkeypatch.setenv(f"REFOLD_{name}", str(value))
    shown = await (await long_talk()).type("/context")
    weighed = "A fold would bring the next request from" in " ".join(shown.split())
    assert weighed is (times > 0 or economics == "open-fold")


async def test_sessions_lists_the_numbers_of_the_chat(tmp_path):
    async with open_store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        chat = await long_talk(store=store)

        async def listed():
            """Tokens and folds by `refold sessions`, the status, /context, /explain, /unfold."""
            ran = CliRunner().invoke
            command = ["sessions", "--json", "--store", f"sqlite:///{tmp_path / 'a.db'}"]
            [one] = json.loads((await asyncio.to_thread(ran, app, command)).stdout)
            await chat.conversation.look()
            folds = await checkpoints(chat.conversation.log, "talk")
            assert one["tokens"] == chat.conversation.status.filled.total
            assert one["folds"] == len(folds)
            shown = await chat.type("/context")
            assert f"The next request has about {one['tokens']:,} tokens" in shown
            assert ("fold" in shown.split("/unfold")[0].split("characters")[1]) == bool(folds)
            assert not folds or counted(len(folds), "fold") in shown
            return one["folds"]

        assert await listed() == 0
        await chat.type("/compact")
        assert await listed() == 1
        await chat.say("more", f"of {BIG}", "and more")
        await chat.type("/compact")
        assert await listed() == 2
        await chat.type("/undo")
        assert await listed() == 1
        chat.surface.answers = ["yes"]
        await chat.type("/unfold 1")
        assert await listed() == 0


async def test_a_fold_that_frees_nothing_is_no_default():
    chat = chat_with()
    await chat.say("one", "two", "three")
    chat.surface.answers = ["no"]  # the first that is offered
    shown = await chat.type("/compact")
    now, then = map(int, re.search(r"tokens +(\d+) now → about (\d+) then", shown).groups())
    assert then > now
    assert f"takes {then - now} tokens more than what it replaces" in " ".join(shown.split())
    assert chat.surface.questions[-1] == ("Fold anyway?", ("no", "yes"))
    chat = await long_talk()
    assert "does not make the request smaller" not in await chat.type("/compact")
    assert chat.surface.questions[-1] == ("Fold now?", ("yes", "no"))


@pytest.mark.parametrize(
    ("setting", "writer"),
    [
        ('summarizer = ""\nfold.writer = "log"', r"the log, without a model"),
        ('summarizer = "primary"', r"openai:gpt-4o from a transcript, about \$0\.\d+"),
        (
            'summarizer = "auto"',
            r"openai:gpt-4o on its warm cache, about \$\S+; if that fails, from a transcript, .+",
        ),
    ],
)
async def test_a_preview_says_who_writes_the_summary(place, setting, writer):  # noqa: F811
    (place / "config" / "refold").mkdir(parents=True)
    (place / "config" / "refold" / "config.toml").write_text(setting)
    chat = await long_talk(models={"openai:gpt-4o": priced()})
    chat.surface.answers = ["no"]
    shown = " ".join((await chat.type("/compact")).split())
    assert re.search(f"written by {writer} Nothing is deleted", shown), shown


async def test_every_place_counts_a_fold_alike(place):  # noqa: F811
    chat = await long_talk()
    for nth, beneath in enumerate((0, 8), 1):  # the second one covers the first
        before = await request_tokens(chat)
        shown = " ".join((await chat.type("/compact")).split())
        after = await request_tokens(chat)
        [(now, then)] = re.findall(r"tokens ([\d,]+) now → about ([\d,]+) then", shown)
        assert number(now) == before
        assert number(then) == pytest.approx(after, rel=0.02)
        # The line that announces it, and the one that reports it.
        done = [one.event for one in chat.surface.events if "CompactionComplete" in str(one)][-1]
        line = event_lines(done)[0].text
        assert f"{before:,} → {after:,} tokens" in line
        [goes] = re.findall(r"goes (\d+) messages", shown)
        assert f": {goes} messages, " in line
        [words] = re.findall(r"goes (.+?), into one summary", shown)
        assert words == f"{goes} messages" + f" ({beneath} of them folded before)" * bool(beneath)
        less = f"The next request has {before - after:,} tokens less."
        assert f"Folded {words} as fold {nth}. {less}" in shown
        # What the fold replaced, in full: another number, under another name.
        chat.surface.picks = [None]
        await chat.type("/unfold")
        [(messages, full)] = re.findall(
            r"(\d+) messages · ([\d,]+) tokens in full", chat.surface.rows[0].detail
        )
        assert messages == goes
        listed = (await chat.type("/session checkpoints")).splitlines()
        assert any(re.search(rf" {goes} +{full}$", row.rstrip()) for row in listed)
        assert f"for {full} tokens in full" in await chat.type("/context")
        for form in ("markdown", "html"):
            await chat.type(f"/export {form} {before}.{form}")
            assert f"{goes} messages and" in (text := (place / f"{before}.{form}").read_text())
            assert f"({full} in full, " in text
        await chat.say(f"more {BIG}", f"yet more {BIG}", "end")
    undone = await chat.type("/undo")
    undone += await chat.type("/undo") + await chat.type("/undo") + await chat.type("/undo")
    assert f"({goes} messages, {full} tokens in full)" in undone
    assert "1 fold beneath it stands again for the others." in undone


async def request_tokens(chat):
    """The tokens of the next request, which each place says alike."""
    talk = chat.conversation
    await talk.look()
    filled = talk.status.filled.total
    explained = await explanation(talk.log, talk.name)
    assert explained.account.sent == filled
    assert f"{filled:,} tokens" in await chat.type("/context")
    assert f"{filled:,} tokens" in await chat.type("/explain")
    return filled


def number(text):
    return int(text.replace(",", ""))


def priced():
    """A model with a price, that answers without its provider."""
    return Priced(answer, stream_function=streamed, model_name="gpt-4o")


class Priced(FunctionModel):
    @property
    def system(self):
        return "openai"


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
    assert "Folded 6 messages as fold 1." in shown
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


async def test_what_does_not_fit_is_a_sum_that_adds_up():
    chat = chat_with({"function:tight": model_of("tight", 8_000)})
    await chat.say(*(f"{nth} {BIG}" for nth in range(6)))
    shown = " ".join((await chat.type("/unfold 1")).split())
    [said] = re.findall(r"It does not fit: (.+), in a window of 8,000\.", shown)
    parts, _, whole = said.rpartition(" make ")
    assert "2,000 kept for the answer and" in parts
    assert "in case we count too low" in parts
    assert sum(map(number, re.findall(r"[\d,]*\d", parts))) == number(whole) > 8_000


BUSY = "function:large answered 503: The server is busy"


@pytest.mark.parametrize(
    ("breadcrumb", "said"),
    [
        (True, [f"No model's summary is used: {BUSY}.", "The log's own summary is used instead."]),
        (False, [f"could not be folded: No summary was written: {BUSY}.", "Nothing is lost"]),
    ],
)
async def test_a_summarizer_that_fails_is_told_in_words(breadcrumb, said):
    body = {"error": {"message": "The server is busy.", "type": "server_error", "code": None}}

    def failing(_messages, _info):
        raise ModelHTTPError(503, "large", body)

    model = FunctionModel(failing, stream_function=streamed, model_name="large")
    chat = chat_with({"function:large": model})
    talk = chat.conversation
    fold = talk.profile.fold.model_copy(update={"writer": "model", "breadcrumb": breadcrumb})
    profile = talk.profile.model_copy(update={"fold": fold})
    talk._settings = replace(talk._settings, profile=profile)
    talk._memory = talk._new_memory()
    await chat.say("one", "two", "three", "four")
    shown = await chat.type("/compact")
    events = [one.event for one in chat.surface.events if isinstance(one, ContextEvent)]
    lines = [piece.text for event in events for piece in event_lines(event)][-2:]
    for line, words in zip(lines, said, strict=True):
        assert words in line
    text = " ".join([shown, *lines])
    assert not re.search(r"ModelHTTPError|FoldNotMade|status_code|[{}]", text)
    if not breadcrumb:
        assert f"No summary was written: {BUSY}." in " ".join(shown.split())
