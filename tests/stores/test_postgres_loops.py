"""A store belongs to the event loop that opened it, and to the next one when that has ended."""

import asyncio
import threading

import pytest

from refold.errors import InvalidInput
from refold.log import Author, Note, Opened
from refold.stores.postgres import PostgresStore


def test_a_store_outlives_its_event_loop(postgres_address):
    store, author = PostgresStore(postgres_address), Author()

    async def begin():
        await store.open()
        await store.log().append("s", [author.draft(Opened("f", "p"))], expected=0)
        held = await store.log().locks().take("s")
        assert held is not None
        held.release()

    async def go_on():
        held = await store.log().locks().take("s")
        assert held is not None, "what the first loop held is free"
        done = await store.log().append("s", [author.draft(Note("x"))], expected=1)
        held.release()
        await store.close()
        return done.first

    asyncio.run(begin())
    assert asyncio.run(go_on()) == 2


async def test_two_loops_at_once_are_told_apart(postgres_address):
    said = []

    def elsewhere():
        with pytest.raises(InvalidInput, match="another event loop") as error:
            asyncio.run(store.log().sessions())
        said.append(error.value)

    async with PostgresStore(postgres_address) as store:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.to_thread(thread.join)
        assert (await store.log().sessions()).sessions == ()
    assert said
