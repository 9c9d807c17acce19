"""Sessions that random histories act on: what is said in them, and how a step is carried out."""

import asyncio
import json
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sessions import Quarter

from refold.engine import LocalEngine
from refold.errors import FoldError
from refold.fold.compactor import Compactor
from refold.fold.extractive import extractive_summary
from refold.log import Entry, Span
from refold.session import Session, Setup, Usage
from refold.testing.wire import SPELLINGS, Answered, Asked, Call, Responded, Return, Thought
from refold.view import PROFILES

COUNTER = Quarter()


def _small(profile):
    """The same profile with values that a few messages reach."""
    trigger = profile.trigger.model_copy(
        update={
            name: low
            for name, low in {
                "messages": 8,
                "turns": 3,
                "tokens": 500,
                "at_least": 0,
                "savings": 0,
            }.items()
            if getattr(profile.trigger, name)
        }
    )
    keep = profile.fold.keep
    if keep.unit == "messages":
        keep = keep.model_copy(update={"amount": 4, "least": 2})
    fold = profile.fold.model_copy(update={"keep": keep})
    window = profile.window.model_copy(
        update={
            name: low
            for name, low in {
                "max_messages": 8,
                "max_turns": 3,
                "max_tokens": 500,
                "recent_messages": 8,
                "recent_tokens": 300,
            }.items()
            if getattr(profile.window, name)
        }
    )
    rewrite = profile.rewrite.model_copy(update={"at_least": 0})
    new = {"trigger": trigger, "fold": fold, "window": window, "rewrite": rewrite}
    return profile.model_copy(update=new)


PROFILED = [_small(PROFILES["balanced"]), *map(_small, PROFILES.values())]


@cache
def _spelled(format, said):  # noqa: A002 - the glossary's word
    return tuple(json.dumps(one).encode() for one in SPELLINGS[format].spell(_thawed(said)))


def _thawed(said):
    """What is said, with arguments that were kept as text so that it can be hashed."""
    if isinstance(said, Responded):
        return said._replace(
            calls=tuple(one._replace(args=json.loads(str(one.args))) for one in said.calls)
        )
    return said


class AtOnce(ThreadPoolExecutor):
    """Threads that are none: what they do is done at once, and a history can be played again."""

    def submit(self, work, /, *given, **named):
        done = Future()
        try:
            done.set_result(work(*given, **named))
        except Exception as error:  # noqa: BLE001 - who waits for it is told
            done.set_exception(error)
        return done


class Writer:
    """Writes summaries, or fails to, or waits until it is told."""

    def __init__(self):
        self.mode = "ok"
        self._waiting = []

    async def __call__(self, material, job, steps):  # noqa: ARG002 - a writer takes them
        if self.mode == "hold":
            gate = asyncio.Event()
            self._waiting.append(gate)
            await gate.wait()
        if self.mode == "fail":
            raise RuntimeError("the model is out")
        return extractive_summary(material)

    def release(self, mode="ok"):
        self.mode = mode
        for gate in self._waiting:
            gate.set()
        self._waiting.clear()


@dataclass
class Thread:
    """A session under test, and what is known of it from outside."""

    name: str
    session: Session
    seen: list[Entry] = field(default_factory=list)
    """Every entry, as it was when it was first read."""
    sent: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    """The messages of each request, by its record."""
    shots: dict[int, tuple] = field(default_factory=dict)
    """What was seen when an entry was the newest."""
    since: int = 0
    """The head when the session was opened, or went on for another model."""
    other: Session | None = None

    @property
    def head(self):
        return len(self.seen)

    @property
    def live(self):
        return self.session._live

    @property
    def inputs(self):
        return self.live.view.inputs


