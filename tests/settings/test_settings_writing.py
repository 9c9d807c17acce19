"""Settings that are set for good: what is written where, and what stays as it was."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from settings_left import leave_settings

from refold.errors import InvalidSetting
from refold.settings import (
    KEYS,
    SCHEMA_LINE,
    SettingChange,
    load_settings,
    set_setting,
    unset_setting,
)
from refold.settings.writing import with_value, without_value
from refold.view.profiles import PROFILES

WRITTEN = """\
# What I like.
profile = "copilot"  # for now

[trim]
# Not too long:
max_chars = 4000 # "#" is no comment in a text
marker = \"\"\"
[… {length}]
\"\"\"

# The local one.
[models."local:smollm2"]
window = 2048
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A home without settings, and an empty project."""
    leave_settings(monkeypatch, tmp_path / "config")
    (tmp_path / "project" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "inner")
    return tmp_path


def user(place, text=None):
    path = place / "config" / "refold" / "config.toml"
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "value", "before", "keys"),
    [
        ("agent_max_context_tokens", 80_000, 100_000, ("trigger.tokens", "window.max_tokens")),
        ("agent_max_context_turns", 30, 0, ("trigger.turns", "window.max_turns")),
        ("agent_max_steps", 9, 0, ("max_steps",)),
    ],
)
def test_a_seeds_name_is_set_and_kept(place, name, value, before, keys):
    kept = set_setting(name, str(value))
    assert kept == SettingChange(name, value, before, user(place))
    values = load_settings("cowagent").values()
    assert [values[key] for key in keys] == [value] * len(keys)
    assert user(place).read_text() == f"{SCHEMA_LINE}\n{name} = {value}\n"


def test_comments_and_order_stay(place):
    path = user(place, WRITTEN)
    kept = set_setting("trim.max_chars", "5,000")
    assert (kept.value, kept.before) == (5000, 4000)
    set_setting("profile", "inkeep")
    set_setting('models."local:smollm2".output', "512")
    set_setting("models.local:other.window", "9000")
    set_setting("max_steps", "7")
    set_setting("trim.style", "head-tail")
    expected = (
        WRITTEN.replace("4000", "5000")
        .replace('"copilot"  # for now', '"inkeep"  # for now\nmax_steps = 7')
        .replace('\n"""\n\n#', '\n"""\nstyle = "head-tail"\n\n#')
        .replace("2048\n", '2048\noutput = 512\n\n[models."local:other"]\nwindow = 9000\n')
    )
    assert path.read_text() == expected
    assert load_settings().models["local:other"].window == 9000


def test_a_top_level_value_goes_before_the_tables(place):
    path = user(place, "# Mine.\n\n# How long.\n[trim]\nmax_chars = 1\n")
    set_setting("budget", "9")
    assert path.read_text() == "# Mine.\n\nbudget = 9\n\n# How long.\n[trim]\nmax_chars = 1\n"


def test_a_dotted_key_gets_company(place):
    path = user(place, "trim.max_chars = 1")
    set_setting("trim.style", "head-tail")
    assert path.read_text() == 'trim.max_chars = 1\ntrim.style = "head-tail"\n'


