"""How quickly the store appends, and a partition is split."""

import asyncio
import json
import re
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, process_time

import psycopg

from benchmarks.scale_server import Server
from refold.log import Author, Log, Message, Opened
from refold.stores.postgres import Pool, PostgresStore
from refold.stores.postgres.migrate import migrate

RUNBOOK = Path(__file__).parents[1] / "docs" / "gateway" / "runbook.md"
BODY = json.dumps({"role": "user", "content": Random(1).randbytes(240).hex()}).encode()
EACH = 20
BLOCKS = 5
_SPLIT = re.compile(r"cat > split.sql <<'SQL'\n(.*?)\\gexec\nSQL$", re.DOTALL | re.MULTILINE)


async def appending(server: Server, rounds: int) -> dict[str, float]:
    """The best of some rounds: whatever else the machine does can only slow them down."""
    address = server.cluster.database("appends")
    await migrate(address)
    async with PostgresStore(address, pool=Pool(min_size=32, max_size=32)) as store:
        log = store.log()
        author = Author()
        for at in range(32):
            opened = [author.draft(Opened("openai-chat", "balanced"))]
            await log.append(f"{at}", opened, expected=0)
        await _block(log, author, 32)
        found = [await _round(server, log, author) for _ in range(rounds)]
    best = {name: min(one[name] for one in found) for name in found[0]}
    return best | {"append rate": max(one["append rate"] for one in found)}


async def _round(server: Server, log: Log, author: Author) -> dict[str, float]:
    eight = [await _block(log, author, 8) for _ in range(4)]
    began, server_cpu, client_cpu = perf_counter(), server.processor(), process_time()
    for _ in range(BLOCKS):
        await _block(log, author, 32)
    count = BLOCKS * 32 * EACH
    return {
        "append seconds": median(one for block in eight for one in block),
        "append rate": count / (perf_counter() - began),
        "server cpu": (server.processor() - server_cpu) / count * 1e6,
        "client cpu": (process_time() - client_cpu) / count * 1e6,
    }


async def _block(log: Log, author: Author, sessions: int) -> list[float]:
    """Appends to so many sessions at once; the seconds that each took."""
    times: list[float] = []

    async def talk(name: str) -> None:
        for _ in range(EACH):
            draft = author.draft(Message(BODY))
            start = perf_counter()
            await log.append(name, [draft], expected=None)
            times.append(perf_counter() - start)

    await asyncio.gather(*(talk(f"{at}") for at in range(sessions)))
    return times


async def moving(server: Server, database: str) -> dict[str, float]:
    """Split the fullest partitions as the runbook does; the entries a second, at best."""
    found = _SPLIT.search(RUNBOOK.read_text("utf-8"))
    assert found is not None
    script = found[1].rpartition("$$;")[0] + "$$;"
    with psycopg.connect(server.cluster.address(database), autocommit=True) as db:
        parts = db.execute(
            "SELECT tableoid::regclass::text, count(*) FROM refold.entries"
            " GROUP BY 1 ORDER BY 2 DESC LIMIT 3"
        ).fetchall()
        db.execute(script.encode())
        rates: list[float] = []
        for name, count in parts:
            start = perf_counter()
            db.execute("CALL pg_temp.split('refold.entries', %s::text::regclass)", (name,))
            rates.append(count / (perf_counter() - start))
        return {"moved": max(rates)}
