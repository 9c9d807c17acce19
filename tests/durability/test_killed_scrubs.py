"""kill -9 of a scrub midway: what is left stays reported, and the next scrub finishes it."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import json
import sys

import psycopg
import pytest
from service_processes import kill
from test_forget_on_disk import begun, cluster, holding, recycling, refold

PATIENCE = 60.0
TO_SCRUB = ["tables and indexes", "write-ahead log"]


async def started(*arguments, store):
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "refold.cli", *arguments, "--store", store)
    )


def to_scrub(address):
    """What `refold store check` says is left."""
    code, out, err = refold("store", "check", "--json", store=address)
    assert code == 0, err
    return json.loads(out)["to_scrub"]


async def reached(cluster, condition):
    """Wait until a statement of the server's says so."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with psycopg.connect(cluster.address(), autocommit=True) as db:
                if db.execute(condition).fetchone()[0]:
                    return
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("command", [("store", "scrub"), ("forget", "s", "--yes", "--scrub")])
async def test_one_that_is_killed_between_two_tables_is_finished(cluster, command):
    address = await begun(cluster)
    if command[0] == "store":
        assert refold("forget", "s", "--yes", store=address)[0] == 0
        assert to_scrub(address) == TO_SCRUB
    with psycopg.connect(address) as reader:
        # Somebody reads the last table, so that the scrub has to wait before it.
        reader.execute("SELECT count(*) FROM refold.words")
        process = await started(*command, store=address)
        waits = (
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'VACUUM (FULL%words%'"
            " AND wait_event_type = 'Lock')"
        )
        await reached(cluster, waits)
        await kill(process)
    assert to_scrub(address) == TO_SCRUB
    assert holding(cluster.data)
    code, out, err = refold("store", "scrub", store=address)
    assert (code, "write-ahead segment" in out) == (0, True), err
    assert to_scrub(address) == []
    assert holding(cluster.data) == []
    assert recycling(cluster) == "on"


async def test_one_that_is_killed_while_recycling_is_off_is_finished(cluster):
    address = await begun(cluster)
    assert refold("forget", "s", "--yes", store=address)[0] == 0
    process = await started("store", "scrub", store=address)
    await reached(cluster, "SELECT current_setting('wal_recycle') = 'off'")
    await kill(process)
    assert to_scrub(address) == ["write-ahead log"]
    code, _, err = refold("store", "scrub", store=address)
    assert code == 0, err
    assert to_scrub(address) == []
    assert holding(cluster.data) == []
    assert recycling(cluster) == "on"
