"""Settings: where they are read, which goes before which, the seeds' names, and the errors."""

import json
import sys
from pathlib import Path

import pytest
import settings_reference
import settings_schema
from settings_left import leave_settings

from refold.errors import InvalidSetting
from refold.settings import ALIASES, KEYS, SERVE_KEYS, load_settings, variable_of
from refold.settings.trust import right_of
from refold.user_files import config_folder
from refold.view.profiles import PROFILES, ProjectRight

HOME = Path("config") / "refold"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A home without settings, and an empty folder."""
    leave_settings(monkeypatch, tmp_path / "config")
    (tmp_path / "config" / "refold").mkdir(parents=True)
    (tmp_path / "project" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "inner")
    return tmp_path


def write(place: Path, **files: str) -> None:
    paths = {
        "user": place / HOME / "config.toml",
        "user_json": place / HOME / "config.json",
        "project": place / "project" / "refold.toml",
        "pyproject": place / "project" / "pyproject.toml",
        "shared": place / "project" / "config.json",
        "inner": place / "project" / "inner" / "refold.toml",
    }
    for name, text in files.items():
        paths[name].write_text(text, encoding="utf-8")


def refused(*words: str) -> InvalidSetting:
    with pytest.raises(InvalidSetting) as caught:
        load_settings()
    said = f"{caught.value.what}\n{caught.value.fix}"
    assert [word for word in words if word not in said] == [], said
    return caught.value


def test_without_any_settings_the_profile_speaks():
    settings = load_settings()
    assert settings.profile == PROFILES["balanced"]
    assert settings.models == {}
    assert set(settings.sources) == {"profile", *KEYS, *SERVE_KEYS} == set(settings.values())
    assert str(settings.sources["profile"]) == "default"
    assert {str(settings.sources[key]) for key in KEYS} == {"profile balanced"}


@pytest.mark.parametrize("name", list(PROFILES))
def test_each_profile_can_be_chosen_everywhere(place, monkeypatch, name):
    assert load_settings(name).profile == PROFILES[name]
    write(place, user=f'profile = "{name}"')
    assert load_settings().profile == PROFILES[name]
    write(place, user='profile = "balanced"', project=f'profile = "{name}"')
    chosen, mine, theirs = load_settings(), PROFILES["balanced"], PROFILES[name]
    assert chosen.profile.name == name
    # A project's choice brings what a project may decide, and nothing that runs, sends or erases.
    own = {
        name: getattr(mine, name) for name in ("retention", "consolidate", "memory", "auto_restore")
    }
    assert chosen.profile == theirs.model_copy(update=own)
    expected = {"retention.days"} if theirs.retention != mine.retention else set()
    expected |= {"consolidate"} if theirs.consolidate != mine.consolidate else set()
    expected |= {"memory.daily", "memory.search"} if theirs.memory != mine.memory else set()
    expected |= {"auto_restore"} if theirs.auto_restore != mine.auto_restore else set()
    assert {one.key for one in chosen.left_out} == expected
    monkeypatch.setenv("REFOLD_PROFILE", "co-cli")
    assert load_settings().profile.name == "co-cli"
    assert load_settings(name).sources["profile"].level == "argument"


def test_environment_then_project_then_user_then_profile(place, monkeypatch):
    write(
        place,
        user="budget = 1\nmax_steps = 1\n[trim]\nmax_chars = 1\n",
        project="max_steps = 2\n[trim]\nmax_chars = 2\n",
    )
    monkeypatch.setenv("REFOLD_TRIM__MAX_CHARS", "3")
    settings = load_settings("copilot")
    found = settings.profile
    assert (found.trim.max_chars, found.max_steps, found.budget, found.reserve) == (3, 2, 1, 0)
    assert {key: str(settings.sources[key]) for key in ("trim.max_chars", "reserve")} == {
        "trim.max_chars": "REFOLD_TRIM__MAX_CHARS",
        "reserve": "profile copilot",
    }
    assert str(settings.sources["max_steps"]) == f"{place / 'project' / 'refold.toml'}, line 1"
    assert str(settings.sources["budget"]) == f"{place / HOME / 'config.toml'}, line 1"
    levels = [settings.sources[key].level for key in ("budget", "max_steps", "trim.max_chars")]
    assert levels == ["user", "project", "environment"]


def test_the_nearest_folder_with_settings_is_the_project(place):
    write(place, project="max_steps = 2", inner="budget = 5")
    found = load_settings()
    assert (found.profile.budget, found.profile.max_steps) == (5, 0)
    assert load_settings(folder=place / "project").profile.max_steps == 2


def test_a_pyproject_counts_if_it_speaks_of_refold(place):
    write(place, pyproject='[project]\nname = "refolding"\n')
    assert load_settings().profile == PROFILES["balanced"]
    write(place, pyproject="[tool.refold]\nmax_steps = 4\n[tool.refold.trim]\nmax_chars = 9\n")
    settings = load_settings()
    assert (settings.profile.max_steps, settings.profile.trim.max_chars) == (4, 9)
    assert str(settings.sources["trim.max_chars"]).endswith("pyproject.toml, line 4")
    write(place, pyproject="[project\n")
    assert load_settings().profile == PROFILES["balanced"]


@pytest.mark.req("R119", "R120", "R121")
def test_a_config_json_is_read_but_may_belong_to_another_program(place):
    foreign = {"model": "some", "window": {"width": 80}, "open_ai_api_key": "sk-secret"}
    seeds = {"agent_max_context_tokens": 80_000, "agent_max_context_turns": 30}
    write(place, shared=json.dumps(foreign | seeds, indent=1), project="max_steps = 7")
    settings = load_settings("cowagent")
    assert settings.profile.trigger.tokens == settings.profile.window.max_tokens == 80_000
    assert settings.profile.trigger.turns == settings.profile.window.max_turns == 30
    assert settings.profile.max_steps == 7
    source = str(settings.sources["trigger.turns"])
    assert source.endswith("config.json, line 8 (agent_max_context_turns)")
    assert "sk-secret" not in repr(settings)
    write(place, shared=json.dumps({"refold": {"budget": 9}, "agent_max_steps": 7}))
    assert load_settings().profile.budget == 9
    write(place, shared="{broken", project="")
    assert load_settings().profile == PROFILES["balanced"]


def test_the_users_config_json_is_ours(place):
    write(place, user_json='{"trim": {"max_chars": 12}}')
    assert load_settings().profile.trim.max_chars == 12
    write(place, user_json='{"trimm": {"max_chars": 12}}')
    refused("trimm.max_chars", "Did you mean trim.max_chars?")


def in_files() -> list[tuple[str, tuple[str, ...]]]:
    return [(one.file, one.keys) for one in ALIASES if one.file and "." not in one.file]


def in_environment() -> list[tuple[str, tuple[str, ...]]]:
    return [(one.variable, one.keys) for one in ALIASES if one.variable]


def given(key: str) -> object:
    kind = KEYS[key].annotation
    return "some:model" if kind is str else 0.07 if kind is float else 77


@pytest.mark.req("R116", "R117", "R118", "R119", "R120", "R121", "R150")
@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.parametrize(("name", "keys"), in_files())
def test_a_name_of_the_seeds_applies_in_every_profile(place, profile, name, keys):
    value = given(keys[0])
    policy = right_of(keys[0]) is ProjectRight.VALUE  # else only the user's own file may set it
    write(place, **{"project" if policy else "user": f"{name} = {json.dumps(value)}"})
    settings = load_settings(profile)
    assert [settings.values()[key] for key in keys] == [value] * len(keys)
    assert {settings.sources[key].alias for key in keys} == {name}
    assert settings.value(name) == value


@pytest.mark.req("R116", "R117", "R118", "R122", "R150")
@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.parametrize(("name", "keys"), in_environment())
def test_a_variable_of_the_seeds_applies_in_every_profile(monkeypatch, profile, name, keys):
    value = given(keys[0]) if name != "COPILOT_BUFFER_EXHAUSTION_THRESHOLD" else 0.99
    monkeypatch.setenv(name, str(value))
    settings = load_settings(profile)
    assert [settings.values()[key] for key in keys] == [value] * len(keys)
    assert {str(settings.sources[key]) for key in keys} == {name}


@pytest.mark.req("R117", "R150")
@pytest.mark.parametrize("profile", list(PROFILES))
def test_no_history_limit_means_no_automatic_folding(place, profile):
    write(place, project="max_history_messages = 0")
    trigger = load_settings(profile).profile.trigger
    automatic = (trigger.messages, trigger.turns, trigger.tokens, trigger.soft, trigger.hard)
    assert automatic == (0, 0, 0, 0, 0)
    assert trigger.generation == ()
    write(place, project="max_history_messages = 0\ntrigger.soft = 0.7")
    assert load_settings(profile).profile.trigger.soft == 0.7


def test_our_own_name_goes_before_a_seeds_one(place):
    write(place, project="tool_output_trim_chars = 5\ntrim.max_chars = 5")
    assert load_settings().sources["trim.max_chars"].alias is None


@pytest.mark.parametrize(
    "files",
    [
        {"project": "tool_output_trim_chars = 5\ntrim.max_chars = 6"},
        {"project": "trim.max_chars = 6", "shared": '{"tool_output_trim_chars": 5}'},
        {"project": "trim.max_chars = 6", "pyproject": "[tool.refold]\ntrim.max_chars = 5"},
    ],
)
def test_two_values_at_one_level_are_an_error_that_names_both(place, files):
    write(place, **files)
    refused("trim.max_chars is set twice", "to 6 by", "to 5 by", "refold.toml, line", "Keep one")


def test_so_are_two_variables(monkeypatch):
    monkeypatch.setenv("CO_CLI_TOOL_OUTPUT_TRIM_CHARS", "5")
    monkeypatch.setenv("REFOLD_TRIM__MAX_CHARS", "6")
    refused("REFOLD_TRIM__MAX_CHARS", "CO_CLI_TOOL_OUTPUT_TRIM_CHARS")


def test_two_levels_may_differ(place, monkeypatch):
    write(place, user="trim.max_chars = 6", project="tool_output_trim_chars = 7")
    assert load_settings().profile.trim.max_chars == 7
    monkeypatch.setenv("CO_CLI_TOOL_OUTPUT_TRIM_CHARS", "8")
    assert load_settings().profile.trim.max_chars == 8


@pytest.mark.parametrize("key", list(KEYS))
def test_every_setting_has_a_variable(monkeypatch, key):
    value = PROFILES["inkeep"].model_dump()
    for name in key.split("."):
        value = value[name]
    written = value if isinstance(value, str) else json.dumps(value)
    monkeypatch.setenv(variable_of(key), written or "/x")
    settings = load_settings("inkeep")
    assert str(settings.sources[key]) == variable_of(key)
    assert settings.values()[key] == (value if written else "/x")


def test_variables_may_hold_json_and_be_written_small(monkeypatch):
    monkeypatch.setenv("REFOLD_TRIM", '{"max_chars": 9}')
    monkeypatch.setenv("refold_trigger__generation", "[[0, 0.5], [1000, 0.6]]")
    monkeypatch.setenv("REFOLD_BUDGET", "")
    settings = load_settings()
    assert settings.profile.trim.max_chars == 9
    assert settings.profile.trigger.generation == ((0, 0.5), (1_000, 0.6))
    assert str(settings.sources["trim.max_chars"]) == "REFOLD_TRIM"
    assert settings.sources["budget"].level == "profile"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("REFOLD_TRIM__MAX_CHARS", "many", ["trim.max_chars is 'many' by REFOLD_TRIM__MAX_CHARS"]),
        ("REFOLD_TRIM__MAX_CHARS", "-1", ["greater than or equal to 0", "profile balanced has 0"]),
        ("REFOLD_TRIM__MAX_CHAR", "1", ["REFOLD_TRIM__MAX_CHAR is no", "REFOLD_TRIM__MAX_CHARS?"]),
        ("REFOLD_TRIMM__MAX_CHARS", "1", ["Did you mean REFOLD_TRIM__MAX_CHARS?"]),
        ("REFOLD_PROFIL", "co-cli", ["Did you mean REFOLD_PROFILE?"]),
        ("REFOLD_PROFILE", "co", ["REFOLD_PROFILE", "'co'", "balanced, co-cli, copilot"]),
        ("REFOLD_X__Y", "1", ["REFOLD_X__Y is not a setting", "`refold config`"]),
        ("REFOLD_TRIM", "5", ["REFOLD_TRIM sets trim", "REFOLD_TRIM__MAX_CHARS"]),
        ("REFOLD_TRIM", '{"max_char": 5}', ["trim.max_char", "Did you mean trim.max_chars?"]),
        ("REFOLD_TRIM", "{", ["REFOLD_TRIM", "JSON"]),
        ("REFOLD_TRIGGER__GENERATION", '[[0, "x"]]', ["trigger.generation", "valid number"]),
        ("REFOLD_TRIGGER__SOFT", "0.99", ["0.99", "0.95", "by REFOLD_TRIGGER__SOFT", "below"]),
        ("CO_CLI_MAX_HISTORY_MESSAGES", "x", ["'x' by CO_CLI_MAX_HISTORY_MESSAGES"]),
        ("REFOLD_MODELS", "[1]", ["REFOLD_MODELS holds [1]", "JSON object"]),
        ("REFOLD_MODELS", '{"x": 5}', ["REFOLD_MODELS holds 5", "JSON object"]),
        ("REFOLD_MODELS", '{"gpt-4o": {"window": 0}}', ["window of model gpt-4o", "REFOLD_MODELS"]),
    ],
)
def test_a_wrong_variable_is_named(monkeypatch, name, value, words):
    monkeypatch.setenv(name, value)
    refused(*words)


def test_variables_of_others_are_left_alone(monkeypatch):
    monkeypatch.setenv("REFOLD_STORE", "sqlite:///x.db")
    monkeypatch.setenv("REFOLD_DATA", "somewhere")
    assert load_settings().profile == PROFILES["balanced"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n[trim]\nmax_chars = 'many'", ["trim.max_chars is 'many'", "refold.toml, line 3"]),
        ("trim = {max_chars = -1}", ["refold.toml, line 1", "greater than or equal to 0"]),
        ("[trim]\nmax_char = 1", ["sets trim.max_char,", "line 2", "mean trim.max_chars?"]),
        ("max_histroy_messages = 1", ["Did you mean max_history_messages?"]),
        ("trim = 5", ["sets trim,", "It is a table: set trim.max_chars"]),
        ("password = 'secret'", ["sets password,", "`refold config`"]),
        ("max_steps = 1\nbudget = \n", ["refold.toml is not TOML", "line 2"]),
        ("profile = 'mine'", ["refold.toml, line 1: There is no profile 'mine'"]),
        ("[models]\nx = 5", ["In `models`", "[models."]),
        ("models = 5", ["In `models`"]),
        ('[models."a.b"]\nwindow = -1', ["window of model a.b is -1", "refold.toml, line 2"]),
        ('[models."a.b"]\nwidow = 1', ["sets widow of model a.b", "Did you mean window?"]),
    ],
)
def test_a_wrong_file_is_named_with_its_line(place, text, words):
    write(place, project=text)
    assert "secret" not in refused("refold.toml", *words).what


def test_a_wrong_value_that_only_the_user_may_set_is_named_in_the_users_file(place):
    write(place, user="summarizer = 5")
    refused("config.toml", "summarizer is 5")
    write(place, user="", project="summarizer = 5")
    assert [one.key for one in load_settings().left_out] == ["summarizer"]


def test_a_json_file_that_is_no_object_is_refused(place):
    write(place, user_json="[1]")
    refused("config.json holds no settings")
    write(place, user_json="{")
    refused("config.json is not JSON")


def test_a_long_value_is_shown_in_part(place):
    write(place, project=f"max_steps = '{'x' * 500}'")
    assert len(refused("xxxx…").what) < 300


@pytest.mark.req("R034")
def test_models_can_be_described(place):
    text = '[models."local:smollm2"]\nwindow = 2048\noutput = 512\n'
    write(place, user=text, project='models."local:smollm2".window = 4096')
    settings = load_settings()
    own = settings.models["local:smollm2"]
    assert (own.window, own.output) == (4_096, 512)
    key = 'models."local:smollm2".window'
    assert settings.values()[key] == settings.value(key) == 4_096
    assert str(settings.sources[key]).endswith("refold.toml, line 1")


def test_a_value_that_is_no_setting_cannot_be_asked_for():
    with pytest.raises(InvalidSetting, match=r"Did you mean trim\.max_chars"):
        load_settings().value("trim.max_char")
    assert load_settings().value("COPILOT_BACKGROUND_COMPACTION_THRESHOLD") == 0.8


def test_the_users_folder_follows_the_platform(place, monkeypatch):
    assert config_folder() == place / HOME
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", lambda: place)
    assert config_folder() == place / ".config" / "refold"
    monkeypatch.setattr(sys, "platform", "darwin")
    library = place / "Library" / "Application Support" / "refold"
    assert config_folder() == place / ".config" / "refold"
    library.mkdir(parents=True)
    assert config_folder() == library


def test_the_reference_is_up_to_date():
    assert settings_reference.PAGE.read_text(encoding="utf-8") == settings_reference.render()
    assert settings_schema.FILE.read_text(encoding="utf-8") == settings_schema.render()
