"""What the console costs: the gateway while nobody looks, and the store when somebody does.

Nobody looks: the same conversations go through two services that differ in one thing, whether the
console is mounted. The calls of the log are counted in both. Then processes of both take turns
under load, ten rounds, each in fresh processes because two processes never run alike. The ratio is
that of processor time for each request, with a bootstrap over rounds.

Somebody looks: PostgreSQL itself counts the rows that it reads for a page of a session of 1,000
messages, and for the same page of one of 100,000.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple, cast
from uuid import uuid4

import httpx2
import psycopg
from fastapi import FastAPI

from benchmarks import gateway_upstream
from benchmarks.figures import Figure
from benchmarks.gateway import ROLE, Running, running
from benchmarks.gateway_load import Talk, load
from benchmarks.gateway_served import serve
from refold.console.access import Access
from refold.console.app import add_console, open_address
from refold.console.local import LocalConsole, application
from refold.lab.metrics import bootstrapped
from refold.log import (
    DEFAULT_TENANT,
    Author,
    FoldCompleted,
    FoldStarted,
    Log,
    Message,
    Opened,
    Span,
)
from refold.models.experience import Setup
from refold.service.app import app as service
from refold.service.keys import TENANT
from refold.session import Session
from refold.settings import Settings, UpstreamSettings
from refold.settings.serve import Serve
from refold.stores import SqliteStore
from refold.stores.postgres import PostgresStore
from refold.stores.postgres.migrate import migrate
from refold.testing.postgres import Cluster, programs
from refold.view import PROFILES

ROUNDS: Final = 10
HERE: Final = "http://127.0.0.1"
_STREAMS: Final = 8
_TURNS: Final = 40
_AT_ONCE: Final = "X-At-Once"
_BATCH: Final = 1_000
_TAIL: Final = 40
"""Messages behind the fold."""


def figures(*, quick: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder, running(gateway_upstream.serve) as upstream:
        found = _queries(Path(folder), upstream)
        found += _beside(Path(folder), upstream, quick=quick)
    if programs() is None:
        print("PostgreSQL is not installed: the rows of a page are not counted.", file=sys.stderr)
        return found
    return found + _rows(1_000, 20_000 if quick else 100_000)


# While nobody looks.


def _service(upstream: str, store: SqliteStore, *, console: bool) -> FastAPI:
    """The service as `refold serve` runs it on one machine; it may lack the console."""
    named = UpstreamSettings(name="up", base_url=f"{upstream}/v1")
    settings = Settings(PROFILES["balanced"], {}, {}, serve=Serve(upstreams=(named,)))
    app = service(settings, store=store, address=f"sqlite:///{store.path}", local=True)
    if console:
        add_console(app, Access(app.state.service, sessions=store.log(TENANT)))
    return app


def _queries(folder: Path, upstream: Running) -> list[Figure]:
    counts = [
        asyncio.run(_calls(folder / f"calls-{console}.db", upstream, console=console))
        for console in (False, True)
    ]
    name = f"calls of the log that the console adds to {_TURNS} requests"
    return [
        Figure(name, counts[1] - counts[0], 0, "at most"),
        Figure(f"calls of the log for {_TURNS} requests, without the console", counts[0]),
    ]


async def _calls(path: Path, upstream: Running, *, console: bool) -> int:
    store = CountedStore(path)
    app = _service(f"{HERE}:{upstream.port}", store, console=console)
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url=HERE) as client:
            talk = Talk("calls")
            for _ in range(_TURNS):
                body, headers = talk.body(), {_AT_ONCE: "1"}
                answer = await client.post("/v1/chat/completions", content=body, headers=headers)
                answer.raise_for_status()
    return len(store.calls)


class CountedStore(SqliteStore):
    """A store that notes each call of a log, but of the keys' own: those are read by the clock."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.calls: list[str] = []

    def log(self, tenant: str = DEFAULT_TENANT) -> Log:
        log = super().log(tenant)
        return log if tenant == TENANT else cast("Log", CountedLog(log, self.calls))


class CountedLog:
    """A log whose every use is noted."""

    def __init__(self, log: Log, calls: list[str]) -> None:
        self._log, self._calls = log, calls
        self.tenant = log.tenant

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the log has
        self._calls.append(name)
        return getattr(self._log, name)


def _with_console(upstream: str, store: Path, ready: Connection) -> None:
    serve(_service(upstream, SqliteStore(store), console=True), ready)


def _without_console(upstream: str, store: Path, ready: Connection) -> None:
    serve(_service(upstream, SqliteStore(store), console=False), ready)


class Round(NamedTuple):
    """ms of processor time for each request."""

    mounted: float
    plain: float


def _beside(folder: Path, upstream: Running, *, quick: bool) -> list[Figure]:
    rounds, seconds = (4, 0.5) if quick else (ROUNDS, 2.0)
    done = [_round(folder, upstream, nth, seconds) for nth in range(rounds)]
    low, high = bootstrapped(done)
    name = "processor time, with the console ÷ without it"
    return [
        Figure(f"{name}, median", median(each.mounted / each.plain for each in done)),
        Figure(f"{name}, 95 % interval, low end", low, 1.0, "at most"),
        Figure(f"{name}, 95 % interval, high end", high, 1.0, "at least"),
        Figure("processor ms a request, with the console", median(x.mounted for x in done)),
        Figure("processor ms a request, without it", median(x.plain for x in done)),
    ]


