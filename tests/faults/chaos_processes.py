"""What both chaos tests do to processes: strike, restart a server, see who has ended."""

import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic, sleep

from nursery import Child

from refold.engine.dbos import prepare as prepare_engine
from refold.stores.postgres.migrate import migrate
from refold.testing.postgres import Cluster

RESTARTS = 5
"""Of the server, in one reign."""


class Chaos:
    """Processes that are killed and replaced, and a server that is restarted.

    Who is killed when follows from the seed; the rest is up to the machine.
    """

    def __init__(self, cluster: Cluster, processes: int, seed: int):
        self.cluster = cluster
        self.figures: Counter[str] = Counter()
        self.random = Random(seed)  # noqa: S311 - nothing secret
        self._numbers = count(1)
        self.living = [self._started(at) for at in range(processes)]

    def start(self, at: int, number: int) -> tuple[str, Child]:
        """A new process for a place, with a name of its own."""
        raise NotImplementedError

    def check_in_vain(self, at: int) -> None:
        """A process ended by itself: it had not begun to work."""
        raise NotImplementedError

    def killed(self, name: str) -> None:
        """One was killed by `kill -9`."""
        raise NotImplementedError

    def gone(self, name: str) -> None:
        """One is gone, however it ended."""

    def restart(self, nth: int) -> None:
        """The server, for the nth time."""
        raise NotImplementedError

    def reign(self, seconds: float) -> None:
        """Kill and restart, for so long."""
        self.figures["restarts"] = reign(seconds, self.random, self.restart, self._strike)

    def replace_ended(self) -> None:
        """Who begins while the server is away ends; who has begun goes on."""
        for at, (_, child) in enumerate(self.living):
            if has_ended(child.pid):
                self._replace(at)

    def _strike(self) -> None:
        self.replace_ended()
        at = self.random.randrange(len(self.living))
        name, child = self.living[at]
        if child.kill() == -signal.SIGKILL:
            self.killed(name)
            self._bury(at)
        else:
            self._replace(at)

    def _replace(self, at: int) -> None:
        self.check_in_vain(at)
        self.figures["began in vain"] += 1
        self._bury(at)

    def _bury(self, at: int) -> None:
        name, child = self.living[at]
        self.gone(name)
        child.close()
        self.living[at] = self._started(at)

    def _started(self, at: int) -> tuple[str, Child]:
        return self.start(at, next(self._numbers))


async def prepared(cluster: Cluster, role: str) -> tuple[str, str]:
    """A database for a store and its engine: its address for the owner, and for that role."""
    cluster.execute(f"CREATE ROLE {role} LOGIN")
    owner = cluster.database("chaos")
    await migrate(owner, roles=[role])
    await prepare_engine(owner, roles=[role])
    return owner, cluster.address("chaos", user=role)


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
