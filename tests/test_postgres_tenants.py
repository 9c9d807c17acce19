"""Tenants in PostgreSQL: each statement of the store, tried on another's rows."""

# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportOptionalIterable=false
# None fails a test just as well.

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from importlib.resources import files
from unittest import mock
from uuid import UUID, uuid4

import pytest
from psycopg import errors

from refold.errors import InvalidInput, StoreFailed
from refold.log import Artifact, Author, Mark, Message, Note, Opened, Span, lineage
from refold.stores.postgres import Pool, PostgresStore, migrate
from refold.stores.postgres.connection import Address, connect
from refold.stores.postgres.transaction import execute
from refold.stores.sql import statements

WORD, OTHER = "cormorant", "albatross"
OWNERS = {"migrate.sql", "scrub.sql"}
"""What only the owner of the database runs, who sees everything."""
TABLES = (
    *("sessions", "entries", "segments", "copies", "artifacts", "tombstones", "attempts"),
    *("facts", "words", "marks"),
)
BOUND = "refold_bound"

# Values for the statements: what stands for a row of the other tenant.
WHOSE, NAME, GONE, KEY, FORK, ID, HASH = "whose", "name", "gone", "key", "fork", "id", "hash"
KEYS, FIRSTS, LASTS, IDS, HASHES = "keys", "firsts", "lasts", [ID], [HASH]
PARTS = (KEYS, FIRSTS, LASTS)
NEW = UUID(int=7)
ENTRY = (
    *([90], [NEW], [1], ["note"], [1], [1], [False], [False], [b"/"], [None], [None], [b"{}"]),
    *(HASHES, [1], [b"x"], [b"x"]),
)
PLACE = (91, 1, 1, b"{}")
MARKED = b"sixteen bytes it"

