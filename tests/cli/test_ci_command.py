"""`refold ci`, the pytest plugin, and `refold lab tune`, as they are typed."""

import json
import os
from importlib.metadata import entry_points

import pytest
from lab_files import claude, claude_call, claude_result, claude_said, lines
from typer.testing import CliRunner

from refold.cli import lab_tune
from refold.cli.app import app
from refold.lab.metrics import Share
from refold.lab.tune import Comparison, Interval, Trial, Tuned

pytest_plugins = "pytester"

RULE = "Never push to main."
PLUGIN = "refold.pytest_plugin"
QUIET = ("-p", "no:cacheprovider", "-p", "no:asyncio")


def talk(turns=16):
    records = []
    for turn in range(turns):
        text = f"What does part {turn} do? {RULE if turn == 1 else ''}"
        content = f"def work_{turn}(): ...\n" * 40
        records += [
            claude("user", f"u{turn}", None, text, minute=turn),
            claude_said(f"a{turn}", None, f"m{turn}", claude_call(f"c{turn}", file_path="a.py")),
            claude_result(f"r{turn}", None, f"c{turn}", content),
            claude_said(f"b{turn}", None, f"n{turn}", {"type": "text", "text": "It works."}),
        ]
    return lines(*records)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A project with a recorded session and a prompt."""
    for name in [name for name in os.environ if name.startswith("REFOLD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "80")
    project = tmp_path / "project"
    (project / "talks").mkdir(parents=True)
    (project / "talks" / "one.jsonl").write_bytes(talk())
    (project / "prompt.md").write_text("Be kind.")
    monkeypatch.chdir(project)
    return project


def refold(*words, code=0):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == code, done.output
    return done.stdout if code in (0, 1) else done.stderr


def begun():
    refold("ci", "talks", "--instructions", "prompt.md", "--window", "9000", "--update")


def test_a_file_is_written_and_passes(folder):
    said = refold("ci", "talks", "--instructions", "prompt.md", "--window", "9000", "--update")
    assert said.endswith("Wrote refold-ci.json: 1 session. Commit it.\n")
    kept = json.loads((folder / "refold-ci.json").read_text())
    assert (kept["sessions"], kept["window"]) == (["talks"], 9000)
    assert kept["instructions"]["file"] == "prompt.md"
    assert refold("ci").endswith("Passed: 1 session as expected.\n")
    assert json.loads((folder / "refold-ci.json").read_text()) == kept


def test_a_change_fails_until_it_is_accepted(folder):
    begun()
    (folder / "prompt.md").write_text("Be kind. " * 200)
    said = refold("ci", code=1)
    assert "cost: talks/one.jsonl: $" in said
    assert "The instructions changed" in said
    assert said.endswith("Failed.\n")
    result = json.loads(refold("ci", "--json", code=1))
    assert result["passed"] is False
    assert {one["session"] for one in result["problems"]} == {"talks/one.jsonl"}
    refold("ci", "--update")
    assert "Passed" in refold("ci")


def test_a_change_of_settings_fails():
    begun()
    for key, value in (("ledger_tokens", "0"), ("max_tokens", "200"), ("user_messages", "0")):
        refold("config", f"fold.{key}", value, "--project")
    said = refold("ci", code=1)
    assert f"rules: talks/one.jsonl: rules of the user's that are not sent any more: '{RULE}'" in (
        said
    )
    assert "The first request of talks/one.jsonl that differs:" in said


def test_the_users_own_settings_are_named():
    begun()
    refold("config", "trigger.hard", "0.94")
    said = CliRunner().invoke(app, ["ci"]).stdout
    assert "From your own settings, which others do not have: trigger.hard." in said


def test_without_a_file_it_says_how_to_begin():
    done = CliRunner().invoke(app, ["ci"])
    assert done.exit_code == 1
    assert "There are no expected values in" in done.stderr
    assert "refold ci SESSIONS... --update" in done.stderr


PLUGIN_TEST = """
from itertools import count

numbers = count()

def test_prompt(refold_ci):
    refold_ci(instructions="Be kind.", tools=[{"name": "read"}], file="own.json")

def test_prompt_with_a_number(refold_ci):
    refold_ci(instructions=lambda: f"Be kind. It is {next(numbers)}.", file="own.json")
"""


@pytest.fixture
def run(pytester, folder, monkeypatch):
    """`run(…)`: pytest in the project's folder, to its end; what it prints."""
    installed = any(one.value == PLUGIN for one in entry_points(group="pytest11"))
    monkeypatch.chdir(folder)  # pytester has gone elsewhere

    def run(*words, **outcomes):
        plugin = () if installed else ("-p", PLUGIN)
        done = pytester.runpytest_inprocess(*QUIET, *plugin, *words)
        done.assert_outcomes(**outcomes)
        return str(done.stdout)

    return run


def test_each_session_is_a_test_of_pytest(run, folder):
    begun()
    run(passed=2)
    (folder / "prompt.md").write_text("Be kind. " * 200)
    said = run(passed=1, failed=1)
    assert "cost: talks/one.jsonl: $" in said
    assert "accept it with --refold-update" in said


def test_a_test_checks_the_prompt_that_code_makes(run, folder):
    refold("ci", "talks", "--expected", "own.json", "--window", "9000", "--update")
    (folder / "test_prompt.py").write_text(PLUGIN_TEST)
    run("test_prompt.py::test_prompt", "--refold-update", passed=1)
    said = run("test_prompt.py", passed=1, failed=1)
    assert "the instructions are not the same when they are made twice" in said
    assert "'0.', '1.'" in said


def tuned(*, high):
    own = Trial({}, 2.0, Share(95, 100), Share(9, 10), 0)
    chosen = Trial({"trigger.savings": 0.5}, 1.8, Share(95, 100), Share(9, 10), 0)
    comparison = Comparison(own, chosen, Interval(0.9, 0.85, high), Interval(0, -0.01, 0.01))
    return Tuned("balanced", 3, 7, 6, (own, chosen), comparison, comparison.doubt)


@pytest.fixture
def found(monkeypatch):
    def use(result):
        monkeypatch.setattr(lab_tune, "tune", lambda *_: result)

    return use


def test_a_proposal_is_shown_and_written(found):
    found(tuned(high=0.95))
    said = refold("lab", "tune", "talks")
    assert "this costs 10.0% less than balanced (95% interval 5.0% to 15.0%)" in " ".join(
        said.split()
    )
    assert "refold config trigger.savings 0.5" in said
    assert "Written" not in said
    assert "Written to" in refold("lab", "tune", "talks", "--write")
    assert refold("config", "trigger.savings") == "0.5\n"


def test_what_may_be_chance_is_not_written(found):
    found(tuned(high=1.01))
    said = " ".join(refold("lab", "tune", "talks", "--write").split())
    assert said.startswith("Keep balanced as it is: it saves between -1.0% and 15.0% there")
    assert "Written" not in said
    result = json.loads(refold("lab", "tune", "talks", "--write", "--json"))
    assert (result["proposal"], result["written"]) == (None, [])
    assert refold("config", "trigger.savings") != "0.5\n"


def test_one_short_session_says_that_it_is_too_little():
    said = " ".join(refold("lab", "tune", "talks").split())
    assert "are too few to tell anything; 10 are needed" in said
