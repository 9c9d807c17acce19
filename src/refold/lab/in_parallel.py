"""Jobs in as many processes as there are cores; few and short ones are done here."""

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from refold.errors import InvalidInput
from refold.lab.measuring import Job, Outcome, measured

_WORTH_A_PROCESS = 400  # messages: fewer are replayed sooner than a process starts
_MOST_PROCESSES = 8


def each_measured(jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Outcome]]]:
    """The jobs with their figures, as they are done."""
    sessions = {job.session: len(job.case.recording.messages) for job in jobs}
    processes = min(_cores(), len(jobs), _MOST_PROCESSES)
    if processes < 2 or sum(sessions.values()) < _WORTH_A_PROCESS:  # noqa: PLR2004 - one is no gain
        yield from ((job, measured(job)) for job in jobs)
        return
    # Not forked: what draws the progress bar is a thread, and threads and forks do not mix.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn, _end_quietly) as pool:
        under_way = {pool.submit(measured, job): job for job in jobs}
        try:
            for done in as_completed(under_way):
                yield under_way.pop(done), done.result()
        except BrokenProcessPool as error:
            raise InvalidInput(
                "The system ended a replay, probably for want of memory.",
                "Give fewer or shorter sessions.",
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _end_quietly() -> None:
    """Ctrl-C ends a replay at once, and without a word: the command says what there is to say."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
