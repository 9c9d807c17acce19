"""Sessions under policies, ours and those of others: what to measure, and the figures of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from refold.errors import RefoldError
from refold.lab.cases import Case
from refold.lab.comparisons import baselines
from refold.lab.counting import o200k
from refold.lab.folded import Folded, stand_in
from refold.lab.reading import Reader
from refold.lab.replay import Mark, Policy, Replay, play
from refold.lab.report import Row, row_of
from refold.models import counter_for
from refold.models.setup import Setup
from refold.view.budget import Budget
from refold.view.profiles import Profile

EVERYTHING = "none"
"""The policy that the others are measured against: it sends everything."""


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
    error: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """One session, to be replayed under a profile or under rules of others."""

    session: int
    case: Case
    rules: tuple[str, ...] = ()
    profile: Profile | None = None
    budget: Budget | None = None

    @property
    def policies(self) -> tuple[str, ...]:
        """Their names."""
        return self.rules if self.profile is None else (self.profile.name,)


def jobs_for(cases: Sequence[Case], profiles: Sequence[Profile], rules: Sequence[str]) -> list[Job]:
    """A job for the rules and one for each profile, for each session; the longest first."""
    jobs: list[Job] = []
    for at, case in enumerate(cases):
        jobs += [Job(at, case, (), case.of(one), case.budget(one)) for one in profiles]
        jobs.append(Job(at, case, tuple(rules)))
    return sorted(jobs, key=lambda one: len(one.case.recording.messages), reverse=True)


def measured(job: Job) -> list[Outcome]:
    """The figures of a job. One that fails says why, and spoils no other."""
    return [_outcome(job, name) for name in job.policies]


def _outcome(job: Job, policy: str) -> Outcome:
    case = job.case
    reader = _reader(job.session, case.recording.name)
    try:
        played = play(case.recording, _policy(job, policy, reader), reader, name=policy)
        row = row_of(played, case.measure, reader)
    except RefoldError as error:
        return Outcome(job.session, policy, error=error.what)
    except Exception as error:  # noqa: BLE001 - whatever a file holds, the others are still measured
        return Outcome(job.session, policy, error=f"{type(error).__name__}: {error}")
    return Outcome(job.session, policy, row, _refused(played, case.window), played.marks)


@lru_cache(maxsize=1)
def _reader(session: int, name: str) -> Reader:  # noqa: ARG001 - one for each session
    return Reader(o200k())


def _policy(job: Job, policy: str, reader: Reader) -> Policy:
    if job.profile is None or job.budget is None:
        return baselines(job.case.settings)[policy](reader)
    setup = Setup(job.case.model, counter_for(job.case.model), job.budget, job.profile)
    return Folded(setup, write=stand_in if job.profile.fold.writer == "model" else None)


def _refused(played: Replay, window: int) -> int:
    return sum(one.sent > window or one.orphans > 0 for one in played.requests)
