"""Two tenants with rows in every table of a PostgreSQL store, and roles that try to see them."""

# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportOptionalIterable=false
# None fails a test just as well.

from collections.abc import Iterable
from contextlib import AsyncExitStack
from unittest import mock
from uuid import uuid4

import pytest
from psycopg import errors

from refold.log import Artifact, Author, Mark, Message, Note, Opened, Span, Used, outline
from refold.stores.postgres import Pool, PostgresStore, migrate, search
from refold.stores.postgres.connection import Address, connect, execute

WORD, OTHER = "cormorant", "albatross"
TABLES = (
    *("sessions", "entries", "segments", "copies", "artifacts", "tombstones", "attempts"),
    *("facts", "words", "word_chunks", "marks", "totals", "accounts"),
)
BOUND = "refold_bound"

# Values for the statements: what stands for a row of the other tenant.
WHOSE, NAME, GONE, KEY, FORK, ID, HASH = "whose", "name", "gone", "key", "fork", "id", "hash"
KEYS, FIRSTS, LASTS, IDS, HASHES = "keys", "firsts", "lasts", [ID], [HASH]
MARKED = b"sixteen bytes it"


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


async def write_session(log, name):
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
            drafts, artifact = await write_session(log, f"{tenant}'s")
            await write_session(log, f"{tenant} gone")
            await log.fork(f"{tenant} gone", f"{tenant} heir")
            await log.forget(f"{tenant} gone")
            with mock.patch.object(outline, "MAX_SEGMENTS", 1):
                await fork_twice(log, f"{tenant}'s")
            with mock.patch.object(search, "CHUNK_WORDS", 2):
                await log.search(WORD)
            basis = {"model": "m", "whole": 1, "before": 0, "counted": 100, "limit": 200}
            used = Used(0, {"input": 100}, 1.0, None, {**basis, "prices": {"input": 1.0}})
            late = [Author().draft(Note("late")), Author().draft(used)]
            await log.append(f"{tenant}'s", late, expected=3, mark=Mark(MARKED, 0, 0))
            held = await log.locks().take(f"{tenant}'s")
            await held.attempt(uuid4())
            held.release()
    # As a process of an older version leaves them, which forgets a session without its totals.
    for table in ("accounts", "totals"):
        lost = "to_jsonb(one) || jsonb_build_object('session', 1::bigint << 41)"
        some = f"(SELECT DISTINCT ON (tenant) * FROM refold.{table} ORDER BY tenant)"  # noqa: S608
        made = f"SELECT (jsonb_populate_record(NULL::refold.{table}, {lost})).* FROM {some} AS one"  # noqa: S608
        await execute(owner, f"INSERT INTO refold.{table} {made}")
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


def flat(values: Iterable[object]) -> str:
    return repr(list(values))
