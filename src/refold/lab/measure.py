"""Replays of sessions under profiles and baselines, in parallel, and their totals."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from math import inf
from multiprocessing.sharedctypes import Synchronized
from types import ModuleType
from typing import NamedTuple

from refold.errors import InvalidInput, RefoldError
from refold.lab.economics import Account
from refold.lab.messages import Reader, o200k
from refold.lab.metrics import Share, bootstrapped
from refold.lab.policies import Settings, baselines, timed
from refold.lab.replay import Mark, Policy, play
from refold.lab.report import Case, Measure, Meter, Row, pooled_rows
from refold.lab.session_policy import SessionPolicy, placeholder_summary
from refold.lab.trace import Trace
from refold.models import counter_for
from refold.models.experience import Setup
from refold.models.receipt import Receipt
from refold.transcripts.recording import FORMAT
from refold.view.budget import Budget
from refold.view.profiles import Profile
from refold.view.view_input import describe_row, weight
from refold.wire import wire_for

EVERYTHING = "none"
"""The policy that the others are measured against: it sends everything."""
MIN_RETAINED = 0.9
"""The share of old names that a policy must retain to be called the best."""

_WORTH_A_PROCESS = 400  # messages: fewer are replayed sooner than a process starts
_MAX_PROCESSES = 8
_POLL = 0.25  # seconds between looks at how far the processes are
_SAFE_PATH = "PYTHONSAFEPATH"
_SAME = 0.005


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one policy made of one session."""

    session: int
    """Which of the cases."""
    policy: str
    row: Row | None = None
    """The figures; none where it failed."""
    refused: int = 0
    """Requests that no provider would have taken: too long, or with half of a pair."""
    marks: tuple[Mark, ...] = ()
    """Where it folded."""
    receipt: Receipt | None = None
    """What it was behind sending everything, of a profile of ours."""
    error: str = ""
    trace: Trace | None = None
    """What it sent, if the job says so."""
    sent: tuple[int, ...] = ()
    """The tokens of each request."""


@dataclass(frozen=True, slots=True)
class Job:
    """One session, to be replayed under a profile or under baselines."""

    session: int
    case: Case
    rules: tuple[str, ...] = ()
    profile: Profile | None = None
    budget: Budget | None = None
    traced: bool = False
    """Whether the outcome says what was sent."""

    @property
    def policies(self) -> tuple[str, ...]:
        return self.rules if self.profile is None else (self.profile.name,)

    @property
    def requests(self) -> int:
        """How many requests are replayed, under all policies together."""
        answers = (b'"kind":"response"' in payload for payload in self.case.recording.payloads)
        return sum(answers) * len(self.policies)


def jobs_for(cases: Sequence[Case], profiles: Sequence[Profile], rules: Sequence[str]) -> list[Job]:
    """A job for the rules and one for each profile, for each session; the longest first."""
    jobs: list[Job] = []
    for session, case in enumerate(cases):
        jobs += [Job(session, case, (), case.adapt(one), case.budget(one)) for one in profiles]
        jobs.append(Job(session, case, tuple(rules)))
    return sorted(jobs, key=lambda job: len(job.case.recording.messages), reverse=True)


def measured(job: Job, on_request: Callable[[], object] = bool) -> list[Outcome]:
    """The figures of a job. A policy that fails reports its error and spoils no other."""
    return [_outcome(job, name, on_request) for name in job.policies]


def _outcome(job: Job, policy: str, on_request: Callable[[], object]) -> Outcome:
    case = job.case
    meter = _meter(job.session, case.recording.name, case.measure)
    try:
        made = _policy(job, policy, meter.reader)
        played = play(
            *(case.recording, made, meter.reader),
            name=policy,
            conditions=case.conditions,
            on_request=on_request,
        )
        row = meter.row(played)
    except RefoldError as error:
        return Outcome(job.session, policy, error=error.what)
    except Exception as error:  # noqa: BLE001 - whatever a file holds, the others are still measured
        return Outcome(job.session, policy, error=f"{type(error).__name__}: {error}")
    refused = sum(one.sent > case.window or one.orphans > 0 for one in played.requests)
    trace = Trace.of(played, meter.reader) if job.traced else None
    sent = tuple(one.sent for one in played.requests)
    receipt = made.receipt if isinstance(made, SessionPolicy) else None
    return Outcome(job.session, policy, row, refused, played.marks, receipt, trace=trace, sent=sent)


