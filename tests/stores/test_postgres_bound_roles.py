"""Roles in PostgreSQL: which tenant each may be, and what it learns of others."""

# ruff: noqa: F811, F401 - fixtures are imported
# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportOptionalIterable=false
# None fails a test just as well.

import asyncio

import pytest
from postgres_tenants import BOUND, TABLES, all_rows, flat, logged_in, rows, tried

from refold.errors import InvalidInput, StoreFailed
from refold.log import Author, Opened, Span
from refold.stores.postgres import Pool, PostgresStore, migrate
from refold.stores.postgres.connection import execute


async def test_a_bound_role_uses_the_store_as_its_tenant(postgres, postgres_database, rows):
    assert rows
    async with PostgresStore(postgres.address(postgres_database, user=BOUND)) as store:
        assert [one.session for one in (await store.log("A").sessions()).sessions]
        assert not (await store.log("B").sessions()).sessions
        await store.log("A").append("new", [Author().draft(Opened("f", "p"))], expected=0)
        assert await store.log("A").head("new") == 1


async def test_whoever_is_not_listed_is_refused(postgres, postgres_database, rows, logged_in):
    """A role that was renamed, a member of a bound role, a member of one that is not bound."""
    member = f"CREATE ROLE refold_member LOGIN IN ROLE {BOUND}, refold_app"
    await execute(rows.owner, f"ALTER ROLE {BOUND} RENAME TO refold_renamed")
    try:
        await execute(rows.owner, member.replace(BOUND, "refold_renamed"))
        for user in ("refold_renamed", "refold_member"):
            connection = await logged_in(user)
            if user == "refold_member":
                await execute(connection, "SET ROLE refold_app")
            for table in TABLES:
                seen = f"SELECT 1 FROM refold.{table}"  # noqa: S608 - ours
                assert [await tried(connection, seen, (), says) for says in "AB"] == [None, None]
        async with PostgresStore(
            postgres.address(postgres_database, user="refold_member")
        ) as store:
            with pytest.raises(StoreFailed, match="--role"):
                await store.log("A").sessions()
    finally:
        await execute(rows.owner, f"ALTER ROLE refold_renamed RENAME TO {BOUND}")
        await execute(rows.owner, "DROP ROLE IF EXISTS refold_member")


@pytest.mark.usefixtures("rows")
async def test_a_bound_role_learns_no_other_tenants_name(postgres, postgres_database, logged_in):
    await migrate(postgres.address(postgres_database), roles=["refold_app"], tenant="secret B")
    write_session = []
    for user in (BOUND, "refold_app"):
        connection = await logged_in(user)
        write_session += await all_rows(connection, "EXPLAIN VERBOSE SELECT * FROM refold.sessions")
        write_session += await all_rows(connection, "SELECT pg_get_functiondef(oid) FROM pg_proc"
                               " WHERE pronamespace = 'refold'::regnamespace")  # fmt: skip
        assert await tried(connection, "SELECT * FROM refold.bound_roles", (), "A") is None
    assert "refold_owner" in flat(write_session)
    assert "secret" not in flat(write_session)
    assert await tried(connection, "SELECT refold.tenant()", (), "A") == [("secret B",)]


async def test_a_bound_role_stays_bound(postgres, postgres_database, rows, logged_in):
    """Roles are named again with every migration, and by several at once."""
    address = postgres.address(postgres_database)
    await asyncio.gather(*(migrate(address, roles=[BOUND, "refold_app"]) for _ in range(4)))
    listed = await all_rows(rows.owner, "SELECT role::text, tenant FROM refold.bound_roles")
    assert set(listed) == {("refold_owner", None), ("refold_app", None), (BOUND, "A")}
    assert await tried(await logged_in(BOUND), "SELECT refold.tenant()", (), "B") == [("A",)]


@pytest.mark.parametrize(
    ("role", "tenant"), [("public", None), ("public", "A"), ("nobody", None), ("refold_owner", "A")]
)
async def test_what_cannot_be_let_in_or_bound(postgres, postgres_database, role, tenant):
    with pytest.raises(InvalidInput):
        await migrate(postgres.address(postgres_database), roles=[role], tenant=tenant)


async def whose(connection):
    [(tenant, seen)] = await all_rows(
        connection,
        "SELECT current_setting('refold.tenant', true), (SELECT count(*) FROM refold.sessions)",
    )
    return tenant or None, seen


async def test_a_connection_forgets_whose_it_was(postgres_address):
    async with PostgresStore(postgres_address, pool=Pool(min_size=1, max_size=1)) as store:
        log = store.log("A")
        run = store._connections.run
        await log.append("s", [Author().draft(Opened("f", "p"))], expected=0)
        assert await run(whose) == (None, 0)
        await log.head("s")
        await log.fork("s", "t")
        assert await run(whose) == (None, 0)
        with pytest.raises(ValueError, match="mine"):
            await store.read("A", failing)
        assert await run(whose) == (None, 0)
        sleeping = asyncio.create_task(store.write("A", lambda tx: tx.all("SELECT pg_sleep(30)")))
        await asyncio.sleep(0.2)
        sleeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping
        assert await run(whose) == (None, 0)
        await log.forget("s", Span(1, 1))
        assert await run(whose) == (None, 0)


async def failing(tx):
    assert await tx.all("SELECT 1 FROM refold.sessions")
    raise ValueError("mine")
