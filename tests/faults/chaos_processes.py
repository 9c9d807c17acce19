"""What both chaos tests need of processes: start them quickly, kill them, see who has ended."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random
from time import monotonic, sleep
from types import ModuleType

import nursery

RESTARTS = 5
"""Of the server, in one reign."""


class ScriptNursery(nursery.Nursery):
    """Starts processes that have imported what a script needs before they begin."""

    def __init__(self, script: str):
        self._socket, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, script, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_paths())},
        )
        theirs.close()
        self._started = []


def _paths() -> list[str]:
    given = os.environ.get("PYTHONPATH")
    return [str(Path(__file__).parents[1]), *([given] if given else [])]


def serve_tests(children: ModuleType) -> None:
    """What such a script does: fork, whenever the tests ask for it."""
    nursery.children = children
    with socket.socket(fileno=int(sys.argv[1])) as requests_of_tests:
        nursery.serve(requests_of_tests)


def has_ended(pid: int) -> bool:
    """Whether it has, though nobody has asked how."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return stat.rpartition(")")[2].split()[0] == "Z"


def reign(
    seconds: float, random: Random, restart: Callable[[int], None], strike: Callable[[], None]
) -> int:
    """Restart the server now and then, strike every few seconds; how often it was restarted."""
    began, restarts = monotonic(), 0
    restarting: Future[None] | None = None
    with ThreadPoolExecutor(1) as thread:
        while (now := monotonic() - began) < seconds:
            if now > seconds * (restarts + 0.5) / RESTARTS:
                if restarting is not None:
                    restarting.result()
                restarting = thread.submit(restart, restarts)
                restarts += 1
            sleep(random.uniform(1.5, 5.0))
            strike()
        if restarting is not None:
            restarting.result()
    return restarts