def _as_counted(case: Case, reader: Reader) -> Settings:
    """The sizes of the rules in the tokens that they count, for profiles count those of the model.

    Else a profile would act sooner than they do: its model's tokens are shorter.
    """
    payloads, wire, counter = case.recording.payloads, wire_for(FORMAT), counter_for(case.model)
    theirs = sum(weight(describe_row(1, payload, wire, counter)) for payload in payloads)
    ratio = sum(map(reader.tokens, payloads)) / (theirs or 1)
    sizes = case.settings
    return replace(
        sizes,
        threshold=round(sizes.threshold * ratio),
        tail=round(sizes.tail * ratio),
        summary=round(sizes.summary * ratio),
    )


@lru_cache(maxsize=1)
def _meter(session: int, name: str, measure: Measure) -> Meter:  # noqa: ARG001 - one for each session
    return Meter(measure, Reader(o200k()))


def _policy(job: Job, policy: str, reader: Reader) -> Policy:
    if job.profile is None or job.budget is None:
        settings = _as_counted(job.case, reader)
        terms = job.case.measure.terms
        price = terms.write / terms.read if terms.read else inf
        return (baselines(settings) | timed(settings, terms.fold, price))[policy](reader)
    counter, prices = counter_for(job.case.model), job.case.prices
    setup = Setup(job.case.model, counter, job.budget, job.profile, prices)
    times = [message.at for message in job.case.recording.messages]
    return SessionPolicy(
        setup,
        times=times,
        write=placeholder_summary if job.profile.fold.writer == "model" else None,
    )


def each_measured(
    jobs: Sequence[Job],
    max_processes: int = _MAX_PROCESSES,
    on_requests: Callable[[int], object] | None = None,
) -> Iterator[tuple[Job, list[Outcome]]]:
    """The jobs with their figures as they finish: in processes, if there is enough to do.

    `on_requests` is called with the number of requests replayed so far, also within a job.
    """
    report = on_requests or bool
    sessions = {job.session: len(job.case.recording.messages) for job in jobs}
    processes = min(_cores(), len(jobs), max_processes)
    if processes < 2 or sum(sessions.values()) < _WORTH_A_PROCESS:  # noqa: PLR2004 - one is no gain
        replayed = count(1)
        yield from ((job, measured(job, lambda: report(next(replayed)))) for job in jobs)
        return
    # Not forked: what draws the progress bar is a thread, and threads and forks do not mix.
    spawn = multiprocessing.get_context("spawn")
    with (
        _without_current_folder(),  # already for the counter, which starts a process for its lock
        ProcessPoolExecutor(
            processes, spawn, _begin_process, (requests := spawn.Value("Q", 0),)
        ) as pool,
    ):
        running = {pool.submit(_measured_in_process, job): job for job in jobs}
        try:
            while running:
                finished, _ = wait(running, _POLL if on_requests else None, FIRST_COMPLETED)
                report(requests.value)
                for future in finished:
                    yield running.pop(future), future.result()
        except BrokenProcessPool as error:
            raise InvalidInput(
                "The system ended a replay, probably because memory ran out.",
                "Give fewer or shorter sessions.",
            ) from error
        finally:
            # Waited for: the interpreter would end while the pool's thread still closes its pipes.
            pool.shutdown(cancel_futures=True)


_counter: "Synchronized[int] | None" = None
"""In a process of the pool: the requests that all of them have replayed."""


def _begin_process(counter: "Synchronized[int]") -> None:
    global _counter  # noqa: PLW0603 - a pool has no other way to give its processes something
    _counter = counter
    # Ctrl-C ends a replay without a traceback; the command itself reports the interruption.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _measured_in_process(job: Job) -> list[Outcome]:
    return measured(job, _count)


def _count() -> None:
    if _counter is not None:
        with _counter.get_lock():
            _counter.value += 1


