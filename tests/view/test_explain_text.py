"""An explanation as text: how it looks, and that it fits."""

import re
from dataclasses import replace

import pytest
from explaining import called, chat, explained, explanation, invented, requests
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from refold.log import PartRef
from refold.terminal_text import clipped, columns, first_words, padded, wrapped
from refold.view.budget import Budget
from refold.view.explanation import Disposition, Line, PartLine
from refold.view.profiles import PROFILES
from refold.view.timeline import SYMBOLS


@settings(max_examples=60)
@given(requests(), st.integers(60, 200), st.booleans(), st.booleans())
def test_no_line_is_wider_than_asked(request, width, every, read):
    if (found := explained(request, read=read)) is None:
        return
    text = found[1].as_text(width, every=every)
    assert text.endswith("\n")
    assert max(map(cell_len, text.splitlines())) <= width
    assert all(line == line.rstrip() for line in text.split("\n"))
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", text) is None


@pytest.mark.parametrize("every", [False, True])
def test_wide_characters_are_counted(every):
    session = chat(
        ("user", "これはとても長い質問です。" * 30),
        ("assistant", "考えています👩‍👩‍👧‍👦 ❤️ e\u0301" * 20, called("検索する" * 9)),
        ("tool", "結果" * 2000, {"tool_call_id": "c"}),
        ("user", "한국어 문장도 있습니다 " * 20),
    )
    told, *_ = explanation(session, PROFILES["balanced"], Budget())
    for width in range(60, 201):
        lines = told.as_text(width, every=every).splitlines()
        assert max(map(cell_len, lines)) <= width
        last = [line for line in lines if "한국어" in line]
        assert [cell_len(line) for line in last] == [width]


def test_what_was_said_cannot_move_the_cursor():
    nasty = "\x1b[2J\x1b]0;title\x07 \u202eright to left\r\n\x9b31m"
    session = chat(("user", nasty), ("assistant", nasty, called(nasty)), title=nasty)
    told, *_ = explanation(session, PROFILES["balanced"], Budget())
    for every in (False, True):
        assert all(one.isprintable() for one in told.as_text(every=every).replace("\n", ""))


@given(st.text(), st.integers(0, 40))
def test_text_is_cut_to_columns(text, width):
    line = first_words(text, max(1, width))
    assert columns(line) <= max(1, width)
    assert line.isprintable()
    assert columns(clipped(line, width)) <= width
    assert columns(padded(line, width)) == width
    assert all(columns(one) <= max(2, width) for one in wrapped(line, max(2, width)))
    assert "".join("".join(wrapped(line, max(2, width))).split()) == "".join(line.split())


def test_the_window_is_not_known_when_nobody_named_it():
    session = chat(("user", "hello"))
    unknown, *_ = explanation(session, PROFILES["balanced"], Budget())
    assert unknown.as_json()["window"] == {"tokens": None, "shown": "unknown (assuming 128,000)"}
    said = " ".join(unknown.as_text().split())
    assert "of the window, which is unknown (assuming 128,000)." in said
    known, *_ = explanation(session, PROFILES["balanced"], Budget(window=5_000, configured=4_000))
    assert "of the window of 5,000." in known.as_text()
    assert re.search(r"above +1,000 +20%  the limit is set to 4,000", known.as_text())


def test_the_bar_is_as_wide_as_the_text():
    told, *_ = explanation(chat(("user", "hello")), PROFILES["balanced"], Budget(reserve=9))
    for width in (60, 80, 160):
        bar = next(line for line in told.as_text(width).splitlines() if line.startswith("█"))
        assert cell_len(bar) == width
        assert set(bar) == {"█", "·", "▚"}


def test_long_sessions_take_a_page_or_two():
    many = [("user", f"question {n}") if n % 2 else ("assistant", "yes") for n in range(1, 3000)]
    told, *_ = explanation(chat(*many), PROFILES["balanced"], Budget())
    lines = told.as_text().splitlines()
    assert len(lines) <= 105
    assert "“question 2999”" in lines[-1]
    assert sum(int(found) for found in re.findall(r"●(\d+)", told.as_text())) == 2999


@pytest.fixture(scope="module")
def picture():
    return invented()


@pytest.mark.parametrize("width", [60, 80, 160])
def test_text(picture, snapshot, width):
    assert picture.as_text(width) == snapshot


def test_text_of_every_part(picture, snapshot):
    assert picture.as_text(100, every=True) == snapshot


def test_the_legend_names_what_is_shown(picture):
    text = picture.as_text()
    legend, _, after = text[text.index("Timeline") :].partition("\n")
    assert set(SYMBOLS.values()) & set(after) <= set(legend)


def test_figures_give_way_where_there_is_little_room(picture):
    fates = [
        Disposition("keep", "kept"),
        Disposition("replace", "arguments"),
        Disposition("replace", "archived"),
        Disposition("drop", "off the line"),
        Disposition("drop", "folded"),
    ]
    parts = [
        PartLine(
            PartRef(100_000, n),
            "call",
            "a_tool_with_quite_a_name",
            fates[n % 5],
            9_999,
            1_111,
            "words",
        )
        for n in range(5_000)
    ]
    line = Line(100_000, "assistant", "/", tuple(parts), opens=True, step=100_000)
    told = replace(picture, lines=(line, line._replace(seq=999_999)))
    for width in (60, 61, 70, 100):
        for every in (False, True):
            text = told.as_text(width, every=every)
            assert max(map(cell_len, text.splitlines())) <= width
    assert "●◐○≡◌" in told.as_text(60)
    assert "●1000 ◐1000 ○1000" in told.as_text(160)
