"""`make nightly`: every step is run, whatever became of the one before."""

import sys
import time

import nightly
import pytest
from nightly import Step

SLEEPS = Step("sleeps", [sys.executable, "-c", "import time; time.sleep(60)"])


@pytest.fixture
def told(monkeypatch, tmp_path, capsys):
    """Runs some steps; the exit code, and what was said."""
    monkeypatch.setattr(nightly, "LOGS", tmp_path / "logs")

    def run(steps, *options):
        monkeypatch.setattr(nightly, "steps", lambda **_: steps)
        monkeypatch.setattr(sys, "argv", ["nightly.py", *options])
        return nightly.main(), capsys.readouterr().out

    return run


def says(name, text, code=0):
    return Step(name, [sys.executable, "-c", f"print({text!r}); exit({code})"])


def test_it_goes_on_after_a_failure_and_fails_in_the_end(told):
    code, said = told([says("one", "well"), says("two", "badly", 3), says("three", "well")])
    assert code == 1
    assert [line.split()[0] for line in said.splitlines() if ":0" in line] == [
        *("one", "two", "three"),
        "in",
    ]
    assert "FAILED with 3\n    badly" in said
    assert "1 of 3 failed: two" in said
    assert told([says("one", "well")])[0] == 0


def test_a_step_can_be_run_alone(told):
    code, said = told([says("one", "", 1), says("two", "")], "--only", "two")
    assert (code, "one" in said) == (0, False)
    with pytest.raises(SystemExit):
        told([says("one", "")], "--only", "none")


def test_it_ends_when_its_time_is_up(told):
    began = time.monotonic()
    code, said = told([SLEEPS, says("two", "well")], "--hours", "0.0003")
    assert time.monotonic() - began < 30
    assert code == 1
    assert "ENDED, for its time was up" in said
    assert "NO TIME LEFT" in said


def test_it_has_every_size_that_was_asked():
    names = [one.name for one in nightly.steps(small=False, seed=1)]
    assert {"suite", "kills", "chaos", "gateway-chaos"} < {*names}
    asked = ("fold", "agent", "engine", "gateway", "replay", "ground", "summaries", "log", "view")
    assert {f"bench-{name}" for name in asked} < {*names}
    assert not any("--quick" in one.command for one in nightly.steps(small=False, seed=1))
