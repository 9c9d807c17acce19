"""Folds that call no model: made where they are needed, on PostgreSQL, without a worker."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from itertools import count
from uuid import uuid4

import httpx2
import pytest
from forked_serve import start_serve

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from gateway_world import CHAT, served

from refold.engine.dbos import DbosEngine, engine
from refold.fold.compactor import context, from_the_log
from refold.fold.job import Job
from refold.log import CODEC, Author, FoldCompleted, FoldStarted, Message, Opened, Requested, Span
from refold.models.making import makes
from refold.stores.postgres import PostgresStore
from refold.testing.upstream import Reply, ScriptedUpstream
from refold.view import Fold

LIMIT = 12_000
TURNS = 26
PATIENCE = 400
SAID = "Read src/parser.py again, since line 40 is not what the tests say of it. " * 30
LOG_WRITES = context(Fold(writer="log", wait=1), {}, model="some-model")


@pytest.fixture
async def log(dbos_address):
    async with PostgresStore(dbos_address) as store:
        yield store.log()


async def values_of(log, session):
    entries = await log.read(session, Span(1, await log.head(session)))
    return [CODEC.decode(entry) for entry in entries]


async def thought_about(log):
    """The client takes longer over an answer than a fold takes to be made."""
    for _ in range(PATIENCE):
        if not (await log.outlined("s")).outline.running:
            return
        await asyncio.sleep(0.05)
    pytest.fail("A fold was begun and is not made: it waits for a worker.")


@asynccontextmanager
async def serving(store, upstream, folder):
    """A client of a `refold serve` that makes no other folds than it needs itself."""
    settings = {"REFOLD_BUDGET": str(LIMIT), "REFOLD_FOLD__WAIT": "1", "HOME": str(folder)}
    process = await start_serve(
        *("--port", "0", "--json", "--no-worker"),
        *("--store", store, "--upstream", f"{upstream}/v1"),
        cwd=folder,
        env={**os.environ, **settings},
    )
    try:
        address = json.loads(await process.stdout.readline())["address"]
        async with httpx2.AsyncClient(base_url=address, timeout=60) as client:
            yield client
    finally:
        process.terminate()
        await process.wait()


async def test_two_gateways_fold_in_the_background_without_a_worker(log, dbos_address, tmp_path):
    """Tokens are estimated here, the limit is small, and no process takes folds from a queue."""
    upstream = ScriptedUpstream(lambda _: Reply("Done. " * 60, usage=None))
    async with (
        served(upstream) as base,
        serving(dbos_address, base, tmp_path) as one,
        serving(dbos_address, base, tmp_path) as other,
    ):
        messages = []
        for turn in range(TURNS):
            messages.append({"role": "user", "content": f"Turn {turn}. {SAID}"})
            body = {"model": "nobody-knows-it", "messages": messages}
            client = one if turn % 2 else other
            answer = await client.post(CHAT, json=body, headers={"Refold-Session": "s"})
            assert answer.status_code == 200, answer.text
            messages.append(answer.json()["choices"][0]["message"])
            await thought_about(log)
    values = await values_of(log, "s")
    started = [one.trigger for one in values if isinstance(one, FoldStarted)]
    assert started
    assert {*started} == {"soft"}  # so no request has waited
    completed = [one for one in values if isinstance(one, FoldCompleted)]
    assert len(completed) >= len(started) - 1  # the newest may be under way
    plans = [one.plan for one in values if isinstance(one, Requested)]
    assert len(plans) == TURNS
    assert [one for one in plans if one.get("cause") == "limit"] == []


async def begun(log, session="s"):
    """A session with a few messages, and a fold that could be made of them."""
    author = Author()
    payloads = [b'{"role": "user", "content": "%d: look at src/a.py"}' % n for n in range(8)]
    values = [Opened("openai-chat", "balanced"), *map(Message, payloads)]
    await log.append(session, [author.draft(value) for value in values], expected=0)
    return Job(session, uuid4(), (Span(2, 6),), "soft", context=LOG_WRITES)


def engine_of(log, address, extract=None):
    return DbosEngine(log, address, extract=extract or makes(log, from_the_log))


async def ends_of(log, session="s"):
    return [one for one in await values_of(log, session) if isinstance(one, FoldCompleted)]


async def test_a_fold_is_made_by_the_engine_that_began_it(log, dbos_address):
    job = await begun(log)
    async with engine_of(log, dbos_address) as engine:
        assert await engine.start(job)
        ended = await engine.wait("s", job.fold, 20)
        assert ended is not None
        assert ended.completed
    assert len(await ends_of(log)) == 1


async def test_a_fold_whose_process_died_is_made_by_whoever_waits_for_it(log, dbos_address):
    job = await begun(log)

    async def never(_job, _steps):
        await asyncio.Event().wait()

    dead = engine_of(log, dbos_address, never)
    assert await dead.start(job)
    async with engine_of(log, dbos_address) as living:
        ended = await living.wait("s", job.fold, 20)
        assert ended is not None
        assert ended.completed
    await dead.cancel("s", job.fold)
    await dead.close()
    assert len(await ends_of(log)) == 1


async def test_a_session_that_is_opened_finishes_what_a_dead_process_began(log, dbos_address):
    job = await begun(log)

    async def never(_job, _steps):
        await asyncio.Event().wait()

    dead = engine_of(log, dbos_address, never)
    assert await dead.start(job)
    async with engine_of(log, dbos_address) as living:
        (ended,) = await living.recover("s")
        assert ended.completed
    await dead.cancel("s", job.fold)
    await dead.close()


async def test_two_engines_that_make_the_same_fold_leave_one_end(log, dbos_address):
    both, made = asyncio.Barrier(2), count()

    async def together(job, steps):
        if next(made) < both.parties:  # who looks just before the end is there makes it once more
            await both.wait()
        return await makes(log, from_the_log)(job, steps)

    job = await begun(log)
    one, other = engine_of(log, dbos_address, together), engine_of(log, dbos_address, together)
    async with one, other:
        assert await one.start(job)
        assert await other.start(job)
        ends = await asyncio.gather(*(each.wait("s", job.fold, 20) for each in (one, other)))
    assert [end is not None and end.completed for end in ends] == [True, True]
    assert len(await ends_of(log)) == 1


async def test_a_fold_that_is_given_up_stays_given_up(log, dbos_address):
    job = await begun(log)
    making = asyncio.Event()

    async def never(_job, _steps):
        making.set()
        await asyncio.Event().wait()

    async with engine_of(log, dbos_address, never) as engine:
        assert await engine.start(job)
        await making.wait()
        ended = await engine.cancel("s", job.fold)
        assert ended is not None
        assert not ended.completed
    assert await ends_of(log) == []


async def test_an_engine_that_is_closed_finishes_what_it_makes(log, dbos_address):
    job = await begun(log)
    engine = engine_of(log, dbos_address)
    assert await engine.start(job)
    await engine.close()
    assert len(await ends_of(log)) == 1


async def test_closing_waits_for_many_folds_as_long_as_they_come_to_an_end(monkeypatch):
    monkeypatch.setattr(engine, "STOP_TIMEOUT", 0.5)
    made = []

    async def carry_out(job):
        await (asyncio.Event().wait() if job.session == "hangs" else asyncio.sleep(0.1))
        made.append(job.session)

    folds = engine.ExtractiveFolds(carry_out)
    sessions = [f"s{nth}" for nth in range(20)]  # they take a second
    for session in [*sessions, "hangs"]:
        folds.start(Job(session, uuid4(), (Span(2, 6),), "soft"))
    await folds.close()
    assert sorted(made) == sorted(sessions)
