"""A generated world: processes with a few models and many sessions, in which much goes wrong.

It runs in simulated time, and the same seed gives the same world.
"""

import asyncio
import re
from collections import Counter as Counted
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from folding import spelled
from sessions import Quarter
from shown import changed
from simulated_time import now

from refold.errors import WindowExceeded
from refold.fold.events import CompactionComplete, CompactionHeld, CompactionStart
from refold.fold.summary import Summary, parse
from refold.fold.write.by_model import ByModel, Choice, SummarizerAnswer
from refold.log import CODEC, Author, FoldCompleted, FoldFailed
from refold.models.catalog import Usage
from refold.models.experience import Setup
from refold.session import Session
from refold.session.session import TIGHTER
from refold.stores import MemoryStore
from refold.testing.wire import Answered, Asked, Call, Responded, Return
from refold.view import PROFILES, Budget
from refold.view.budget import PER_MESSAGE

COUNTER = Quarter()
SMALL = {
    "trigger": {"at_least": 0, "tokens": 0, "savings": 0},
    "rewrite": {"at_least": 0},
    "reserve": 0,
}
BALANCED = changed(PROFILES["balanced"], **SMALL, fold={"wait": 60}, summarizer="primary")
"""Requests wait for a summarizer here, as long as in the other profiles."""
SEEDS = [one for name, one in PROFILES.items() if name != "balanced"]
FAULTS = (
    "none",
    "slow",
    "too long",
    "smaller than documented",
    "fails at random",
    "fails always",
    "empty",
    "hangs",
)
"""What may be wrong with a summarizer."""
_ENTRY = re.compile(r"^\[entry (\d+)\] assistant\n\| (.*)$", re.MULTILINE)


def true_summary(prompt, *, most=8, times=1):
    """What the assistant said last, in its own words, with where it said so."""
    record = prompt.partition("End of the record.")[0]
    claims = [f"- {text} [{seq}]" for seq, text in _ENTRY.findall(record)][-most:]
    return "\n".join(["## Decisions", *(claims or ["- Work went on."]) * times])


class SummarizerCall(NamedTuple):
    """One call of a summarizer."""

    model: str
    fold: object
    answered: bool


@dataclass
class Model:
    """A summarizer with a fault."""

    name: str
    fault: str
    random: Random
    calls: list[SummarizerCall]
    structured: bool = False
    warm: bool = False
    counter: Quarter = COUNTER

    def __post_init__(self):
        self.rate = {"fails always": 1.0, "fails at random": self.random.uniform(0.05, 0.4)}.get(
            self.fault, 0.0
        )
        self.room = self.random.choice([3_000, 12_000, 60_000])
        small = self.fault == "smaller than documented"
        self.takes = int(self.room * self.random.uniform(0.4, 0.9)) if small else self.room
        self.learns = self.random.random() < 0.8

    async def ask(self, guard, prompt, job):  # noqa: ARG002 - as asked
        at = len(self.calls)
        self.calls.append(SummarizerCall(self.name, job.fold, answered=False))
        slow = self.fault == "slow"
        await asyncio.sleep(self.random.uniform(20, 110) if slow else self.random.uniform(1, 10))
        if self.fault == "hangs":
            await asyncio.Event().wait()
        if self.random.random() < self.rate:
            raise RuntimeError("The model is overloaded.")
        if COUNTER.text(prompt) > self.takes:
            if self.learns:
                self.room = self.takes
            raise WindowExceeded("Too long.")
        self.calls[at] = self.calls[at]._replace(answered=True)
        if self.fault == "empty":
            return SummarizerAnswer("")
        return SummarizerAnswer(true_summary(prompt, times=10 if self.fault == "too long" else 1))


@dataclass
class Ending:
    """How a session went."""

    name: str
    profile: str
    said: list[bytes] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    refusals: int = 0
    unanswered: int = 0
    problems: list[str] = field(default_factory=list)
    entries: list[Any] = field(default_factory=list)
    running: int = 0
    floored: bool = False
    """Whether what is always sent is above every mark at which a fold begins."""

    def events(self, kind):
        return [one for one in self.told if isinstance(one, kind)]

    def values(self, *kinds):
        return [one for one in self.entries if isinstance(one, kinds)]

    def paired(self):
        """What is wrong with the beginnings and ends that were told, if anything."""
        begun = 0
        for one in self.told:
            begun += isinstance(one, CompactionStart)
            begun -= isinstance(one, CompactionComplete)
            if begun not in (0, 1):
                return "folds began and ended out of order"
        return "a beginning without an end" if begun else None

    @property
    def held(self):
        return Counted(one.guard for one in self.events(CompactionHeld))


