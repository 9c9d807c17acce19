"""The moving picture of the demo: of a real run, small, and the end of it where nothing moves."""

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import demo_picture
import pytest
from demo_frames import frames
from demo_picture import PICTURE, Drawing

NAMES = {"svg": "http://www.w3.org/2000/svg"}


@pytest.fixture(scope="module")
def run():
    return frames()


@pytest.fixture(scope="module")
def drawn():
    return PICTURE.read_text(encoding="utf-8")


def texts_that_stay(drawn) -> list[str]:
    root = ET.fromstring(drawn)  # noqa: S314 - our own file
    found = root.iterfind(".//svg:text", NAMES)
    return [one.text or "" for one in found if one.get("opacity") != "0"]


def test_the_picture_is_of_the_demo_as_it_runs_today(drawn, run, monkeypatch):
    monkeypatch.setattr(demo_picture, "frames", lambda: run)
    assert demo_picture.render() == drawn, "run `python tools/demo_picture.py`"


def test_without_movement_it_shows_the_end(drawn, run):
    played, _ = run
    [told] = [text for text in texts_that_stay(drawn) if text.startswith("Largest request")]
    assert f"{played.with_refold.largest_request:,} tokens" in told
    assert f"{played.kept} of {played.said}" in told
    assert f"turn {played.turns} of {played.turns}" in texts_that_stay(drawn)
    assert "prefers-reduced-motion: reduce" in drawn


def test_nothing_leaves_the_log_and_each_fold_shortens_the_view(run):
    _, each = run
    for before, after in pairwise(each):
        assert after.log[: len(before.log)] == before.log
    drawing = Drawing(*run)
    assert len(drawing.folding) == len(run[0].folds)
    for at in drawing.folding:
        assert each[at].sent < each[at - 1].sent / 1.5


def test_the_bars_are_as_long_as_the_figures_say(run):
    played, each = run
    drawing = Drawing(played, each)
    for frame in (each[-1], each[drawing.folding[0]], each[drawing.recalled]):
        bars = sum(drawing._wide(cell) for cell in frame.view)
        assert bars == pytest.approx(frame.sent * drawing._scale, rel=0.1)


def test_it_is_small_and_asks_nothing_of_the_network(drawn):
    assert len(drawn) < 300_000
    assert not re.search(r"url\(|@import|<script|xlink|href", drawn)


def test_it_is_readable_in_the_dark(drawn):
    light, _, dark = drawn.partition("@media (prefers-color-scheme: dark)")
    for name in ("card", "ink", "soft", "track", "prompt", "answer", "result", "fold"):
        assert f".{name} {{" in light
        assert f".{name} {{" in dark


def test_every_line_fits_beside_the_others(run):
    drawing = Drawing(*run)
    widest = max(drawing.captions(), key=len)
    assert len(widest) * 8.9 < demo_picture.RIGHT - demo_picture.LEFT
