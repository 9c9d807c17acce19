"""What a PostgreSQL server says of itself: sizes, counters, processor time."""

import os
from pathlib import Path
from typing import Any

import psycopg

from refold.testing.postgres import Cluster

_SIZES = """
SELECT coalesce(sum(pg_relation_size(oid)) FILTER (WHERE NOT words), 0),
       coalesce(sum(pg_total_relation_size(nullif(reltoastrelid, 0))) FILTER (WHERE NOT words), 0),
       coalesce(sum(pg_indexes_size(oid)) FILTER (WHERE NOT words), 0),
       coalesce(sum(pg_total_relation_size(oid)) FILTER (WHERE words), 0)
FROM (SELECT oid, reltoastrelid, relname ~ '^words' AS words FROM pg_class
      WHERE relkind = 'r' AND relnamespace = 'refold'::regnamespace) AS tables
"""
_COUNTED = "SELECT pg_current_wal_lsn() - '0/0', txid_snapshot_xmax(txid_current_snapshot())"
_HOT = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'sessions'"


class Server:
    """A cluster that is measured."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def sizes(self, database: str) -> dict[str, int]:
        """Bytes of tables, TOAST, indexes, and of the word index with all of its own."""
        found = self.ask(database, _SIZES)
        return dict(zip(("heap", "toast", "indexes", "words"), map(int, found), strict=True))

    def counted(self, database: str) -> dict[str, int]:
        """Bytes of write-ahead log, and transaction ids, since the server was made."""
        wal, xids = self.ask(database, _COUNTED)
        return {"wal": int(wal), "xids": int(xids)}

    def hot(self, database: str) -> float:
        """Of the updates of `sessions`, the share that touched no index."""
        updated, hot = self.ask(database, _HOT)
        return hot / max(1, updated)

    def processor(self) -> float:
        """Seconds of processor time that the server's processes took so far."""
        lines = (self.cluster.data / "postmaster.pid").read_text().splitlines()
        first = int(lines[0])
        mine = [one for one in _processes() if first in one[:2]]
        return sum(one[2] for one in mine) / os.sysconf("SC_CLK_TCK")

    def ask(self, database: str, statement: str) -> tuple[Any, ...]:
        with psycopg.connect(self.cluster.address(database)) as db:
            return db.execute(statement.encode()).fetchone() or ()


def _processes() -> list[tuple[int, int, int]]:
    """Of each process: its id, its parent's, and its ticks, with those of its dead children."""
    found: list[tuple[int, int, int]] = []
    for one in Path("/proc").glob("[0-9]*/stat"):
        try:
            said = one.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        found.append((int(one.parent.name), int(said[1]), sum(map(int, said[11:15]))))
    return found
