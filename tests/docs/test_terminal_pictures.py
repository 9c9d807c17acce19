"""Pictures of the terminal show what the terminal showed, and ask nothing of the network."""

import re

import pytest
import terminal_pictures
from project_paths import DOCS

PICTURES = sorted((DOCS / "pictures").glob("terminal-*.svg"))


def test_a_colour_goes_on_in_the_next_line():
    drawn = terminal_pictures.draw("\x1b[35mone\ntwo\x1b[0m\nthree", "p")
    one, two, three = (
        re.search(rf'<text class="p-(r\d+)"[^>]*>(?:&#160;)*{word}', drawn)[1]  # pyright: ignore[reportOptionalSubscript] - it is there
        for word in ("one", "two", "three")
    )
    assert one == two != three


def test_there_is_one_picture_for_each_scene():
    assert {path.stem.removeprefix("terminal-") for path in PICTURES} == set(
        terminal_pictures.SCENES
    )


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_a_picture_needs_no_network(path):
    drawn = path.read_text(encoding="utf-8")
    assert "@font-face" not in drawn
    assert "url(http" not in drawn
    assert "<circle" not in drawn
