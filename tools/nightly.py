"""Everything at its full size, one step after the other: `make nightly`, within four hours.

    python tools/nightly.py                    all steps
    python tools/nightly.py --only kills       one of them; repeatable
    python tools/nightly.py --small            all steps, each as small as it can be
    python tools/nightly.py --list

How much the tests do is in `tests/amounts.py`, as the profile `nightly`. After each step a line
tells how it ended and how long it took; what it said is in `.ci/build/nightly`. A step that fails,
or for which no time is left, does not keep the others from running: the exit code is 1 in the end.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LOGS = ROOT / ".ci" / "build" / "nightly"
HOURS = 4.0
LAST_LINES = 15
REQUIRED = {f"REFOLD_{name}": "required" for name in ("LOCAL_MODEL", "POSTGRES", "TMUX")}
ALONE = ("tests/faults", "tests/integrations/test_many_conversations.py")
"""Tests that want a machine to themselves: steps of their own."""
BENCHMARKS = (
    *("ground", "replay", "fold", "summaries", "totals", "warm"),
    *("log", "view", "agent", "engine", "gateway", "tasks"),
)


class Step(NamedTuple):
    """One command."""

    name: str
    command: Sequence[str]


class Outcome(NamedTuple):
    """How a step ended."""

    name: str
    said: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return self.said == "passed"

    def __str__(self) -> str:
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"{self.name:20} {minutes:4}:{seconds:02}  {self.said}"


def steps(*, small: bool, seed: int) -> Iterator[Step]:
    """In the order in which they are run."""
    yield Step("local-model", _make("local-model"))
    seeded = f"--shuffle={seed} --timeout=7200"
    ignored = " ".join(f"--ignore={path}" for path in ALONE)
    yield Step("suite", _make("test", ARGS=f"-q {seeded} {ignored}"))
    yield Step("kills", _make("test", WORKERS="0", ARGS=f"-q -s {seeded} {ALONE[0]}"))
    yield Step("many-conversations", _make("test", WORKERS="0", ARGS=f"-q -s {seeded} {ALONE[1]}"))
    seconds = "60" if small else "600"  # on a slow machine few folds are made in less
    yield Step("chaos", _make("chaos", CHAOS=seconds, ARGS="-q"))
    yield Step("gateway-chaos", _make("gateway-chaos", CHAOS=seconds, ARGS="-q"))
    yield Step("engines", _make("engines", ARGS="-q"))
    for name in BENCHMARKS:
        options = ["--quick"] if small else ["--tries", "2"]
        yield Step(f"bench-{name}", [sys.executable, "-m", "benchmarks", name, *options])


def _make(target: str, **variables: str) -> list[str]:
    venv = Path(sys.prefix)
    inside = venv.relative_to(ROOT) if venv.is_relative_to(ROOT) else venv
    given = [f"{name}={value}" for name, value in variables.items()]
    return ["make", "--no-print-directory", target, f"VENV={inside}", *given]


def run(step: Step, environment: dict[str, str], until: float) -> Outcome:
    """Run a step to its end, or to the end of all time."""
    began = time.monotonic()
    left = until - began
    if left <= 0:
        return Outcome(step.name, "NO TIME LEFT", 0)
    with (LOGS / f"{step.name}.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own commands
            step.command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(left)
            said = "passed" if code == 0 else f"FAILED with {code}"
        except subprocess.TimeoutExpired:
            said = "ENDED, for its time was up"
        finally:
            _end(process)
    return Outcome(step.name, said, time.monotonic() - began)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Leave nothing running: the step has a process group of its own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def last_lines(name: str) -> str:
    """The end of what a step said."""
    text = (LOGS / f"{name}.log").read_text(encoding="utf-8", errors="replace")
    return "\n".join(f"    {line}" for line in text.splitlines()[-LAST_LINES:])


def main() -> int:
    parser = argparse.ArgumentParser(description="Everything at its full size, in steps.")
    parser.add_argument("--only", metavar="NAME", action="append", help="this step; repeatable")
    parser.add_argument("--small", action="store_true", help="as little of each as there is")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all examples")
    parser.add_argument("--hours", type=float, default=HOURS, help="for everything")
    parser.add_argument("--list", action="store_true", help="name the steps, and run none")
    options = parser.parse_args()
    every = list(steps(small=options.small, seed=options.seed))
    if unknown := {*(options.only or ())} - {one.name for one in every}:
        parser.error(f"no step {', '.join(sorted(unknown))}: see --list")
    chosen = [one for one in every if not options.only or one.name in options.only]
    if options.list:
        print("\n".join(one.name for one in chosen))
        return 0
    LOGS.mkdir(parents=True, exist_ok=True)
    if not Path(os.environ.get("REFOLD_DATA", ROOT.parent / "shared" / "data")).is_dir():
        print("No recordings (REFOLD_DATA): the benchmarks leave out what they say about them.")
    print(f"--seed {options.seed}{' --small' if options.small else ''}", flush=True)
    profile = "few" if options.small else "nightly"
    environment = {**os.environ, **REQUIRED, "HYPOTHESIS_PROFILE": profile}
    # A make that started this one would tell its own options to the next.
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        environment.pop(name, None)
    began = time.monotonic()
    outcomes: list[Outcome] = []
    for step in chosen:
        outcomes.append(run(step, environment, began + options.hours * 3_600))
        print(outcomes[-1], flush=True)
        if not outcomes[-1].passed and outcomes[-1].seconds:
            print(last_lines(step.name), flush=True)
    failed = [one.name for one in outcomes if not one.passed]
    told = f"{len(failed)} of {len(outcomes)} failed: {', '.join(failed)}" if failed else "passed"
    print(Outcome("in all", told, time.monotonic() - began))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
