"""What SECURITY.md says that `forget` leaves on disk, looked up in the stores' own files.

Where a store comes to do more than this, its rows in SECURITY.md and docs/manage/forget.md change
with the test.
"""

import json
import subprocess
import sys

import psycopg
import pytest
from needed import need_postgres
from project_paths import ROOT

from refold.log import Author, Message, Opened, Span
from refold.stores import open_store
from refold.stores.postgres import PostgresStore, migrate
from refold.testing.postgres import Cluster

WORD = "xylographerquixotry"
PAGES = ["SECURITY.md", "docs/manage/forget.md"]


async def begin(log, title=None, source=0):
    """A session whose second entry has the word, found once so that the index has it too."""
    author = Author()
    prompt = Message(json.dumps({"role": "user", "content": f"The word is {WORD}."}).encode())
    drafts = [
        author.draft(value) for value in (Opened("openai-chat", "balanced", title, source), prompt)
    ]
    await log.append("s", drafts, expected=0)
    assert await log.search(WORD)


def holding(*folders):
    """The files that have the word."""
    return [
        file
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.is_file() and WORD.encode() in file.read_bytes()
    ]


async def test_sqlite_has_nothing_left_when_the_call_returns(tmp_path):
    async with open_store(f"sqlite:///{tmp_path / 'refold.db'}") as store:
        await begin(store.log())
        assert holding(tmp_path)
        await store.log().forget("s", Span(2, 2))
        assert holding(tmp_path) == []


async def test_sqlite_has_no_title_left_that_is_made_of_it(tmp_path):
    async with open_store(f"sqlite:///{tmp_path / 'refold.db'}") as store:
        log = store.log()
        await begin(log, title=f"The word is {WORD}.", source=2)
        await log.forget("s", Span(2, 2))
        assert (await log.info("s")).title is None
        assert holding(tmp_path) == []


def refold(*arguments, store):
    """The real command; its exit code, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "refold.cli", *arguments, "--store", store],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def cluster(request):
    need_postgres()
    settings = {"autovacuum": "off", "wal_keep_size": "0", **getattr(request, "param", {})}
    with Cluster(settings=settings) as cluster:
        yield cluster


def recycling(cluster):
    with psycopg.connect(cluster.address()) as db:
        return db.execute("SHOW wal_recycle").fetchone()[0]


async def test_a_setting_that_cannot_be_changed_is_named(cluster):
    """As where the server's command line says it."""
    address = await begun(cluster)
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("ALTER ROLE ALL SET wal_recycle = on")
    code, _, err = refold("forget", "s", "--yes", "--scrub", store=address)
    assert (code, "wal_recycle stays on" in err) == (1, True)
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("ALTER ROLE ALL RESET wal_recycle")
    assert refold("store", "scrub", store=address)[0] == 0
    assert holding(cluster.data) == []


async def begun(cluster):
    """A store whose tables, write-ahead log and recycled segments have the word."""
    address = cluster.database("forgetting")
    await migrate(address)
    async with PostgresStore(address) as store:
        await begin(store.log(), title=f"The word is {WORD}", source=2)
    for _ in range(4):  # so that segments with the word are used, let go of, and renamed for later
        cluster.execute(f"SELECT pg_logical_emit_message(false, 'x', repeat('{WORD} ', 1000))")
        cluster.execute("SELECT pg_switch_wal()")
        cluster.execute("CHECKPOINT")
    cluster.execute(f"SELECT pg_logical_emit_message(false, 'x', repeat('{WORD} ', 1000))")
    assert holding(cluster.data / "base")
    assert holding(cluster.data / "pg_wal")
    return address


