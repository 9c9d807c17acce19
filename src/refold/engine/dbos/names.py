"""What things are called in DBOS's tables: workflows, queues, versions. Nothing here was said."""

from hashlib import sha256
from typing import Final, Literal
from uuid import UUID

VERSION: Final = "refold-fold-1"
"""The version of the fold's workflow. Raise it when a fold that older code began could not be
finished by newer code: workers take only folds of their own version."""
WORKFLOW: Final = "refold.fold"
SCHEMA: Final = "refold_dbos"
"""The schema of DBOS's tables, in the same database as the log or in another."""
STOPS: Final = "refold_stops"
"""The channel on which workers are told which folds were given up."""
POOL: Final = "default"
"""The workers that folds go to, unless others are named."""

Lane = Literal["waiting", "background"]
_DIGITS: Final = 32
_NO_MODEL: Final = "(log)"


def workflow_id(tenant: str, session: str, fold: UUID) -> str:
    """The id of a fold's workflow: the same fold in the same session is the same workflow."""
    return f"refold-{_digest(tenant)}-{fold}-{_digest(session)}"


def application(pool: str) -> str:
    """What DBOS calls the workers of a pool."""
    return "refold" if pool == POOL else f"refold-{pool}"


def version_of(pool: str, version: str = VERSION) -> str:
    """The version as DBOS knows it, which takes each name for one application only."""
    return version if pool == POOL else f"{version}.{pool}"


def queue_of(pool: str, lane: Lane, model: str) -> str:
    """The queue of a model's folds; of those that no model writes, where it is empty."""
    return f"{lane_of(pool, lane)}{model or _NO_MODEL}"


def model_in(pool: str, queue: str) -> str | None:
    """The model of a queue; None when it is not the pool's."""
    lanes: tuple[Lane, Lane] = ("waiting", "background")
    for lane in lanes:
        before = lane_of(pool, lane)
        if queue.startswith(before):
            model = queue.removeprefix(before)
            return "" if model == _NO_MODEL else model
    return None


def lane_of(pool: str, lane: Lane) -> str:
    """What the names of a lane's queues begin with."""
    return f"{application(pool)}/{lane}/"


def _digest(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:_DIGITS]
