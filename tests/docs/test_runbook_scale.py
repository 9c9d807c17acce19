"""The page on scale: what it calculates follows from what it says was measured and assumed."""

import sys

import pytest
from project_paths import ROOT

PAGE = ROOT / "docs" / "gateway" / "scale.md"


@pytest.fixture
def rendered(monkeypatch):
    pytest.importorskip("pydantic_ai")  # the benchmarks' package needs all extras
    if not (ROOT / "benchmarks").is_dir():
        pytest.skip("the benchmarks are not part of this copy")
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    from benchmarks.scale_page import rendered  # noqa: PLC0415 - found by the path above

    return rendered


def test_its_tables_follow_from_its_figures(rendered):
    page = PAGE.read_text("utf-8")
    assert rendered(page) == page


def test_another_figure_gives_another_page(rendered):
    page = PAGE.read_text("utf-8")
    fewer = page.replace("| sessions a day | 10,000,000 |", "| sessions a day | 5,000,000 |")
    assert fewer != page
    assert rendered(fewer) != fewer


def test_every_figure_must_be_there(rendered):
    page = PAGE.read_text("utf-8").replace("| peak |", "| top |")
    with pytest.raises(KeyError, match="peak"):
        rendered(page)
