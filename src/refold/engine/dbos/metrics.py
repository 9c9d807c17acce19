"""The engine's metrics and spans, by the OpenTelemetry API: nothing happens without an SDK.

No label holds a tenant, a session or any of its content: labels are queues, outcomes and kinds of
errors, which are few.
"""

import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from time import monotonic, perf_counter
from typing import Final, NamedTuple

from opentelemetry import trace
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation
from opentelemetry.trace import Span
from pydantic import JsonValue

from refold.engine.dbos.limits import model_of
from refold.engine.fold_runner import OFF_THE_LINE
from refold.engine.protocol import FORGOTTEN, Ended
from refold.engine.steps import FORGOTTEN_MEANWHILE
from refold.fold.job import Job, Steps
from refold.telemetry import Instrumented

BOUNDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1800, 3600)
"""Seconds: from a fold without a model to the longest that a fold may take."""
STALE: Final = 60.0
"""Seconds after which the last measurement of a queue is no longer reported."""
_REASON_KINDS: Final = {
    FORGOTTEN: "forgotten",
    FORGOTTEN_MEANWHILE: "forgotten",
    OFF_THE_LINE: "off_the_line",
}
_KIND: Final = re.compile(r"[A-Za-z_]\w{0,59}")


class Queued(NamedTuple):
    queue: str
    waiting: int
    running: int
    oldest: float
    """Seconds that the oldest waiting fold has waited; 0 if none waits."""


class FoldMetrics:
    """Counts and times folds. Without a `provider`, OpenTelemetry's global one is used."""

    def __init__(self, *, provider: MeterProvider | None = None) -> None:
        self._instruments = _INSTRUMENTS.of(provider)

    def started(self, trigger: str) -> None:
        self._instruments.started.add(1, {"refold.fold.trigger": trigger})

    @contextmanager
    def fold(self) -> "Generator[Making]":
        """Time the making of a fold, with a span; report to it what is made and how that ended."""
        making = Making(self._instruments)
        start = perf_counter()
        with self._instruments.span("refold.fold") as span:
            try:
                yield making
            finally:
                if making.labels:
                    span.set_attributes(making.labels)
                    self._instruments.duration.record(perf_counter() - start, making.labels)

    def taken_over(self, folds: int) -> None:
        """Count folds of dead workers that were handed over."""
        self._instruments.taken_over.add(folds)

    def fenced(self) -> None:
        """Count a worker that lost its lock and stopped, so that no fold is made twice."""
        self._instruments.fenced.add(1)

    def queues(self, states: Sequence[Queued]) -> None:
        """Set the state of the queues; those that are missing now, but were there, are empty."""
        _, before = self._instruments.queued
        names = {state.queue for state in states}
        empty = (Queued(state.queue, 0, 0, 0.0) for state in before if state.queue not in names)
        self._instruments.queued = (monotonic(), (*states, *empty))


class Making:
    """What is made, and how that ended: `abandoned` until reported otherwise."""

    def __init__(self, instruments: "_Instruments") -> None:
        self.labels: dict[str, str] = {}
        """Empty until something is made."""
        self._instruments = instruments

    def steps(self, steps: Steps, job: Job) -> Steps:
        """The job's steps, timed: those that are executed, not those found in the log."""
        self.labels |= {
            "gen_ai.request.model": model_of(job) or "none",
            "refold.fold.trigger": job.trigger,
            "refold.fold.outcome": "abandoned",
        }
        return _TimedSteps(steps, self._instruments)

    def ended(self, ended: Ended | None) -> None:
        if ended is None:
            return
        self.labels["refold.fold.outcome"] = "completed" if ended.completed else "failed"
        if ended.reason is not None:
            self.labels["error.type"] = kind_of(ended.reason)


def kind_of(reason: str) -> str:
    """The kind of a failure, never its message: `TimeoutError`, `cancelled`, `off_the_line`."""
    if reason in _REASON_KINDS:
        return _REASON_KINDS[reason]
    before, _, _ = reason.partition(":")
    return before if _KIND.fullmatch(before) else "other"


class _TimedSteps:
    def __init__(self, steps: Steps, instruments: "_Instruments") -> None:
        self._steps = steps
        self._instruments = instruments

    async def step(self, name: str, work: Callable[[], Awaitable[JsonValue]]) -> JsonValue:
        async def time_work() -> JsonValue:
            start, labels = perf_counter(), dict[str, str]()
            with self._instruments.span("refold.fold.step"):
                try:
                    return await work()
                except BaseException as error:
                    labels["error.type"] = type(error).__name__
                    raise
                finally:
                    self._instruments.step.record(perf_counter() - start, labels)

        return await self._steps.step(name, time_work)


class _Instruments:
    def __init__(self, meter: Meter) -> None:
        self.queued: tuple[float, tuple[Queued, ...]] = (0.0, ())
        self._tracer = trace.get_tracer("refold")
        self.started = meter.create_counter("refold.fold.started", "{fold}", "Folds begun.")
        self.taken_over = meter.create_counter(
            "refold.fold.taken_over", "{fold}", "Folds of dead workers, given to the living."
        )
        self.fenced = meter.create_counter(
            "refold.worker.fenced", "{worker}", "Workers that lost their lock and stopped."
        )
        self.duration = meter.create_histogram(
            "refold.fold.duration",
            "s",
            "How long folds take to be made, by how they ended.",
            explicit_bucket_boundaries_advisory=BOUNDS,
        )
        self.step = meter.create_histogram(
            "refold.fold.step.duration",
            "s",
            "How long single calls of a model take.",
            explicit_bucket_boundaries_advisory=BOUNDS,
        )
        for name, unit, description in (
            ("waiting", "{fold}", "Folds that wait."),
            ("running", "{fold}", "Folds that are made."),
            ("oldest", "s", "How long the first has waited."),
        ):
            observe = self._observe(name)
            meter.create_observable_gauge(f"refold.queue.{name}", [observe], unit, description)

    @contextmanager
    def span(self, name: str) -> Generator[Span]:
        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False
        ) as span:
            yield span

    def _observe(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            measured_at, states = self.queued
            if monotonic() - measured_at > STALE:
                return
            for state in states:
                yield Observation(getattr(state, name), {"refold.queue": state.queue})

        return observe


_INSTRUMENTS: Final = Instrumented(_Instruments)
