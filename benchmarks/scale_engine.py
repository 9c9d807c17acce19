"""What a fold takes in the engine's own tables, and how many a worker makes."""

import asyncio
from time import perf_counter
from uuid import uuid4

from pydantic import JsonValue

from benchmarks.scale_server import Server
from refold.engine.dbos import VERSION, DbosEngine, Limits, Worker, prepare
from refold.engine.dbos.database import POOL
from refold.engine.dbos.queue import FoldQueue
from refold.fold.job import Job, Steps
from refold.log import Author, Log, Message, Opened, Span
from refold.stores import MemoryStore

SAID = 4
ROUNDS = 3


async def folding(server: Server, folds: int) -> dict[str, float]:
    """The log is in memory here, so that all that the server writes is the engine's."""
    address = server.cluster.database("engine")
    await prepare(address)
    log = MemoryStore().log()
    engine = DbosEngine(log, address)
    async with Worker(address, lambda _: log, lambda _: _make):
        first = await _job(log, "first")
        await engine.start(first)
        await engine.wait("first", first.fold)
        before = server.counted("engine")
        took = [await _made(engine, log, nth, folds) for nth in range(ROUNDS)]
    await engine.close()
    queue = FoldQueue(address, Limits(), POOL, VERSION)
    await queue.discard(await queue.ended())
    await queue.close()
    written = server.counted("engine")["wal"] - before["wal"]
    return {"fold wal": written / folds / ROUNDS, "fold rate": folds / min(took)}


async def _made(engine: DbosEngine, log: Log, nth: int, folds: int) -> float:
    """The seconds from asking for so many folds to the end of the last."""
    jobs = [await _job(log, f"{nth} {at}") for at in range(folds)]
    start = perf_counter()
    await asyncio.gather(*map(engine.start, jobs))
    ended = await asyncio.gather(*(engine.wait(job.session, job.fold) for job in jobs))
    assert all(one is not None and one.completed for one in ended)
    return perf_counter() - start


async def _job(log: Log, session: str) -> Job:
    author = Author()
    values = [Opened("openai-chat", "balanced"), *([Message(b"{}")] * SAID)]
    await log.append(session, [author.draft(value) for value in values], expected=0)
    return Job(session, uuid4(), (Span(2, SAID),), "soft")


async def _make(job: Job, steps: Steps) -> JsonValue:
    async def answer() -> JsonValue:
        return {"text": job.session}

    return await steps.step("summary", answer)
