"""Jobs in as many processes as there are cores; few and short ones are done here."""

import multiprocessing
import os
import signal
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from refold.errors import InvalidInput
from refold.lab.measuring import Job, Outcome, measured

_WORTH_A_PROCESS = 400  # messages: fewer are replayed sooner than a process starts
_MOST_PROCESSES = 8
_SAFE_PATH = "PYTHONSAFEPATH"


def each_measured(jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Outcome]]]:
    """The jobs with their figures, as they are done."""
    sessions = {job.session: len(job.case.recording.messages) for job in jobs}
    processes = min(_cores(), len(jobs), _MOST_PROCESSES)
    if processes < 2 or sum(sessions.values()) < _WORTH_A_PROCESS:  # noqa: PLR2004 - one is no gain
        yield from ((job, measured(job)) for job in jobs)
        return
    # Not forked: what draws the progress bar is a thread, and threads and forks do not mix.
    spawn = multiprocessing.get_context("spawn")
    with _without_current_folder(), ProcessPoolExecutor(processes, spawn, _end_quietly) as pool:
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
            # Waited for: the interpreter would end while the pool's thread still closes its pipes.
            pool.shutdown(cancel_futures=True)


@contextmanager
def _without_current_folder() -> Generator[None]:
    """Python processes that start meanwhile import nothing from the current folder.

    A new process looks there first, before it is told where to look. Recordings are often replayed
    in a folder that was cloned, which may bring a `pickle.py`.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _end_quietly() -> None:
    """Ctrl-C ends a replay at once, and without a word: the command says what there is to say."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