CASES: dict[str, tuple[object, ...]] = {
    "append.append_plain": (WHOSE, KEY, 0, None, NEW, 1, "note", 1, b"/", False, b"{}"),
    "append.append": (WHOSE, KEY, 0, 4, *PLACE, *ENTRY),
    "append.begin_session": (WHOSE, "new", 0, b"f", b"p", 1, *PLACE, *ENTRY),
    "fork.lock_tenant": (WHOSE,),
    "fork.messages_at": (WHOSE, KEY, 2),
    "fork.add_fork": (WHOSE, "new", NAME, 60_000, 1, 1, 0, b"f", b"p", b"{}"),
    "fork.add_segments": (WHOSE, 999, *PARTS),
    "fork.copied_artifacts": (WHOSE, *PARTS),
    "fork.use_artifacts": (WHOSE, HASHES, [1]),
    "fork.copy_entries": (WHOSE, 999, *PARTS),
    "fork.add_copies": (WHOSE, 999, *PARTS),
    "forget.hold_family": (WHOSE, NAME),
    "forget.hold_sessions": (WHOSE, KEYS),
    "forget.living": (WHOSE, *PARTS),
    "forget.copies": (WHOSE, *PARTS),
    "forget.readers": (WHOSE, *PARTS),
    "forget.segments": (WHOSE, KEYS),
    "forget.derived": (WHOSE, *PARTS),
    "forget.set_outlines": (WHOSE, [KEY], [b"{}"]),
    "forget.raise_revisions": (WHOSE, KEYS),
    "forget.add_tombstone": (WHOSE, GONE, 1),
    "forget.sources": (WHOSE, FORK),
    "forget.unname": (WHOSE, KEY),
    "forget.orphan_forks": (WHOSE, NAME),
    "forget.drop_segments": (WHOSE, FORK),
    "forget.nameless": (WHOSE, KEYS),
    "forget.still_read": (WHOSE, KEYS),
    "forget.drop_copies": (WHOSE, FORK),
    "forget.drop_session": (WHOSE, KEY),
    "forget.end_earlier": (WHOSE, KEY),
    "forget.maybe_unused": (WHOSE, 2**40),
    "forget.keeping": (WHOSE, *PARTS, ["message"]),
    "forget.erase_keeping": (WHOSE, [KEY], [2], IDS, [b"{}"], b"/"),
    "forget.erase": (WHOSE, *PARTS, b"{}", b"/"),
    "forget.drop_entries": (WHOSE, *PARTS, "message"),
    "forget.drop_words": (WHOSE, *PARTS),
    "forget.drop_uses": (WHOSE, HASHES, [1]),
    "forget.drop_artifacts": (WHOSE, HASHES),
    "forget.forget_folds": (WHOSE, IDS),
    "forget.note_erasure": (KEYS, HASHES),
    "glance.session": (WHOSE, NAME),
    "glance.entries": (WHOSE, KEY, 0, [1], [9]),
    "glance.artifacts": (WHOSE, KEY, 0, HASHES),
    "index.facts": (WHOSE,),
    "index.unindexed": (WHOSE,),
    "index.next_entries": (WHOSE, KEYS, 100, 2**40),
    "index.keep_version": (WHOSE, "words_version"),
    "index.keep_sessions": (WHOSE, [KEY], [3], [0]),
    "index.add_words": (WHOSE, [KEY], [99], [1], ["word"]),
    "index.set_progress": (WHOSE, [KEY], [3], [0]),
    "index.hold_version": (WHOSE, "words_version"),
    "index.hold_indexed": (WHOSE, 0, 100),
    "index.drop_words": (WHOSE, KEYS),
    "index.index_anew": (WHOSE, KEYS),
    "index.set_fact": (WHOSE, "words_version", 0),
    "list.newest": (WHOSE, 2**40, 2**60, 2**60, 100),
    "list.named": (WHOSE, "A", "C", 100),
    "list.newest_of_few": (WHOSE, 2**60, 2**60, 100, KEYS),
    "list.newest_of_many": (WHOSE, 2**40, 2**60, 2**60, 100, KEYS, "B"),
    "marks.append_plain": (
        *(WHOSE, KEY, 0, None, NEW, 1, "note", 1, b"/", False, b"{}", MARKED, None),
    ),
    "marks.append": (WHOSE, KEY, 0, 4, *PLACE, *ENTRY, MARKED, None, 0),
    "marks.begin_session": (WHOSE, "new", 0, b"f", b"p", 1, *PLACE, *ENTRY, MARKED, None, 0),
    "marks.newest": (WHOSE, KEY),
    "marks.marked": (WHOSE, [MARKED]),
    "marks.drop": (WHOSE, *PARTS),
    "marks.drop_all": (WHOSE, KEY),
    "marks.note_erased": (),
    "read.session": (WHOSE, NAME),
    "read.forgotten_at": (WHOSE, GONE),
    "read.segments": (WHOSE, FORK, 1, 2**40),
    "read.entries": (WHOSE, KEY, 1, 2**40),
    "read.entries_of_many": (WHOSE, *PARTS),
    "read.controls": (WHOSE, *PARTS),
    "read.seen": (WHOSE, *PARTS, IDS),
    "read.artifacts": (WHOSE, HASHES),
    "search.found": (WHOSE, [WORD], 100),
    "search.found_within": ([WORD], *PARTS, 100),
    "search.entries_at": (WHOSE, [KEY], [2]),
    "search.matches": (WHOSE, [0], [WORD], 100, None, None, None),
    "search.size": (WHOSE,),
    "search.sessions_with": (WHOSE, [WORD]),
}
FUNCTIONS: dict[str, tuple[object, ...]] = {
    "add_entries": (WHOSE, KEY, *ENTRY),
    "append": CASES["append.append"],
    "append_plain": CASES["append.append_plain"],
    "attempt": (WHOSE, NAME, NEW),
    "begin_session": CASES["append.begin_session"],
    "bound_tenant": (),
    "enter": (WHOSE,),
    "forget_folds": (WHOSE, IDS),
    "held_within": ([WORD], *PARTS),
    "keep_no_samples": (),
    "make_partitions": (4,),
    "note_erased_marks": (),
    "note_erasure": (KEYS, HASHES),
    "places": ([WORD],),
    "put_mark": (WHOSE, KEY, 90, MARKED, None),
    "read_artifacts": CASES["glance.artifacts"],
    "read_entries": CASES["glance.entries"],
    "read_session": CASES["glance.session"],
    "tenant": (),
    "word_keys": (WHOSE, "word"),
}
SAYS_ONLY_WHAT_IT_IS_TOLD = {"bound_tenant", "enter", "tenant", "word_keys"}
"""Functions that read no table of tenants: they answer with what they were given."""
SILENT = {
    *("fork.lock_tenant", "forget.forget_folds", "forget.note_erasure", "marks.note_erased"),
}
"""Statements that give nothing and change no row of a tenant."""
TRIGGERS = {"write_free_roles"}


