"""`refold demo`: it plays through the real thing, and what it says of itself is true."""

import asyncio
import json
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from datetime import date, timedelta
from importlib.resources import files

import pytest
import typer
from pydantic_ai import Agent
from pydantic_ai.messages import PartDeltaEvent
from typer.testing import CliRunner

from refold import Refold
from refold.cli.demo import model
from refold.cli.demo import play as playing
from refold.cli.demo.command import demo
from refold.cli.demo.model import (
    NAME,
    DemoModel,
    demo_model,
    demo_models,
    demo_tools,
    list_files,
    read_file,
    search_files,
)
from refold.cli.demo.play import Prompt, play
from refold.cli.demo.script import DETAIL, INSTRUCTIONS, PACE, PROMPTS, WINDOW, script
from refold.cli.demo.show import Printer

SATURDAY = "logs/2026-10-31-saturday.txt"
FOUND = "RF-60418-K"


@pytest.fixture(scope="module")
def played_and_heard():
    heard = []
    return asyncio.run(play(hear=heard.append)), heard


@pytest.fixture(scope="module")
def played(played_and_heard):
    return played_and_heard[0]


@pytest.fixture(scope="module")
def heard(played_and_heard):
    return played_and_heard[1]


def agent_with(*capabilities, tools=True):
    return Agent(
        demo_model(pace=0),
        instructions=INSTRUCTIONS,
        toolsets=[demo_tools()] if tools else [],
        capabilities=capabilities,
    )


def test_it_is_the_same_each_time(played, snapshot):
    told = played.as_json()
    assert told.pop("seconds") > 0
    assert all(fold.pop("milliseconds") >= 0 for fold in told["folds"])
    # Prices change with what is published; tokens only with what we do. In so short a conversation
    # the compactions have not paid for themselves yet.
    paid, instead = (told[name].pop("dollars") for name in ("with_refold", "without"))
    assert 0 < paid < 1.2 * instead
    assert told == snapshot


def test_it_shows_folds_that_no_model_wrote_and_a_detail_found_again(played):
    assert played.good
    assert 2 <= len(played.folds) <= 4
    assert [fold.written_by for fold in played.folds] == [""] * len(played.folds)
    assert all(fold.tokens_after < fold.tokens_before / 2 for fold in played.folds)
    assert played.with_refold.largest_request < WINDOW < played.without.largest_request
    assert played.refused_from_turn is not None
    detail = played.detail
    assert (detail.found, detail.shown_when_asked) == (FOUND, False)
    assert FOUND in detail.answer
    assert detail.read_with == ("recall_search", "recall_read")
    assert (detail.said_in_turn, detail.asked_in_turn) == (2, DETAIL + 1)
    assert f"SP-20447 day=2026-11-07 time=10:30 reason=taken refund={FOUND}" in read_file(SATURDAY)


def test_what_it_does_not_show_is_not_good(played):
    assert not replace(played, folds=()).good
    assert not replace(played, kept=played.kept - 1).good
    assert not replace(played, detail=replace(played.detail, found="")).good
    assert (
        "found again      nothing"
        in replace(played, detail=replace(played.detail, found="")).as_text()
    )


async def test_in_a_large_window_it_says_that_nothing_was_folded_or_hidden(monkeypatch):
    """The same figures where the answers are the other way round: they are measured."""
    read = playing._text
    large = {NAME: demo_models()[NAME].model_copy(update={"window": 200_000})}
    monkeypatch.setattr(playing, "demo_models", lambda: large)
    monkeypatch.setattr(playing, "_text", lambda entry: read(entry).replace("# Spokes", ""))
    seen = await play()
    assert seen.folds == ()
    assert seen.detail.shown_when_asked
    assert seen.detail.found == ""  # recall is not offered, and it does not guess
    assert seen.kept == seen.said - 1  # the README, whose title the log was made to lose
    assert not seen.good
    assert seen.with_refold.tokens_sent == seen.without.tokens_sent


async def test_the_model_really_does_not_see_the_detail_when_it_is_asked(monkeypatch):
    shown = []
    answers = model.answer_to

    def watched(messages, tools):
        shown.append(str(messages))
        return answers(messages, tools)

    monkeypatch.setattr("refold.cli.demo.model.answer_to", watched)
    await play()
    asked = next(at for at, text in enumerate(shown) if PROMPTS[DETAIL] in text)
    assert FOUND not in shown[asked]
    assert any(FOUND in text for text in shown[:asked])
    assert FOUND in shown[asked + 1]  # what recall_search returned


def test_the_first_fold_is_seen_within_ten_seconds(heard, played):
    names = [getattr(event, "name", "") for event in heard]
    before = heard[: names.index("session.compaction_complete")]
    pieces = sum(isinstance(event, PartDeltaEvent) for event in before)
    turns = sum(isinstance(event, Prompt) for event in before)
    assert played.folds
    assert (pieces + 2 * turns) * PACE < 6  # the rest is the machine's
    assert DemoModel()._pace == PACE


