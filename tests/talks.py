"""Sessions over a real log, driven as a host drives them: small budgets, given summaries."""

import asyncio
from collections import Counter as Counted
from typing import Any

from folding import spelled
from sessions import Quarter
from shown import changed, turn, used

from refold.engine import LocalEngine
from refold.fold.compactor import Compactor
from refold.fold.summary import Summary
from refold.log import CODEC, FoldCompleted, FoldFailed, FoldStarted, Used
from refold.models.catalog import Prices
from refold.models.experience import Setup
from refold.recall.text import rebuilt
from refold.session import Session
from refold.testing.wire import Asked, Responded
from refold.view import Budget
from refold.view.profiles import BALANCED

COUNTER = Quarter()
PRICES = Prices(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
SAID = "x" * 1_980
"""With it, a message has 500 tokens."""
WORDS = "They read files and went on."
SMALL = changed(
    BALANCED,
    reserve=0,
    trigger={"at_least": 0, "tokens": 0, "savings": 0},
    rewrite={"at_least": 0},
    fold={"apply": "inline", "region_tokens": 0},
    summarizer="primary",
)
"""Folds in windows of a few thousand tokens, and waits for whoever writes the summary."""


def setup(profile=SMALL, window=2_000, prices=PRICES, **budget):
    return Setup("test:model", COUNTER, Budget(window=window, **budget), profile, prices)


class Writer:
    """Writes given words; slow until it is let go, or failing, and counts how often it is asked."""

    def __init__(self, words=WORDS, *, slow=False, fails=False):
        self.words = words
        self.fails = fails
        self.asked = 0
        self.go = asyncio.Event()
        if not slow:
            self.go.set()

    async def __call__(self, material, job, steps):  # noqa: ARG002 - a writer takes it
        self.asked += 1
        self.job, self.material = job, material
        await self.go.wait()
        if self.fails:
            raise RuntimeError("The model is down.")
        return Summary("model:x", title="A title", words=self.words)


class Talk:
    """A session that is open, and what it was told of."""

    def __init__(self, log, session, told, engine):
        self.log = log
        self.session = session
        self.told = told
        self.engine = engine
        self.sent = {}

    @classmethod
    async def open(cls, log, given=None, *, name="s", write=None, watch=None, **how):
        told = []
        watch = watch or told.append
        if write is not None:
            how["engine"] = LocalEngine(log, Compactor(log, COUNTER, write))
        opened = await Session.open(log, name, given or setup(), watch=watch, **how)
        return cls(log, opened, told, how.get("engine"))

    async def settled(self):
        """The fold that is under way has ended, and its end was taken in."""
        seen = await self.log.visible(self.session.name, last=0)
        for one in seen.outline.running:
            await self.engine.wait(self.session.name, one.fold)
        await self.session.cancel()  # there is none to cancel: it looks what is new

    async def say(self, *said):
        return await self.session.say(*spelled("pydantic-ai", *said))

    async def answer(self, said, **how):
        return await self.session.answer(*spelled("pydantic-ai", said), **how)

    async def request(self, **how):
        request = await self.session.request(**how)
        assert request.wire.problems(request.messages) == []
        assert request.plan.account.sent <= request.plan.account.limit
        record = self.session._live.previous  # where its record is
        self.sent[record.seq] = tuple(request.messages)
        return request

    async def go(self, *said, usage=None) -> Any:
        """What is said, with a request before each response; the last request."""
        request = None
        for one in said:
            if isinstance(one, Responded):
                request = await self.request()
                await self.answer(one, usage=usage)
            else:
                await self.say(one)
        return request

    async def values(self, *kinds) -> list[Any]:
        """What the log holds of these kinds."""
        found = map(CODEC.decode, await self.log.read(self.session.name))
        return [one for one in found if isinstance(one, kinds)]

    async def where(self, kind):
        entries = await self.log.read(self.session.name)
        return [entry.seq for entry in entries if entry.kind == kind.KIND]

    async def folds(self):
        """How many were started, completed and failed."""
        found = Counted(type(one) for one in await self.values(*_FOLDS))
        return tuple(found[one] for one in _FOLDS)

    async def costs(self):
        return await self.values(Used)

    async def all_rebuilt(self):
        """Every request of this session is made again as it was sent."""
        for seq, messages in self.sent.items():
            assert await rebuilt(self.log, self.session.name, seq) == messages
        return len(self.sent)

    def events(self, *names):
        """What the watcher was told, by name."""
        return [one for one in self.told if not names or one.NAME in names]


_FOLDS = FoldStarted, FoldCompleted, FoldFailed


def texts(request):
    """What each message of the request says."""
    shapes = (request.wire.describe(one).shapes for one in request.messages)
    return ["\n".join(shape.text for shape in one) for one in shapes]


def work(*numbers, size=400):
    """Turns of four messages each: a file is asked for, read, and told about."""
    for nth in numbers:
        result = f"value_{nth} = {nth}\n" + "x" * size
        step = used(f"c{nth}", "read", result, path=f"src/part_{nth}.py")
        yield from turn(f"Please read src/part_{nth}.py.", step, reply=f"Read part_{nth}.")


def chat(*numbers):
    """Turns of two messages each."""
    for nth in numbers:
        yield from turn(f"Question {nth}?", reply=f"Answer {nth}.")


async def until(truth):
    """Wait for what another task does."""
    async with asyncio.timeout(60):
        while not truth():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)


def of_500(count):
    """So many messages of 500 tokens each, in turns."""
    return [Responded(SAID) if nth % 2 else Asked(f"{nth:04}{SAID[4:]}") for nth in range(count)]
