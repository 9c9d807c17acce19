"""What a registry shows of the package: all by itself, and nothing else than the README says."""

import re
import tomllib

import pytest
from page_blocks import blocks_of
from project_paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE = ROOT / PROJECT["readme"]
TARGET = re.compile(
    r"\]\(([^)]*)\)|^ *\[[^\]]+\]: *(\S+)|(?:src|href)=[\"']?([^\"'> ]+)", re.MULTILINE
)
"""Where links and pictures lead, in each way to write one."""


def beside(text):
    """What leads to a file beside the page: a registry has the page alone."""
    targets = ["".join(found) for found in TARGET.findall(text)]
    return [target for target in targets if not target.startswith("https://")]


def test_no_link_or_picture_leads_to_a_file_beside_it():
    assert beside(PAGE.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "see [this](docs/x.md)",
        "![it](x.svg)",
        "[this][1]\n\n[1]: docs/x.md",
        '<img alt="it" src="x.svg">',
        '<a href="/x">it</a>',
    ],
)
def test_a_link_to_a_file_is_noticed(text):
    assert len(beside(f"[Python](https://www.python.org) {text}")) == 1


def test_each_example_is_one_of_the_readme_where_it_is_run():
    shown = [block.text for block in blocks_of(PAGE, marked=True)]
    assert len(shown) >= 3
    assert set(shown) <= {block.text for block in blocks_of(ROOT / "README.md", marked=True)}


def test_it_begins_as_the_readme_does():
    def beginning(page):
        return page.read_text(encoding="utf-8").splitlines()[:3]

    assert beginning(PAGE) == beginning(ROOT / "README.md")