def test_all_answers_fit_eighty_columns_of_figures(played):
    lines = played.as_text().splitlines()
    assert max(map(len, lines)) <= 80
    assert any(FOUND in line for line in lines)


def test_it_is_printed_as_it_is_heard(heard):
    out = []
    printing = Printer(out.append)
    for event in heard:
        printing(event)
    printing.end()
    text = "".join(out)
    assert text.count("\n> ") == len(PROMPTS)
    assert "\n  read_file README.md\nIt is a small booking page" in text
    assert re.search(r"\n  Conversation Compacted: \d+ messages, [\d,]+ → [\d,]+ tokens\n", text)
    assert text.endswith("can book again.\n")


async def test_other_questions_are_answered_honestly():
    answer = (await agent_with().run("What is the capital of France?")).output
    assert "only a script" in answer
    assert all(name in answer for name in ("/context", "/unfold", "/explain"))


async def test_a_question_may_be_typed_in_another_way():
    asked = "  " + PROMPTS[2].upper().replace("?", " ??")
    assert "reasonAgainst" in (await agent_with().run(asked)).output


async def test_without_recall_it_does_not_guess():
    answer = (await agent_with().run(PROMPTS[DETAIL])).output
    assert "recall_search" in answer
    assert FOUND not in answer


async def test_what_recall_does_not_find_is_not_made_up():
    """The log was never read in this session: there is nothing to find."""
    agent = agent_with()

    @agent.tool_plain
    def recall_search(query: str) -> str:
        return f"Nothing was found of {query}."

    @agent.tool_plain
    def recall_read(at: str) -> str:
        return f"There is nothing at {at}."

    answer = (await agent.run(PROMPTS[DETAIL])).output
    assert FOUND not in answer
    assert "will not guess" in answer


async def test_it_goes_on_in_another_process(tmp_path):
    store = f"sqlite:///{tmp_path / 'demo.db'}"
    await play(store, session="mine")
    async with Refold(store, models=demo_models()) as memory:
        again = await agent_with(memory).run(PROMPTS[DETAIL], conversation_id="mine")
        assert FOUND in again.output


def test_the_tools_read_the_project_and_nothing_else():
    assert "src/keys.js" in list_files()
    assert read_file("./README.md").startswith("# Spokes")
    assert "There is no file" in read_file("../script.toml")
    assert search_files("padStart(2").startswith("src/calendar.js:")
    assert "No line holds" in search_files("nobody wrote this")


def test_every_file_that_the_script_reads_is_there():
    calls = [call for turn in script().turns for step in turn.steps for call in step.calls]
    paths = [str(call.arguments["path"]) for call in calls if call.tool == "read_file"]
    assert len(paths) >= 9
    assert [path for path in paths if "There is no file" in read_file(path)] == []


def test_what_the_script_says_of_the_bug_is_true():
    days = [date(2026, 1, 1) + timedelta(days=ahead) for ahead in range(365)]
    keys = defaultdict(list)
    for day in days:
        keys[f"{day.year}{day.month}{day.day}"].append(day)
    open_days = {1, 3, 5}  # Tuesday, Thursday, Saturday
    both_open = [
        pair
        for pair in keys.values()
        if len(pair) > 1 and all(day.weekday() in open_days for day in pair)
    ]
    assert both_open
    assert {(first.month, second.month) for first, second in both_open} == {(1, 11)}
    assert all(second.day + 10 == first.day for first, second in both_open)
    bookings = read_file("data/bookings.csv")
    refused = re.findall(r"day=2026-11-0(\d) time=(\S+) reason=taken", read_file(SATURDAY))
    refused += re.findall(
        r"day=2026-11-0(\d) time=(\S+) reason=taken", read_file("logs/2026-11-03-tuesday.txt")
    )
    assert len(refused) == 4
    assert all(f",2026-01-1{day},{time}," in bookings for day, time in refused)
    assert "2026-11" not in bookings


def run(*words):
    app = typer.Typer()
    app.command()(demo)
    return CliRunner().invoke(app, words)


def test_the_command_prints_json_alone_or_text_and_fails_where_it_failed(played, monkeypatch):
    answers = [played, played, replace(played, folds=())]

    async def played_already(**_):
        return answers.pop(0)

    monkeypatch.setattr("refold.cli.demo.play.play", played_already)
    done = run("--json")
    assert (done.exit_code, json.loads(done.stdout)) == (
        0,
        json.loads(json.dumps(played.as_json())),
    )
    done = run()
    assert (done.exit_code, done.stdout.strip()) == (0, played.as_text())
    assert run().exit_code == 1


def test_help_needs_no_model_library():
    code = (
        "import sys, refold.cli.demo.command, refold.cli.demo.script\n"
        "print('pydantic_ai' in sys.modules or 'prompt_toolkit' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def test_the_project_comes_as_plain_data():
    folder = files("refold.cli.demo") / "project"
    assert (folder / "README.md").is_file()
    assert not [name for name in list_files().split() if name.endswith((".py", ".log"))]
