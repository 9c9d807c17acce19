"""The table of promises: all that the README promises, each with tests that exist and run."""

import ast
import re

import pytest
from project_paths import ROOT

PAGE = ROOT / "docs" / "reference" / "promises.md"
ROWS = re.findall(
    r"^\| (?!promise|---)(.+?) \|.*\| (`tests/.+?) \|$", PAGE.read_text(), re.MULTILINE
)


def missing(name):
    """Whether nothing is so named, or nothing that runs: a test that is skipped holds nothing."""
    path, _, function = name.partition("::")
    file = ROOT / path
    if not file.exists():
        return True
    nodes = [
        node
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
    ]
    marks = " ".join(ast.unparse(mark) for node in nodes for mark in node.decorator_list)
    return not nodes or "skip" in marks or "xfail" in marks


def test_every_row_has_tests():
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    heads = [line for line in rows if line.startswith("| promise ")]
    assert len(ROWS) == len(rows) - len(heads) > 15


def test_every_promise_of_the_readme_has_a_row():
    table = (ROOT / "README.md").read_text("utf-8").partition("| promise | its limit |")[2]
    promised = re.findall(r"^\| (?!---)(.+?)\. \|", table.partition("\n\n")[0], re.MULTILINE)
    assert len(promised) >= 5
    rows = [promise for promise, _ in ROWS]
    assert [one for one in promised if not any(row.startswith(one) for row in rows)] == []


@pytest.mark.parametrize(("promise", "tests"), ROWS, ids=[promise for promise, _ in ROWS])
def test_each_promise_names_tests_that_exist(promise, tests):
    names = re.findall(r"`(tests/[^`]+)`", tests)
    assert names, promise
    assert [name for name in names if missing(name)] == []


def test_a_test_that_does_not_exist_is_noticed():
    assert missing("tests/docs/test_promises.py::test_that_nobody_wrote")
    assert missing("tests/docs/test_nowhere.py::test_every_row_has_tests")
    assert not missing("tests/docs/test_promises.py::test_every_row_has_tests")
