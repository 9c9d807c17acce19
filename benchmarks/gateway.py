"""The gateway beside a bare streaming reverse proxy, and beside no proxy at all.

All take turns before one scripted upstream that streams answers of 40 words, an event each, 5 ms
apart. Clients hold conversations of one to ten turns and send the whole history each time. Proxy
and gateway run in a process each, on the same server and loop. The proxy asks by the HTTP client as
it comes, the gateway by the same client over sockets of its own (see
`refold.gateway.upstream_stream`), so a part of the ratio is due to those. The gateway finds each
session by its chain and logs everything to PostgreSQL, which flushes each commit to the disk.

Everything shares the machine's processors: clients, upstream, proxy, PostgreSQL. So what counts is
the ratio of rounds right after each other, and the processor time that each part took.
"""

import asyncio
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import process_time
from typing import Final, NamedTuple

from benchmarks import gateway_served, gateway_upstream
from benchmarks.figures import Figure, as_table
from benchmarks.gateway_load import Loaded, load
from benchmarks.gateway_sessions import opened
from benchmarks.scale_server import Server
from refold.engine.dbos import prepare
from refold.service.keys import keyring_of
from refold.stores.postgres import PostgresStore
from refold.stores.postgres.migrate import migrate
from refold.testing.postgres import Cluster, programs

ROLE: Final = "app"
_CONTEXT = multiprocessing.get_context("forkserver")
_PATIENCE: Final = 60.0
_BAR: Final = 0.6
_STREAMS: Final = (1, 32, 256)
_AT_ONCE: Final = "X-At-Once: 1"


class Running(NamedTuple):
    """A process that serves."""

    port: int
    pid: int


class Ways(NamedTuple):
    """The ways to the upstream."""

    direct: Running
    bare: Running
    gateway: Running


class Round(NamedTuple):
    """One load of each way."""

    direct: Loaded
    bare: Loaded
    gateway: Loaded
    spent: dict[str, float]
    """ms of processor time for each request through the gateway, and through the proxy."""


def figures(*, quick: bool) -> list[Figure]:
    if programs() is None:
        print("PostgreSQL is not installed: there is nothing to measure.", file=sys.stderr)
        return []
    _CONTEXT.set_forkserver_preload(["benchmarks.gateway_served", "benchmarks.gateway_upstream"])
    with Cluster(durable=True, settings={"max_wal_size": "4GB"}) as cluster, ExitStack() as stack:
        cluster.execute(f"CREATE ROLE {ROLE} LOGIN")
        upstream = stack.enter_context(running(gateway_upstream.serve))
        found = _beside(cluster, upstream, quick=quick)
        found += _service(cluster, upstream, quick=quick)
        if not quick:  # the rest takes long
            print(as_table(found), file=sys.stderr, flush=True)
        for most in (500, 2_000):
            found += _sessions(cluster, upstream, most, quick=quick)
        return found


@contextmanager
def running(life: Callable[..., None], *arguments: object) -> Iterator[Running]:
    """While a process serves; it is killed in the end."""
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=life, args=(*arguments, theirs), daemon=True)
    process.start()
    try:
        if not ours.poll(_PATIENCE):
            raise RuntimeError("A server does not begin.")
        assert process.pid is not None
        yield Running(ours.recv(), process.pid)
    finally:
        process.kill()
        process.join()


def _address(upstream: Running) -> str:
    return f"http://127.0.0.1:{upstream.port}"


def _database(cluster: Cluster, name: str) -> str:
    async def made() -> None:
        await migrate(cluster.database(name), roles=[ROLE])
        await prepare(cluster.address(name), roles=[ROLE])

    asyncio.run(made())
    return cluster.address(name, user=ROLE)


def _beside(cluster: Cluster, upstream: Running, *, quick: bool) -> list[Figure]:
    store = _database(cluster, "beside")
    server = Server(cluster)
    rounds, seconds = (1, 1.0) if quick else (5, 4.0)
    with (
        running(gateway_served.bare, _address(upstream)) as bare,
        running(gateway_served.gateway, _address(upstream), store, 2_000) as gateway,
    ):
        ways = Ways(upstream, bare, gateway)
        _round(ways, server, 32, 1.0)
        found: list[Figure] = []
        for streams in _STREAMS:
            done = [_round(ways, server, streams, seconds, nth) for nth in range(rounds)]
            found += _compared(f"{streams} stream{'s' if streams > 1 else ''}", done)
        done = [_round(ways, server, 32, seconds, nth, _AT_ONCE) for nth in range(rounds)]
        return found + _compared("32 streams without pauses", done, bar=None)


