"""How much the slow tests do, and which examples they draw.

HYPOTHESIS_PROFILE says how much: `few` for the order of the tests, which does not need many;
`quick`; `ci`; `nightly`, what `make nightly` runs; `thorough`, which takes hours.

Which examples follows from one seed, that of the run: each commit that changes code or tests draws
others, and the same code and tests draw the same. The header of pytest tells it, and
`--hypothesis-seed` repeats it.
"""

import os
import subprocess
import time
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeVar

from hypothesis import seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
SEED: Final = "REFOLD_EXAMPLES_SEED"
"""The variable that tells the processes of one run their seed."""
T = TypeVar("T")


def amount(*, few: T, quick: T, ci: T, nightly: T, thorough: T) -> T:
    """The amount of the profile that these tests are run by."""
    sizes = {"few": few, "quick": quick, "ci": ci, "nightly": nightly, "thorough": thorough}
    return sizes[PROFILE]


def set_amount(variable: str, **sizes: int) -> int:
    """What an environment variable says, or else the amount of the profile."""
    return int(os.environ.get(variable) or amount(**sizes))


def run_seed() -> int:
    """What all examples of this run follow from."""
    given = os.environ.get(SEED)
    return int(given) if given else _own_seed()


@cache
def _own_seed() -> int:
    if PROFILE == "thorough":  # which is run to find new ones
        return int(time.time())
    return seed_of_the_files(Path(__file__).parents[1])


def seed_of_the_files(checkout: Path) -> int:
    """Of the committed code and tests; no other where a commit is only rewritten."""
    asked = ["git", "rev-parse", "HEAD:src", "HEAD:tests"]
    told = subprocess.run(asked, cwd=checkout, capture_output=True, text=True, check=False)
    return int(sha256(told.stdout.encode()).hexdigest()[:7], 16) if told.returncode == 0 else 0


def seed_of(name: str) -> int:
    """The seed of one test in this run."""
    return int.from_bytes(sha256(f"{run_seed()} {name}".encode()).digest()[:6])


def seeds(count: int) -> range:
    """So many seeds, others in each run; the first is even."""
    first = 2 * (seed_of("seeds") % 1_000_000)
    return range(first, first + count)


def check_histories(
    machine: type[RuleBasedStateMachine], name: str, histories: int, steps: int = 30
) -> None:
    """Run a state machine; `name` decides which histories it is given."""
    seeded = seed(seed_of(name))(type(machine.__name__, (machine,), {}))
    given = settings(max_examples=histories, stateful_step_count=steps)
    run_state_machine_as_test(seeded, settings=given)
