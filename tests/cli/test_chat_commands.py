"""The slash commands: what they say, what they do, and what they leave alone."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportArgumentType=false
# Tests know what they look at: the fakes do as much as a command needs.

import asyncio
import re
from io import StringIO

import pytest
from chatting import (
    FakeSurface,
    chat_with,
    model_of,
    place,  # noqa: F401 - for every test
    talked,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from refold.cli.chat.commands import COMMANDS, completions, run
from refold.cli.chat.commands.context import cells_of, shares_of
from refold.cli.chat.commands.parts import context_snapshot
from refold.cli.chat.plain import Plain
from refold.view import PROFILES

READING = (
    "/context",
    "/context 1",
    "/context open",
    "/history",
    "/explain",
    "/explain all",
    "/session",
    "/session checkpoints",
    "/session checkpoints 1",
    "/unfold 1",
    "/unfold",
    "/sessions",
    "/sessions order",
    "/config",
    "/config trigger.soft",
    "/model",
    "/pin",
    "/rewind",
    "/subconscious run",
    "/help",
    "/help compact",
    "/nonsense",
)


async def test_help_names_every_command_and_key_in_80_columns():
    chat = chat_with()
    shown = await chat.type("/help")
    assert max(map(len, shown.splitlines())) <= 80
    lines = [line.split("  ")[0] for line in shown.splitlines()]
    assert [line for line in lines if line.startswith("/")] == [one.usage for one in COMMANDS]
    for key in ("Enter", "Alt-Enter", "Tab", "Esc", "Ctrl-C"):
        assert key in lines
    assert "/compact [focus]" in await chat.type("/help compact")
    assert await chat.type("/") == shown


async def test_an_unknown_command_names_the_nearest():
    chat = chat_with()
    assert "Did you mean /compact" in await chat.type("/compct")
    assert "/context or /config" in await chat.type("/con")


@pytest.mark.parametrize("command", ["undo", "redo", "clear", "retry", "history", "quit"])
async def test_a_command_without_arguments_does_nothing_if_it_is_given_one(command):
    chat = chat_with()
    await chat.say("one")
    before = await chat.head()
    assert f"/{command} takes no argument." in await chat.type(f"/{command} foo")
    assert await chat.head() == before


async def test_errors_are_words():
    chat = await talked()
    assert await chat.type("/model nope") == (
        "There is no model 'nope'.\nDid you mean function:large?\n"
    )
    assert "no setting 'nope'" in await chat.type("/config nope")
    refused = await chat.type("/export markdown nowhere/at/all.md")
    assert "No such file or directory." in refused
    assert "Create the folder 'nowhere/at' first, or choose another path." in refused


@pytest.mark.parametrize("name", ["", "talk"])
@pytest.mark.parametrize("command", [one.name for one in COMMANDS])
async def test_before_anything_is_said_each_command_says_something_or_picks(command, name):
    chat = chat_with(name=name)
    shown = await chat.type(f"/{command}")
    assert shown.strip() or chat.surface.titles or chat.left
    assert (await chat.conversation.log.sessions()).sessions == ()
    assert await chat.conversation.session() is None


async def test_reading_changes_nothing():
    chat = await talked()
    await chat.type("/compact")
    head = await chat.head()
    for line in READING:
        chat.surface.picks, chat.surface.answers = [None], ["no"]
        if line in {"/context open", "/unfold"}:
            chat.surface.picks = [0]
        shown = await chat.type(line)
        assert shown.strip() or chat.surface.titles, line
        assert await chat.head() == head, line
    assert chat.conversation.name == "talk"


async def test_a_path_in_the_home_of_nobody_is_refused():
    chat = await talked()
    shown = await chat.type("/export ~nosuchuser/x.md")
    assert "There is no home folder ~nosuchuser." in shown
    assert "Write the path in full." in shown


async def test_whatever_fails_in_a_command_the_chat_goes_on(monkeypatch):
    chat = await talked()
    monkeypatch.setenv("SOME_API_KEY", "a.key.of.its.own")

    async def fail():
        raise ZeroDivisionError("by \x1b[2Ja.key.of.its.own\nand more")

    monkeypatch.setattr(chat.conversation, "session", fail)
    shown = await chat.type("/context")
    assert shown.splitlines()[0] == "/context failed: ZeroDivisionError: by … and more"
    assert "The chat goes on. /help context says what it takes" in shown
    assert chat.surface.refreshed


@pytest.mark.req("R111")
async def test_context_counts_messages_roles_and_characters():
    chat = await talked()
    shown = await chat.type("/context")
    found = await context_snapshot(chat.conversation)
    characters = sum(len(shape.text) for one in found.messages for shape in one.shapes)
    roles = "10 messages (4 from you, 5 from the model, 1 tool result)"
    assert f"{roles}, {characters:,} characters" in shown
    assert "The log keeps everything: 10 messages in" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert sum(line.count("· ") for line in shown.splitlines()) > 100


async def test_the_shares_of_the_window_are_the_window():
    chat = await talked()
    await chat.type("/compact")
    found = (await context_snapshot(chat.conversation)).explanation
    shares = {one.name: one.tokens for one in shares_of(found)}
    assert sum(shares.values()) == found.window == 200_000
    assert shares["folds (summaries)"] > 0
    assert (
        sum(shares.values())
        - shares["free"]
        - shares["kept for the answer"]
        - shares["if we count too low"]
        == found.account.sent
    )


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=12), st.integers(12, 300))
def test_cells_are_shared_out_and_nothing_is_without(tokens, count):
    cells = cells_of(tokens, count)
    assert sum(cells) == (count if sum(tokens) else 0)
    assert all((cell > 0) == (one > 0) for cell, one in zip(cells, tokens, strict=True))


async def test_a_part_can_be_opened():
    chat = await talked()
    chat.surface.picks = [lambda rows: next(i for i, r in enumerate(rows) if "A-4711" in r.label)]
    shown = await chat.type("/context open")
    sizes = [int(re.search(r"([\d,]+) tokens?", row.detail)[1]) for row in chat.surface.rows]
    assert sizes == sorted(sizes, reverse=True)
    assert "system instructions: Be brief." in [row.label for row in chat.surface.rows]
    assert "entry " in shown
    assert "sent as it is" in shown
    largest = await chat.type("/context 1")
    assert largest.startswith("result read_file\nentry ")
    assert "the content of a.txt" in largest
    assert "There is no part 99" in await chat.type("/context 99")


async def test_an_unknown_window_is_said_to_be_unknown():
    chat = chat_with({"function:odd": model_of("odd", None)})
    await chat.say("hello")
    assert "window unknown (assuming 128,000)" in " ".join((await chat.type("/context")).split())


async def test_explain_tells_of_what_is_folded_too():
    chat = await talked()
    assert "Nothing is left out" in await chat.type("/explain")
    await chat.type("/compact")
    shown = await chat.type("/explain all")
    assert max(map(len, shown.splitlines())) <= 80
    assert "the content of a.txt" in shown
    assert "a summary stands for it" in shown


@pytest.mark.req("R108")
async def test_history_counts_request_messages_as_turns():
    chat = await talked()
    shown = " ".join((await chat.type("/history")).split())
    assert "5 turns, 10 messages" in shown
    assert "4 turns were begun by you" in shown
    await chat.type("/compact")
    shown = " ".join((await chat.type("/history")).split())
    assert "3 turns, 5 messages" in shown
    assert "2 turns were begun by you" in shown
    await chat.type("/clear")
    await chat.say("anew")
    shown = " ".join((await chat.type("/history")).split())
    assert "1 turn, 2 messages" in shown
    assert "The log keeps everything: 12 messages" in shown


HOSTILE = st.lists(
    st.sampled_from(
        [
            "\x1b[31m",
            "\x1b]0;title\x07",
            "\x9b2J",
            "\u202e",
            "\r",
            "\x07",
            "word ",
            "漢字",
            "\n",
            "\t",
        ]
    ),
    min_size=1,
    max_size=12,
).map("".join)


@settings(max_examples=8)
@given(HOSTILE)
def test_nothing_that_was_said_reaches_the_terminal_as_an_order(said):
    async def look():
        chat = chat_with()
        await chat.say(f"begin {said}", f"go on {said}", "end")
        await chat.type("/compact")
        for line in READING:
            chat.surface.picks, chat.surface.answers = [None], ["no"]
            await chat.type(line)
            told = [*chat.surface.shown, *map("".join, chat.surface.rows), *chat.surface.titles]
            told += [question for question, _ in chat.surface.questions]
            text = "".join(told).replace("\n", "")
            assert text.isprintable(), (line, [one for one in text if not one.isprintable()])

    asyncio.run(look())


def test_commands_and_their_values_are_completed():
    chat = asyncio.run(_made())
    assert [line for line, _ in completions(chat, "/co")] == ["/context", "/compact", "/config"]
    assert [line for line, _ in completions(chat, "/model ")] == [
        "/model function:large",
        "/model function:small",
    ]
    assert completions(chat, "/model sm") == [("/model function:small", "")]
    keys = dict(completions(chat, "/config trigger."))
    assert keys["/config trigger.soft"] == f"now {PROFILES['balanced'].trigger.soft}"
    assert [line for line, _ in completions(chat, "/config profile c")] == [
        "/config profile co-cli",
        "/config profile copilot",
        "/config profile cowagent",
    ]
    assert ("/rewind 1", "before your last message") in completions(chat, "/rewind ")
    assert completions(chat, "/sessions ")[0][0] == "/sessions talk"
    assert completions(chat, "hello") == completions(chat, "/nonsense ") == []
    assert len(completions(chat, "/")) == len(COMMANDS)


async def _made():
    chat = chat_with()
    await chat.say("hello")
    chat.known_sessions = (await chat.conversation.log.sessions()).sessions
    return chat


async def test_quit_leaves():
    for line in ("/quit", "/exit"):
        chat = chat_with()
        await chat.type(line)
        assert chat.left


async def test_nothing_is_drawn_where_it_is_read_aloud():
    out = StringIO()
    chat = chat_with(surface=Plain(stdin=StringIO(), stdout=out))
    await chat.say("hello")
    await run(chat, "/context")
    await run(chat, "/help")
    told = out.getvalue()
    assert "your messages: " in told
    assert "/compact [focus]" in told
    assert "Esc" not in told
    assert not {*"▓▒≡█▆▞░·▚"} & {*told}


async def test_a_narrow_terminal_has_the_legend_below():
    chat = chat_with(surface=FakeSurface(60))
    await chat.say("hello")
    shown = await chat.type("/context")
    assert max(map(len, shown.splitlines())) <= 60
    assert shown.index("▓ system instructions") > shown.rindex("· · ·")