def shipped() -> dict[str, str]:
    folder = files("refold.stores.postgres").joinpath("sql")
    names = [file.name for file in folder.iterdir() if file.name not in OWNERS]
    return {
        f"{name.removesuffix('.sql')}.{statement}": text
        for name in names
        for statement, text in statements("refold.stores.postgres", f"sql/{name}").items()
    }


class Rows:
    """What tenant B has, and how to see whether it has changed."""

    def __init__(self, owner, values):
        self.owner = owner
        self.values = values

    async def dump(self) -> list[str]:
        found = []
        for table in TABLES:
            rows = f"SELECT one::text FROM refold.{table} AS one WHERE tenant = 'B' ORDER BY 1"  # noqa: S608 - ours
            found += [table, *(row[0] for row in await all_rows(self.owner, rows))]
        return found

    def filled(self, case: object, whose: str) -> object:
        """The case with B's rows in it, asked for in the name of `whose`."""
        if isinstance(case, list | tuple):
            return type(case)(self.filled(one, whose) for one in case)
        if isinstance(case, str):
            return {**self.values, WHOSE: whose}.get(case, case)
        return case


async def all_rows(connection, sql, values=()):
    cursor = await execute(connection, sql, values)
    return await cursor.fetchall() if cursor.description else []


async def told(log, name):
    author = Author()
    word = WORD if log.tenant == "B" else OTHER
    artifact = Artifact.of(f"{word} of {log.tenant}".encode(), "text/plain")
    body = f'{{"role":"user","content":"{word} of {log.tenant}"}}'.encode()
    large = f'{{"role":"user","content":"{word * 3_000}"}}'.encode()
    drafts = [
        author.draft(Opened("openai-chat", "balanced", f"{word} {log.tenant}")),
        author.draft(Message(body), artifacts=[artifact]),
        author.draft(Message(large))._replace(rests_on=(Span(1, 1),)),
    ]
    await log.append(name, drafts, expected=0)
    return drafts, artifact


@pytest.fixture
async def rows(postgres, postgres_database):
    """Both tenants' rows in every table."""
    address = postgres.address(postgres_database)
    owner = await connect(Address(address), Pool())
    if not await all_rows(owner, "SELECT 1 FROM pg_roles WHERE rolname = $1", (BOUND,)):
        await execute(owner, f"CREATE ROLE {BOUND} LOGIN")
    await migrate(address, roles=[BOUND], tenant="A")
    async with PostgresStore(postgres.address(postgres_database, user="refold_app")) as store:
        for tenant in "AB":
            log = store.log(tenant)
            drafts, artifact = await told(log, f"{tenant}'s")
            await told(log, f"{tenant} gone")
            await log.fork(f"{tenant} gone", f"{tenant} heir")
            await log.forget(f"{tenant} gone")
            with mock.patch.object(lineage, "MOST_SEGMENTS", 1):
                await fork_twice(log, f"{tenant}'s")
            await log.search(WORD)
            late = [Author().draft(Note("late"))]
            await log.append(f"{tenant}'s", late, expected=3, mark=Mark(MARKED, 0, 0))
            held = await log.locks().take(f"{tenant}'s")
            await held.attempt(uuid4())
            held.release()
    named = "SELECT key, session FROM refold.sessions WHERE tenant = 'B' ORDER BY key"
    by_name = {name: key for key, name in await all_rows(owner, named)}
    keys = sorted(by_name.values())
    values = {
        NAME: "B's",
        GONE: "B gone",
        KEY: by_name["B's"],
        FORK: by_name["B's again"],
        KEYS: keys,
        FIRSTS: [1 for _ in keys],
        LASTS: [2**40 for _ in keys],
        ID: drafts[1].id,
        HASH: artifact.hash.encode(),
    }
    found = Rows(owner, values)
    for table in TABLES:
        there = await all_rows(owner, f"SELECT 1 FROM refold.{table} WHERE tenant = 'B' LIMIT 1")  # noqa: S608 - ours
        assert there, f"nothing of B is in {table}"
    yield found
    await owner.close()


async def fork_twice(log, name):
    """A fork of a fork, which copies what it shares."""
    await log.fork(name, f"{name} fork")
    await log.append(f"{name} fork", [Author().draft(Note("more"))], expected=3)
    await log.fork(f"{name} fork", f"{name} again")


async def tried(connection, sql, values, says):
    """What a statement gives in a transaction that says whose it is; None when it is refused."""
    try:
        async with connection.transaction():
            await execute(connection, "SELECT set_config('refold.tenant', $1, true)", (says,))
            return await all_rows(connection, sql, values)
    except (errors.InsufficientPrivilege, errors.IntegrityError):
        return None


