"""An agent with a real model is killed again and again, and its conversation goes on."""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from random import Random

import agent_log
import pytest
from amounts import seed_of, set_amount
from inspection import check
from local_model.journal import exchanges_of, lines_of, live
from local_model.legality import figures_of
from local_model.server import require_local_model, serving

TURNS = set_amount("REFOLD_AGENT_TURNS", few=6, quick=6, ci=6, nightly=10, thorough=20)
KILLS = set_amount("REFOLD_AGENT_KILLS", few=2, quick=2, ci=2, nightly=3, thorough=4)
HERE = Path(__file__).parent
_LOOK_S = 0.005
# Reading is what takes the model's time, so a short conversation has a small window.
SHORT = [pytest.param(1024, None, id="1024-learned")]
LONG = [pytest.param(2048, None, id="2048-learned"), pytest.param(4096, 4096, id="4096-told")]
"""`make agent-soak`."""


class Agent:
    """The agent through all its lives."""

    def __init__(self, process):
        self._process = process

    def start(self):
        """Let it go on with the conversation; its pid."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def has_ended(self):
        """Whether it has."""
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def ended(self):
        """How it ended, waited for."""
        return int(self._process.stdout.readline())


@contextmanager
def agent_at(folder, url, window):
    told = [] if window is None else [str(window)]
    script = [HERE / "agent_child.py", folder, url, str(TURNS), *told]
    process = subprocess.Popen(
        [sys.executable, "-W", "error", *script],
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Agent(process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # with the child that may still talk
        process.communicate()


def kill_in(turn, agent, journal, random):
    """Start it, and kill it in this turn or soon after, between any two things it does."""
    pid, lines = agent.start(), random.randint(1, 6)
    for line in live(journal):
        if line is None:
            assert not agent.has_ended(), agent.ended()
            time.sleep(_LOOK_S)
        else:
            lines -= line["turn"] >= turn
        if not lines:
            break
    time.sleep(random.choice((0, 0.002, 0.02, 0.2)))
    os.kill(pid, signal.SIGKILL)
    assert agent.ended() == -signal.SIGKILL


@pytest.mark.parametrize(("n_ctx", "window"), SHORT if TURNS < 20 else LONG)
async def test_no_kill_breaks_a_conversation(tmp_path, n_ctx, window):
    require_local_model()
    path, journal = tmp_path / "refold.db", tmp_path / "journal.jsonl"
    journal.touch()
    random = Random(seed_of(f"agent kills {n_ctx}"))  # noqa: S311 - where it is killed
    with serving(n_ctx) as url, agent_at(tmp_path, url, window) as agent:
        for kill in range(1, KILLS + 1):
            kill_in(kill * TURNS // (KILLS + 1), agent, journal, random)
        agent.start()
        assert agent.ended() == 0, lines_of(journal)[-1]

    agent_log.check_requests(journal)
    await agent_log.check_nothing_lost(path, journal)
    figures = figures_of(exchanges_of(journal))
    figures["records"] = await agent_log.check_records(path, journal)
    await check(path)
    print("\n" + ", ".join(f"{value} {name}" for name, value in figures.items()))  # noqa: T201
    assert figures["refused for length"] > 0 or window
