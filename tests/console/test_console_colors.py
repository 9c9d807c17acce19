"""Contrast, from the style sheet itself: WCAG AA for every pair of colors in light and in dark."""

import re
from importlib.resources import files
from itertools import product

import pytest

from refold.console.pages import asset

CSS = asset("console.css").data.decode()
TEXT, GRAPHICS = 4.5, 3.0
"""What WCAG 2.2 asks of text (1.4.3), and of graphics and the edges of fields (1.4.11)."""
NOT_READ = {"line"}
"""Lines between rows, which say nothing by themselves."""
HIGHLIGHT = 0.14
"""How much of the accent color is behind what an address points to."""


def themes():
    """The colors by name, in light and in dark."""
    light, dark = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    named = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})\b", each)) for each in (light, dark)]
    return {"light": named[0], "dark": named[0] | named[1]}


def rgb(color):
    digits = color[1:] if len(color) == 7 else "".join(2 * each for each in color[1:])
    return [int(digits[at : at + 2], 16) for at in (0, 2, 4)]


def luminance(color):
    channels = [each / 255 for each in color]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def used(properties):
    """The variables that any rule uses for these properties, and the plain colors."""
    values = re.findall(rf"(?<![\w-])(?:{properties}): ([^;}}]+)", CSS)
    return set(re.findall(r"var\(--([\w-]+)", " ".join(values))), {
        each for value in values for each in re.findall(r"#[0-9a-f]{3,6}\b", value)
    }


def resolved(names):
    """Variables that stand for others: a fate and a speaker have a color each."""
    aliases = {}
    for name, other in re.findall(r"--(\w+): var\(--([\w-]+)\)", CSS):
        aliases.setdefault(name, set()).add(other)
    return {each for name in names for each in aliases.get(name, {name})}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_everything_that_may_be_behind_it(theme):
    colors = themes()[theme]
    texts, plain = used("color")
    behind, also = used("background")
    assert plain == also == set()  # all are variables, so both themes have them
    texts = resolved(texts) - NOT_READ - {"on-accent"}
    behind -= {"accent"}
    assert {"ink", "faint", "accent", "dropped", "kept", "user", "tool"} <= texts
    assert behind == {"page", "raised", "box"}
    low = {
        (text, back): round(contrast(rgb(colors[text]), rgb(colors[back])), 2)
        for text, back in product(texts, behind)
        if contrast(rgb(colors[text]), rgb(colors[back])) < TEXT
    }
    assert low == {}
    assert contrast(rgb(colors["on-accent"]), rgb(colors["accent"])) >= TEXT


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_an_address_points_to_can_be_read(theme):
    colors = themes()[theme]
    assert f"var(--accent) {HIGHLIGHT:.0%}, transparent" in CSS
    for back, text in product(("page", "raised"), ("ink", "faint", "user", "assistant", "tool")):
        mixed = [
            HIGHLIGHT * a + (1 - HIGHLIGHT) * b
            for a, b in zip(rgb(colors["accent"]), rgb(colors[back]), strict=True)
        ]
        assert contrast(rgb(colors[text]), mixed) >= TEXT, (text, back)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_edges_and_the_focus_can_be_seen(theme):
    colors = themes()[theme]
    names, plain = used("fill|stroke")
    seen = [colors[name] for name in resolved(names) - NOT_READ] + [*plain]
    seen += [colors["edge"], colors["focus"]]
    assert len(seen) > 10
    for color, back in product(seen, ("page", "raised")):
        assert contrast(rgb(color), rgb(colors[back])) >= GRAPHICS, (color, back)


def test_both_themes_name_the_same_colors():
    light, dark = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    names = [set(re.findall(r"--([\w-]+): #", each)) for each in (light, dark)]
    assert names[0] == names[1]


def test_the_saved_picture_has_the_colors_of_the_page_in_light():
    template = files("refold.console").joinpath("templates", "window_chart.svg").read_text("utf-8")
    saved = dict(re.findall(r'"(\w+)": "(#[0-9a-f]{6})"', template))
    light = themes()["light"]
    for name in ("instructions", "tools", "summaries", "messages", "read", "written", "fresh"):
        [value] = re.findall(rf"\.fill-{name}\b[^{{]*\{{ fill: ([^;]+);", CSS)
        named = re.fullmatch(r"var\(--(\w+)\)", value)
        assert saved[name] == (light[named[1]] if named else value), name
    for color in saved.values():
        if color != saved["line"]:
            assert contrast(rgb(color), [255, 255, 255]) >= GRAPHICS
