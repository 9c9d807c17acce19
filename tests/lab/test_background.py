"""Replays in a process of their own: the same figures, bounded, and ended when nobody waits."""

import asyncio
import os
from dataclasses import replace

import pytest
from replayable import assigned, exported

from refold.errors import InvalidInput
from refold.lab import background
from refold.lab.background import replayed
from refold.lab.findings import findings_of
from refold.lab.measure import Outcome, jobs_for, measured, totals
from refold.lab.policies import baselines
from refold.lab.report import case_of
from refold.lab.session_files import session_in_export

pytest.importorskip("rs_bpe")


def test_the_figures_are_those_of_the_lab():
    work, steps = assigned(("talk", exported(turns=24))), []
    replay = replayed(work, lambda done, total: steps.append((done, total)), max_seconds=500)
    found = asyncio.run(replay)
    [recording] = session_in_export("talk", work.sessions[0][1]).recordings
    cases, rules = [case_of(recording, work.options)], [*baselines()]
    jobs = jobs_for(cases, work.profiles, rules)
    outcomes = [each for job in jobs for each in measured(job)]
    names = [profile.name for profile in work.profiles]
    assert found == findings_of(totals(cases, outcomes, names, rules), options=False)
    assert steps[0] == (0, 8)
    assert steps[-1] == (8, 8)


def found_in(work):
    """What the process does, in this one."""
    return background._findings(work, lambda *_: None)


def test_a_session_that_cannot_be_replayed_is_left_out_and_said():
    silent = tuple(each for each in exported() if b'"assistant"' not in each)
    odd = (b"no JSON\n", b'{"refold":1,"session":"x"}\n')
    work = assigned(("talk", exported(2)), ("silent", silent), ("odd", odd), ("large", ()))
    found = found_in(work)
    assert [each.name for each in found.sessions] == ["talk"]
    assert dict(found.left_out) == {
        "silent": "it has no answer of a model",
        "odd": "it has no answer of a model",
        "large": "it is too large, or the others are",
    }


def test_where_no_session_can_be_replayed_it_says_why():
    with pytest.raises(InvalidInput, match="<b>odd</b>: it has no answer of a model"):
        found_in(assigned(("<b>odd</b>", (b"no JSON\n",))))


def test_later_sessions_that_are_too_many_are_left_out():
    work = replace(assigned(("a", exported(2)), ("b", exported(2))), max_messages=15)
    found = found_in(work)
    assert [each.name for each in found.sessions] == ["a"]
    assert "more than 15 messages" in dict(found.left_out)["b"]


@pytest.fixture
def processes(monkeypatch):
    """The processes that are begun."""
    begun, begin = [], asyncio.create_subprocess_exec

    async def noted(*arguments, **how):
        begun.append(await begin(*arguments, **how))
        return begun[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    return begun


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_who_cancels_it_ends_the_process(processes):
    started = asyncio.Event()
    work = assigned(*((f"talk {nth}", exported(turns=40)) for nth in range(10)))
    task = asyncio.create_task(replayed(work, lambda *_: started.set(), max_seconds=500))
    await asyncio.wait_for(started.wait(), 300)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert is_gone(processes[0].pid)


async def test_what_takes_too_long_is_ended(processes):
    with pytest.raises(InvalidInput, match="took longer than"):
        await replayed(assigned(("talk", exported())), lambda *_: None, max_seconds=0.01)
    assert is_gone(processes[0].pid)


async def test_it_ends_with_its_input(processes):
    """That is: when the process that began it ends, however that ends."""
    started = asyncio.Event()
    work = assigned(*((f"talk {nth}", exported(turns=40)) for nth in range(10)))
    task = asyncio.create_task(replayed(work, lambda *_: started.set(), max_seconds=500))
    await asyncio.wait_for(started.wait(), 300)
    processes[0].stdin.close()
    with pytest.raises(InvalidInput, match="memory ran out"):
        await task
    assert processes[0].returncode == 1


def test_it_keeps_to_its_memory(monkeypatch):
    def measured(jobs, max_processes):
        assert max_processes == 1
        yield jobs[0], [Outcome(0, "none", error="MemoryError: ")]

    monkeypatch.setattr(background, "each_measured", measured)
    with pytest.raises(MemoryError):
        found_in(assigned(("talk", exported(2))))
