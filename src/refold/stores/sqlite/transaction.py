"""What the functions of this package work in: a connection, and whose rows they may touch."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field

from refold.stores.reach import Reach
from refold.stores.sqlite.rows import KnownSessions


@dataclass(slots=True)
class Reading:
    """A transaction that reads one tenant's rows."""

    db: sqlite3.Connection
    tenant: str


@dataclass(slots=True)
class Writing(Reading):
    """A transaction that may also write them."""

    known: KnownSessions
    now: int
    reach: Reach
    uploads: Mapping[str, int] = field(default_factory=dict[str, int])
    """Artifacts whose data was uploaded before, by their hash."""
