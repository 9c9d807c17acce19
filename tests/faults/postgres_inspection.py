"""Looking at a store in PostgreSQL from outside: what must hold in it, whatever happened before."""

import json
from collections import Counter

import psycopg

from refold.log import Entry, Log, Message
from refold.log.outline import CONTROL_KINDS, replay


async def entries_of(log: Log) -> dict[str, list[Entry]]:
    """Every session as the log reads it."""
    listed = await log.sessions(limit=1000)
    return {one.session: await log.read(one.session) for one in listed.sessions}


async def check_sessions(log: Log) -> None:
    """No gaps, no id twice, and what is kept beside the entries agrees with them."""
    for info in (await log.sessions(limit=1000)).sessions:
        entries = await log.read(info.session)
        seqs = [entry.seq for entry in entries]
        assert seqs == list(range(1, info.entries + 1)), (info, seqs[-5:])
        assert len({entry.id for entry in entries}) == len(entries)
        assert info.messages == sum(entry.kind == Message.KIND for entry in entries)
        visible = await log.visible(info.session)
        assert visible.info == info
        assert visible.outline == replay(e for e in entries if e.kind in CONTROL_KINDS)


def check_tables(address: str) -> None:
    """What the log does not show: no row beside those it reads, each artifact counted rightly."""
    with psycopg.connect(address) as db:
        heads = dict(db.execute("SELECT key, head FROM refold.sessions").fetchall())
        rows = db.execute("SELECT session, count(*), max(seq) FROM refold.entries GROUP BY session")
        assert {key: (count, last) for key, count, last in rows} == {
            key: (head, head) for key, head in heads.items()
        }
        used: Counter[str] = Counter()
        for (column,) in db.execute(
            "SELECT artifacts FROM refold.entries WHERE artifacts IS NOT NULL"
        ):
            holes, attached = json.loads(column)
            used.update([*(hash_ for _, _, hash_, _ in holes), *attached])
        counted = db.execute("SELECT hash, uses FROM refold.artifacts").fetchall()
        assert {bytes(hash_).decode(): uses for hash_, uses in counted} == used
