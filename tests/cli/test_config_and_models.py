"""`refold config` and `refold models`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from settings_left import leave_settings
from typer.testing import CliRunner

from refold.cli.app import app
from refold.settings import KEYS, SERVE_KEYS, settings_schema
from refold.view.profiles import PROFILES

pytest.importorskip("genai_prices")

SETTINGS = """
profile = "inkeep"
tool_output_trim_chars = 1500

[models."local:smollm2"]
window = 2048
output = 512
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    leave_settings(monkeypatch, tmp_path / "config")
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "project" / "inner").mkdir(parents=True)
    (tmp_path / "project" / "refold.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def said(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.output


def rows(text: str) -> dict[str, list[str]]:
    split = [line.split("  ") for line in text.splitlines() if line.strip()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in split]
    return {one[0]: one[1:] for one in cells}


def test_config_shows_each_value_and_its_source(monkeypatch):
    monkeypatch.setenv("REFOLD_MAX_STEPS", "9")
    text = said("config")
    assert rows(text)["profile"] == ["inkeep", "refold.toml, line 2"]
    assert rows(text)["max_steps"] == ["9", "REFOLD_MAX_STEPS"]
    assert "1500" in text.partition("[trim]")[2].partition("[")[0]
    assert "refold.toml, line 3 (tool_output_trim_chars)" in text
    assert max(map(len, text.splitlines())) <= 80
    tables = {line[1:-1] for line in text.splitlines() if line.startswith("[")}
    assert tables == {key.rpartition(".")[0] for key in (*KEYS, *SERVE_KEYS) if "." in key} | {
        'models."local:smollm2"'
    }


def test_config_names_files_from_where_you_are(place, monkeypatch):
    monkeypatch.chdir(place / "project" / "inner")
    assert rows(said("config"))["profile"] == ["inkeep", "../refold.toml, line 2"]
    monkeypatch.setattr(Path, "home", lambda: place)
    (place / "config" / "refold").mkdir(parents=True)
    (place / "config" / "refold" / "config.toml").write_text("max_steps = 3")
    assert rows(said("config"))["max_steps"] == ["3", "~/config/refold/config.toml, line 1"]


def test_config_takes_another_profile():
    assert rows(said("config", "--profile", "copilot"))["profile"] == ["copilot", "--profile"]
    assert "no profile 'mine'" in said("config", "--profile", "mine", code=2)


def test_config_as_json_is_whole(place):
    shown = json.loads(said("config", "--json"))
    assert {*KEYS, *SERVE_KEYS} < set(shown)
    assert shown["trim.max_chars"] == {
        "value": 1500,
        "source": f"{place / 'project' / 'refold.toml'}, line 3 (tool_output_trim_chars)",
        "level": "project",
    }
    assert shown["fit.marker"]["value"] == PROFILES["inkeep"].fit.marker


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trim.max_chars", "1500"),
        ("tool_output_trim_chars", "1500"),
        ("profile", "inkeep"),
        ("summarizer", '""'),
        ("dedupe", "false"),
        ("trigger.generation", "[[0, 0.75], [100000, 0.83], [500000, 0.91]]"),
    ],
)
def test_config_tells_one_value(key, value):
    assert said("config", key) == f"{value}\n"


def test_config_explains_what_is_wrong(monkeypatch):
    monkeypatch.setenv("REFOLD_TRIM__MAX_CHARS", "many")
    assert said("config", code=1).startswith("error[invalid-setting]: trim.max_chars is 'many'")
    assert said("models", code=1).startswith("error[invalid-setting]")


def test_models_lists_a_few():
    text = said("models")
    found = rows(text)
    assert found["openai:gpt-4o"] == ["128,000", "2.50", "1.25", "10.00"]
    assert found["google:gemini-2.5-pro"][0] == "1,048,576"
    assert found["mistral:mistral-large-latest"][0] == "unknown (assuming 128,000)"
    assert found["local:smollm2"] == ["2,048", "–", "–", "–"]  # noqa: RUF001
    assert max(map(len, text.splitlines())) <= 80
    assert len(found) < 24


def test_models_shows_at_how_many_tokens_each_profile_acts():
    text = said("models", "anthropic:claude-sonnet-4-5")
    found = rows(text)
    assert found["window"] == ["200,000"]
    assert found["balanced"] == ["co-cli", "copilot", "cowagent", "inkeep"]
    assert found["starts to fold"] == ["146,893", "–", "160,000", "–", "100,000"]  # noqa: RUF001
    # As set, 0.95 of the limit, though these tokens are estimated.
    assert found["waits for the fold"][2] == "190,000"
    assert found["folds delegated work"][4] == "166,000"
    assert found["cuts to tokens"][3:] == ["50,000", "8,000"]
    assert found["messages at most"][1] == "40"
    assert max(map(len, text.splitlines())) <= 80