@contextmanager
def _without_current_folder() -> Generator[None]:
    """Keeps processes that start meanwhile from importing modules of the current folder.

    A new process looks there first, and then where this one looks; and it runs this one's main
    module again, which a replay has no use for. Recordings are often replayed in a cloned
    repository, which may contain a `select.py`.
    """
    before = os.environ.get(_SAFE_PATH)
    main, path = sys.modules["__main__"], sys.path
    here = {"", ".", os.getcwd()}  # noqa: PTH109 - as Python writes it
    os.environ[_SAFE_PATH] = "1"
    sys.modules["__main__"] = ModuleType("__main__")
    sys.path = [folder for folder in path if folder not in here]
    try:
        yield
    finally:
        sys.modules["__main__"], sys.path = main, path
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Total:
    """One policy on all sessions."""

    policy: str
    ours: bool
    """Whether it is a profile of ours."""
    row: Row | None
    """The figures; none where it failed on a session, for then it cannot be compared."""
    share: float
    """Its cost, of what sending everything costs."""
    refused: int
    folds: int
    error: str = ""
    rows: tuple[Row, ...] = ()
    """The figures of each session."""
    receipts: tuple[Receipt, ...] = ()
    """The receipt of each session, of a profile of ours."""

    def interval(self, pick: Callable[[Row], Share]) -> tuple[float, float]:
        """The 95 % interval of a share, by a bootstrap over sessions."""
        shares = [pick(row) for row in self.rows]
        return bootstrapped([(share.found, share.of) for share in shares])

    def of_bound(self, pick: Callable[[Account], float]) -> "OfBound":
        """How far a cost is from the least that it could be."""
        accounts = [row.account for row in self.rows if row.account.bound]
        ratios = [(pick(one), one.bound) for one in accounts]
        whole = sum(least for _, least in ratios)
        return OfBound(
            sum(cost for cost, _ in ratios) / whole if whole else 1.0,
            max((cost / least for cost, least in ratios), default=1.0),
            bootstrapped(ratios),
        )


class OfBound(NamedTuple):
    """A cost, as a ratio to the bound."""

    pooled: float
    """Of the sums over all sessions."""
    worst: float
    """Of one session."""
    interval: tuple[float, float]
    """The 95 % interval of the pooled one, by a bootstrap over sessions."""


@dataclass(frozen=True, slots=True)
class Totals:
    """All policies on all sessions; the first sends everything."""

    cases: tuple[Case, ...]
    outcomes: tuple[Outcome, ...]
    every: tuple[Total, ...]

    @property
    def everything(self) -> Total:
        return self.every[0]

    @property
    def leading(self) -> Total:
        return next(total for total in self.every if total.ours)

    @property
    def best(self) -> Total | None:
        """The cheapest of those that retain enough and are never refused, if there is one."""
        good = [
            total
            for total in self.every
            if total.row and not total.refused and total.row.retained.rate >= MIN_RETAINED
        ]
        return min(good, key=lambda total: total.share, default=None)

    @property
    def short(self) -> list[int]:
        """The sessions that never grew to where the rules act."""
        return [
            outcome.session
            for outcome in self.outcomes
            if outcome.policy == EVERYTHING
            and outcome.row
            and (case := self.cases[outcome.session])
            and outcome.row.peak < min(case.threshold, case.window)
        ]

    def of(self, session: int, policy: str) -> Outcome | None:
        found = (one for one in self.outcomes if (one.session, one.policy) == (session, policy))
        return next(found, None)


def same(share: float, other: float = 1.0) -> bool:
    """Whether two costs are as good as equal."""
    return abs(share - other) <= _SAME


def totals(
    cases: Sequence[Case], outcomes: Sequence[Outcome], ours: Sequence[str], rules: Sequence[str]
) -> Totals:
    """The policies in order: everything, profiles, baselines."""
    ordered = tuple(sorted(outcomes, key=lambda outcome: outcome.session))
    names = [EVERYTHING, *ours, *(rule for rule in rules if rule != EVERYTHING)]
    grouped = {name: [one for one in ordered if one.policy == name] for name in names}
    base = sum(one.row.cost for one in grouped[EVERYTHING] if one.row)
    every = tuple(_total(name, grouped[name], base, ours=name in ours) for name in names)
    return Totals(tuple(cases), ordered, every)


def _total(policy: str, outcomes: Sequence[Outcome], base: float, *, ours: bool) -> Total:
    rows = [one.row for one in outcomes if one.row]
    error = next((one.error for one in outcomes if one.error), "")
    row = pooled_rows(rows) if rows and not error else None
    share = row.cost / base if row and base else 1.0
    refused = sum(one.refused for one in outcomes)
    folds = sum(len(one.marks) for one in outcomes)
    receipts = tuple(one.receipt for one in outcomes if one.receipt)
    return Total(policy, ours, row, share, refused, folds, error, tuple(rows), receipts)
