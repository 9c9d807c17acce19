"""Limits of the fold queues: concurrency and rate, over all workers together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from refold.engine.dbos.database import queue_of
from refold.errors import InvalidInput
from refold.fold.compactor import MANUAL, is_extractive, read_context
from refold.fold.job import Job


class Rate(NamedTuple):
    """How many folds may start in each period of that many seconds."""

    folds: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Bound:
    """The limits of one queue of one model."""

    at_once: int | None = None
    """How many folds all workers together make at once; None: as many as they can."""
    tenant: int | None = None
    """How many of these may belong to one tenant."""
    rate: Rate | None = None
    """How many may start in a period, over all workers."""

    def __post_init__(self) -> None:
        for value in (self.at_once, self.tenant, *(self.rate or ())):
            if value is not None and value <= 0:
                raise InvalidInput(f"A limit of {value} would let no fold through.")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one model. Its provider sees the sum of both queues.

    The queues are separate so that a request that waits for its fold is never delayed by folds that
    nobody waits for, of any tenant, even when all their slots are taken.
    """

    waiting: Bound = Bound(8, 4)
    """For folds that somebody waits for."""
    background: Bound = Bound(8, 4)
    """For folds that are made while the session continues."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the queues. Workers set them; give all workers of a pool the same."""

    model: Bounds = Bounds()
    """For each summarizing model that is not named in `models`."""
    models: Mapping[str, Bounds] = field(default_factory=dict[str, Bounds])
    log: Bounds = Bounds(Bound(), Bound())
    """For folds that no model writes."""
    worker: int = 16
    """How many folds of one queue a worker makes at once."""
    polling: float = 0.1
    """Seconds between two polls of a queue by a worker."""

    def of(self, model: str) -> Bounds:
        """The limits of a model's folds; with an empty name, of folds that no model writes."""
        return self.models.get(model, self.model) if model else self.log

    def queues(self, pool: str, model: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The queues of a model, with their limits as DBOS's options."""
        bounds = self.of(model)
        yield queue_of(pool, "waiting", model), self._options(bounds.waiting)
        yield queue_of(pool, "background", model), self._options(bounds.background)

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
    """The model that will write the fold's summary; empty if it is extractive."""
    if is_extractive(job):
        return ""
    context = read_context(job.context)
    return context.model if job.trigger == MANUAL else context.named or context.model