@pytest.mark.parametrize("cluster", [{}, {"wal_recycle": "off"}], indirect=True)
async def test_postgresql_has_nothing_left_when_it_is_scrubbed(cluster):
    recycles = recycling(cluster)
    address = await begun(cluster)
    code, out, err = refold("forget", "s", "--span", "2", "--yes", "--json", store=address)
    told = json.loads(out)
    assert code == 0, err
    assert told["to_scrub"] == ["tables and indexes", "write-ahead log"]
    assert "refold store scrub" in err
    async with PostgresStore(address) as store:
        assert await store.log().search(WORD) == []
        assert (await store.log().info("s")).title is None
    assert holding(cluster.data / "base")  # as it said

    code, out, err = refold("store", "scrub", "--json", store=address)
    assert code == 0, err
    done = json.loads(out)
    assert done["rewritten"]
    assert done["segments"] >= 1
    assert done["recycling"] == ("off meanwhile" if recycles == "on" else "off")
    assert holding(cluster.data) == []
    # The server is as it was, and there is nothing more to do.
    assert recycling(cluster) == recycles
    assert json.loads(refold("store", "scrub", "--json", store=address)[1])["rewritten"] == []


async def test_forget_waits_for_the_scrub_if_it_is_told_to(cluster):
    address = await begun(cluster)
    code, out, err = refold("forget", "s", "--yes", "--scrub", store=address)
    assert (code, "refold store scrub" in err) == (0, False)
    assert "write-ahead segment" in out
    assert holding(cluster.data) == []


async def test_a_role_that_may_not_is_told_why_and_another_finishes(cluster):
    """The owner of the tables may rewrite them; the log of the server is not its own."""
    cluster.execute("CREATE ROLE keeper LOGIN")
    name = "kept"
    address = cluster.database(name)
    cluster.execute(f'ALTER DATABASE "{name}" OWNER TO keeper')
    own = cluster.address(name, user="keeper")
    await migrate(own)
    async with PostgresStore(own) as store:
        await begin(store.log())
    cluster.execute("CHECKPOINT")
    code, _, err = refold("forget", "s", "--yes", "--scrub", store=own)
    assert code == 1
    assert "error[erasure-unfinished]" in err
    assert "permission denied" in err
    assert "GRANT" in err
    async with PostgresStore(own) as store:
        assert await store.log().search(WORD) == []
    assert holding(cluster.data / "base") == []
    assert holding(cluster.data / "pg_wal")
    code, out, err = refold("store", "scrub", "--tables-only", store=own)
    assert (code, "left for the next scrub" in out) == (0, False), err  # no table was left
    assert refold("store", "scrub", store=address)[0] == 0
    assert holding(cluster.data) == []


async def test_a_slot_that_holds_the_log_is_named(cluster):
    address = await begun(cluster)
    cluster.execute("SELECT pg_create_physical_replication_slot('far_away', true)")
    code, _, err = refold("forget", "s", "--yes", "--scrub", store=address)
    assert code == 1
    assert "the replication slot far_away" in err
    assert recycling(cluster) == "on"
    cluster.execute("SELECT pg_drop_replication_slot('far_away')")
    assert refold("store", "scrub", store=address)[0] == 0
    assert holding(cluster.data) == []


async def test_a_scrub_that_died_is_finished_and_the_server_is_as_it_was(cluster):
    address = await begun(cluster)
    refold("forget", "s", "--yes", store=address)
    refold("store", "scrub", "--tables-only", store=address)
    # As one does that is killed after it turned recycling off.
    database = address.rpartition("/")[2]
    cluster.execute(
        "INSERT INTO refold.erasures (begun, part) VALUES (true, 'wal_recycle')", database
    )
    cluster.execute("ALTER SYSTEM SET wal_recycle = off")
    cluster.execute("SELECT pg_reload_conf()")
    code, out, err = refold("store", "scrub", store=address)
    assert (code, "write-ahead" in out) == (0, True), err
    assert recycling(cluster) == "on"
    assert holding(cluster.data) == []


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_have_a_row_for_each_store(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == "| store | done when `forget` returns | still to happen |"
    assert [row.split("|")[1].strip() for row in rows[2:]] == ["memory", "SQLite", "PostgreSQL"]
    assert "scrub" in rows[4]
    assert "write-ahead" in rows[4]
    assert "--scrub" in text
