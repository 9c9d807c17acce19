"""What things are called in DBOS's tables: applications, queues, versions."""

from hashlib import sha256
from typing import Final, Literal

VERSION: Final = "refold-fold-1"
"""The version of the fold's workflow. Raise it when a fold that older code began could not be
finished by newer code: workers take only folds of their own version."""
WORKFLOW: Final = "refold.fold"
SCHEMA: Final = "refold_dbos"
"""The schema of DBOS's tables, in the same database as the log or in another."""
OWN_SCHEMA: Final = "refold_engine"
"""The schema of the engine's own tables, beside DBOS's."""
POOL: Final = "default"
"""The workers that folds go to, unless others are named."""

Lane = Literal["waiting", "background"]
_DIGITS: Final = 32
_NO_MODEL: Final = "(log)"


def application(pool: str) -> str:
    """What DBOS calls the workers of a pool."""
    return "refold" if pool == POOL else f"refold-{pool}"


def version_of(pool: str, version: str = VERSION) -> str:
    """The version as DBOS knows it, which takes each name for one application only."""
    return version if pool == POOL else f"{version}.{pool}"


def partition_of(tenant: str) -> str:
    """The part of a queue that is a tenant's. DBOS's tables hold no name of a tenant."""
    return sha256(tenant.encode()).hexdigest()[:_DIGITS]


def queue_of(pool: str, lane: Lane, model: str) -> str:
    """The queue of a model's folds; of those that no model writes, where it is empty."""
    return f"{lane_of(pool, lane)}{model or _NO_MODEL}"


def model_in(pool: str, queue: str) -> str | None:
    """The model of a queue; None when it is not the pool's."""
    lanes: tuple[Lane, Lane] = ("waiting", "background")
    for lane in lanes:
        prefix = lane_of(pool, lane)
        if queue.startswith(prefix):
            model = queue.removeprefix(prefix)
            return "" if model == _NO_MODEL else model
    return None


def lane_of(pool: str, lane: Lane) -> str:
    """What the names of a lane's queues begin with."""
    return f"{application(pool)}/{lane}/"
