"""The tables in PostgreSQL: how they are made, and what is refused."""

# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportOptionalIterable=false
# None fails a test just as well.

import asyncio
import json
import re
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from typer.testing import CliRunner

from refold.cli.store import store as command
from refold.errors import InvalidInput, MigrationGap, NotAStore, StoreOutdated, StoreTooNew
from refold.stores.postgres import PostgresStore, migrate
from refold.stores.postgres.migrate import shipped
from refold.stores.sql import Migration

NUMBERS = count(1)
PARTS = 3


@pytest.fixture
def bare(postgres):
    """The address of a database without any table."""
    name = f"bare_{next(NUMBERS)}"
    yield postgres.database(name)
    postgres.drop(name)


def dumped(postgres, address):
    said = postgres.run("pg_dump", "--schema-only", "--no-owner", "--dbname", address)
    lines = said.splitlines()
    return [line for line in lines if line and not re.match(r"--|\\(un)?restrict", line)]


def run(address, *statements):
    with psycopg.connect(address, autocommit=True) as db:
        for statement in statements:
            db.execute(statement)


def tables(address):
    with psycopg.connect(address) as db:
        return db.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'refold'"
        ).fetchone()[0]  # fmt: skip


async def test_the_whole_schema_is_what_the_migrations_make(postgres, bare):
    migrated = postgres.database("migrated")
    try:
        await migrate(migrated, PARTS)
        whole = Path(__file__).with_name("postgres_schema.sql").read_text(encoding="utf-8")
        made = f"SELECT refold.make_partitions({PARTS})"
        run(bare, whole, made, "SELECT refold.keep_no_samples()")
        assert dumped(postgres, bare) == dumped(postgres, migrated)
        assert len(dumped(postgres, bare)) > 300
    finally:
        postgres.drop("migrated")


async def test_migrating_again_changes_nothing(postgres, bare):
    assert [one.number for one in await migrate(bare, PARTS)] == [1, 2, 3, 4, 5, 6]
    before = dumped(postgres, bare)
    assert await migrate(bare, PARTS + 5) == []
    assert dumped(postgres, bare) == before


async def test_several_migrate_at_once(bare):
    done = await asyncio.gather(*(migrate(bare, PARTS) for _ in range(4)))
    assert sorted(one.number for some in done for one in some) == [1, 2, 3, 4, 5, 6]
    async with PostgresStore(bare):
        pass


async def test_a_migration_that_dies_is_as_if_it_never_began(postgres, bare):
    points = []

    def dying(point):
        points.append(point)
        if points.count("migrate.written") == 2:
            raise RuntimeError("died")

    with pytest.raises(RuntimeError):
        await migrate(bare, PARTS, reach=dying)
    before = dumped(postgres, bare)
    with pytest.raises(StoreOutdated, match="schema 1; this Refold needs 6"):
        await PostgresStore(bare).open()
    await migrate(bare, PARTS, migrations=shipped()[:1])
    assert dumped(postgres, bare) == before
    assert [one.number for one in await migrate(bare, PARTS)] == [2, 3, 4, 5, 6]


async def test_roles_that_were_let_in_can_put_marks_after_an_upgrade(postgres, bare):
    app = postgres.address(bare.rpartition("/")[2], user="refold_app")
    await migrate(bare, PARTS, migrations=shipped()[:3])
    listed = "INSERT INTO refold.bound_roles VALUES ('refold_app', NULL), ('gone', 'x')"
    run(bare, "GRANT USAGE ON SCHEMA refold TO refold_app", listed)
    await migrate(bare, PARTS)
    with psycopg.connect(app, autocommit=True) as db:
        rights = db.execute(
            "SELECT has_table_privilege('refold.marks', 'SELECT, INSERT, DELETE'),"
            " has_function_privilege('refold.note_erased_marks()', 'EXECUTE')"
        ).fetchone()
    assert rights == (True, True)


async def test_an_empty_database_says_what_to_do(bare):
    with pytest.raises(StoreOutdated, match="refold store migrate"):
        await PostgresStore(bare).open()
    assert tables(bare) == 0


