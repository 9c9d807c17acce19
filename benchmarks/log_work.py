"""What is written to a log that is measured, whatever it is stored in."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random
from time import perf_counter
from uuid import UUID, uuid4

from refold.log import Author, Draft, FoldCompleted, FoldStarted, Log, Message, Opened, Span

BODY = json.dumps({"role": "user", "content": Random(1).randbytes(480).hex()}).encode()
PER_BLOCK = 96
VIEW = 200
DEEP = 40
_BATCH = 1_000


async def in_turns(block: int, *works: Callable[[], Awaitable[None]]) -> list[float]:
    """The time each work takes; who begins changes from block to block."""
    times = [0.0] * len(works)
    for turn in range(len(works)):
        at = (block + turn) % len(works)
        start = perf_counter()
        await works[at]()
        times[at] = perf_counter() - start
    return times


async def our_block(log: Log, drafts: dict[str, list[Draft]], head: int) -> None:
    async def talk(name: str) -> None:
        for at, draft in enumerate(drafts[name]):
            await log.append(name, [draft], expected=head + at)

    if len(drafts) == 1:
        await talk(*drafts)
    else:
        await asyncio.gather(*map(talk, drafts))


async def fork_deep(log: Log) -> None:
    """A chain of forks, each with words of its own, and one fork as long as the chain."""
    await log.fork("long", "fork 1")
    for at in range(1, DEEP):
        await say(log, f"fork {at}", 2)
        await log.fork(f"fork {at}", f"fork {at + 1}")
    await say(log, "fork 1", 2 * DEEP)


async def fill(log: Log, name: str, entries: int) -> None:
    """A session whose view needs its last entries only: a fold stands for the rest."""
    author = Author()
    await log.append(name, [author.draft(Opened("bench", "balanced"))], expected=0)
    await say(log, name, entries - VIEW - 1)
    spans = (Span(2, entries - VIEW),)
    fold = uuid4()
    values = FoldStarted(fold, spans, "manual"), FoldCompleted(fold, spans, {"text": "so far"})
    await log.append(name, [author.draft(value) for value in values], expected=None)
    await say(log, name, VIEW - 2)


async def say(log: Log, name: str, count: int) -> None:
    """Say the same again and again; to encode it each time would take longer than to store it."""
    once = Author().draft(Message(BODY))
    for first in range(0, count, _BATCH):
        drafts = [
            once._replace(id=UUID(int=once.id.int + at))
            for at in range(first, min(first + _BATCH, count))
        ]
        await log.append(name, drafts, expected=None)
