"""Replays of stored sessions in a process of their own: followed, bounded, and ended if asked to.

A replay keeps a processor busy for minutes, so whoever answers requests leaves it to such a
process: it yields to others, has a limit of memory and of time, and ends with the one that began
it. Its work is that of `refold lab`. It asks no model, opens no file and no connection.
"""

import asyncio
import json
import os
import pickle
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter

from refold.errors import InvalidInput, RefoldError
from refold.lab.findings import Findings, findings_of
from refold.lab.measure import Outcome, each_measured, jobs_for, totals
from refold.lab.policies import baselines
from refold.lab.report import Case, CaseOptions, case_of
from refold.lab.session_files import session_in_export
from refold.transcripts.recording import Recording
from refold.view.profiles import Profile

MAX_MEMORY: Final = 3 << 30
_NICE: Final = 10
_LENGTH: Final = 8
_MAX_LINE: Final = 16 << 20
"""Bytes of the findings."""
_FINDINGS: Final = TypeAdapter(Findings)

Progress = Callable[[int, int], None]
"""Called with the replays that were made, and how many there will be."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What is to be replayed, and under what."""

    sessions: tuple[tuple[str, tuple[bytes, ...]], ...]
    """The name of each, and its entries as lines of an export."""
    profiles: tuple[Profile, ...]
    """Compared with the baselines; the first is what the finding is about. Each has its name."""
    options: CaseOptions
    max_messages: int
    """Messages of all sessions together: later sessions that exceed it are left out."""
    max_memory: int = MAX_MEMORY
    """Bytes of the process, where the system can limit them."""


async def replayed(assignment: Assignment, progress: Progress, *, max_seconds: float) -> Findings:
    """Replay the sessions elsewhere; whoever cancels this ends the process.

    Raises:
        InvalidInput: No session could be replayed, or not within these bounds.
    """
    process = await asyncio.create_subprocess_exec(
        # -P: never import from the folder that this process was started in.
        *(sys.executable, "-P", "-m", "refold.lab.background"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        start_new_session=True,  # Ctrl+C is for whoever began it
        limit=_MAX_LINE,
    )
    try:
        async with asyncio.timeout(max_seconds):
            data = await asyncio.to_thread(pickle.dumps, assignment)
            return await _followed(process, data, progress)
    except TimeoutError as error:
        raise InvalidInput(
            f"The replay took longer than {max_seconds / 60:.0f} minutes, and was ended.",
            "Choose fewer or shorter sessions; `refold lab` has no such limit.",
        ) from error
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())


async def _followed(process: Process, data: bytes, progress: Progress) -> Findings:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    with suppress(BrokenPipeError, ConnectionResetError):  # then there is nothing to read, either
        process.stdin.write(len(data).to_bytes(_LENGTH, "big") + data)
        await process.stdin.drain()
    while line := await process.stdout.readline():
        match json.loads(line):
            case {"done": int(done), "of": int(of)}:
                progress(done, of)
            case {"what": str(what), "fix": str(fix)}:
                raise InvalidInput(what, fix)
            case found:
                return _FINDINGS.validate_python(found)
    raise InvalidInput(
        "The system ended the replay, probably because memory ran out.",
        "Choose fewer or shorter sessions.",
    )


# In the process itself.


def _findings(assignment: Assignment, progress: Progress) -> Findings:
    left_out: list[tuple[str, str]] = []
    cases: list[Case] = []
    messages = 0
    for name, recording, why in _recordings(assignment):
        length = len(recording.messages) if recording else 0
        if recording is None:
            left_out.append((name, why))
        elif cases and messages + length > assignment.max_messages:
            limit = f"{assignment.max_messages:,} messages"
            left_out.append((name, f"together with the others, it has more than {limit}"))
        else:
            messages += length
            cases.append(case_of(recording, assignment.options))
    if not cases:
        reasons = "; ".join(f"{name[:80]}: {why}" for name, why in left_out)
        raise InvalidInput(
            f"No session could be replayed. {reasons}.",
            "Choose one in which a model has answered.",
        )
    rules = [*baselines()]
    jobs = jobs_for(cases, assignment.profiles, rules)
    outcomes: list[Outcome] = []
    of = sum(len(job.policies) for job in jobs)
    progress(0, of)
    for _, measured in each_measured(jobs, max_processes=1):
        if any(outcome.error.startswith(MemoryError.__name__) for outcome in measured):
            raise MemoryError
        outcomes += measured
        progress(len(outcomes), of)
    names = [profile.name for profile in assignment.profiles]
    return findings_of(totals(cases, outcomes, names, rules), left_out, options=False)


def _recordings(assignment: Assignment) -> Iterator[tuple[str, Recording | None, str]]:
    for name, lines in assignment.sessions:
        if not lines:
            yield name, None, "it is too large, or the others are"
            continue
        try:
            file = session_in_export(name, lines)
        except (RefoldError, ValueError) as error:  # whatever it holds, the others are replayed
            yield name, None, error.what if isinstance(error, RefoldError) else str(error)
            continue
        yield name, next(iter(file.recordings), None), file.why


def _limit_memory(size: int) -> None:
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    with suppress(OSError, ValueError):  # a lower one is set already
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _end_with_input() -> None:
    sys.stdin.buffer.read(1)
    os._exit(1)


def main() -> None:
    """Read an assignment, and write how far it is and what was found."""
    with suppress(AttributeError, OSError):
        os.nice(_NICE)
    length = int.from_bytes(sys.stdin.buffer.read(_LENGTH), "big")
    # Only the process that began this one holds the other end.
    assignment: Assignment = pickle.loads(sys.stdin.buffer.read(length))  # noqa: S301
    threading.Thread(target=_end_with_input, daemon=True).start()
    _limit_memory(assignment.max_memory)

    def write(value: dict[str, object]) -> None:
        sys.stdout.write(f"{json.dumps(value)}\n")
        sys.stdout.flush()

    try:
        found = _findings(assignment, lambda done, of: write({"done": done, "of": of}))
        write(_FINDINGS.dump_python(found, mode="json"))
    except RefoldError as error:
        write({"what": error.what, "fix": error.fix})
    except MemoryError:
        pass  # said by whoever finds nothing
    finally:
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
