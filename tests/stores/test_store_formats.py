"""A store that an earlier version wrote opens, holds the same, and goes on."""

import asyncio
import json
import shutil

import pytest
from needed import need_postgres
from store_formats import FOLDED, FORGOTTEN, FORK, FORMATS, PAID, contents, setup, turn

from refold.errors import SessionForgotten
from refold.session import Session
from refold.stores import SqliteStore
from refold.testing.conformance.totals import check_totals

NAMES = sorted(path.stem for path in FORMATS.glob("*.json"))


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request, name, tmp_path):
    """A store that is written by an earlier version, and what it held then."""
    held = json.loads((FORMATS / f"{name}.json").read_text(encoding="utf-8"))[request.param]
    if request.param == "sqlite":
        path = tmp_path / "refold.db"
        shutil.copy(FORMATS / f"{name}.db", path)
        yield SqliteStore(path), held
        return
    need_postgres()
    from refold.stores.postgres import PostgresStore, migrate  # noqa: PLC0415 - if installed

    cluster = request.getfixturevalue("postgres")
    database = f"format_{name}_{request.node.originalname}".replace(".", "_")[:60]
    address = cluster.database(database)
    script = shutil.copy(FORMATS / f"{name}.sql", cluster.folder)  # where its user may read it
    cluster.run("psql", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname", address, "-f", script)
    asyncio.run(migrate(address))
    yield PostgresStore(address), held
    cluster.drop(database)


def test_there_is_at_least_one():
    assert NAMES


async def test_it_holds_what_it_held(opened):
    store, held = opened
    async with store:
        found = await contents(store.log())
    assert found == held
    assert held[FOLDED]["folds"]
    assert held[FORK]["found"]


async def test_its_sessions_go_on(opened):
    store, held = opened
    async with store:
        log = store.log()
        session = await Session.open(log, FOLDED, setup(), format=None)
        await turn(session, 20)
        await session.compact()
        await session.take_back()
        fork = await session.fork("another")
        await session.close()
        found = await contents(log)
        assert fork.entries > len(held[FOLDED]["entries"])
        assert found[FOLDED]["entries"][: len(held[FOLDED]["entries"])] == held[FOLDED]["entries"]
        assert not await log.search(FORGOTTEN)
        await log.forget(FORK)
        with pytest.raises(SessionForgotten):
            await log.read(FORK)


async def test_what_it_paid_is_counted(opened):
    store, held = opened
    async with store:
        log = store.log()
        uncounted = (await log.totals(0, 2**40)).uncounted
        for number in (20, 21):
            for name in (FOLDED, *({PAID} & {*held})):
                session = await Session.open(log, name, setup(), format=None)
                await turn(session, number)
                await session.close()
            await check_totals(log)
    # What was forked or forgotten of is counted again, and all that was there before the totals.
    assert uncounted == (2 if PAID in held else 3)