@pytest.mark.parametrize(
    ("key", "value", "stored"),
    [
        ("summarizer", "123", '"123"'),
        ("dedupe", "yes", "true"),
        ("trigger.generation", "[[0, 0.5], [1000, 0.75]]", "[[0, 0.5], [1000, 0.75]]"),
        ("fit.marker", 'a "b" # \\ ü\n\x7f', '"a \\"b\\" # \\\\ ü\\n\\u007f"'),
        ("trigger.soft", "1e-1", "0.1"),
        ("COPILOT_BACKGROUND_COMPACTION_THRESHOLD", "0.5", "0.5"),
    ],
)
def test_values_are_spelled_as_toml(place, key, value, stored):
    kept = set_setting(key, value)
    assert user(place).read_text().endswith(f" = {stored}\n")
    assert load_settings().value(kept.key) == load_settings().value(key)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("trim.max_char", "1", "Did you mean trim.max_chars?"),
        ("trim", "1", "Set one of trim.max_chars"),
        ("nonsense", "1", "`refold config` lists them."),
        ("trim.max_chars", "many", "cannot be 'many'"),
        ("trim.max_chars", "-1", "greater than or equal to 0"),
        ("trigger.soft", "0.97", "Set trigger.soft below trigger.hard."),
        ("trim.style", "middle", "'head' or 'head-tail'"),
        ("profile", "frugal", "Use one of balanced"),
        ("models.x:y.window", "0", "greater than 0"),
        ("models.x:y.frob", "0", "There is no setting"),
        ("budget", "1\nprofile = 2", "cannot be"),
        ("fold.wait", "inf", "cannot be changed safely"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_written(place, key, value, words):
    with pytest.raises(InvalidSetting) as caught:
        set_setting(key, value)
    assert words in f"{caught.value.what}\n{caught.value.fix}"
    assert not user(place).exists()


def test_a_name_and_its_alias_do_not_stand_beside_each_other(place):
    path = user(place, "[trigger]\ntokens = 1\nturns = 3\n")
    set_setting("agent_max_context_tokens", "80000")
    assert tomllib.loads(path.read_text()) == {
        "agent_max_context_tokens": 80000,
        "trigger": {"turns": 3},
    }
    kept = set_setting("trigger.tokens", "50000")
    assert (kept.value, kept.before) == (50000, 80000)
    assert tomllib.loads(path.read_text()) == {
        "window": {"max_tokens": 80000},
        "trigger": {"turns": 3, "tokens": 50000},
    }


def test_another_file_of_the_user_that_differs_is_named(place):
    user(place, "")
    other = place / "config" / "refold" / "config.json"
    other.write_text('{"tool_output_trim_chars": 9}')
    with pytest.raises(InvalidSetting, match="set twice"):
        set_setting("trim.max_chars", "5")
    assert user(place).read_text() == ""
    kept = set_setting("tool_output_trim_chars", "5")
    assert (kept.path, json.loads(other.read_text())) == (other, {"tool_output_trim_chars": 5})
    unset_setting("tool_output_trim_chars")
    assert json.loads(other.read_text()) == {}


def test_what_goes_before_it_is_told(place, monkeypatch):
    (place / "project" / "refold.toml").write_text("max_steps = 2\n")
    kept = set_setting("max_steps", "3")
    assert kept.instead == f"{place / 'project' / 'refold.toml'}, line 1 sets it to 2"
    assert set_setting("max_steps", "4", project=True).instead is None
    monkeypatch.setenv("REFOLD_MAX_STEPS", "5")
    assert set_setting("max_steps", "4", project=True).instead == "REFOLD_MAX_STEPS sets it to 5"


def test_a_project_keeps_its_own(place):
    kept = set_setting("max_steps", "3", project=True)
    assert kept.path == place / "project" / "inner" / "refold.toml"
    kept.path.unlink()
    toml = place / "project" / "pyproject.toml"
    toml.write_text('[project]\nname = "x"\n\n[tool.refold]\nbudget = 1\n\n[tool.other]\nx = 1\n')
    kept = set_setting("trim.max_chars", "3", project=True)
    assert kept.path == toml
    assert toml.read_text().endswith("[tool.other]\nx = 1\n\n[tool.refold.trim]\nmax_chars = 3\n")
    set_setting("budget", "2", project=True)
    assert "[tool.refold]\nbudget = 2\n" in toml.read_text()
    assert load_settings().profile.trim.max_chars == 3


def test_a_file_of_another_program_is_left_alone(place):
    shared = place / "project" / "config.json"
    shared.write_text('{"agent_max_steps": 3, "theirs": true}')
    with pytest.raises(InvalidSetting, match="Change it there"):
        set_setting("agent_max_steps", "4", project=True)
    kept = set_setting("budget", "4", project=True)
    assert kept.path == place / "project" / "refold.toml"
    assert shared.read_text() == '{"agent_max_steps": 3, "theirs": true}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("trim = { max_chars = 3 } # mine\n", "trim = { max_chars = 4 } # mine\n"),
        ("trim = { style = 'head' }\n", "trim = { style = 'head', max_chars = 4}\n"),
        ("trim.style='head'\r\n", "trim.style='head'\r\ntrim.max_chars = 4\r\n"),
        ("trim.max_chars=3\n", "trim.max_chars=4\n"),
        ('"trim"."max_chars" = 3\n', '"trim"."max_chars" = 4\n'),
    ],
)
def test_a_value_is_set_however_its_table_is_written(place, before, after):
    path = user(place)
    path.parent.mkdir(parents=True)
    path.write_bytes(before.encode())
    set_setting("trim.max_chars", "4")
    assert path.read_bytes().decode() == after


