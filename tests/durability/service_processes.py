"""`refold serve` and `refold worker` as processes that a test kills, before a slow model."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
from gateway_world import CHAT, body_of, served
from serve_process import parents

from refold.testing.upstream import Reply, ScriptedUpstream

CHILD = Path(__file__).parent / "refold_child.py"
MODEL, SUMMARIZER = "chat-model", "summary-model"
WINDOW, SUMMARIZER_WINDOW = 12_000, 2_500
"""Tokens: so that a fold begins after some ten turns, and takes several calls."""
GRACE = 2.0
PATIENCE = 60.0
HOUR, DAY, YEAR = 3_600, 86_400, 365 * 86_400
SUMMARY = "## Goal\n- The parcels are counted. [2]\n## State\n- Parcel {number} is counted. [2]\n"


class SlowModel:
    """Answers a conversation at once, and a summarizer only when the test lets it."""

    def __init__(self, before_slow=10**9):
        """So many summaries are answered at once; each after them waits for `released`."""
        self.summaries: list[str] = []
        """What the summarizer was asked, by its last message."""
        self.waiting = asyncio.Event()
        self.released = asyncio.Event()
        self._before_slow = before_slow
        self.upstream = ScriptedUpstream(self._reply)

    async def _reply(self, got):
        if got.body.get("model") != SUMMARIZER:
            return Reply("It is counted. " * 30)
        number = len(self.summaries) + 1
        self.summaries.append(str(got.body["messages"][-1]["content"]))
        if number > self._before_slow:
            self.waiting.set()
            await self.released.wait()
        return Reply(SUMMARY.format(number=number))


class Refold:
    """Commands of Refold over one store, in a home of their own."""

    def __init__(self, folder, store, upstream, clock=None, settings=()):
        self.folder, self.store = Path(folder), store
        self._processes, self._clients = [], []
        home = self.folder / "home"
        own = home / "config" / "refold"
        own.mkdir(parents=True, exist_ok=True)
        (own / "config.toml").write_text(
            "\n".join(
                [
                    f'summarizer = "{SUMMARIZER}"',
                    f'[models."{MODEL}"]',
                    f"window = {WINDOW}",
                    f'[models."{SUMMARIZER}"]',
                    f"window = {SUMMARIZER_WINDOW}",
                    "[serve.times]",
                    f"store = {PATIENCE}",  # a busy machine is no outage
                    *settings,
                    "[[serve.upstreams]]",
                    'name = "up"',
                    f'base_url = "{upstream}/v1"',
                    'key = "UP_KEY"',
                ]
            )
        )
        kept = {key: value for key, value in os.environ.items() if not key.startswith("REFOLD_")}
        self.environment = kept | {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_DATA_HOME": str(home / "data"),
            "REFOLD_STORE": store,
            "REFOLD_TEST_GRACE": str(GRACE),
            "UP_KEY": "sk-up",
        }
        if clock is not None:
            self.environment["REFOLD_TEST_CLOCK"] = str(clock)

    async def start(self, *arguments, clock=None, **how):
        """A process of a command; it is killed with the rest if it still runs in the end.

        Its clock is ahead by as many seconds as the file `clock` says.
        """
        environment = {**self.environment, **({"REFOLD_TEST_CLOCK": str(clock)} if clock else {})}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(CHILD), *arguments),
            cwd=self.folder,
            env=environment,
            **{"stdout": PIPE, "stderr": None, **how},
        )
        self._processes.append(process)
        return process

    async def serve(self, *arguments):
        """`refold serve`, and a client of it."""
        process = await self.start("serve", "--port", "0", "--json", *arguments)
        line = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
        assert line, "refold serve did not start"
        address = json.loads(line)["address"]
        client = httpx2.AsyncClient(base_url=address, timeout=PATIENCE)
        self._clients.append(client)
        return process, client

    async def worker(self, clock=None):
        """`refold worker`, when it takes folds."""
        process = await self.start("worker", stderr=PIPE, clock=clock)
        line = await asyncio.wait_for(process.stderr.readline(), PATIENCE)
        assert b"takes folds" in line, line
        return process

    async def run(self, *arguments, code=0):
        """What a command prints, when it has ended."""
        process = await self.start(*arguments, stderr=PIPE)
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode == code, err.decode()
        return out.decode(), err.decode()

    async def kill_all(self):
        for client in self._clients:
            await client.aclose()
        for process in self._processes:
            await kill(process)


async def kill(process):
    """As `kill -9` of a process and all that it started: nothing is said, nothing is finished.

    A service's processes for large requests make folds, too, and would finish theirs.
    """
    if process.returncode is not None:
        return
    for pid in [process.pid, *(pid for pid, parent in parents() if parent == process.pid)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await process.wait()


@asynccontextmanager
async def refold_over(folder, store, model, **how):
    """The commands over a store, before a model."""
    async with served(model.upstream) as address:
        refold = Refold(folder, store, address, **how)
        try:
            yield refold
        finally:
            model.released.set()
            await refold.kill_all()


async def talk(client, turns, messages=(), word="words", length=300):
    """A conversation of so many more turns: its messages, and its session.

    Short turns leave room in the window, so that no request has to wait for a fold.
    """
    messages = [*messages]
    for turn in range(turns):
        messages.append(f"Count parcel {len(messages)} of turn {turn}: " + f"{word} " * length)
        answer = await client.post(CHAT, json=body_of(CHAT, *messages) | {"model": MODEL})
        assert answer.status_code == 200, answer.text
        assert answer.headers["refold-managed"] == "yes"
        messages.append(answer.json()["choices"][0]["message"]["content"])
    return messages, answer.headers["refold-session"]


async def talk_until_it_folds(client, word="words"):
    """A conversation that is just long enough for a fold to begin in the background."""
    messages, session = await talk(client, 5, word=word)
    async with asyncio.timeout(PATIENCE):
        while not await folds_of(client, session):
            messages, session = await talk(client, 1, messages, word=word)
    return messages, session


async def folds_of(client, session):
    """The folds that stand, and those under way."""
    answer = await client.get(f"/api/v1/sessions/{session}/folds")
    assert answer.status_code == 200, answer.text
    return answer.json()["folds"]


async def until(check, patience=PATIENCE):
    """Wait until something is so; what it is."""
    async with asyncio.timeout(patience):
        while not (found := await check()):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)
    return found