class Acting:
    """Sessions over one store, and what can be done in them."""

    log: Any
    format: str
    setup: Setup

    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        self.runner.get_loop().set_default_executor(AtOnce())
        self.writer = Writer()
        self.threads = []
        self.asked = []
        self.gone = set()
        self.told = {}
        self.engines = {}
        self.sound = False
        self.store: Any = None

    def new_store(self) -> Any:
        raise NotImplementedError

    async def sent(self, *, forced=False) -> Any:
        raise NotImplementedError

    @property
    def thread(self):
        return self.threads[-1]

    def run(self, work):
        self.sound = False
        return self.runner.get_loop().run_until_complete(self._through(work))

    async def _through(self, work):
        """Do it; what waits for a held writer lets it go on."""
        task = asyncio.ensure_future(work)
        if self.writer.mode == "hold":
            await self._turns(task)
            if not task.done():
                self.writer.release()
        return await task

    async def _turns(self, task):
        """Until it is done, or nothing goes on but what is held."""
        loop: Any = asyncio.get_running_loop()
        ready = loop._ready
        idle = 0
        while not task.done() and idle < 2:
            await asyncio.sleep(0)
            idle = 0 if ready else idle + 1

    def tried(self, work, *errors):
        """What is done, or None when it is refused in one of these ways."""
        try:
            return self.run(work)
        except errors:
            return None

    def later(self, work):
        """Begin it and go on."""

        async def start():
            self.asked.append(asyncio.ensure_future(work))
            await self._turns(self.asked[-1])

        self.sound = False
        # Not by `run`: two that wait until nothing goes on keep each other going.
        self.runner.get_loop().run_until_complete(start())

    async def opened(self, name):
        engine = LocalEngine(self.log, Compactor(self.log, COUNTER, self.writer))
        told = Counter()

        def watch(event):
            told[event.NAME.rpartition("_")[2]] += 1

        how = {"format": self.format, "engine": engine, "watch": watch}
        session = await Session.open(self.log, name, self.setup, **how)
        self.told[session], self.engines[session] = told, engine
        return session

    async def reopened(self, thread):
        await self.closed(thread.session)
        if thread.other is not None:
            await self.closed(thread.other)
        thread.other = None
        thread.session = await self.opened(thread.name)
        thread.since = thread.session.head

    async def closed(self, session):
        await session.close()
        await self.engines.pop(session).close()

    def caught_up(self):
        self.run(self.thread.live.catch_up())

    async def quiet(self):
        for task in self.asked:
            await asyncio.wait({task})
            if task.exception() is not None and not isinstance(task.exception(), FoldError):
                raise task.exception()
        self.asked.clear()
        for thread in self.threads:
            for session in filter(None, (thread.session, thread.other)):
                while works := self.engines[session]._active:
                    await asyncio.wait({work.task for work in works.values()})
                await session._live.catch_up()
        await self.read_on()

    def payloads(self, *said):
        return [one for each in said for one in _spelled(self.format, each)]

    async def say(self, *said):
        payloads = self.payloads(*said)
        if payloads:  # a format may keep system content elsewhere
            await self.thread.session.say(*payloads)

    async def answer(self, said, usage=None):
        await self.thread.session.answer(*self.payloads(said), usage=usage)

    def replied(self, n):
        thought = Thought("Hm. " * (n % 9), signed=n % 2 == 0) if n % 5 == 0 else None
        return Responded(f"Done with {n % 50}. " * (1 + n % 3 * 8), thought=thought)

    def calling(self, n):
        head = self.thread.inputs.head
        calls = tuple(
            Call(f"c{head}_{each}", *_WISHES[(n + each) % len(_WISHES)])
            for each in range(1 + n % 3)
        )
        return Responded("On it." if n % 2 else None, calls)

    def one_move(self, n):
        self.run(self.moved(n))

    def one_turn(self, n):
        self.run(self.turned(n))

    async def moved(self, n):
        rows = self.thread.inputs.rows
        calls = [part for part in rows[-1].parts if part.kind == "call"] if rows else []
        if calls and n % 5:
            answered = calls[: max(1, len(calls) - (n % 7 == 0))]
            await self.say(Answered(tuple(_return(one, n + at) for at, one in enumerate(answered))))
        elif calls or not rows or rows[-1].role == "assistant":
            await self.say(prompted(n))
        elif await self.sent():
            said = self.calling(n // 4) if n % 2 else self.replied(n // 4)
            await self.answer(said, Usage(100, 10) if n % 3 == 0 else None)

    async def turned(self, n):
        await self.say(prompted(n))
        if n % 2:
            await self.sent()
            await self.answer(self.calling(n))
            await self.moved(1)
        await self.sent()
        await self.answer(self.replied(n // 8))

    async def read_on(self):
        """Look at what was appended, everywhere."""
        for thread in self.threads:
            head = await self.log.head(thread.name)
            if head > thread.head:
                thread.seen += await self.log.read(thread.name, Span(thread.head + 1, head))

    async def end(self):
        self.writer.release()
        for task in self.asked:
            task.cancel()
            await asyncio.wait({task})
        for session in [*self.engines]:
            await self.closed(session)
        if self.store is not None:
            await self.store.close()


def prompted(n):
    return Asked(f"Look at src/app_{n % 40}.py." if n % 3 else f"A wish, number {n % 60}. " * 9)


def _return(call, n):
    return Return(call.call, call.tool, _RESULTS[n % len(_RESULTS)])


_WISHES = (
    ("read_file", '{"path": "src/app_main.py"}'),
    ("search", '{"query": "why this fails", "limit": 5}'),
    ("write_file", json.dumps({"path": "a.txt", "content": "line\n" * 40})),
    ("list_files", "{}"),
)
_RESULTS = ("ok", "line of output\n" * 40, "", "ファイルの内容です。" * 30, "error: no such file")
