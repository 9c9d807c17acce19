"""The pictures of replays: where points are, that names stay words, and what is beside them."""

import re
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import pytest

from refold.lab.charts import STYLE, Point, scatter, scatter_of, window_of
from refold.lab.findings import Findings, PolicyFindings, SessionFindings
from refold.lab.html_report import html_report

EVERYTHING = Point("everything", ours=False, cost=(1, 1, 1), kept=(1, 1, 1))


def drawn(*points, **how):
    svg = scatter([EVERYTHING, *points], "3 sessions", title="A title", **how)
    return ET.fromstring(svg)  # noqa: S314 - our own


def places(picture):
    """Where each point is, by the words that it says."""
    circles = picture.iter("{http://www.w3.org/2000/svg}circle")
    return {each[0].text: (float(each.get("cx")), float(each.get("cy"))) for each in circles}


def texts(picture):
    return [each.text for each in picture.iter("{http://www.w3.org/2000/svg}text")]


def test_what_is_cheaper_is_left_and_what_keeps_more_is_above():
    found = places(drawn(Point("a", ours=True, cost=(0.5, 0.4, 0.6), kept=(0.9, 0.8, 1))))
    (x, y), (base_x, base_y) = found["a: 50% of the cost, 90% of the names"], [*found.values()][1]
    assert x < base_x
    assert y > base_y


def test_what_costs_very_much_stands_at_the_end_with_its_figure():
    picture = drawn(Point("a", ours=False, cost=(7.5, 7, 8), kept=(0.9, 0.8, 1)))
    (x, _) = places(picture)["a: 750% of the cost, 90% of the names"]
    assert x == 836
    assert "a (750%)" in texts(picture)
    assert "200%" in texts(picture)


@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
def test_points_are_inside_whatever_they_keep(kept):
    found = places(drawn(Point("a", ours=True, cost=(0, 0, 0), kept=(kept, kept, kept))))
    assert all(76 <= x <= 836 and 64 <= y <= 394.1 for x, y in found.values())


def test_names_stay_words():
    words = "</text><script>alert(1)</script>&\"'"
    picture = drawn(Point(words, ours=True, cost=(0.5, 0.4, 0.6), kept=(0.9, 0.8, 1)))
    assert words[:20] in " ".join(texts(picture))
    assert {each.tag.rpartition("}")[2] for each in picture.iter()} == {
        *("svg", "title", "rect", "text", "path", "circle")
    }


def test_many_points_in_one_place_are_all_named():
    points = [
        Point(f"point {nth}", ours=False, cost=(0.5, 0.4, 0.6), kept=(0.9, 0.85, 0.95))
        for nth in range(12)
    ]
    assert {f"point {nth}" for nth in range(12)} <= {*texts(drawn(*points))}


def test_only_a_picture_that_stands_alone_has_a_style():
    assert "<style>" in scatter([EVERYTHING], "", title="", style=STYLE)
    assert "style" not in scatter([EVERYTHING], "", title="")


def findings(**how):
    policy = PolicyFindings("balanced", ours=True, best=True, share=(0.5, 0.4, 0.6), **how)
    session = SessionFindings(
        *("<i>talk", 12, "m", 200_000), short=True, requests=3, sizes={"balanced": (10, 2_000, 500)}
    )
    return Findings("A finding", ("A note",), (policy,), (session,), (("odd", "it is <odd>"),))


def test_the_window_over_time_is_a_line_and_says_its_largest():
    [session] = findings().sessions
    picture = ET.fromstring(window_of(session))  # noqa: S314 - our own
    assert "balanced 2.0k" in picture[0].text
    [line] = [each for each in picture if "line" in each.get("class", "")]
    places = re.findall(r"[\d.]+ ([\d.]+)", line.get("d"))
    assert [float(each) for each in places] == [163.2, 14.0, 126.5]


def test_without_names_that_were_used_again_there_is_no_picture():
    assert scatter_of(findings()) == ""
    page = html_report(findings(), datetime.now(UTC))
    assert "There is nothing to plot" in page
    assert "<td>—</td>" in page


def test_a_page_has_all_that_was_found():
    page = html_report(
        findings(names=(90, 100), kept=(0.9, 0.8, 1)),
        datetime(2026, 5, 4, tzinfo=UTC),
        ["About <it>"],
    )
    for words in ("A finding", "A note", "2026-05-04", "About &lt;it&gt;", "&lt;i&gt;talk"):
        assert words in page
    assert "<li>odd: it is &lt;odd&gt;</li>" in page
    assert "1 session" in page
    assert page.count("<svg xmlns") == 2
