"""`--shuffle=SEED`: the same tests, in an order that only the seed decides."""

import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

from project_paths import ROOT
from shuffling import is_left_out, place_in_order

TESTS = [f"test_{file}.py::test_{at}" for file in "abcdef" for at in range(9)]


def shuffled(tests, seed):
    return sorted(tests, key=lambda test: place_in_order(test, seed))


def files_in(tests):
    """The files, each as often as the tests come to it."""
    return [file for file, _ in groupby(test.partition("::")[0] for test in tests)]


def of_file(tests, name):
    return [test for test in tests if test.startswith(name)]


def test_files_and_the_tests_of_a_file_come_in_another_order():
    assert files_in(shuffled(TESTS, 1)) != files_in(TESTS)
    assert of_file(shuffled(TESTS, 1), "test_a.py") != of_file(TESTS, "test_a.py")


def test_another_seed_is_another_order():
    assert shuffled(TESTS, 1) == shuffled(TESTS[::-1], 1)
    assert files_in(shuffled(TESTS, 1)) != files_in(shuffled(TESTS, 2))
    of_one, of_two = (of_file(shuffled(TESTS, seed), "test_a.py") for seed in (1, 2))
    assert of_one != of_two


def test_the_tests_of_a_file_stay_together():
    assert len(files_in(shuffled(TESTS, 1))) == 6


def test_files_whose_tests_take_minutes_come_first():
    long = [f"tests/local_model/test_a.py::test_{at}" for at in range(3)]
    for seed in range(20):
        assert {*shuffled([*TESTS, *long], seed)[:3]} == {*long}


def test_some_come_in_the_order_they_have_among_all():
    some = TESTS[::5]
    assert shuffled(some, 1) == [test for test in shuffled(TESTS, 1) if test in some]


def test_pytest_runs_them_in_that_order_and_tells_the_seed():
    here = Path(__file__)
    options = ["--collect-only", "--shuffle=4", "-p", "no:cacheprovider"]
    told = subprocess.run(
        [sys.executable, "-m", "pytest", *options, here],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "--shuffle=4" in told
    assert "--hypothesis-seed=4" in told
    names = [f"tests/project/{here.name}::{name}" for name in re.findall("<Function (.*)>", told)]
    assert names == shuffled(names, 4) != sorted(names)
    assert len(names) == 7


def test_of_the_long_tests_one_in_three_is_run_and_each_with_some_seed():
    long = [
        f"tests/durability/test_{at}.py::test_it[{store}]" for at in range(30) for store in "ab"
    ]
    runs = [{test for test in long if not is_left_out(test, seed, 3)} for seed in range(40)]
    assert all(len(long) / 6 < len(run) < len(long) / 1.5 for run in runs)
    assert set().union(*runs) == {*long}
    assert not any(is_left_out(f"tests/{test}", 1, 3) for test in TESTS)
    assert not any(is_left_out(test, 1, 1) for test in long)
