"""Recorded sessions, played into a log as an agent would have written them."""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from refold.fold.events import CompactionComplete
from refold.fold.job import Job, Steps
from refold.fold.material import Material
from refold.fold.summary import Summary
from refold.lab import Recording
from refold.lab.session_policy import placeholder_summary
from refold.log import Author, Log
from refold.models.experience import Setup
from refold.session import Session

MODEL = "openai:gpt-4o"
PACE = timedelta(seconds=20)
"""Between two messages, where a recording does not say."""


class Played(NamedTuple):
    """What one session came to."""

    appends: int
    reads: int
    folds: int
    shown: int
    """Tokens that the summarizer was shown."""
    written: int


class Counting:
    """A log that counts what is asked of it."""

    def __init__(self, log: Log) -> None:
        self.calls: Counter[str] = Counter()
        self._log = log

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the log has
        self.calls[name] += 1
        return getattr(self._log, name)


async def play_all(log: Log, recordings: Iterable[Recording]) -> list[Played]:
    setup = Setup.of(MODEL)
    return [await play(log, f"{at}", one, setup) for at, one in enumerate(recordings)]


async def play(log: Log, name: str, recording: Recording, setup: Setup) -> Played:
    """Play it: what was said, a request before each answer, the answer."""
    counting = Counting(log)
    usages: list[dict[str, int]] = []

    def watch(event: object) -> None:
        if isinstance(event, CompactionComplete) and event.success:
            usages.append(cast("dict[str, int]", event.usage or {}))

    now = datetime(2026, 1, 1, tzinfo=UTC)
    author = Author(clock=lambda: now)
    session = await Session.open(
        cast("Log", counting), name, setup, watch=watch, write=_write, author=author
    )
    said: list[bytes] = []
    for one in recording.messages:
        now = now + PACE if one.at is None else datetime.fromtimestamp(one.at / 1000, UTC)
        if json.loads(one.payload)["kind"] == "response":
            if said:
                await session.say(*said)
            said = []
            await session.request()
            await session.answer(one.payload)
        else:
            said.append(one.payload)
    if said:
        await session.say(*said)
    await session.close()
    appends = counting.calls["append"]
    return Played(
        appends=appends,
        reads=counting.calls.total() - appends - counting.calls["locks"],
        folds=len(usages),
        shown=sum(one.get("input", 0) for one in usages),
        written=sum(one.get("output", 0) for one in usages),
    )


async def _write(material: Material, job: Job, steps: Steps) -> Summary:
    """A summary as long as a model's, whose one call is a step of the fold, as a real one is."""
    summary = await placeholder_summary(material, job, steps)
    await steps.step("summary", lambda: _answer(summary.words))
    return summary


async def _answer(words: str) -> str:
    return words
