"""`refold board`, and the chat's `/board` and `/subconscious run`."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import json

import pytest
from boards import BRANCH, model, said, user
from chatting import chat_with, place
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from typer.testing import CliRunner

from refold.cli import chat as _
from refold.cli.app import app
from refold.cli.chat import assembly
from refold.cli.chat.assembly import consolidate_in_background
from refold.cli.chat.models import providers
from refold.cli.chat.surface import ChatOptions
from refold.stores import open_store
from refold.view import PROFILES

pytestmark = pytest.mark.req("R095")
STORE = "sqlite:///refold.db"


def reads(*calls):
    """A model that answers, and where it has the tool, calls it."""

    def answer(messages, info):
        returned = any(isinstance(one, ToolReturnPart) for said in messages for one in said.parts)
        if (
            returned
            or not calls
            or "context_board" not in [one.name for one in info.function_tools]
        ):
            return ModelResponse([TextPart("The tests run with `make test`.")])
        return ModelResponse([ToolCallPart("context_board", call) for call in calls])

    async def streamed(messages, info):  # noqa: ARG001 - as a model is called
        yield FACT["text"]

    return FunctionModel(answer, stream_function=streamed, model_name="large")


FACT = {"action": "add", "text": "The tests run with `make test`.", "entries": [4]}


@pytest.fixture
def named(monkeypatch):
    """`named(call)`: whatever model is named makes these calls."""

    def given(*calls):
        monkeypatch.setattr(providers, "model_of", lambda *_: reads(*calls))

    return given


def refold(*words, code=0):
    done = CliRunner().invoke(app, ["board", *words, "--store", STORE])
    assert done.exit_code == code, done.output
    return done.output


# ---- refold board


def test_the_board_is_filled_shown_and_pruned_by_hand():
    refold("add", "Tests need PostgreSQL 15.")
    assert "On the board: Deploy on Mondays." in refold("add", "Deploy   on\nMondays.")
    shown = refold("show").splitlines()
    assert shown == ["2  Tests need PostgreSQL 15.", "3  Deploy on Mondays."]
    assert "No longer on the board: Tests need" in refold("prune", "2")
    assert [one["text"] for one in json.loads(refold("show", "--json"))] == ["Deploy on Mondays."]
    assert "There are: 3." in refold("prune", "2", code=1)


def test_an_empty_board_and_a_folder_that_is_not_there(place):
    assert "--store" in refold("show", code=1)  # there is not a store yet
    refold("add", "One.")
    (place / "other").mkdir()
    assert refold("show", "--folder", "other").startswith("Nothing is on the board of other")
    assert "Name one with --folder" in refold("show", "--folder", "none", code=1)


async def _talked():
    async with open_store(STORE) as store:
        await said(store.log(), user("How do the tests run?"), model("Well."), model(FACT["text"]))


def test_a_session_is_read_by_the_model_that_is_named(named):
    asyncio.run(_talked())
    named(FACT)
    told = refold("run", "monday", "-m", "openai:gpt-4o")
    assert told.splitlines() == [
        "Read 3 messages; the session is unchanged.",
        "  + The tests run with `make test`.",
    ]
    assert "does not know yet" in refold("run", "monday", "-m", "openai:gpt-4o")
    assert "monday" in refold("show")
    assert "There is no session 'tuesday'" in refold("run", "tuesday", code=1)


def test_forgetting_a_session_says_that_its_facts_went_too(named):
    asyncio.run(_talked())
    named(FACT)
    refold("run", "monday", "-m", "openai:gpt-4o")
    done = CliRunner().invoke(app, ["forget", "monday", "--yes", "--store", STORE])
    assert "and 1 entry made of them" in done.output
    assert refold("show").startswith("Nothing is on the board")


# ---- in a chat


@pytest.mark.req("R114")
async def test_subconscious_reads_the_session_and_board_shows_what_came_of_it():
    chat = chat_with({"function:large": reads(FACT)}, board=BRANCH)
    assert "Nothing was said" in await chat.type("/subconscious run")
    assert "Nothing is on the board of garden, main" in await chat.type("/board")
    await chat.say("How do the tests run?")
    shown = await chat.type("/subconscious run")
    assert "Read 2 messages" in shown
    assert "+ The tests run with `make test`." in shown
    assert "does not know yet" in await chat.type("/subconscious run")
    shown = await chat.type("/board")
    assert "The tests run with `make test`.  (talk)" in shown


async def test_board_is_changed_by_hand():
    chat = chat_with(board=BRANCH)
    assert "On the board: Deploy on Mondays." in await chat.type("/board add Deploy on Mondays.")
    assert "Which one?" in await chat.type("/board prune")
    assert "There is no fact 7" in await chat.type("/board prune 7")
    assert "No longer on the board: Deploy" in await chat.type("/board prune 2")
    assert "takes add or prune, not 'remove'" in await chat.type("/board remove 2")
    assert "takes run, not 'walk'" in await chat.type("/subconscious walk")


async def test_nothing_worth_it_is_said_so():
    chat = chat_with({"function:large": reads()}, board=BRANCH)
    await chat.say("Hello.")
    assert "Nothing in it was worth the board." in await chat.type("/subconscious run")


async def test_without_a_board_it_says_how_to_have_one():
    chat = chat_with()
    for line in ("/board", "/subconscious run"):
        assert "--no-board" in await chat.type(line)


# ---- when the person leaves


@pytest.fixture
def started(monkeypatch):
    """The commands that were started when a chat was left."""
    found = []
    monkeypatch.setattr(assembly, "_start", found.append)
    return found


def leave(chat, **about):
    return consolidate_in_background(chat.conversation, ChatOptions(STORE, "us", **about))


async def test_leaving_reads_a_session_that_is_worth_it_where_the_profile_says_so(started):
    chat = chat_with({"openai:large": reads()}, board=BRANCH, profile="copilot")
    await chat.say("One.", "Two.")
    assert not await leave(chat)
    await chat.say("Three.")
    assert not await leave(chat, agent="mine:agent")
    assert await leave(chat)
    [command] = started
    assert command[1:7] == ["-P", "-m", "refold.cli", "board", "run", "talk"]
    assert command[9:11] == ["--tenant", "us"]


async def test_leaving_reads_nothing_by_another_profile_or_without_a_board(started):
    assert [one.name for one in PROFILES.values() if one.consolidate == "leaving"] == ["copilot"]
    for about in ({"board": BRANCH}, {"profile": "copilot"}):
        chat = chat_with({"openai:large": reads()}, **about)
        await chat.say("One.", "Two.", "Three.")
        assert not await leave(chat)
    assert not await leave(chat_with(board=BRANCH, profile="copilot"))
    assert started == []


@pytest.mark.usefixtures("place")
def test_a_board_is_no_session_in_the_list():
    run = CliRunner().invoke
    assert run(app, ["board", "add", "A fact", "--store", STORE]).exit_code == 0
    assert run(app, ["sessions", "--store", STORE]).output.startswith("No sessions yet.\n")
    assert json.loads(run(app, ["sessions", "--json", "--store", STORE]).output) == []
    shown = run(app, ["show", "--store", STORE])
    assert shown.exit_code
    assert "There is no session yet" in shown.output
