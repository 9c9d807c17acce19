"""Gateways and workers are killed, PostgreSQL is restarted, and fifty agents go on talking.

Whatever happens: what a client has seen the end of is in the log exactly once, on the line of the
session that it was told; every request that reaches a model is one that it takes, with what the
client asked, and nobody else's words; and in the end every conversation goes on. See
`gateway_chaos_checks`. `make gateway-chaos` does it for ten minutes.
"""

import asyncio
import json
import os
from collections import Counter
from pathlib import Path
from time import monotonic

import httpx2
import psycopg
import pytest
from chaos_processes import Chaos, prepared
from free_ports import free_ports
from gateway_chaos_checks import (
    Logged,
    names_of,
    objections_to_line,
    objections_to_next,
    sockets_of,
    stuck,
)
from gateway_chaos_children import GatewayNursery
from gateway_chaos_clients import Agent, new_client
from gateway_chaos_formats import PATHS
from gateway_chaos_upstream import KNOWN, UNKNOWN, WINDOW
from needed import need_postgres
from nursery import Child

from refold.engine.dbos import DbosEngine
from refold.engine.dbos.worker import GRACE, SWEEP
from refold.stores.postgres import PostgresStore
from refold.testing.postgres import Cluster

SECONDS = float(os.environ.get("REFOLD_GATEWAY_CHAOS", "0"))
AGENTS = 50
GATEWAYS = 3
ROLE = "app"
BUSY = 90.0
STUCK = GRACE + 2 * SWEEP + BUSY
"""Seconds after the last fault in which everything asked is answered, and every fold has ended:
what it takes until a dead worker is known, and the rest for a busy machine."""
SOCKETS = 64
"""That a gateway may have open when nobody asks it: to the database, and some kept for clients."""


@pytest.fixture
def cluster():
    need_postgres()
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def nursery():
    started = GatewayNursery()
    yield started
    started.close()


class Gateways(Chaos):
    """Gateways and a worker, killed and replaced, and the server, restarted."""

    def __init__(self, nursery: GatewayNursery, cluster: Cluster, world, ports):
        self.nursery = nursery
        self.world = world
        self.ports = ports
        super().__init__(cluster, GATEWAYS + 1, seed=11)

    def start(self, at: int, number: int) -> tuple[str, Child]:
        """The first gateways are workers too, the last one is none; then a worker alone."""
        name = f"{'gateway' if at < GATEWAYS else 'worker'}-{number}"
        world = {**self.world, "name": name}
        if at == GATEWAYS:
            return name, self.nursery.start("works", **world)
        works = at < GATEWAYS - 1
        return name, self.nursery.start("gateway", port=self.ports[at], works=works, **world)

    def restart(self, nth: int) -> None:
        self.cluster.restart("fast" if nth % 3 == 1 else "immediate")

    def killed(self, name: str) -> None:
        self.figures[f"kills of a {name.partition('-')[0]}"] += 1

    def check_in_vain(self, at: int) -> None:
        said = self.said(at)
        assert '"address"' not in said, said[-4_000:]
        assert "error[store-" in said, said[-4_000:]

    def said(self, at: int) -> str:
        """What a process has written."""
        written = Path(self.world["folder"]) / f"{self.living[at][0]}.out"
        return written.read_text(errors="replace") if written.exists() else ""


def _variables(upstream):
    """The settings of the gateways."""
    served = {"name": "chaos", "base_url": f"{upstream}/v1", "key": "CHAOS_KEY"}
    return {
        "CHAOS_KEY": "whatever",
        "REFOLD_SERVE__UPSTREAMS": json.dumps([served]),
        "REFOLD_SERVE__METRICS": "true",
        "REFOLD_SUMMARIZER": KNOWN,
        "REFOLD_MODELS": json.dumps({KNOWN: {"window": WINDOW}}),
    }


