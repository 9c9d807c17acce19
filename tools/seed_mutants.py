"""Takes the behavior of each requirement out, and says which marked tests don't notice.

tests/seeds/mutants.toml has one small change of the source for each behavior, with the requirements
that it breaks. Each test on a surface that has the mark of such a requirement is run in a copy of
the tree without the behavior: it must fail, with one of them. Needs the report of a test run
(`pytest --requirements-report=FILE`), for which tests those are.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from pydantic import BaseModel, ConfigDict

ROOT: Final = Path(__file__).parent.parent
MUTANTS: Final = ROOT / "tests" / "seeds" / "mutants.toml"
COPIED: Final = ("src", "tests", "docs", "tools", "pyproject.toml", "README.md")
TIMEOUT: Final = 1_800
PREFERRED: Final = "capability"
"""Of a test on several surfaces, the one that starts fastest."""


_BAD: Final = re.compile(r"(?:FAILED|ERROR) \S+::")

Held = Mapping[str, Mapping[str, Sequence[str]]]
"""Requirement -> the tests that hold it -> the surfaces that each ran."""


class Mutant(BaseModel):
    """A behavior that is taken out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """What no longer happens."""
    req: tuple[str, ...]
    file: str
    old: str
    new: str


def load(path: Path = MUTANTS) -> list[Mutant]:
    """All mutants; an unknown field is an error."""
    return [Mutant.model_validate(one) for one in tomllib.loads(path.read_text("utf-8"))["mutant"]]


def mutate(mutant: Mutant, tree: Path) -> None:
    """Change the file, in which the old text occurs once."""
    file = tree / mutant.file
    text = file.read_text(encoding="utf-8")
    count = text.count(mutant.old)
    if count != 1:
        raise SystemExit(f"{mutant.name}: {mutant.file} has {count} places for:\n{mutant.old}")
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def on_surfaces(held: Held) -> dict[str, set[str]]:
    """The marked tests that run a surface, with their requirements."""
    found: dict[str, set[str]] = defaultdict(set)
    for number, tests in held.items():
        for test, surfaces in tests.items():
            if surfaces:
                found[test].add(number)
    return found


def one_of_each(tests: Sequence[str], tree: Path) -> dict[str, str]:
    """For each test, one of its parameters."""
    done = _pytest(tree, "--collect-only", "-q", *tests)
    ids = [line for line in done.stdout.splitlines() if "::" in line]
    own = {test: [one for one in ids if one.partition("[")[0] == test] for test in tests}
    return {
        test: next((one for one in found if PREFERRED in one), found[0])
        for test, found in own.items()
        if found
    }


def failing(tests: Sequence[str], tree: Path) -> set[str]:
    """Those that fail; none where nothing can be imported, for then nothing was tried."""
    done = _pytest(tree, "-q", "-p", "no:cacheprovider", "--tb=no", "-rfE", "--timeout=300", *tests)
    lines = [line for line in done.stdout.splitlines() if _BAD.match(line)]
    # Ids can have spaces, and what went wrong follows them.
    return {test for test in tests if any(f" {test} - " in f"{line} - " for line in lines)}


def _pytest(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-n", "0", *arguments]
    try:
        return subprocess.run(  # noqa: S603 - our own command
            command,
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "")


def copied(folder: Path) -> Path:
    """A tree of its own, to take things out of."""
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    # By their hashes, for a change may be as long as what it replaces, and in the same second.
    command = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", str(folder / "src")]
    subprocess.run([sys.executable, *command], check=True)  # noqa: S603 - our own command
    return folder


class Trial:
    """All tests against all mutants, some at the same time, each in its own tree."""

    def __init__(self, tests: Mapping[str, str], requirements: Mapping[str, set[str]]) -> None:
        self.tests = tests
        self.requirements = requirements
        self.noticed: dict[str, str] = {}
        """By which mutant each test was made to fail."""
        self.unnoticed: dict[str, list[str]] = defaultdict(list)

    def run(self, mutant: Mutant, trees: "SimpleQueue[Path]") -> None:
        """Try a mutant with each test that is marked with what it breaks and noticed none yet."""
        due = [
            test
            for test in self.tests
            if test not in self.noticed and self.requirements[test] & {*mutant.req}
        ]
        if not due:
            return
        tree = trees.get()
        original = (tree / mutant.file).read_bytes()
        mutate(mutant, tree)
        try:
            failed = failing([self.tests[test] for test in due], tree)
        finally:
            (tree / mutant.file).write_bytes(original)
            trees.put(tree)
        for test in due:
            if self.tests[test] in failed:
                self.noticed[test] = mutant.name
            else:
                self.unnoticed[test].append(mutant.name)
        print(f"{mutant.name}: {len(failed)} of {len(due)}", flush=True)

    def state(self, test: str) -> str:
        """What is to be said of a test."""
        if test in self.noticed:
            return "noticed"
        return "not noticed" if test in self.unnoticed else "no mutant"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, required=True, help="JSON of the test run")
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants at a time")
    parser.add_argument("words", nargs="*", help="only tests whose name has one of these words")
    options = parser.parse_args()
    requirements = on_surfaces(json.loads(options.report.read_text(encoding="utf-8")))
    wanted = options.words or [""]
    marked = sorted(test for test in requirements if any(word in test for word in wanted))
    with ExitStack() as stack:
        trees: SimpleQueue[Path] = SimpleQueue()
        for _ in range(options.jobs):
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            trees.put(copied(Path(folder)))
        tree = trees.get()
        tests = one_of_each(marked, tree)
        broken = failing([*tests.values()], tree)
        trees.put(tree)
        trial = Trial({k: v for k, v in tests.items() if v not in broken}, requirements)
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda one: trial.run(one, trees), load()))
    counts = Counter(map(trial.state, trial.tests)) + Counter({"fails anyway": len(broken)})
    for test in sorted(broken):
        print(f"fails anyway: {test}")
    for test in trial.tests:
        if test not in trial.noticed:
            tried = "; ".join(trial.unnoticed.get(test, ()))
            print(f"{trial.state(test)}: {test} {sorted(requirements[test])} {tried}")
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    return 0 if len(trial.noticed) == len(tests) else 1


if __name__ == "__main__":
    sys.exit(main())