def _round(folder: Path, upstream: Running, nth: int, seconds: float) -> Round:
    """Both in turn, each round another one first."""
    spent: dict[str, float] = {}
    ways = (("mounted", _with_console), ("plain", _without_console))
    for name, life in ways if nth % 2 else reversed(ways):
        store = folder / f"{name}-{nth}.db"
        with running(life, f"{HERE}:{upstream.port}", store) as process:
            asyncio.run(load(process.port, _STREAMS, 0.3, f"{_AT_ONCE}: 1"))
            before = _processor(process.pid)
            loaded = asyncio.run(load(process.port, _STREAMS, seconds, f"{_AT_ONCE}: 1"))
            if loaded.errors:
                raise RuntimeError(f"{name}: {loaded.errors[0]}")
            spent[name] = 1e3 * (_processor(process.pid) - before) / len(loaded.took)
    return Round(**spent)


def _processor(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


# When somebody looks.


def _rows(few: int, many: int) -> list[Figure]:
    with Cluster() as cluster:
        cluster.execute(f"CREATE ROLE {ROLE} LOGIN")
        short, long = (asyncio.run(_pages(cluster, messages)) for messages in (few, many))
    found: list[Figure] = []
    for name in short:
        label = f"rows read for {name}"
        ratio = long[name] / short[name]
        found += [
            Figure(f"{label}, {many:,} messages ÷ {few:,}", ratio, 1.5, "at most"),
            Figure(f"{label}, {many:,} messages", long[name]),
        ]
    return found


async def _pages(cluster: Cluster, messages: int) -> dict[str, int]:
    """The rows that PostgreSQL reads for pages of a session, by the page."""
    database = f"messages_{messages}"
    await migrate(cluster.database(database), roles=[ROLE])
    address, owner = cluster.address(database, user=ROLE), cluster.address(database)
    async with PostgresStore(address) as store:
        log = store.log()
        fold = await _fill(log, messages)
        record = await _request(log)
    cluster.execute("VACUUM ANALYZE", database)
    session = "/console/sessions/long"
    pages = {
        "the end of the timeline": session,
        "its middle": f"{session}?at={messages // 2}",
        "what a fold replaces": f"{session}/folds/{fold}",
        "the newest request": f"{session}/requests/{record}",
        "the window over time": f"{session}/window",
    }
    return {name: await _rows_of(address, owner, where) for name, where in pages.items()}


async def _rows_of(address: str, owner: str, where: str) -> int:
    async with _browser(address) as browser:
        pass  # what opening and signing in read
    idle = _read_rows(owner)
    async with _browser(address) as browser:
        (await browser.get(where)).raise_for_status()
    looked = _read_rows(owner)
    async with _browser(address):
        pass
    return looked - idle - (_read_rows(owner) - looked)


@asynccontextmanager
async def _browser(address: str) -> AsyncGenerator[httpx2.AsyncClient]:
    """A browser that has opened the console. Its connections end with it, so all is counted."""
    state = LocalConsole(Settings(PROFILES["balanced"], {}, {}), PostgresStore(address))
    access = Access(state)
    transport = httpx2.ASGITransport(application(state, access))
    async with state, httpx2.AsyncClient(transport=transport, base_url=HERE) as browser:
        await browser.get(open_address(HERE, access.new_token()))
        yield browser


def _read_rows(address: str) -> int:
    with psycopg.connect(address, autocommit=True) as db:
        [(tables,)] = db.execute("SELECT sum(seq_tup_read) FROM pg_stat_user_tables")
        [(indexes,)] = db.execute("SELECT sum(idx_tup_read) FROM pg_stat_user_indexes")
        return int(tables) + int(indexes)


async def _fill(log: Log, messages: int) -> int:
    """A session in which all but the newest messages are folded; the entry of the fold."""
    author = Author()
    await log.append("long", [author.draft(Opened("openai-chat", "balanced"))], expected=0)
    for first in range(0, messages, _BATCH):
        texts = (_message(nth) for nth in range(first, min(messages, first + _BATCH)))
        await log.append("long", [author.draft(Message(text)) for text in texts], expected=None)
    name, spans = uuid4(), (Span(2, messages + 1 - _TAIL),)
    words = f"{messages} messages about parcels."
    summary = {"version": 1, "shown": [{"kind": "prompt", "text": words}], "text": words}
    fold = [FoldStarted(name, spans, "manual"), FoldCompleted(name, spans, {**summary, "by": "x"})]
    await log.append("long", [author.draft(each) for each in fold], expected=None)
    return (await log.outlined("long")).outline.folds[-1].seq


def _message(nth: int) -> bytes:
    role = "assistant" if nth % 2 else "user"
    return b'{"role": "%b", "content": "Parcel %d is on its way."}' % (role.encode(), nth)


async def _request(log: Log) -> int:
    """Build one request, as an agent would; its entry."""
    session = await Session.open(log, "long", Setup.of("openai:gpt-4o"), format=None)
    try:
        await session.say(b'{"role": "user", "content": "Where is parcel 7?"}')
        await session.request()
        assert session.record is not None
        return session.record
    finally:
        await session.close()