class Process:
    """A process: a few models, one writer for all sessions, and a store."""

    def __init__(self, seed, sessions=100, models=4, turns=(6, 14)):
        self.turns = turns
        self.random = Random(seed)  # noqa: S311 - a world, not a secret
        self.calls: list[SummarizerCall] = []
        self.freed: dict[object, int] = {}
        faults = _dealt(seed, models)
        self.models = [
            Model(f"test:{seed}-{nth}", fault, self._dice(), self.calls)
            for nth, fault in enumerate(faults)
        ]
        self.log = MemoryStore().log()
        self._by_model = ByModel(self._choose)
        self._sessions = [self._dice() for _ in range(sessions)]

    async def _choose(self, job, material):  # noqa: ARG002 - by its session alone
        return Choice((self.models[int(job.session) % len(self.models)],))

    def _dice(self):
        return Random(self.random.random())  # noqa: S311 - as above

    async def run(self):
        """All sessions, side by side; how each went."""
        sessions = (self._session(str(nth), one) for nth, one in enumerate(self._sessions))
        endings = await asyncio.gather(*sessions)
        for one in endings:
            self._weigh(one)
        return endings

    @property
    def useful(self):
        """The calls whose answers became a fold that made the view smaller."""
        return [one for one in self.calls if one.answered and self.freed.get(one.fold, 0) > 0]

    async def _write(self, material, job, steps):
        replaced = sum(
            sum(map(COUNTER.part, one.shapes)) + PER_MESSAGE for one in material.passages
        )
        self.freed[job.fold] = replaced + sum(map(_tokens, (e.summary for e in material.earlier)))
        return await self._by_model(material, job, steps)

    def _weigh(self, ending):
        """What each fold by a model freed; the others freed nothing that a call was paid for."""
        names = {one.name for one in self.models}
        for one in ending.values(FoldCompleted, FoldFailed):
            summary = parse(one.summary) if isinstance(one, FoldCompleted) else Summary("nobody")
            taken = self.freed.pop(one.fold, 0)
            if summary.by in names:
                self.freed[one.fold] = taken - _tokens(summary)

    async def _session(self, name, random):
        talk = _Talk(name, random, self.turns)
        await talk.go(self.log, self._write)
        ending = talk.ending
        ending.entries = [CODEC.decode(one) for one in await self.log.read(name)]
        ending.running = len((await self.log.visible(name, last=0)).outline.running)
        return ending


class _Talk:
    """A session as a host drives it, until its last turn has its answer."""

    def __init__(self, name, random, turns):
        self.random = random
        self.turns = turns
        profile = BALANCED if random.random() < 0.7 else random.choice(SEEDS)
        self.ending = Ending(name, profile.name)
        self.window = random.choice([1_500, 2_000, 3_000])
        low = random.random() < 0.15
        self.takes = int(self.window * random.uniform(0.55, 0.9)) if low else self.window
        self.names_limit = random.random() < 0.7
        self.reports = random.random() < 0.6
        self.jumps = random.random() < 0.2
        self.patient = random.random() < 0.9
        self.ending.floored = profile is BALANCED and not low and random.random() < 0.08
        if self.ending.floored:
            self.window = self.takes = 8_000
        tools = 7_620 if self.ending.floored else 100
        budget = Budget(window=self.window, tools=tools)
        self.setup = Setup("test:model", COUNTER, budget, profile)
        self.session: Any = None
        self._moment = datetime(2026, 1, 1, tzinfo=UTC)

    async def go(self, log, write):
        author = Author(clock=self._clock)
        watch = self.ending.told.append
        self.session = await Session.open(
            log, self.ending.name, self.setup, write=write, watch=watch, author=author
        )
        largest = 200 if self.ending.floored else self.window // 2
        for nth in range(self.random.randint(*self.turns)):
            await self._turn(nth, largest)
        if self.patient:
            while self.session._folds.running is not None:
                await self.session._folds.settle()
        await self.session.close()

    async def _turn(self, nth, largest):
        random = self.random
        await asyncio.sleep(random.uniform(5, 120))
        await self._say(Asked(f"Please change handler_{nth} in src/part_{nth}.py. " * 3))
        for step in range(random.choice([0, 1, 1, 2])):
            call = f"c{nth}.{step}"
            tool = random.choice(["read_file", "search", "run"])
            wish = Call(call, tool, {"path": f"src/part_{nth}.py", "from": step})
            await self._answer(Responded(None, (wish,)))
            await asyncio.sleep(random.uniform(0.1, 20))
            result = f"handler_{nth} = {step}\n" + "x y z " * (random.randint(20, largest) // 6)
            await self._say(Answered((Return(call, tool, result),)))
        await self._answer(Responded(f"Changed handler_{nth} in src/part_{nth}.py; it is done."))

    async def _say(self, said):
        payloads = spelled("pydantic-ai", said)
        self.ending.said += payloads
        await self.session.say(*payloads)

    async def _answer(self, said):
        request = await self._accepted()
        if request is None:
            self.ending.unanswered += 1
        payloads = spelled("pydantic-ai", said)
        self.ending.said += payloads
        sent = request.plan.account.sent if request else 0
        await self.session.answer(*payloads, usage=Usage(sent, 50) if self.reports else None)

    async def _accepted(self):
        """A request that the provider takes; after each refusal with less, as hosts do it."""
        for refusals in range(len(TIGHTER) + 1):
            before = now()
            request = await self.session.request(forced=refusals > 0)
            self.ending.waits.append(now() - before)
            account = request.plan.account
            self.ending.problems += request.wire.problems(request.messages)
            if account.sent > account.limit:
                self.ending.problems.append(f"{account.sent} of {account.limit} tokens")
            await asyncio.sleep(self.random.uniform(0.5, 15))
            if account.sent <= self.takes:
                return request
            self.ending.refusals += 1
            if self.names_limit:
                self.setup = replace(self.setup).within(self.takes)
                await self.session.switch(self.setup)
        return None

    def _clock(self):
        hours = self.random.uniform(-30, 30) if self.jumps and self.random.random() < 0.1 else 0
        self._moment += timedelta(seconds=1, hours=hours)
        return self._moment


def _dealt(seed, models):
    """What is wrong with the models of a process: two processes together have each fault once."""
    deck = [*FAULTS]
    Random(seed // 2).shuffle(deck)  # noqa: S311 - as above
    return (deck * models)[models * (seed % 2) :][:models]


def _tokens(summary):
    return sum(COUNTER.text(one.text) + PER_MESSAGE for one in summary.shown)
