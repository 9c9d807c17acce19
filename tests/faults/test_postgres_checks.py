"""What is looked for after kills and restarts is found where it is planted."""

import asyncio

import postgres_writers
import psycopg
import pytest
import writers
from postgres_inspection import check_sessions, check_tables

from refold.errors import StoreCorrupt

WRITER = 5
PLANTED = [
    "DELETE FROM refold.entries WHERE seq = 2",
    "DELETE FROM refold.entries WHERE seq = 1",
    "UPDATE refold.entries SET seq = seq + 1 WHERE seq = (SELECT max(seq) FROM refold.entries)",
    "UPDATE refold.sessions SET head = head - 1",
    "UPDATE refold.sessions SET messages = messages + 1",
    "UPDATE refold.sessions SET outline = (SELECT outline FROM refold.sessions LIMIT 1)",
    "UPDATE refold.artifacts SET uses = uses + 1",
    "DELETE FROM refold.artifacts",
]


@pytest.fixture(scope="module")
def model(postgres):
    """A store with some operations of one writer in it."""
    name = "refold_checked"
    address = postgres.database(name, like="refold_empty")

    async def write():
        async with postgres_writers.store_at(address) as store:
            for number in range(25):
                for append in writers.operation(WRITER, number):
                    if append.session != writers.SHARED:
                        expected = None if number else 0
                        await store.log().append(append.session, append.drafts, expected=expected)

    asyncio.run(write())
    yield name
    postgres.drop(name)


@pytest.fixture
def written(postgres, model):
    """The owner's address of a copy of it."""
    yield postgres.database("refold_planted", like=model)
    postgres.drop("refold_planted")


async def _check(address):
    async with postgres_writers.store_at(address) as store:
        await check_sessions(store.log())
    check_tables(address)


async def test_what_was_written_in_peace_is_sound(written):
    await _check(written)


@pytest.mark.parametrize("statement", PLANTED)
async def test_what_is_wrong_is_found(written, statement):
    with psycopg.connect(written) as db:
        assert db.execute(statement).rowcount > 0
    with pytest.raises((AssertionError, StoreCorrupt, KeyError)):
        await _check(written)
