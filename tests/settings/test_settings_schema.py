"""The JSON Schema of refold.toml: it takes what Refold takes, and refuses what Refold refuses."""

import json
import re
import tomllib
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from page_blocks import blocks_of
from project_paths import DOCS, ROOT
from settings_left import leave_settings

from refold.errors import InvalidSetting
from refold.settings import KEYS, SCHEMA_LINE, load_settings, set_setting, settings_schema
from refold.settings.names import FILE_ALIASES
from refold.view.profiles import PROFILES

SCHEMA = json.loads(settings_schema())
VALIDATOR = Draft7Validator(SCHEMA)
SHIPPED = "refold.schema.json"

IN_PAGES = re.compile(r'Path\("refold\.toml"\)\.write_text\("(?:""\\\n)?(.*?)"(?:"")?\)', re.DOTALL)
FENCED = re.compile(r"^```toml\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def shown_in_documentation():
    """Every settings file that the documentation shows."""
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        shown = [one[1] for block in blocks_of(page) for one in IN_PAGES.finditer(block.text)]
        for number, toml in enumerate([*shown, *FENCED.findall(text)], 1):
            if not re.match(r"\[(?:tool|project|build|mcp|model_providers)\b|model", toml):
                name = f"{page.relative_to(ROOT)}:{number}"
                yield pytest.param(toml.replace("\\n", "\n"), id=name)


EXAMPLES = [*shown_in_documentation()]


@pytest.fixture
def project(tmp_path, monkeypatch):
    leave_settings(monkeypatch, tmp_path / "config")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def errors(toml):
    return [error.message for error in VALIDATOR.iter_errors(tomllib.loads(toml))]


def test_it_is_a_schema_that_editors_understand():
    Draft7Validator.check_schema(SCHEMA)
    for newer in ('"$ref"', '"prefixItems"', '"null"'):
        assert newer not in settings_schema()


def test_there_are_examples():
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("toml", EXAMPLES)
def test_the_examples_of_the_documentation_are_valid(toml):
    assert errors(toml) == []


@pytest.mark.parametrize("name", PROFILES)
def test_every_value_of_every_profile_is_valid(name):
    values = PROFILES[name].model_dump(mode="json", exclude={"name"})
    assert [error.message for error in VALIDATOR.iter_errors({"profile": name, **values})] == []


@pytest.mark.parametrize("name", FILE_ALIASES)
def test_every_alias_is_known(name):
    value = ["echo"] if name.startswith("hooks") else "m" if "model" in name else 1
    table, _, key = name.rpartition(".")
    found = {table: {key: value}} if table else {key: value}
    assert [error.message for error in VALIDATOR.iter_errors(found)] == []


@pytest.mark.parametrize(
    "toml",
    [
        'profile = "frugal"',
        "max_step = 3",
        'name = "mine"',
        "[trim]\nmax_char = 900",
        "[trim]\nmax_chars = -1",
        '[trim]\nmax_chars = "many"',
        '[trim]\nstyle = "middle"',
        "[trigger]\nsoft = 2",
        '[trigger]\ngeneration = [[0, "half"]]',
        '[models."openai:gpt-4o"]\nwindow = 0',
        '[models."openai:gpt-4o"]\nwindows = 9',
        '[[serve.upstreams]]\nname = "without a URL"',
        "[serve]\nport = 70000",
        "[serve.limits]\nkey_request = 1",
    ],
)
def test_what_refold_refuses_is_refused(toml, project):
    own = project.parent / "config" / "refold" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(toml, encoding="utf-8")
    with pytest.raises(InvalidSetting):
        load_settings()
    assert errors(toml) != []


@given(st.sampled_from(sorted(KEYS)), st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1))
def test_a_name_that_is_no_setting_is_refused(key, ending):
    *tables, name = f"{key}{ending}".split(".")
    value: object = {name: 1}
    for table in reversed(tables):
        value = {table: value}
    known = {*KEYS, *FILE_ALIASES}
    assert VALIDATOR.is_valid(value) is False or f"{key}{ending}" in known


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("for_project", [True, False])
def test_a_new_file_names_the_schema_beside_it(for_project):
    written = set_setting("trim.max_chars", "900", project=for_project)
    first, _, rest = written.path.read_text(encoding="utf-8").partition("\n")
    assert first == SCHEMA_LINE == f"#:schema ./{SHIPPED}"
    assert rest == "\n[trim]\nmax_chars = 900\n"
    assert (written.path.parent / SHIPPED).read_text(encoding="utf-8") == settings_schema()


def test_a_file_that_names_no_schema_gets_none(project):
    (project / "refold.toml").write_text("budget = 1\n", encoding="utf-8")
    set_setting("budget", "2", project=True)
    assert (project / "refold.toml").read_text(encoding="utf-8") == "budget = 2\n"
    assert not (project / SHIPPED).exists()


def test_the_schema_of_another_version_is_renewed(project):
    old = settings_schema().replace('"max_chars"', '"max_characters"')
    (project / SHIPPED).write_text(old, encoding="utf-8")
    set_setting("budget", "2", project=True)
    assert (project / SHIPPED).read_text(encoding="utf-8") == settings_schema()


@pytest.mark.parametrize("content", [b'{"title": "Another"}', b"\xff"])
def test_another_schema_of_that_name_stays(project, content):
    (project / SHIPPED).write_bytes(content)
    set_setting("budget", "2", project=True)
    assert (project / SHIPPED).read_bytes() == content


def test_a_link_of_that_name_is_not_followed(project, tmp_path):
    outside = tmp_path / "outside"
    for content in (None, settings_schema().replace("max_chars", "max_characters")):
        if content:
            outside.write_text(content, encoding="utf-8")
        (project / SHIPPED).unlink(missing_ok=True)
        (project / SHIPPED).symlink_to(outside)
        set_setting("budget", "2", project=True)
        assert (outside.read_text(encoding="utf-8") if outside.exists() else None) == content


def test_it_is_in_the_package():
    assert (files("refold.settings") / SHIPPED).is_file()