def test_what_cannot_be_edited_safely_is_left_alone(place):
    path = user(place, "[trigger]\ngeneration = [\n  # At first:\n  [0, 0.5],\n]\n")
    with pytest.raises(InvalidSetting, match="edit the file yourself"):
        set_setting("trigger.generation", "[[0, 0.6]]")
    assert "# At first:" in path.read_text()
    path.write_text("trim = 3\n")
    with pytest.raises(InvalidSetting, match="edit the file yourself"):
        set_setting("trim.max_chars", "4")
    path.write_bytes(b"# \xff\n")
    with pytest.raises(InvalidSetting, match="UTF-8"):
        set_setting("trim.max_chars", "4")
    path.write_text("[trim\n")
    with pytest.raises(InvalidSetting, match="Correct the file"):
        set_setting("trim.max_chars", "4")
    assert path.read_text() == "[trim\n"


def test_a_wrong_value_can_be_put_right(place):
    path = user(place, "[trim]\nmax_chars = 'many'\n")
    kept = set_setting("trim.max_chars", "4")
    assert (kept.value, kept.before) == (4, None)
    assert path.read_text() == "[trim]\nmax_chars = 4\n"


def test_taking_a_value_out(place):
    path = user(place, WRITTEN)
    kept = unset_setting("trim.max_chars")
    assert (kept.before, kept.value) == (4000, PROFILES["copilot"].trim.max_chars)
    assert "max_chars" not in path.read_text()
    assert "# Not too long:" in path.read_text()
    with pytest.raises(InvalidSetting, match=r"trim.max_chars is not set in .* profile copilot\."):
        unset_setting("trim.max_chars")
    unset_setting("profile")
    assert load_settings().profile.name == "balanced"


def test_links_modes_and_line_ends_stay(place):
    path = user(place, "")
    real = place / "real.toml"
    real.write_bytes(b"profile = 'copilot'\r\n[trim]\r\nmax_chars = 3\r\n")
    real.chmod(0o600)
    path.unlink()
    path.symlink_to(real)
    set_setting("trim.max_chars", "4")
    set_setting("trim.style", "head-tail")
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert real.read_bytes() == (
        b"profile = 'copilot'\r\n[trim]\r\nmax_chars = 4\r\nstyle = \"head-tail\"\r\n"
    )
    assert [one.name for one in place.iterdir() if one.name.endswith(".part")] == []


PIECES = st.sampled_from(
    [
        "# a comment\n",
        "\n",
        "budget = 3 # here\n",
        "max_steps = 4\n",
        "[trim]\n",
        "[trim] # cut\n",
        "max_chars = 9\n",
        "[fold.keep]\n",
        "amount = 1.5\n",
        "[fold]\n",
        "fold.wait = 3\n",
        "[[other]]\n",
        'text = """\n[trim]\nbudget = 5\n"""\n',
        "list = [\n 1, # one\n 2,\n]\n",
        'models."a=b".window = 4\n',
        "trim = { style = 'head' }\n",
        "# [fold]\u2028budget = 7\n",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=10), st.sampled_from([*KEYS]), st.integers(0, 9))
def test_an_edit_changes_one_value_and_loses_no_line(pieces, key, value):
    text = "".join(pieces)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    path = tuple(key.split("."))
    changed = with_value(text, path, value)
    if changed is None:
        return
    inner = tomllib.loads(changed)
    for one in path:
        inner = inner[one]
    assert inner == value
    assert len([line for line in text.split("\n") if line not in changed.split("\n")]) <= 1
    gone = without_value(changed, path)
    assert gone is not None
    assert without_value(gone, path) == gone


def test_user_folder_is_made(place):
    assert not Path(place / "config").exists()
    set_setting("budget", "1")
    assert user(place).exists()
