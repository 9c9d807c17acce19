"""Links that lead nowhere are noticed, on pages and on the built site."""

import pytest
from links import dead_in_markdown, dead_in_site

OTHER = """# Other page

## What it costs, and `keeps`

## Twice

## Twice

<a id="set"></a>
"""


@pytest.mark.parametrize(
    "target",
    [
        *("other.md", "other.md#what-it-costs-and-keeps", "other.md#twice-1", "other.md#set", "."),
        *("https://example.com/nowhere", "mailto:a@example.com"),
    ],
)
def test_a_link_that_leads_somewhere_is_not_dead(tmp_path, target):
    page = tmp_path / "page.md"
    page.write_text(f"[there]({target}) ![picture]({target})", encoding="utf-8")
    (tmp_path / "other.md").write_text(OTHER, encoding="utf-8")
    assert [*dead_in_markdown([page])] == []


@pytest.mark.parametrize("target", ["no.md", "other.md#twice-2", "other.md#nothing", "#nothing"])
def test_a_dead_link_is_noticed(tmp_path, target):
    page = tmp_path / "page.md"
    page.write_text(f"| a |\n|---|\n| [there]({target}) |", encoding="utf-8")
    (tmp_path / "other.md").write_text(OTHER, encoding="utf-8")
    assert [*dead_in_markdown([page])] == [f"{page}: {target}"]


def test_what_a_site_does_not_have_is_noticed(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "other.html").write_text('<h1 id="here">Other</h1>', encoding="utf-8")
    page = tmp_path / "folder" / "page.html"
    targets = ["../other.html#here", "../other.html#there", "no.html", "https://example.com", "#"]
    page.write_text("".join(f'<a href="{one}">x</a>' for one in targets), encoding="utf-8")
    dead = [f"{page}: ../other.html#there", f"{page}: no.html"]
    assert [*dead_in_site(tmp_path)] == dead
