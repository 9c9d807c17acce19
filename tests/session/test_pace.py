"""Recorded sessions at the pace at which they were recorded: does any request wait for a fold?

Time is simulated, so a summarizer that takes 30 s takes them from the session's own time.
"""

import asyncio
from dataclasses import dataclass, field

import pytest
from project_paths import DATA
from simulated_time import now, simulated
from summarizers import Scripted, writing
from world import true_summary

from refold.fold.events import CompactionComplete
from refold.fold.extractive import BY
from refold.lab import read_pi
from refold.models import counter_for
from refold.models.experience import Setup
from refold.session import Session
from refold.stores import MemoryStore
from refold.view import PROFILES, Budget
from refold.wire import wire_for

NAMES = ("before-compaction", "large-session")
MODEL = "openai:gpt-4o"
WINDOW = 200_000
SLOW, FOR_EVER = 30.0, float("inf")
BALANCED = PROFILES["balanced"]
WAIT = BALANCED.fold.wait
"""Seconds that a request waits for a fold at most."""
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the recordings are not here: set REFOLD_DATA to their folder"
)


@dataclass
class Slow(Scripted):
    """A summarizer that takes its time."""

    seconds: float = 0.0

    async def ask(self, guard, prompt, job):
        if self.seconds == FOR_EVER:
            self.prompts.append(prompt)
            await asyncio.Event().wait()
        await asyncio.sleep(self.seconds)
        return await super().ask(guard, prompt, job)


@dataclass
class Played:
    """What came of a recording."""

    waits: list[float] = field(default_factory=list)
    """Of each request, in seconds."""
    folds: list[CompactionComplete] = field(default_factory=list)
    calls: int = 0
    began: int = 0
    problems: int = 0

    @property
    def waited(self):
        return sum(one > 0 for one in self.waits)


def watching(played):
    def watch(event):
        played.began += event.NAME == "session.compaction_start"
        if isinstance(event, CompactionComplete):
            played.folds.append(event)

    return watch


def gaps(messages, pace):
    """Each message, and how long after the one before it came."""
    last = next(one.at for one in messages if one.at is not None)
    for one in messages:
        at = last if one.at is None else max(last, one.at)
        yield one, (at - last) / 1_000 * pace
        last = at


async def play(name, seconds, *, pace=1.0, window=WINDOW):
    """The recording at its pace, with a summarizer that takes so long; what came of it.

    A request is made when what it answers was said, and answered when the recording says so.
    """
    counter = counter_for(MODEL)
    summarizer = Slow(true_summary, seconds=seconds, counter=counter, window=128_000)
    played = Played()
    setup = Setup(MODEL, counter, Budget(window=window, reserve=BALANCED.reserve), BALANCED)
    log = MemoryStore().log()
    session = await Session.open(log, "s", setup, write=writing(summarizer), watch=watching(played))
    wire = wire_for("pydantic-ai")
    for one, gap in gaps(read_pi(DATA / f"pi_{name}.jsonl").messages, pace):
        if wire.describe(one.payload).role != "assistant":
            await asyncio.sleep(gap)
            await session.say(one.payload)
            continue
        before = now()
        request = await session.request()
        played.waits.append(now() - before)
        played.problems += request.plan.account.sent > request.plan.account.limit
        await asyncio.sleep(max(0.0, gap - played.waits[-1]))
        await session.answer(one.payload)
    await session.close()
    played.calls = summarizer.calls
    return played


@pytest.mark.parametrize("name", NAMES)
def test_at_the_recorded_pace_no_request_waits_for_a_summarizer_that_takes_30_seconds(name):
    played = simulated(play(name, SLOW))
    assert played.waited == 0
    assert played.problems == 0
    assert [one.model for one in played.folds if one.success and one.model != BY]
    assert played.began == len(played.folds)


@pytest.mark.parametrize("name", NAMES)
def test_with_a_summarizer_that_never_returns_every_request_is_answered(name):
    played = simulated(play(name, FOR_EVER))
    assert played.calls
    assert max(played.waits) <= WAIT + 0.001
    assert played.problems == 0
    assert [one for one in played.folds if one.success]
    assert {one.model for one in played.folds if one.success} == {BY}
    assert played.began == len(played.folds)


def test_in_haste_requests_wait_for_one_that_never_returns_but_no_longer_than_they_may():
    """Without a pause between messages the view fills up while a summarizer hangs."""
    played = simulated(play("large-session", FOR_EVER, pace=0.0, window=120_000))
    assert 0 < played.waited <= played.calls
    assert max(played.waits) <= WAIT + 0.001
    assert played.problems == 0
    assert [one for one in played.folds if one.success]
