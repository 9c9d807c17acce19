"""What is done when a crash comes: the same in every run, down to the ids and the times."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random

from refold.errors import RefoldError, SessionForgotten
from refold.log import (
    Appended,
    Artifact,
    Author,
    Draft,
    FoldCompleted,
    FoldStarted,
    Log,
    Message,
    Opened,
    PartRef,
    Pinned,
    Span,
    Titled,
    Value,
)
from refold.log.outline import MAX_SEGMENTS
from refold.stores import SqliteStore
from refold.stores.sql import Reach, onwards
from refold.stores.sqlite.read import PIECE
from refold.testing.strategies import TickingClock

SECRETS = ("quetzalcoatl", "xylophonist", "Ytterbium-Zwischenfall")
"""Only in what is forgotten: in a small body, a large one, and an attached artifact."""
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
TODAY = datetime(2026, 6, 1, tzinfo=UTC)
LAST_YEAR = int(datetime(2025, 6, 1, tzinfo=UTC).timestamp() * 1000)
_FILL = "." * 17_000 + " "  # more than is stored in an entry's own row, and no word of it


def open_store(path: Path | str, reach: Reach = onwards, wait: float = 30.0) -> SqliteStore:
    """A store whose clock stands still, so that two runs write the same."""
    return SqliteStore(path, reach=reach, clock=lambda: TODAY, wait=wait)


def message(text: str) -> Message:
    return Message(json.dumps({"role": "user", "content": text}).encode())


def drafts(
    seed: str, *values: Value, attached: bytes | None = None, start: datetime = TODAY
) -> list[Draft]:
    """Drafts of the values, the same whenever they are made from the same seed."""
    random = Random(seed)  # noqa: S311 - ids that come again
    author = Author(TickingClock(start - timedelta(hours=1)), random)
    artifacts = () if attached is None else (Artifact.of(attached, "text/plain"),)
    return [author.draft(value, artifacts=artifacts) for value in values]


async def prepare(log: Log) -> None:
    """What is in the store, and acknowledged, before anything goes wrong."""
    opened = Opened("test", "balanced")
    secrets = [message(SECRETS[0]), message(_FILL + SECRETS[1]), message("a known word")]
    attached = SECRETS[2].encode()
    doomed = drafts("doomed", opened, *secrets, attached=attached)
    kept = [message("kept words"), message(_FILL), message(_FILL), Pinned((PartRef(2, 0),))]
    await log.append("kept", drafts("kept", opened, *kept), expected=0)
    await log.append("doomed", doomed, expected=0)
    await log.append("doomed", drafts("more", *_folded("doomed", Span(2, 3))), expected=None)
    await log.fork("doomed", "branch", at=4)
    await log.append("branch", drafts("branch", message("branch words")), expected=4)
    for name in ("old", "older"):
        what = drafts(name, opened, *secrets, attached=attached, start=LONG_AGO)
        await log.append(name, what, expected=0)
    await log.search("words")
    await log.append("doomed", drafts("last", message(f"not indexed {SECRETS[0]}")), expected=None)
    await log.append("kept", drafts("late", message("late words")), expected=None)
    await log.fork("kept", "deep-0")
    for depth in range(MAX_SEGMENTS):
        name = f"deep-{depth}"
        body = _FILL + name if depth < 2 else name  # the first two are what a copying fork copies
        await log.append(name, drafts(name, message(body)), expected=None)
        if depth < MAX_SEGMENTS - 1:
            await log.fork(name, f"deep-{depth + 1}")


def _folded(seed: str, span: Span) -> list[Value]:
    fold = drafts(f"fold {seed}", Titled(""))[0].id
    return [
        FoldStarted(fold, (span,), "tokens"),
        FoldCompleted(fold, (span,), f"it was about {SECRETS[0]}"),
    ]


async def fill(log: Log) -> tuple[int, RefoldError]:
    """Append until the store refuses; how many it took, and why no more."""
    for number in count():
        try:
            await log.append("full", filling(number), expected=number)
        except RefoldError as error:
            return number, error
    raise AssertionError


def filling(number: int) -> list[Draft]:
    """The next append to a store that fills up: too large for small remainders of room."""
    value = message(f"{number} " + "." * 60_000) if number else Opened("test", "balanced")
    return drafts(f"fill {number}", value)


async def opening(_log: Log) -> None:
    """Opening the store is all."""


async def append(log: Log) -> list[Appended]:
    return [await log.append("kept", drafts("one", message("one more")), expected=6)]


async def upload(log: Log) -> list[Appended]:
    """A message that is written in pieces before the entry that uses it."""
    large = message("long " * (3 * PIECE // 5))
    return [await log.append("kept", drafts("upload", large), expected=6)]


async def batch(log: Log) -> list[Appended]:
    values = [message(_FILL), message(_FILL + "new"), Titled("named"), Pinned((PartRef(1, 0),))]
    values += _folded("batch", Span(2, 3))
    return [await log.append("kept", drafts("batch", *values), expected=6)]


async def together(log: Log) -> list[Appended]:
    """Appends to several sessions, old and new, that share one commit."""
    opened = Opened("test", "balanced")
    many = {
        "kept": (6, drafts("t1", message("shared"))),
        "new-1": (0, drafts("t2", opened, message(_FILL))),
        "branch": (None, drafts("t3", message(_FILL + "x"), Titled("b"))),
        "new-2": (0, drafts("t4", opened, message("hello"))),
    }
    waiting = (log.append(name, what, expected=at) for name, (at, what) in many.items())
    return await asyncio.gather(*waiting)


async def fork(log: Log) -> None:
    await log.fork("kept", "forked", at=5)


async def fork_with_copies(log: Log) -> None:
    await log.fork(f"deep-{MAX_SEGMENTS - 1}", "copied")


async def search(log: Log) -> None:
    assert await log.search("late")


async def forget_span(log: Log) -> None:
    await log.forget("doomed", Span(2, 3))


async def forget_session(log: Log) -> None:
    try:
        await log.forget("doomed")
    except SessionForgotten:
        return  # an earlier run came so far


async def expire(log: Log) -> None:
    await log.expire(LAST_YEAR)


Scenario = Callable[[Log], Awaitable[list[Appended] | None]]
SCENARIOS: dict[str, Scenario] = {
    one.__name__: one
    for one in (
        opening,
        append,
        upload,
        batch,
        together,
        fork,
        fork_with_copies,
        search,
        forget_span,
        forget_session,
        expire,
    )
}


async def play(path: Path | str, scenario: str, reach: Reach = onwards) -> list[Appended]:
    """Open the store, do it, close."""
    async with open_store(path, reach) as store:
        return await SCENARIOS[scenario](store.log()) or []
