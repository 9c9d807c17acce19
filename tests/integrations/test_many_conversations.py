"""Many conversations at once: none loses its session, all are compacted, handles stay bounded.

`make many-conversations` runs it with 200 under one `Refold` and 500 through one gateway.
"""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import json
import os
import re
import resource
import signal
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

import httpx2
import pytest
from amounts import set_amount

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from agents import folds, small
from dbos_servers import dbos, dbos_address
from gateway_world import CHAT, served
from many_conversations import TURNS as AGENT_TURNS
from many_conversations import ReadingModel, converse, reading_agent

from refold import Refold
from refold.integrations.pydantic_ai.sessions import MAX_IDLE
from refold.stores import open_store
from refold.testing.upstream import Reply, ScriptedUpstream

AGENTS = set_amount("REFOLD_MANY_AGENTS", few=70, quick=70, ci=70, nightly=200, thorough=200)
CLIENTS = set_amount("REFOLD_MANY_CLIENTS", few=24, quick=24, ci=24, nightly=500, thorough=500)
PACE = 50
PATIENCE = 60 + 2 * CLIENTS
"""Seconds that one request may take before it counts as hanging."""
TURNS = 8
OPEN_FILES = 64
"""The soft limit on open files that the gateway is started with; it raises it by itself."""


def handles(pid="self"):
    """What a process has open, by kind: sockets, files by their ending, and so on."""
    found = Counter()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(one.readlink())
        except OSError:  # closed meanwhile
            continue
        found[target.partition(":")[0] if ":" in target else Path(target).suffix] += 1
    return found


def cpu(pid):
    """The seconds that a process has had on a processor."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


async def test_many_conversations_under_one_refold(tmp_path, capsys):
    names, most = [f"c{nth}" for nth in range(AGENTS)], Counter()
    async with Refold(f"sqlite:///{tmp_path}/agents.db", profile=small()) as memory:
        pool, before = memory._sessions.pool, handles()

        def look(live):
            most["handles"] = max(most["handles"], handles().total())
            most["open"] = max(most["open"], pool.counts.total)
            most["leased"] = max(most["leased"], pool.counts.leased if live else 0)

        model = ReadingModel(AGENTS, all_here=lambda: look(live=True))
        await converse(reading_agent(memory, model), names, after_turn=lambda: look(live=False))
        counts, after = pool.counts, handles()
        compacted = [len(await folds(memory, name)) for name in names]
    with capsys.disabled():
        print(  # noqa: T201 - figures that somebody asked for
            f"\n{AGENTS} conversations under one Refold: at most {most['leased']} leased, "
            f"{most['open']} open, {most['handles']} handles ({before.total()} before, "
            f"{after.total()} after); idle {counts.idle}; folds {sum(compacted)}"
        )
    assert model.prompts == AGENTS * AGENT_TURNS, "no run asks twice"
    assert min(compacted) >= 1
    assert most["leased"] == AGENTS
    assert counts.leased == 0
    assert counts.idle <= MAX_IDLE
    # A run holds the lock of its turn, and one more while its session is compacted.
    assert most["handles"] <= before.total() + 2 * AGENTS + 8
    assert after.total() <= before.total() + 8


async def test_many_conversations_through_one_gateway_on_sqlite(tmp_path, capsys):
    await _through_one_gateway("SQLite", f"sqlite:///{tmp_path}/gateway.db", tmp_path, capsys)


async def test_many_conversations_through_one_gateway_on_postgresql(dbos_address, tmp_path, capsys):
    await _through_one_gateway("PostgreSQL", dbos_address, tmp_path, capsys)


async def _through_one_gateway(kind, address, tmp_path, capsys):
    upstream = _Upstream(lambda: _figures(process, url))
    # On a busy machine, a server may close a connection just when it is used again. That is not
    # what is tested here: the models' server keeps its connections, and clients make new ones.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    scripted = ScriptedUpstream(upstream.reply, keep=False)
    async with (
        served(scripted, timeout_keep_alive=3_600) as base,
        _gateway(tmp_path, address, base) as (process, url),
    ):
        before = await upstream.look()
        began = perf_counter()
        async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE, limits=limits) as client:
            talks = await asyncio.gather(*(_talk(client, upstream, nth) for nth in range(CLIENTS)))
        seconds = perf_counter() - began
        after = await _figures(process, url)
    answers = [answer for talk in talks for answer in talk]
    async with open_store(address) as store:
        log = store.log()
        compacted = {
            name: len((await log.outlined(name)).outline.folds)
            for name in {name for _, name, _ in answers}
        }
    leased = max(one["leased"] for one in upstream.figures)
    total = max(one["open"] for one in upstream.figures)
    most = max(one["handles"] for one in upstream.figures)
    times = sorted(second for _, _, second in answers)
    with capsys.disabled():
        print(  # noqa: T201 - figures that somebody asked for
            f"\n{CLIENTS} conversations of {TURNS} turns through one gateway on {kind}: "
            f"{seconds:.0f} s, of them {after['cpu'] - before['cpu']:.0f} s on a processor; "
            f"at most {leased:.0f} leased, {total:.0f} open, {most:.0f} handles "
            f"({before['handles']:.0f} before, {after['handles']:.0f} after); "
            f"idle {after['idle']:.0f}; "
            f"request p50 {times[len(times) // 2]:.2f} s, max {times[-1]:.2f} s; "
            f"folds {sum(compacted.values())}"
        )
    assert {status for status, _, _ in answers} == {200}
    assert len(compacted) == CLIENTS, "no conversation had to be branched"
    assert min(compacted.values()) >= 1
    assert leased == CLIENTS
    assert after["leased"] == 0
    assert after["idle"] <= CLIENTS // 4
    # Two connections for each request under way, and a lock while its session is compacted.
    assert most <= before["handles"] + 3 * CLIENTS + 32
    assert after["handles"] <= before["handles"] + min(CLIENTS, 256) + 32, (
        "connections that are kept"
    )


class _Upstream:
    """Answers a turn's requests when all of them are there, and looks at the gateway before.

    All of them are under way at once. But they do not all come in the same instant: of those that
    the gateway is planning, and of those whose answers it is logging, there are `PACE` at a time.
    """

    def __init__(self, look):
        self._all_here = asyncio.Barrier(CLIENTS)
        self.coming, self.going = asyncio.Semaphore(PACE), asyncio.Semaphore(PACE)
        self.look = look
        self.figures = []

    async def reply(self, _):
        self.coming.release()
        if await self._all_here.wait() == 0:
            self.figures.append(await self.look())
        await self._all_here.wait()
        await self.going.acquire()
        return Reply("Noted. " * 20)


async def _talk(client, upstream, nth):
    """One conversation; each answer's status, session and time."""
    messages, answers = [], []
    for turn in range(TURNS):
        words = f"Conversation {nth}, turn {turn}. " + "Mind every word of it. " * 90
        messages.append({"role": "user", "content": words})
        await upstream.coming.acquire()
        began = perf_counter()
        answer = await client.post(CHAT, json={"model": "small", "messages": messages})
        upstream.going.release()
        seconds = perf_counter() - began
        answers.append((answer.status_code, answer.headers.get("refold-session"), seconds))
        if answer.status_code != 200:
            raise AssertionError(answer.text)
        messages.append(answer.json()["choices"][0]["message"])
    return answers


