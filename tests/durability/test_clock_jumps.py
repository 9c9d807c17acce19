"""The wall clock of the service jumps, forward and back, while it runs."""

# ruff: noqa: F401 - fixtures are imported

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from gateway_world import CHAT, body_of
from service_processes import DAY, HOUR, MODEL, YEAR, SlowModel, refold_over, talk

from refold.log import CODEC, Author, Message, Opened
from refold.service.quotas import EVERY
from refold.stores import open_store

JUMPS = [HOUR, DAY, YEAR, -HOUR, -DAY, -YEAR, 0]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'refold.db'}"
    return request.getfixturevalue("dbos_address")


@pytest.fixture
def clock(tmp_path):
    """The file that says by how many seconds the service's clock is ahead."""
    file = tmp_path / "clock"
    file.write_text("0")
    return file


async def named(client, session, text):
    body = body_of(CHAT, text) | {"model": MODEL}
    return await client.post(CHAT, json=body, headers={"Refold-Session": session})


async def test_a_service_goes_on_whatever_the_clock_says(store, clock, tmp_path):
    """Requests, folds, names and the order of the log."""
    async with refold_over(tmp_path, store, SlowModel(), clock=clock) as refold:
        _, client = await refold.serve()
        messages, session = await talk(client, 2)
        for jump in JUMPS:
            clock.write_text(str(jump))
            messages, same = await talk(client, 1, messages)
            assert same == session, jump
        folds = []
        for jump in (YEAR, -DAY):
            clock.write_text(str(jump))
            made = await client.post(f"/api/v1/sessions/{session}/folds", json={})
            folds.append((made.status_code, made.json().get("state")))
            messages, _ = await talk(client, 2, messages)
        assert folds == [(200, "completed")] * 2
        # A name that was forgotten while the clock was ahead is not closed until then.
        assert (await named(client, "support", "Hello")).status_code == 200
        clock.write_text(str(YEAR))
        assert (await client.delete("/api/v1/sessions/support")).status_code == 200
        clock.write_text("0")
        assert (await named(client, "support", "Hello again")).status_code == 200
        # And one that was begun again goes on when the clock is set back behind that.
        clock.write_text(str(-DAY))
        answer = await named(client, "support", "Hello once more")
        assert (answer.status_code, answer.headers["refold-managed"]) == (200, "yes")
    async with open_store(store) as opened:
        log = opened.log()
        entries = await log.read(session)
        assert [entry.seq for entry in entries] == [*range(1, len(entries) + 1)]
        said = [CODEC.decode(entry) for entry in entries]
        texts = [json.loads(one.payload)["content"] for one in said if isinstance(one, Message)]
        assert texts == messages, "in the order in which they were sent, whatever their times"
        assert max(entry.at for entry in entries) - min(entry.at for entry in entries) > YEAR * 1000
        assert len(await log.read("support")) > 1


async def test_a_quota_is_not_renewed_by_a_clock_that_is_set_back(store, clock, tmp_path):
    settings = ["[serve.limits]", "day_tokens = 40"]  # an answer takes 15
    async with refold_over(tmp_path, store, SlowModel(), clock=clock, settings=settings) as refold:
        _, client = await refold.serve()
        await talk(client, 3)
        assert (await named(client, "one", "too much")).status_code == 429
        clock.write_text(str(DAY))
        assert (await named(client, "two", "another day")).status_code == 200
        await asyncio.sleep(1.5 * EVERY)  # the processes have told each other what they used
        clock.write_text("0")
        assert (await named(client, "three", "the same day")).status_code == 429


_AGENT = """
import asyncio, sys
from pathlib import Path
from refold_child import shift_clock

shift_clock(Path(sys.argv[1]))
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from refold import Refold

async def main():
    async with Refold(sys.argv[2], profile="cowagent", summarizer=None) as memory:
        await Agent(TestModel(), capabilities=[memory]).run("Hello", conversation_id=sys.argv[3])

asyncio.run(main())
"""


async def test_retention_forgets_nothing_because_the_clock_jumped(clock, tmp_path):
    address = f"sqlite:///{tmp_path / 'refold.db'}"
    async with open_store(address) as store:
        for name, days in (("month", 29), ("week", 7), ("yesterday", 1)):
            author = Author(lambda days=days: datetime.now(UTC) - timedelta(days=days))
            opened = author.draft(Opened("pydantic-ai", "cowagent"))
            await store.log().append(name, [opened], expected=0)
    clock.write_text(str(YEAR))
    for name in ("first", "second"):
        await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", _AGENT, str(clock), address, name],
            check=True,
            cwd=Path(__file__).parent,
        )
    async with open_store(address) as store:
        found = {one.session for one in (await store.log().sessions()).sessions}
    assert found == {"month", "week", "yesterday", "first", "second"}
