"""`refold worker`: a worker as a command."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from dbos_working import Link
from engines import begin
from needed import need_postgres
from typer.testing import CliRunner

from refold.cli.app import app
from refold.engine.dbos import DbosEngine, Worker, prepare
from refold.errors import InvalidInput, StoreFailed
from refold.fold.compactor import context
from refold.fold.job import Job
from refold.log import Span
from refold.stores.memory import MemoryStore
from refold.stores.postgres import PostgresStore, migrate
from refold.testing.engine import Maker
from refold.testing.postgres import Cluster
from refold.view import Fold

LONG = 60.0
REFOLD = Path(sys.executable).parent / "refold"


async def test_it_makes_folds_and_stops_when_told(dbos_address, tmp_path):
    """And all queues have the limits that it was given, whoever made them, and when."""
    before = DbosEngine(MemoryStore().log(), dbos_address)
    await before._queue.register("one:model")
    assert await _limits(dbos_address, "one:model") == [(8, 4, None), (8, 4, None)]
    worker = await asyncio.create_subprocess_exec(
        REFOLD,
        *("worker", "--store", dbos_address, "--per-minute", "600", "--patience", "5"),
        *("--at-once", "2", "--waiting", "1", "--per-tenant", "1"),
        cwd=tmp_path,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with (
            PostgresStore(dbos_address) as store,
            DbosEngine(store.log(), dbos_address) as engine,
        ):
            await begin(store.log())
            given = context(Fold(), {}, at_once=True)
            one = Job("s", uuid4(), (Span(2, 4),), "soft", context=given)
            assert await engine.start(one)
            ended = await engine.wait("s", one.fold, LONG)
        assert ended is not None
        assert ended.completed, ended.reason
        await before._queue.register("other:model")
        await before.close()
        for model in ("one:model", "other:model"):
            async with asyncio.timeout(LONG):
                while await _limits(dbos_address, model) != [(2, 1, 400), (1, 1, 200)]:  # noqa: ASYNC110 - of a server
                    await asyncio.sleep(0.1)
        worker.send_signal(signal.SIGTERM)
        _, said = await asyncio.wait_for(worker.communicate(), LONG)
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()
    lines = said.decode().splitlines()
    assert worker.returncode == 0, said
    assert lines[0].startswith("worker-")
    assert lines[1:] == ["It takes no more, and waits for what it makes."]


def test_a_worker_whose_database_is_gone_for_good_ends_when_told(tmp_path):
    """DBOS asks the database again and again, and nothing may wait for that."""
    need_postgres()
    with Cluster() as cluster:
        address = cluster.database("gone")
        asyncio.run(migrate(address))
        asyncio.run(prepare(address))
        worker = subprocess.Popen(
            [REFOLD, "worker", "--store", address, "--patience", "1"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            while "takes folds" not in worker.stderr.readline():
                pass
            cluster.stop()
            time.sleep(3)  # so that DBOS has noticed
            worker.send_signal(signal.SIGTERM)
            _, said = worker.communicate(timeout=LONG)
        finally:
            worker.kill()
            worker.wait()
    assert worker.returncode == 0
    assert "connection failed" in said
    assert "error connecting in" not in said  # the pool's own words, several times a second


async def _limits(address, model):
    """Of a model's queues: in the background, and waited for."""
    link = Link(address)
    rows = await link.run(
        "SELECT concurrency, partition_concurrency, rate_limit_max FROM refold_dbos.queues"
        " WHERE name LIKE '%%' || %(model)s ORDER BY name",
        {"model": model},
    )
    await link.close()
    return list(rows)


def test_a_file_needs_no_worker(tmp_path):
    done = CliRunner().invoke(app, ["worker", "--store", f"sqlite:///{tmp_path}/refold.db"])
    assert done.exit_code == 2
    assert "folded where it is used" in done.stderr


def test_where_nobody_answers_it_says_so(unused_tcp_port):
    address = f"postgresql://me:secret@127.0.0.1:{unused_tcp_port}/refold"
    done = CliRunner().invoke(app, ["worker", "--store", address])
    assert done.exit_code == 1
    assert done.stderr.startswith("error[")
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    ("host", "error"), [("127.0.0.1:{port}", StoreFailed), ("[127.0.0.1:{port}", InvalidInput)]
)
async def test_where_nobody_answers_all_say_so(unused_tcp_port, host, error):
    address = f"postgresql://me:secret@{host.format(port=unused_tcp_port)}/refold"
    log, one = MemoryStore().log(), Job("s", uuid4(), (Span(2, 4),), "soft")
    await begin(log)

    async def ask():
        async with DbosEngine(log, address) as engine:
            await engine.start(one)

    async def work():
        async with Worker(address, lambda _: log, lambda _: Maker()):
            pass

    for way in (ask, work, lambda: prepare(address)):
        with pytest.raises(error) as caught:
            await way()
        assert "secret" not in str(caught.value)
