"""What the hosts do in the chaos test: they talk in many sessions, and ask for folds."""

import asyncio
import signal
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import uuid4

from chaos_summarizer import NAMES
from scenarios import message

from refold.engine import Engine
from refold.errors import StoreError
from refold.fold.compactor import context
from refold.fold.job import Job
from refold.log import Author, Log, Message, Opened
from refold.log.entry import spans_of, subtract
from refold.view.profiles import BALANCED

Report = Callable[[Any], None]
_KEPT = 2
_ENOUGH = 8  # messages that make a fold due
_WORDS = "we looked at the thing and it was as before, so the work goes on; "


def tenants(count: int) -> list[str]:
    return [f"tenant {at}" for at in range(count)]


def sessions(tenant: str, count: int) -> list[str]:
    return [f"{tenant}, session {at}" for at in range(count)]


async def due(log: Log, session: str, random: Random) -> Job | None:
    """What a host would fold now: the messages that no fold stands for, but not the newest."""
    visible = await log.visible(session, last=0)
    outline, head = visible.outline, visible.info.entries
    if outline.running:
        return None
    bare = subtract(outline.on_line(head), (s for fold in outline.folds for s in fold.spans))
    seqs = [
        entry.seq
        for span in bare
        for entry in await log.read(session, span, whole=False)
        if entry.kind == Message.KIND
    ]
    spans = spans_of(seqs[:-_KEPT])
    if len(seqs) < _ENOUGH or not spans:
        return None
    known = context(BALANCED.fold, {}, summarizer=random.choice(NAMES))
    trigger = random.choice(["soft", "soft", "hard", "manual"])
    return Job(session, uuid4(), spans, trigger, context=known, head=head)


class Host:
    """One tenant's sessions, for as long as it is let."""

    def __init__(self, log: Log, engine: Engine, names: list[str], random: Random):
        self._log = log
        self._engine = engine
        self._names = names
        self._random = random
        self._author = Author()
        self.figures: Counter[str] = Counter()

    async def open(self) -> None:
        for name in self._names:
            opening = self._author.draft(Opened("openai-chat", "balanced"))
            await self._log.append(name, [opening], expected=0)

    async def talk(self, stop: asyncio.Event) -> None:
        """Each session by itself; a store that is away for long is met again."""
        async with asyncio.TaskGroup() as group:
            for name in self._names:
                group.create_task(self._session(name, stop))

    async def settle(self) -> None:
        """Look after what was left half, as whoever opens a session does."""
        await asyncio.gather(*map(self._engine.recover, self._names))

    async def _session(self, name: str, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self._turn(name)
            except StoreError as error:
                self.figures[type(error).__name__] += 1
            await asyncio.sleep(self._random.uniform(0.2, 1.2))

    async def _turn(self, name: str) -> None:
        said = [message(_WORDS * self._random.randint(1, 6)) for _ in range(2)]
        drafts = [self._author.draft(one) for one in said]
        await self._log.append(name, drafts, expected=None)
        self.figures["messages"] += len(drafts)
        job = await due(self._log, name, self._random)
        if job is None:
            return
        asked = await self._engine.start(job)
        self.figures["asked for" if asked else "not begun"] += 1
        what = self._random.random()
        if what < 0.3:
            await self._engine.wait(name, job.fold, timeout=2.0)
        elif what < 0.35:
            await self._engine.cancel(name, job.fold)
            self.figures["cancelled"] += 1
        elif what < 0.4:
            await self._engine.recover(name)


def told_to_stop() -> asyncio.Event:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    return stop
