"""How many folds are made at once, and how many a period: by all workers together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from refold.engine.dbos.database import Lane, queue_of
from refold.errors import InvalidInput
from refold.fold.compactor import MANUAL, is_extractive, read_context
from refold.fold.job import Job

_PRIMARY: Final = "primary"  # a summarizer's name for the session's own model


class Rate(NamedTuple):
    """So many folds may begin in each period of so many seconds."""

    folds: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Bound:
    """The limits of one lane of one model."""

    at_once: int | None = None
    """How many folds all workers together make at once; None: as many as they can."""
    tenant: int | None = None
    """How many of these may be one tenant's."""
    rate: Rate | None = None
    """How many may begin in a period, over all workers."""

    def __post_init__(self) -> None:
        """Refuse what would let nothing through."""
        for value in (self.at_once, self.tenant, *(self.rate or ())):
            if value is not None and value <= 0:
                raise InvalidInput(f"A limit of {value} would let no fold through.")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one model. Its provider sees the sum of both lanes.

    The lanes are apart so that a request that waits for its fold never stands behind work that
    nobody waits for, whosever that is, and finds a place free when all others are taken.
    """

    waiting: Bound = Bound(8, 4)
    """For folds that somebody waits for."""
    background: Bound = Bound(8, 4)
    """For folds that are made while the session goes on."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the queues let through. Workers set it; all workers of a pool are given the same."""

    model: Bounds = Bounds()
    """For each summarizing model that is not named in `models`."""
    models: Mapping[str, Bounds] = field(default_factory=dict[str, Bounds])
    log: Bounds = Bounds(Bound(), Bound())
    """For folds that no model writes."""
    worker: int = 16
    """How many folds of one queue a worker makes at once."""
    polling: float = 0.1
    """Seconds between two looks of a worker at a queue."""

    def of(self, model: str) -> Bounds:
        """The limits of a model's folds; of those that no model writes, where it is empty."""
        return self.models.get(model, self.model) if model else self.log

    def queues(self, pool: str, model: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The queues of a model, and how DBOS is told of their limits."""
        bounds = self.of(model)
        lanes: tuple[tuple[Lane, Bound], ...] = (
            ("waiting", bounds.waiting),
            ("background", bounds.background),
        )
        for lane, bound in lanes:
            yield queue_of(pool, lane, model), self._options(bound)

    def _options(self, bound: Bound) -> dict[str, Any]:
        rate = bound.rate
        return {
            "global_concurrency": bound.at_once,
            "partition_concurrency": bound.tenant,
            "worker_concurrency": min(self.worker, bound.at_once or self.worker),
            "limiter": None if rate is None else {"limit": rate.folds, "period": rate.seconds},
            "polling_interval_sec": self.polling,
        }


def model_of(job: Job) -> str:
    """The model that will write the fold's summary; empty where the log does."""
    if is_extractive(job):
        return ""
    given = read_context(job.context)
    auto = given.summarizer if given.summarizer != _PRIMARY else ""
    return given.model if job.trigger == MANUAL else auto or given.model
