"""A session to fold, and shorthands for tests of engines."""

import asyncio
from typing import Any
from uuid import uuid4

from refold.engine import Ended, Engine, LoggedSteps
from refold.engine.locks import LockHandle, Locks
from refold.engine.steps import gather_inputs
from refold.fold.job import Job
from refold.log import CODEC, Author, FoldStepped, Log, Message, Opened, Span

JOB = Job("s", uuid4(), (Span(2, 4),), "soft")


async def begin(log: Log, name: str = "s"):
    """A session of four messages."""
    author = Author()
    said = [Message(b'{"content":"message"}')] * 4
    drafts = [author.draft(value) for value in (Opened("openai-chat", "balanced"), *said)]
    await log.append(name, drafts, expected=0)


async def values(log: Log, name: str = "s"):
    """What was appended after the messages, without the steps of folds."""
    there = await everything(log, name)
    return [value for value in there if not isinstance(value, FoldStepped)]


async def everything(log: Log, name: str = "s"):
    """What was appended after the messages."""
    return [CODEC.decode(entry) for entry in (await log.read(name))[5:]]


async def end(engine: Engine, job: Job = JOB) -> Ended:
    """How the fold ended, waited for."""
    ended = await engine.wait(job.session, job.fold)
    assert ended is not None
    return ended


async def folded(engine: Engine, job: Job = JOB) -> Ended:
    """Make a fold: how it ended."""
    assert await engine.start(job)
    return await end(engine, job)


async def taken(locks: Locks, session: str = "s") -> LockHandle:
    """The session's lock, which must be free."""
    held = await locks.take(session)
    assert held is not None
    return held


async def steps_of(log: Log, job: Job = JOB) -> LoggedSteps:
    """The steps of a job that runs, as a process makes them that begins or goes on with it."""
    if not any(one.fold == job.fold for one in (await log.visible("s")).outline.running):
        draft = Author().draft(job.started())._replace(rests_on=job.spans)
        await log.append("s", [draft], expected=None)
    return LoggedSteps(log, job, Author(), await gather_inputs(log, job))


async def recorded(log: Log):
    """The steps of folds."""
    return [value for value in await everything(log) if isinstance(value, FoldStepped)]


class Work:
    """Work that counts how often it is done."""

    def __init__(self, result=None):
        self.result = result
        self.times = 0

    async def __call__(self):
        self.times += 1
        await asyncio.sleep(0)
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


class _Disturbed:
    def __init__(self, log, kind, disturb, times):
        self.log = log
        self.kind = kind
        self.disturb = disturb
        self.times = times
        self.drafts = []

    def __getattr__(self, name):
        return getattr(self.log, name)

    async def append(self, session, drafts, *, expected):
        if drafts[0].kind == self.kind.KIND:
            self.drafts += drafts
            if self.times:
                self.times -= 1
                await self.disturb(session, drafts)
        return await self.log.append(session, drafts, expected=expected)


def disturbed(log: Log, kind, disturb, times: int = 1) -> Any:
    """A log where something happens before the first appends of one kind, or instead of them."""
    return _Disturbed(log, kind, disturb, times)
