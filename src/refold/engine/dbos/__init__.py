"""Folds on any number of worker processes, queued and recovered by DBOS on PostgreSQL.

`DbosEngine` asks for folds, in any process; `Worker` makes them, one in a process. What a fold did
is in the log, as with every engine. Which folds wait, and who makes them, is in tables of our own;
DBOS, used by its public API alone, delivers them within the limits of its queues.
"""

from refold.errors import InvalidInput as _InvalidInput

try:
    import dbos
    import psycopg
except ModuleNotFoundError as error:
    raise _InvalidInput(
        "Folds on workers need packages that are not installed.", 'pip install "refold[dbos]"'
    ) from error

from refold.engine.dbos.database import SCHEMA, VERSION, prepare
from refold.engine.dbos.engine import DbosEngine
from refold.engine.dbos.limits import Bound, Bounds, Limits, Rate
from refold.engine.dbos.queue import waiting_folds
from refold.engine.dbos.worker import Worker

__all__ = [
    "SCHEMA",
    "VERSION",
    "Bound",
    "Bounds",
    "DbosEngine",
    "Limits",
    "Rate",
    "Worker",
    "prepare",
    "waiting_folds",
]

del dbos, psycopg