def test_models_obeys_your_settings(monkeypatch):
    monkeypatch.setenv("REFOLD_TRIGGER__SOFT", "0.5")
    found = rows(said("models", "local:smollm2", "--profile", "copilot"))
    assert found["window"] == ["2,048"]
    assert found["answer"] == ["512 at most"]
    assert found["limit of a request"] == ["1,536"]
    assert found["starts to fold"] == ["768"]


def test_models_finds_by_part_of_the_name():
    assert len(rows(said("models", "SONNET"))) > 20
    assert "openai:gpt-4.1-nano\n" in said("models", "gpt-4.1-nano")
    several = said("models", "openai:gpt-4o", "openai:o3", "openai:gpt-4o")
    assert several.count("window") == 2
    text = said("models", "no-such-model", code=1)
    assert 'Describe it in refold.toml: [models."no-such-model"]' in text
    assert rows(said("models", "somewhere:new"))["window"] == ["unknown (assuming 128,000)"]


def test_models_as_json():
    [one] = json.loads(said("models", "somewhere:new", "--json"))
    assert (one["model"], one["window"]) == ("somewhere:new", None)
    assert set(one["thresholds"]) == set(PROFILES)
    assert one["thresholds"]["copilot"]["limit"] == 128_000
    [gpt] = json.loads(said("models", "openai:gpt-4o", "--json", "--profile", "copilot"))
    assert gpt["thresholds"] == {"copilot": gpt["thresholds"]["copilot"]}
    assert gpt["prices"]["input"] == 2.5


def test_both_run_as_real_commands():
    for command in (["config", "trim.max_chars"], ["models", "openai:gpt-4o"]):
        run = [sys.executable, "-m", "refold.cli", *command]
        done = subprocess.run(run, capture_output=True, text=True, timeout=240, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(("1500\n", "openai:gpt-4o\n"))


def test_config_sets_a_value_and_keeps_it(place):
    path = place / "config" / "refold" / "config.toml"
    text = said("config", "agent_max_context_tokens", "80000")
    assert text == f"agent_max_context_tokens is 80000 now (before: 0). Written to {path}.\n"
    assert said("config", "trigger.tokens") == "80000\n"
    assert said("config", "window.max_tokens", "--profile", "cowagent") == "80000\n"
    assert said("config", "agent_max_context_turns", "30").startswith("agent_max_context_turns is ")
    assert path.read_text() == (
        "#:schema ./refold.schema.json\n"
        "agent_max_context_tokens = 80000\nagent_max_context_turns = 30\n"
    )


@pytest.mark.usefixtures("place")
def test_config_prints_the_schema_and_how_to_use_it():
    done = CliRunner().invoke(app, ["config", "--schema"])
    assert (done.exit_code, done.stdout) == (0, settings_schema())
    assert "#:schema ./refold.schema.json" in done.stderr


def test_config_says_what_goes_before(place):
    text = said("config", "profile", "copilot")
    assert "It does not apply here: " in text
    assert "refold.toml, line 2 sets it to 'inkeep'." in text
    mine = place / "project" / "refold.toml"
    assert said("config", "profile", "copilot", "--project").endswith(f"Written to {mine}.\n")
    assert mine.read_text() == SETTINGS.replace("inkeep", "copilot")


def test_config_takes_a_value_out(place):
    said("config", "max_steps", "3")
    assert said("config", "max_steps", "--unset").startswith("max_steps is 0 now (before: 3).")
    assert "is not set in" in said("config", "max_steps", "--unset", code=1)
    kept = json.loads(said("config", "max_steps", "4", "--json"))
    assert kept == {
        "key": "max_steps",
        "value": 4,
        "before": 0,
        "path": str(place / "config" / "refold" / "config.toml"),
        "instead": None,
    }


@pytest.mark.parametrize(
    "wrong", [["--unset"], ["max_steps", "3", "--unset"], ["max_steps", "many"], ["nope", "1"]]
)
def test_config_writes_nothing_wrong(place, wrong):
    assert said("config", *wrong, code=2).startswith("error[invalid-")
    assert not (place / "config").exists()
    assert (place / "project" / "refold.toml").read_text() == SETTINGS


def test_config_prints_one_value_as_json():
    assert said("config", "profile", "--json") == '"inkeep"\n'
    assert said("config", "trim.max_chars", "--json") == "1500\n"
