"""Which examples a run draws: others with each seed, the same with the same one."""

import os
import subprocess
import sys

import amounts
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from project_paths import ROOT

DRAWING = """
import json

import pytest
from amounts import seed_of, seeds
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.parametrize("case", "ab")


@settings(max_examples=4)
@given(value=st.integers())
def test_it(case, value):
    print("DRAWN", case, value)


def test_seeds(case):
    print("SEEDS", case, [*seeds(3)], seed_of(case))
"""


def drawn(folder, *options):
    """What the tests of a run draw, and the seed that its header tells."""
    (folder / "test_drawing.py").write_text(DRAWING, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "-p", "conftest"]
    environment = {name: value for name, value in os.environ.items() if name != amounts.SEED}
    done = subprocess.run(
        [*command, "-c", ROOT / "pyproject.toml", *options, folder / "test_drawing.py"],
        cwd=ROOT / "tests",
        env=environment | {"PYTHONPATH": str(ROOT / "tests"), "HYPOTHESIS_PROFILE": "few"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    [seed] = [one.rpartition("=")[2] for one in lines if one.startswith("examples:")]
    return int(seed), [
        one[at:] for one in lines if (at := max(one.find("DRAWN"), one.find("SEEDS"))) >= 0
    ]


def test_the_code_and_the_tests_decide_and_their_seed_repeats_what_was_drawn(tmp_path):
    seed, examples = drawn(tmp_path)
    assert len(examples) >= 2 * 3 + 2
    assert drawn(tmp_path, f"--hypothesis-seed={seed}") == (seed, examples)
    other, others = drawn(tmp_path, "--shuffle=7")
    assert other == 7
    assert {*others} != {*examples}
    assert len({*others, *examples}) > max(len({*others}), len({*examples}))


def test_each_set_of_parameters_has_examples_of_its_own(tmp_path):
    _, examples = drawn(tmp_path, "--shuffle=3")
    one, other = ([line[8:] for line in examples if line.startswith(f"DRAWN {at}")] for at in "ab")
    assert one != other


def test_a_commit_that_changes_code_or_tests_draws_others_and_another_message_does_not(
    tmp_path,
):
    def git(*asked):
        author = ("-c", "user.name=A", "-c", "user.email=a@b")
        subprocess.run(["git", *author, *asked], cwd=tmp_path, check=True, capture_output=True)

    def seed_after(message, **contents):
        for name, text in contents.items():
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "a.py").write_text(text)
        git("add", ".")
        git("commit", "--allow-empty", "-m", message)
        return amounts.seed_of_the_files(tmp_path)

    git("init")
    first = seed_after("One", src="a = 1", tests="b = 1", docs="c = 1")
    assert seed_after("Two") == seed_after("Three", docs="c = 2") == first
    seeds = {first, seed_after("Four", src="a = 2"), seed_after("Five", tests="b = 2")}
    assert len(seeds) == 3


class Counting(RuleBasedStateMachine):
    """Notes what it is given."""

    given: list[int]

    @rule(number=st.integers())
    def note(self, number):
        type(self).given.append(number)


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_machine_is_given_the_histories_of_its_name(name):
    histories = []
    for each in (name, name, f"not {name}"):
        Counting.given = []
        amounts.check_histories(Counting, each, 5, 4)
        histories.append(Counting.given)
    assert histories[0] == histories[1] != histories[2]
