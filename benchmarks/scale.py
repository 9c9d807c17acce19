"""What sessions take in PostgreSQL, for the page on scale: recorded ones, played through the store.

The recordings are not part of the project: REFOLD_DATA names their folder. Short sessions are the
talks with an airline's agent in `tau_gpt-4o-airline.json`; a long one is `pi_large-session.jsonl`,
hours of work on code. Both are played as an agent would have: a request record before each answer,
what it used after it, and folds where they are due.
"""

import asyncio
import sys
from collections.abc import Sequence

from benchmarks.figures import Figure
from benchmarks.replay import DATA
from benchmarks.scale_engine import folding
from benchmarks.scale_server import Server
from benchmarks.scale_sessions import Played, play_all
from benchmarks.scale_store import appending, moving
from refold.lab import Recording, read_openai_chat, read_pi
from refold.log import Entry
from refold.stores.postgres import PostgresStore
from refold.stores.postgres.migrate import migrate
from refold.testing.postgres import Cluster, programs


def figures(*, quick: bool) -> list[Figure]:
    if programs() is None:
        print("PostgreSQL is not installed: nothing is measured.", file=sys.stderr)
        return []
    if not DATA.is_dir():
        print(f"No recordings in {DATA}: name their folder in REFOLD_DATA.", file=sys.stderr)
        return []
    found = asyncio.run(_figures(quick=quick))
    return [Figure(name, value) for name, value in found.items()]


async def _figures(*, quick: bool) -> dict[str, float]:
    talks = read_openai_chat(DATA / "tau_gpt-4o-airline.json")[: 20 if quick else None]
    works = [read_pi(DATA / "pi_large-session.jsonl")] * (1 if quick else 4)
    found: dict[str, float] = {}
    with Cluster(durable=True, settings={"autovacuum": "off"}) as cluster:
        server = Server(cluster)
        found |= await _kind(server, "short", talks)
        found |= await _kind(server, "long", works)
        found |= await appending(server, rounds=2 if quick else 10)
        found |= await moving(server, "long")
        found |= await folding(server, folds=20 if quick else 100)
    return found


async def _kind(server: Server, kind: str, recordings: Sequence[Recording]) -> dict[str, float]:
    """What sessions of one kind take, each."""
    address = server.cluster.database(kind)
    await migrate(address)
    empty = server.sizes(kind)
    before, processor = server.counted(kind), server.processor()
    async with PostgresStore(address) as store:
        played = await play_all(store.log(), recordings)
    after, full = server.counted(kind), server.sizes(kind)
    processor, hot = server.processor() - processor, server.hot(kind)
    async with PostgresStore(address) as store:
        said = [await store.log().read(f"{at}") for at in range(len(recordings))]
        await store.log().search("anything")
    searched = server.sizes(kind)
    count = len(recordings)
    found = {f"{kind} {name}": value / count for name, value in _sums(played, said).items()}
    found[f"{kind} cpu"] = processor / count
    for name in ("heap", "toast", "indexes"):
        found[f"{kind} {name}"] = (full[name] - empty[name]) / count
    found[f"{kind} words"] = (searched["words"] - empty["words"]) / count
    found[f"{kind} hot"] = hot
    for name in ("wal", "xids"):
        found[f"{kind} {name}"] = (after[name] - before[name]) / count
    if kind == "long":
        folds = max(1, sum(one.folds for one in played))
        found["fold input"] = sum(one.shown for one in played) / folds
        found["fold output"] = sum(one.written for one in played) / folds
    return found


def _sums(played: Sequence[Played], said: Sequence[Sequence[Entry]]) -> dict[str, float]:
    return {
        "entries": sum(map(len, said)),
        "text": sum(len(one.body) for entries in said for one in entries),
        "appends": sum(one.appends for one in played),
        "reads": sum(one.reads for one in played),
        "folds": sum(one.folds for one in played),
    }
