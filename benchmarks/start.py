"""How soon a program that uses Refold is there, beside one that uses Pydantic AI alone."""

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure

MOST = 1.3
MOST_OF_COMMAND = 0.25  # of the processor time
REFOLD = str(Path(sys.executable).parent / "refold")
BARE = [sys.executable, "-c", "pass"]
STARTED = {
    "import refold": [sys.executable, "-c", "import refold"],
    "from refold import Refold": [sys.executable, "-c", "from refold import Refold"],
    "import refold.session, refold.stores": [
        sys.executable,
        "-c",
        "import refold.session, refold.stores",
    ],
    "refold --version": [REFOLD, "--version"],
    "refold --help": [REFOLD, "--help"],
}
SHOWN = ("import refold", "import refold.session, refold.stores", "refold --version")
BESIDE = [sys.executable, "-c", "import pydantic_ai"]


def figures(*, quick: bool) -> list[Figure]:
    """All of them, each as a ratio of two starts that followed each other."""
    took = _rounds(7 if quick else 25)
    beside, bare = "import pydantic_ai", "python -c pass"
    return [
        _ratio(took, "import refold", beside, MOST),
        # It imports Pydantic AI itself, and all that an agent's memory is made of.
        _ratio(took, "from refold import Refold", beside, MOST),
        *(_ratio(took, name, bare) for name in (*SHOWN, beside)),
        *_processor_time(3 if quick else 10),
    ]


def _processor_time(count: int) -> list[Figure]:
    """Of what needs no command, the best of so many rounds."""
    commands = {name: STARTED[name] for name in ("refold --version", "refold --help")}
    best = dict.fromkeys((*commands, "beside"), float("inf"))
    for _ in range(count):
        for name, command in (*commands.items(), ("beside", BESIDE)):
            best[name] = min(best[name], _used(command))
    return [
        Figure(
            f"start: processor time of `{name}` / `import pydantic_ai`",
            best[name] / best["beside"],
            MOST_OF_COMMAND,
            "at most",
        )
        for name in commands
    ]


def _used(command: list[str]) -> float:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - ours
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def _rounds(count: int) -> list[dict[str, float]]:
    """What each start took, round by round, in turn: what else the machine is at slows them all."""
    commands = STARTED | {"import pydantic_ai": BESIDE, "python -c pass": BARE}
    rounds = [
        {name: _seconds(command) for name, command in commands.items()} for _ in range(count + 1)
    ]
    return rounds[1:]  # the first reads files that the others find in memory


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - ours
    return time.perf_counter() - began


def _ratio(
    took: list[dict[str, float]], name: str, beside: str, most: float | None = None
) -> Figure:
    ratio = median(one[name] / one[beside] for one in took)
    return Figure(f"start: `{name}` / `{beside}`", ratio, most, "at most")
