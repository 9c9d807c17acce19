"""The table of promises: each row names tests that exist."""

import re

import pytest
from project_paths import ROOT

PAGE = ROOT / "docs" / "reference" / "promises.md"
ROWS = re.findall(
    r"^\| (?!promise|---)(.+?) \|.*\| (`tests/.+?) \|$", PAGE.read_text(), re.MULTILINE
)


def missing(name):
    path, _, function = name.partition("::")
    file = ROOT / path
    defined = rf"^\s*(?:async )?def {function}\("
    return not (file.exists() and re.search(defined, file.read_text("utf-8"), re.MULTILINE))


def test_every_row_has_tests():
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    heads = [line for line in rows if line.startswith("| promise ")]
    assert len(ROWS) == len(rows) - len(heads) > 15


@pytest.mark.parametrize(("promise", "tests"), ROWS, ids=[promise for promise, _ in ROWS])
def test_each_promise_names_tests_that_exist(promise, tests):
    names = re.findall(r"`(tests/[^`]+)`", tests)
    assert names, promise
    assert [name for name in names if missing(name)] == []


def test_a_test_that_does_not_exist_is_noticed():
    assert missing("tests/docs/test_promises.py::test_that_nobody_wrote")
    assert missing("tests/docs/test_nowhere.py::test_every_row_has_tests")
