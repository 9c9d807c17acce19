"""A generated world of sessions in which much goes wrong: what must hold all the same.

`python -m benchmarks summaries` measures longer sessions.
"""

import asyncio
from collections import Counter as Counted
from contextlib import suppress
from uuid import UUID

import pytest
from amounts import amount, seeds
from folding import material_of, session_of
from shown import turn
from simulated_time import Stuck, now, simulated
from summarizers import Scripted, writing
from world import BALANCED, FAULTS, SEEDS, Process

from refold.engine import LocalSteps
from refold.fold.compactor import context
from refold.fold.events import CompactionHeld
from refold.fold.job import Job
from refold.fold.summary import parse
from refold.fold.write.by_model import TOO_OFTEN, Breaker
from refold.log import FoldCompleted, FoldFailed, Message, Span

SESSIONS = 100
PROCESSES = amount(few=2, quick=2, ci=2, nightly=10, thorough=100)
"""Two have every fault between them."""
VAIN = 1.2 if PROCESSES >= 10 else 1.35
"""Calls for each that freed something. In few sessions a faulty model, or two, weigh more."""
MOST_WAITED = BALANCED.fold.wait + 0.001


def objections(ending):
    """What did not go as it must in one session."""
    if ending.unanswered:
        yield f"{ending.unanswered} requests without an answer"
    yield from ending.problems
    if [one.payload for one in ending.values(Message)] != ending.said:
        yield "the log is not what was said"
    if ending.running:
        yield "a fold is still under way"
    if max(ending.waits) > MOST_WAITED:
        yield f"a request waited {max(ending.waits):.0f} s"
    if (told := ending.paired()) is not None:
        yield told
    for guard, times in expected(ending).items():
        if ending.held[guard] != times:
            yield f"{guard!r} was told {ending.held[guard]} times, not {times}"
    if any(not one.remedy for one in ending.events(CompactionHeld)):
        yield "a guard without a remedy"


def expected(ending):
    """What guards must have told, by what the log says."""
    found = Counted({"not believed": 0, "summarizer left alone": 0, "repeated failure": 0})
    run = ("", 0)
    for one in ending.values(FoldCompleted, FoldFailed):
        if isinstance(one, FoldFailed):
            run = one.reason, run[1] + 1 if one.reason == run[0] else 1
            found["repeated failure"] += run[1] == 2
            continue
        run = "", 0
        report = parse(one.summary).report
        if report and report.refused:
            alone = report.refused.startswith(TOO_OFTEN)
            found["summarizer left alone" if alone else "not believed"] += 1
    return found


def test_where_much_goes_wrong_no_session_is_stuck_and_few_calls_are_in_vain():
    wrong, calls, useful, seen = [], 0, 0, Counted()
    for seed in seeds(PROCESSES):
        process = Process(seed, SESSIONS)
        for one in simulated(process.run()):
            wrong += [f"seed {seed}, session {one.name}: {what}" for what in objections(one)]
            seen.update((one.profile, *one.held, "refused" if one.refusals else "taken"))
            seen["floored and told"] += one.floored and one.held["floor above trigger"] > 0
            seen["folds"] += len(one.values(FoldCompleted))
        seen.update(one.fault for one in process.models)
        calls += len(process.calls)
        useful += len(process.useful)
    assert wrong == []
    assert seen["folds"] > SESSIONS * PROCESSES / 2
    assert calls <= VAIN * useful, f"{calls} calls, {useful} of use"
    everything = {*FAULTS, "balanced", *(one.name for one in SEEDS), "refused", "floored and told"}
    assert everything <= {*+seen}  # a world without its faults shows nothing


def test_the_same_seed_gives_the_same_world():
    def once():
        process = Process(3, 12)
        endings = simulated(process.run())
        events = [[one.NAME for one in ending.told] for ending in endings]
        return events, [ending.waits for ending in endings], len(process.calls)

    assert once() == once()


def test_who_waits_for_ever_is_found():
    async def hanging():
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        simulated(hanging())


def test_simulated_hours_take_no_time():
    async def sleeping():
        await asyncio.gather(*(asyncio.sleep(3_600 * hours) for hours in range(5)))
        return now()

    assert simulated(sleeping()) == pytest.approx(4 * 3_600)


def test_after_a_failure_one_finds_out_for_all():
    breaker = Breaker()
    with breaker.call():
        assert breaker.allows()  # nothing speaks against it yet
        breaker.failed("It hangs.")
        assert not breaker.allows()
    assert breaker.allows()


@pytest.mark.parametrize(("seconds", "failures"), [(61, 1), (5, 0)])
def test_who_is_given_up_because_nobody_waits_longer_has_failed(seconds, failures):
    """One that a person gave up at once has not."""
    summarizer = Scripted(hangs=True)
    writer = writing(summarizer)
    given = context(BALANCED.fold, {}, 0)
    job = Job("s", UUID(int=1), (Span(2, 5),), "soft", context=given)
    material = material_of(session_of(*turn("Go on.")), (Span(2, 3),))

    async def given_up():
        with suppress(TimeoutError):
            await asyncio.wait_for(writer(material, job, LocalSteps()), seconds)

    simulated(given_up())
    assert summarizer.calls == 1
    assert writer._breakers[summarizer.name].failures == failures
