"""The page about the layers is true: its picture, its table, and the files it sends one to."""

import importlib.util
import re

import pytest
from tree_copies import ROOT

PAGE = ROOT / "docs" / "contributing" / "architecture.md"
needs_grimp = pytest.mark.skipif(
    importlib.util.find_spec("grimp") is None, reason="import-linter is installed on one Python"
)


@needs_grimp
def test_the_picture_of_the_layers_is_up_to_date():
    from layers_picture import PICTURE, render  # noqa: PLC0415 - if installed

    fresh = PICTURE.read_text(encoding="utf-8") == render()
    assert fresh, "run `python tools/layers_picture.py`"


@needs_grimp
def test_no_dot_lies_left_of_the_diagonal():
    from layers_picture import imports, layers  # noqa: PLC0415 - if installed

    order = [name for layer in layers() for name in layer]
    found = imports()
    assert {"view", "wire", "log"} <= found["session"]
    lower = {name: set(order[at + 1 :]) for at, name in enumerate(order)}
    assert {name: found[name] - lower[name] for name in order if found[name] - lower[name]} == {}


@needs_grimp
def test_the_page_tells_what_each_package_is_for():
    from layers_picture import layers  # noqa: PLC0415 - if installed

    table = PAGE.read_text(encoding="utf-8").partition("## Imports between packages")[0]
    told = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)))
    assert sorted(told) == sorted(name for layer in layers() for name in layer)


def test_every_file_that_the_page_names_is_there():
    named = re.findall(r"`((?:src|tests|tools)/[\w./]+)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_benchmark_that_the_page_names_is_there():
    named = re.findall(r"python -m benchmarks (\w+)", PAGE.read_text(encoding="utf-8"))
    assert named
    assert [name for name in named if not (ROOT / "benchmarks" / f"{name}.py").exists()] == []