async def test_a_newer_store_is_left_alone(bare):
    newer = (*shipped(), Migration(7, "later", "CREATE TABLE refold.later (x int)"))
    await migrate(bare, PARTS, migrations=newer)
    before = tables(bare)
    for refused in (PostgresStore(bare).open, lambda: migrate(bare)):
        with pytest.raises(StoreTooNew):
            await refused()
    assert tables(bare) == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE refold.migrations SET digest = 'other' WHERE number = 2",
        "DELETE FROM refold.migrations WHERE number = 2",
    ],
)
async def test_a_store_made_by_other_migrations_is_refused(bare, change):
    await migrate(bare, PARTS)
    run(bare, change)
    for refused in (PostgresStore(bare).open, lambda: migrate(bare)):
        with pytest.raises(MigrationGap):
            await refused()


async def test_a_gap_in_what_is_shipped_is_refused(bare):
    with pytest.raises(MigrationGap):
        await migrate(bare, migrations=(shipped()[0], shipped()[2]))
    with pytest.raises(InvalidInput):
        await migrate(bare, 0)
    assert tables(bare) == 0


async def test_another_programs_database_is_refused(postgres, bare):
    run(bare, "CREATE SCHEMA refold", "CREATE TABLE refold.mine (x int)")
    with pytest.raises(NotAStore):
        await migrate(bare)
    assert tables(bare) == 1
    postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    try:
        with pytest.raises(NotAStore, match="LATIN1"):
            await migrate(postgres.address("latin"))
    finally:
        postgres.drop("latin")


async def test_a_role_is_given_what_a_store_needs_and_no_more(postgres, postgres_database):
    refused = [
        "SELECT * FROM refold.bound_roles",
        "INSERT INTO refold.bound_roles VALUES ('refold_app', 'B')",
        "INSERT INTO refold.migrations VALUES (9, 'x', 'x')",
        "CREATE TABLE refold.mine (x int)",
        "SELECT * FROM refold.entries_0",
        "ALTER TABLE refold.marks DISABLE ROW LEVEL SECURITY",
        "TRUNCATE refold.entries",
        "ALTER TABLE refold.entries DISABLE ROW LEVEL SECURITY",
        "SELECT refold.make_partitions(8)",
        "SELECT refold.keep_no_samples()",
        "DROP POLICY own ON refold.entries",
    ]
    address = postgres.address(postgres_database, user="refold_app")
    with psycopg.connect(address, autocommit=True) as app:
        for statement in refused:
            with pytest.raises(errors.InsufficientPrivilege):
                app.execute(statement.encode())
        assert app.execute("SELECT count(*) FROM refold.entries").fetchone() == (0,)


def test_the_command(postgres, bare):
    cli = CliRunner()

    def run_command(*arguments, fails=False):
        result = cli.invoke(command, [*arguments, "--store", bare])
        assert bool(result.exit_code) == fails, result.output
        return result.output

    assert "store migrate" in run_command("check", fails=True)
    assert "6 migrations applied; schema 6" in run_command("migrate", "--partitions", "2")
    assert "newest" in run_command("migrate", "--role", "refold_app")
    assert "can be used" in run_command("check")
    assert "0 tables rewritten" in run_command("scrub")
    assert run_command("migrate", "--json") == '{"applied": []}\n'
    here = cli.invoke(command, ["migrate", "--store", "sqlite:///x.db"])
    assert (here.exit_code, "PostgreSQL" in here.output) == (2, True)
    assert "may do everything" in run_command("check")
    app = postgres.address(bare.rpartition("/")[2], user="refold_app")
    seen = cli.invoke(command, ["check", "--json", "--store", app])
    kept = {"schema": 6, "partitions": 2, "role": "refold_app", "isolated": True}
    assert json.loads(seen.stdout) == {**kept, "tenant": None, "to_scrub": None}
    run_command("migrate", "--role", "refold_app", "--bind", "acme")
    seen = cli.invoke(command, ["check", "--store", app])
    assert "as 'refold_app', bound to the tenant 'acme'." in seen.output
