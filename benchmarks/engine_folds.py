"""Folds on DBOS: a worker whose summarizer answers at once, and who asks for folds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.synchronize import Event
from typing import Any
from uuid import uuid4

from pydantic import JsonValue

from benchmarks.log_work import BODY
from refold.engine.dbos import Bound, Bounds, DbosEngine, Limits, Worker
from refold.engine.dbos import prepare as prepare_engine
from refold.fold.compactor import context
from refold.fold.job import Job, Make, Steps
from refold.log import Author, FoldCompleted, Log, Message, Opened, Span
from refold.stores.postgres import PostgresStore
from refold.stores.postgres.migrate import migrate
from refold.view.profiles import BALANCED

ROLE = "app"
MODEL = "bench:instant"
MESSAGES = 6
LIMITS = Limits(model=Bounds(Bound(), Bound()))
"""Nothing but the machine holds them back."""
_SUMMARY: JsonValue = {"text": "So far, the work went on as planned. " * 10}


async def prepare(address: str) -> None:
    """Make the tables of the log and of the engine."""
    await migrate(address, roles=[ROLE])
    await prepare_engine(address, roles=[ROLE])


def queues(pool: str) -> dict[str, dict[str, Any]]:
    """The queues that a worker looks at, and what DBOS is told of their limits."""
    return dict(one for model in ("", MODEL) for one in LIMITS.queues(pool, model))


def session(at: int) -> str:
    return f"session {at}"


def making(_: Log) -> Make:
    """Makes summaries that cost nothing but their record."""

    async def instant() -> JsonValue:
        return _SUMMARY

    async def make(_: Job, steps: Steps) -> JsonValue:
        return await steps.step("summary", instant)

    return make


def work(address: str, executor: str, ready: Event) -> None:
    """A worker's whole life; it is killed in the end."""

    async def live() -> None:
        async with (
            PostgresStore(address) as store,
            Worker(address, store.log, making, limits=LIMITS, models=[MODEL], executor=executor),
        ):
            ready.set()
            await asyncio.Event().wait()

    asyncio.run(live())


@asynccontextmanager
async def asking(address: str, count: int) -> AsyncIterator[Any]:
    """Sessions that wait to be folded, and who asks for their folds."""
    author = Author()
    said = [Opened("openai-chat", "balanced"), *[Message(BODY)] * MESSAGES]
    async with PostgresStore(address) as store:
        log = store.log()
        for at in range(count):
            await log.append(session(at), [author.draft(value) for value in said], expected=0)
        engine = DbosEngine(log, address, limits=LIMITS)
        known = context(BALANCED.fold, {}, summarizer=MODEL)

        async def ask(name: str) -> None:
            # As a session's host knows them, who has just followed it up to its head.
            spans, head = (Span(2, MESSAGES),), len(said)
            job = Job(name, uuid4(), spans, "soft", None, known, head, spans)
            assert await engine.start(job)

        yield ask
        await engine.close()


async def check(address: str, count: int) -> None:
    """Each session has its fold."""
    async with PostgresStore(address) as store:
        log = store.log()
        for at in range(count):
            entries = await log.read(session(at))
            assert sum(one.kind == FoldCompleted.KIND for one in entries) == 1
