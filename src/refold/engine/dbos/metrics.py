"""What the engine tells of its folds, by the OpenTelemetry API: nothing, where no SDK is set up.

No label holds a tenant, a session or a word of it: queues, outcomes and kinds of errors are few.
"""

import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from time import monotonic, perf_counter
from typing import Final, NamedTuple

from opentelemetry import trace
from opentelemetry.metrics import CallbackOptions, Histogram, Meter, MeterProvider, Observation
from opentelemetry.trace import Span
from pydantic import JsonValue

from refold.engine.dbos.limits import model_of
from refold.engine.folding import OFF_THE_LINE
from refold.engine.protocol import FORGOTTEN, Ended
from refold.engine.steps import FORGOTTEN_MEANWHILE
from refold.fold.job import Job, Steps
from refold.telemetry import Instrumented

BOUNDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1800, 3600)
"""Seconds: from a fold without a model to the longest that one may take."""
STALE: Final = 60.0
"""Seconds after which a queue that nobody looked at is not told of any more."""
_SAID: Final = {
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
    """Seconds that the first of those that wait has waited; 0 where none does."""


class Measuring:
    """Counts and times folds. `provider` is where it goes; OpenTelemetry's own, without one."""

    def __init__(self, *, provider: MeterProvider | None = None) -> None:
        self._to = _INSTRUMENTS.of(provider)

    def started(self, trigger: str) -> None:
        self._to.started.add(1, {"refold.fold.trigger": trigger})

    @contextmanager
    def fold(self) -> "Generator[Making]":
        """Times the making of a fold; it is told what is made, and how that ended. A span, too."""
        making = Making(self._to)
        start = perf_counter()
        with self._to.span("refold.fold") as span:
            try:
                yield making
            finally:
                if making.labels:
                    span.set_attributes(making.labels)
                    self._to.duration.record(perf_counter() - start, making.labels)

    def taken_over(self, folds: int) -> None:
        """Folds of a dead worker were given to the living."""
        self._to.taken_over.add(folds)

    def fenced(self) -> None:
        """This worker lost its lock and stopped, so that no fold is made twice."""
        self._to.fenced.add(1)

    def queues(self, found: Sequence[Queued]) -> None:
        """How the queues stand now; those that were there before are empty."""
        _, before = self._to.queued
        there = {one.queue for one in found}
        empty = (Queued(one.queue, 0, 0, 0.0) for one in before if one.queue not in there)
        self._to.queued = (monotonic(), (*found, *empty))


class Making:
    """What is made, and how that ended: `abandoned` until somebody says so."""

    def __init__(self, to: "_Instruments") -> None:
        self.labels: dict[str, str] = {}
        """None while nothing is made."""
        self._to = to

    def steps(self, steps: Steps, job: Job) -> Steps:
        """The job's steps, timed: those that are done, not those that the log gives back."""
        self.labels |= {
            "gen_ai.request.model": model_of(job) or "none",
            "refold.fold.trigger": job.trigger,
            "refold.fold.outcome": "abandoned",
        }
        return _TimedSteps(steps, self._to)

    def ended(self, how: Ended | None) -> None:
        if how is None:
            return
        self.labels["refold.fold.outcome"] = "completed" if how.completed else "failed"
        if how.reason is not None:
            self.labels["error.type"] = kind_of(how.reason)


def kind_of(reason: str) -> str:
    """The kind of a failure, never its words: `TimeoutError`, `cancelled`, `off_the_line`."""
    if reason in _SAID:
        return _SAID[reason]
    before, _, _ = reason.partition(":")
    return before if _KIND.fullmatch(before) else "other"


class _TimedSteps:
    def __init__(self, steps: Steps, to: "_Instruments") -> None:
        self._steps = steps
        self._to = to

    async def step(self, name: str, work: Callable[[], Awaitable[JsonValue]]) -> JsonValue:
        async def timed() -> JsonValue:
            with self._to.span("refold.fold.step"), _timed(self._to.step):
                return await work()

        return await self._steps.step(name, timed)


@contextmanager
def _timed(histogram: Histogram) -> Generator[None]:
    start, labels = perf_counter(), dict[str, str]()
    try:
        yield
    except BaseException as error:
        labels["error.type"] = type(error).__name__
        raise
    finally:
        histogram.record(perf_counter() - start, labels)


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
        for name, unit, told in (
            ("waiting", "{fold}", "Folds that wait."),
            ("running", "{fold}", "Folds that are made."),
            ("oldest", "s", "How long the first has waited."),
        ):
            observe = self._observe(name)
            meter.create_observable_gauge(f"refold.queue.{name}", [observe], unit, told)

    @contextmanager
    def span(self, name: str) -> Generator[Span]:
        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False
        ) as span:
            yield span

    def _observe(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            at, found = self.queued
            if monotonic() - at > STALE:
                return
            for one in found:
                yield Observation(getattr(one, name), {"refold.queue": one.queue})

        return observe


_INSTRUMENTS: Final = Instrumented(_Instruments)