@pytest.mark.skipif(not SECONDS, reason="it wants a machine to itself: make gateway-chaos")
@pytest.mark.timeout(2 * SECONDS + 600)
async def test_what_was_acknowledged_survives_chaos(cluster, nursery, tmp_path):
    owner, address = await prepared(cluster, ROLE)
    port, *ports = free_ports(1 + GATEWAYS)
    upstream = f"http://127.0.0.1:{port}"
    models = nursery.start("models", port=port, seed=5)
    assert models.next() == "answers"
    world = {"address": address, "folder": tmp_path, "variables": _variables(upstream)}
    chaos = Gateways(nursery, cluster, world, ports)
    gateways = [f"http://127.0.0.1:{one}" for one in ports]
    await _up(chaos, gateways)

    agents = [
        Agent(nth, PATHS[nth % 3], (KNOWN, UNKNOWN)[nth // 3 % 2], gateways)
        for nth in range(AGENTS)
    ]
    async with new_client() as client:
        stop = asyncio.Event()
        talking = [asyncio.create_task(one.live(client, stop)) for one in agents]
        await asyncio.to_thread(chaos.reign, SECONDS)
        last_fault = monotonic()
        stop.set()
        await _up(chaos, gateways)
        await _ended(talking, chaos, last_fault + STUCK)
        answered = monotonic()
        await asyncio.gather(*(one.once_more(client) for one in agents))
    figures = sum((one.figures for one in agents), Counter(chaos.figures))
    figures["s until answered"] = round(answered - last_fault)
    wrong = [what for one in agents for what in one.wrong]
    async with PostgresStore(address) as store, httpx2.AsyncClient(timeout=BUSY) as client:
        log = store.log()
        until = max(last_fault + STUCK, monotonic() + BUSY / 3)
        left = await _under_way(log, await names_of(log), until)
        figures["folds left to the next opening"] = len(left)
        await _finished_when_opened(log, left, address, owner, agents)
        wrong += await _leaks(client, chaos, gateways, owner)
        heard = (await client.get(f"{upstream}/figures")).json()
        wrong += heard["wrong"] + await _check(log, agents, figures)
    figures.update({f"upstream {name}": value for name, value in heard["figures"].items()})
    print("\n" + ", ".join(f"{name}: {value}" for name, value in figures.items()))  # noqa: T201
    assert wrong == [], "\n".join(map(str, wrong[:20]))
    assert figures["acknowledged"] > SECONDS
    assert figures["folds"] > SECONDS / 20


async def _up(chaos, gateways):
    """Wait until every gateway may be asked."""
    until = monotonic() + BUSY
    async with httpx2.AsyncClient() as client:
        for at, one in enumerate(gateways):
            while not await _ready(client, one):
                chaos.replace_ended()
                assert monotonic() < until, chaos.said(at)[-4_000:]
                await asyncio.sleep(0.2)


async def _ready(client, gateway):
    try:
        return (await client.get(f"{gateway}/readyz", timeout=5)).status_code == 200
    except httpx2.TransportError:
        return False


async def _ended(talking, chaos, until):
    """Every client is answered what it asked last."""
    _, left = await asyncio.wait(talking, timeout=until - monotonic())
    assert not left, (len(left), [chaos.said(at)[-1_500:] for at in range(GATEWAYS)])
    for one in talking:
        one.result()


async def _under_way(log, names, until):
    """The sessions in which a fold is under way, once there is none, or after so long."""
    while names and monotonic() < until:
        names = [one for one in names if (await log.outlined(one)).outline.running]
        await asyncio.sleep(0.5)
    return names


async def _finished_when_opened(log, names, address, owner, agents):
    """A gateway died right after it began a fold, and nobody has asked in that session since.

    Whoever opens it next has the fold made.
    """
    engine = DbosEngine(log, address)
    for one in names:
        await asyncio.wait_for(engine.recover(one), STUCK)
    left = await _under_way(log, names, monotonic() + STUCK)
    await engine.close()
    if left:
        raise AssertionError([await stuck(log, one, owner, agents) for one in left])


async def _leaks(client, chaos, gateways, owner):
    """What is still open though nobody asks."""
    wrong = []
    for at, gateway in enumerate(gateways):
        told = (await client.get(f"{gateway}/metrics")).text
        under_way = [line for line in told.splitlines() if line.startswith(_UNDER_WAY)]
        if [float(line.split()[-1]) for line in under_way] != [1.0]:  # this one
            wrong.append(f"{gateway}: {under_way}")
        if (open_ := sockets_of(chaos.living[at][1].pid)) > SOCKETS:
            wrong.append(f"{gateway} has {open_} sockets open")
    until = monotonic() + 10
    while idle := _in_transaction(owner):
        if monotonic() > until:
            wrong += idle
            break
        await asyncio.sleep(0.2)
    return wrong


_UNDER_WAY = "refold_serve_requests_under_way"


def _in_transaction(owner):
    with psycopg.connect(owner, autocommit=True) as db:
        return db.execute(
            "SELECT state, left(query, 80) FROM pg_stat_activity WHERE usename = %s"
            " AND state LIKE 'idle in transaction%%' AND state_change < now() - interval '5 s'",
            (ROLE,),
        ).fetchall()


async def _check(log, agents, figures):
    talks = [talk for one in agents for talk in one.talks if talk.session]
    wrong = [what for talk in talks if (what := await objections_to_line(log, talk)) is not None]
    logged = Logged()
    formats = {}
    for name in await names_of(log):
        formats[name] = (await log.info(name)).format
        logged.add(name, formats[name], await log.read(name))
    wrong += [*logged.wrong, *logged.objections_to_answers(talks)]
    for name in formats.keys() - {talk.session for talk in talks}:
        wrong += await objections_to_next(log, name, formats[name])
    figures["conversations"] = len(talks)
    figures.update(logged.figures)
    return wrong