async def _figures(process, url):
    """The gateway's sessions by state, and what its process has open."""
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        text = (await client.get("/metrics")).text
    states = re.findall(
        r'^refold_serve_sessions\{.*refold_state="(\w+)".*\} (\S+)$', text, re.MULTILINE
    )
    found = {state: float(count) for state, count in states}
    opened = handles(process.pid).total()
    return {**found, "open": sum(found.values()), "handles": opened, "cpu": cpu(process.pid)}


@asynccontextmanager
async def _gateway(folder, address, upstream):
    """`refold serve` as a process of its own, and its address."""
    # The user's own file: what runs and sends is not taken from a project's.
    (folder / "refold").mkdir(exist_ok=True)
    (folder / "refold" / "config.toml").write_text(
        f"[serve]\nmetrics = true\nopen_sessions = {CLIENTS // 4}\n"
        f'[[serve.upstreams]]\nname = "up"\nbase_url = "{upstream}/v1"\n'
        "[models.small]\nwindow = 6000\noutput = 200\n[trigger]\nat_least = 0\nsavings = 0\n"
    )
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}

    def limited():
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, most))

    errors = (folder / "errors.txt").open("wb")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "refold.cli", "serve", "--store", address, "--port", "0", "--json"),
        cwd=folder,
        env={**os.environ, **home},
        stdout=PIPE,
        stderr=errors,
        preexec_fn=limited,
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 120)
        assert line, (folder / "errors.txt").read_text()
        yield process, json.loads(line)["address"]
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 120) == 0
        assert "Traceback" not in (folder / "errors.txt").read_text()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        errors.close()