def _round(
    ways: Ways, server: Server, streams: int, seconds: float, nth: int = 0, *headers: str
) -> Round:
    """Each way in turn, in another order each time."""
    done: dict[str, Loaded] = {}
    spent: dict[str, float] = {}
    names = ("direct", "bare", "gateway")
    for name in (*names[nth % 3 :], *names[: nth % 3]):
        way: Running = getattr(ways, name)
        parts: dict[str, Callable[[], float]] = {
            name: lambda pid=way.pid: _processor(pid),
            f"{name}, upstream": lambda: _processor(ways.direct.pid),
            f"{name}, clients": process_time,
            f"{name}, PostgreSQL": server.processor,
        }
        before = {part: taken() for part, taken in parts.items()}
        loaded = done[name] = asyncio.run(load(way.port, streams, seconds, *headers))
        if loaded.errors:
            raise RuntimeError(f"{name}: {loaded.errors[0]}")
        spent |= {
            part: 1e3 * (taken() - before[part]) / len(loaded.took) for part, taken in parts.items()
        }
    return Round(done["direct"], done["bare"], done["gateway"], spent)


def _processor(pid: int) -> float:
    said = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, said[11:13])) / os.sysconf("SC_CLK_TCK")


def _compared(label: str, rounds: list[Round], bar: float | None = _BAR) -> list[Figure]:
    ratio = median(one.gateway.pace / one.bare.pace for one in rounds)
    found = [Figure(f"gateway ÷ bare proxy, requests a second, {label}", ratio, bar)]
    for name in ("gateway", "bare", "direct"):
        pace = median(getattr(one, name).pace for one in rounds)
        found.append(Figure(f"requests a second, {name}, {label}", pace))
    for name in ("gateway", "bare"):
        for share in (0.5, 0.99):
            added = median(
                getattr(one, name).late(share) - one.direct.late(share) for one in rounds
            )
            found.append(Figure(f"added ms, p{share * 100:g}, {name}, {label}", added))
    for part in ("gateway", "gateway, PostgreSQL", "bare"):
        spent = median(one.spent[part] for one in rounds)
        found.append(Figure(f"processor ms a request, {part}, {label}", spent))
    return found


def _service(cluster: Cluster, upstream: Running, *, quick: bool) -> list[Figure]:
    """The whole service, by a key, beside the bare proxy."""
    store = _database(cluster, "service")

    async def key() -> str:
        async with PostgresStore(store) as kept:
            return (await keyring_of(kept).create("bench", ["use"])).secret

    header = f"Authorization: Bearer {asyncio.run(key())}"
    rounds, seconds = (1, 1.0) if quick else (4, 4.0)
    ratios: list[float] = []
    with (
        running(gateway_served.bare, _address(upstream)) as bare,
        running(gateway_served.service, _address(upstream), store) as service,
    ):
        ways = Ways(upstream, bare, service)
        _round(ways, Server(cluster), 32, 1.0, 0, header)
        for nth in range(rounds):
            done = _round(ways, Server(cluster), 32, seconds, nth, header)
            ratios.append(done.gateway.pace / done.bare.pace)
    name = "whole service ÷ bare proxy, requests a second, 32 streams"
    return [Figure(name, median(ratios))]


def _sessions(cluster: Cluster, upstream: Running, most: int, *, quick: bool) -> list[Figure]:
    count, turns = (100, 3) if quick else (2_000, 10)
    most = most // 20 if quick else most
    store = _database(cluster, f"sessions_{most}")
    with running(gateway_served.gateway, _address(upstream), store, most) as gateway:
        told = opened(gateway.port, gateway.pid, count, turns)
    label = f"{count} sessions of {turns} turns, {most} kept open"
    return [
        Figure(f"errors, {label}", told.errors, 0, "at most"),
        Figure(f"requests a second, {label}", told.pace),
        Figure(f"KB for each session kept open, {label}", told.memory / min(most, count) / 1024),
    ]
