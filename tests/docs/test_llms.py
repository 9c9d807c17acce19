"""llms.txt and llms-full.txt: every page of the table of contents, for programs that read."""

import re

import llms
from project_paths import ROOT


def test_every_page_is_listed_with_its_title():
    listed = re.findall(r"^- \[(.+?)\]\(_sources/(.+?)\.txt\)", llms.short(), re.MULTILINE)
    pages = [page for _, pages in llms.sections() for page in pages]
    assert len(listed) == len(pages) > 60
    assert all((ROOT / "docs" / path).exists() and title for title, path in listed)
    assert ("Run the gateway", "gateway/index.md") in listed
    assert ("Promises and their tests", "reference/promises.md") in listed


def test_it_begins_as_the_format_wants():
    assert re.match(r"# Refold\n\n> Context management .+\n\n## Start\n\n- \[", llms.short())


def test_the_full_text_has_every_page_once():
    text = llms.full()
    assert text.startswith("# Refold")
    assert text.count("# Promises and their tests\n") == 1
    assert "{toctree}" not in text
    assert len(text) > 300_000
