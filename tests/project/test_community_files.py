"""What a code host and readers of the repository look for beside the README."""

import re

import pytest
import release
import yaml
from project_paths import ROOT

TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
FORMS = [file for file in TEMPLATES if file.name != "config.yml"]


def test_the_citation_says_what_its_format_wants():
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "license"} <= said.keys()
    assert said["cff-version"] == "1.2.0"
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'license = "{said["license"]}"' in project
    assert said["authors"][0]["name"] in project


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_an_issue_form_asks_for_something(form):
    said = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert said.keys() >= {"name", "description", "body"}
    fields = [field for field in said["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 0
    assert [field for field in fields if field.get("validations", {}).get("required")]


def test_the_forms_name_commands_that_exist():
    from refold.cli.app import COMMANDS  # noqa: PLC0415 - slow to import

    text = "".join(form.read_text(encoding="utf-8") for form in FORMS)
    named = set(re.findall(r"`refold (\w+)", text))
    assert {"doctor", "explain"} <= named <= COMMANDS.keys()


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_reports_go_through_the_code_host_and_to_no_invented_address(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "code host's" in text
    assert not re.search(r"\S@\S|https?://", text)


def test_the_changelog_has_a_section_for_the_version_of_the_tree():
    text = release.CHANGELOG.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE)[0] == "Unreleased"
    assert re.search(r"^- \S", release._told(release._current()), re.MULTILINE)