@pytest.fixture
async def logged_in(postgres, postgres_database):
    """Connects as a role."""
    async with AsyncExitStack() as stack:

        async def log_in(user):
            made = await connect(Address(postgres.address(postgres_database, user=user)), Pool())
            stack.push_async_callback(made.close)
            return made

        yield log_in


def empty(found: Iterable[tuple[object, ...]] | None) -> bool:
    return not any(value for row in found or () for value in row)


def flat(values: Iterable[object]) -> str:
    return repr(list(values))


def called(name: str, count: int) -> str:
    return f"SELECT * FROM refold.{name}({', '.join(f'${at + 1}' for at in range(count))})"  # noqa: S608 - ours


def test_no_statement_is_left_out():
    assert CASES.keys() == shipped().keys()


@pytest.mark.parametrize("user", [BOUND, "refold_app"])
async def test_no_statement_reaches_another_tenant(logged_in, rows, user):
    there = await all_rows(rows.owner, "SELECT proname::text FROM pg_proc p JOIN pg_namespace n"
                           " ON n.oid = pronamespace WHERE nspname = 'refold'")  # fmt: skip
    assert {name for (name,) in there} == FUNCTIONS.keys() | TRIGGERS
    every = {name: (sql, CASES[name]) for name, sql in shipped().items()}
    every |= {f"{name}()": (called(name, len(case)), case) for name, case in FUNCTIONS.items()}
    before = await rows.dump()
    connection = await logged_in(user)
    # Whoever is bound may say what it likes; others can only see what they say they are.
    says = "B" if user == BOUND else "A"
    for name, (sql, case) in every.items():
        for whose in "BA":
            found = await tried(connection, sql, rows.filled(case, whose), says)
            if name.removesuffix("()") not in SAYS_ONLY_WHAT_IT_IS_TOLD:
                if whose == "B":
                    assert empty(found), f"{name} of {whose} gives {flat(found or ())[:200]}"
                assert " of B" not in flat(found or ()), f"{name} tells of B"
            assert await rows.dump() == before, f"{name} in the name of {whose} changes B's rows"


async def test_the_cases_reach_their_own_tenant(logged_in, rows):
    """The same statements find something where they may: so the test above can fail."""
    connection = await logged_in("refold_app")
    found = set()
    for name, sql in shipped().items():
        try:
            async with connection.transaction(force_rollback=True):
                await execute(connection, "SELECT set_config('refold.tenant', 'B', true)")
                cursor = await execute(connection, sql, rows.filled(CASES[name], "B"))
                given = await cursor.fetchall() if cursor.description else [(cursor.rowcount,)]
                if not empty(given):
                    found.add(name)
        except errors.IntegrityError:
            found.add(name)
    assert CASES.keys() - found == SILENT


async def test_parts_of_tables_are_read_by_nobody(logged_in, rows):
    [(number,)] = await all_rows(
        rows.owner, "SELECT count(*) FROM pg_inherits JOIN pg_class ON oid = inhrelid"
        " WHERE relkind = 'r' AND NOT relrowsecurity"
    )  # fmt: skip
    assert number == 0
    app = await logged_in("refold_app")
    parts = [f"refold.entries_{at}" for at in range(4)]
    for part in parts:
        with pytest.raises(errors.InsufficientPrivilege):
            await execute(app, f"SELECT * FROM {part}")  # noqa: S608 - ours
        await execute(rows.owner, f"GRANT SELECT ON {part} TO refold_app")
    async with app.transaction():
        await execute(app, "SELECT set_config('refold.tenant', 'A', true)")
        assert await all_rows(app, "SELECT 1 FROM refold.entries LIMIT 1")
        for part in parts:
            assert not await all_rows(app, f"SELECT 1 FROM {part}")  # noqa: S608 - ours


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
    told = []
    for user in (BOUND, "refold_app"):
        connection = await logged_in(user)
        told += await all_rows(connection, "EXPLAIN VERBOSE SELECT * FROM refold.sessions")
        told += await all_rows(connection, "SELECT pg_get_functiondef(oid) FROM pg_proc"
                               " WHERE pronamespace = 'refold'::regnamespace")  # fmt: skip
        assert await tried(connection, "SELECT * FROM refold.bound_roles", (), "A") is None
    assert "refold_owner" in flat(told)
    assert "secret" not in flat(told)
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
    async with PostgresStore(postgres_address, pool=Pool(least=1, most=1)) as store:
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
