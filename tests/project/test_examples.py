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


def test_the_commit_decides_and_its_seed_repeats_what_was_drawn(tmp_path):
    asked = ["git", "rev-parse", "--short=7", "HEAD"]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        pytest.skip("not a git checkout")
    commit = int(told.stdout, 16)
    seed, examples = drawn(tmp_path)
    assert seed == commit
    assert len(examples) >= 2 * 3 + 2
    assert drawn(tmp_path, f"--hypothesis-seed={commit}") == (commit, examples)
    other, others = drawn(tmp_path, "--shuffle=7")
    assert other == 7
    assert {*others} != {*examples}
    assert len({*others, *examples}) > max(len({*others}), len({*examples}))


def test_each_set_of_parameters_has_examples_of_its_own(tmp_path):
    _, examples = drawn(tmp_path, "--shuffle=3")
    one, other = ([line[8:] for line in examples if line.startswith(f"DRAWN {at}")] for at in "ab")
    assert one != other


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
