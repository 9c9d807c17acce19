"""What the writers of the kill test write: each operation follows from its writer and its number.

So a writer that replaces a killed one makes the same drafts again, and the test knows every byte
that must be in the store without being told.
"""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from scenarios import drafts, message, open_store

from refold.errors import Conflict
from refold.log import (
    Draft,
    FoldCompleted,
    FoldStarted,
    Log,
    Message,
    Note,
    Opened,
    PartRef,
    Pinned,
    Span,
    Titled,
    Value,
)

WRITERS = 8
SHARED = "shared"
OPENING = Opened("test", "balanced")
_LARGE = 17_000
_POLITE = 3  # conflicts after which a writer goes wherever the head is, so that none starves
Report = Callable[[Any], None]


@dataclass(frozen=True)
class Append:
    """One append of an operation: to which session, and whether at a known head or anywhere."""

    session: str
    drafts: list[Draft]
    anywhere: bool


def sessions_of(writer: int) -> list[str]:
    """Two writers share a session, some have one, and some write to three at once."""
    if writer < 2:
        return [SHARED]
    return [f"writer-{writer}-{at}" for at in range(1 if writer < 5 else 3)]


def operation(writer: int, number: int) -> list[Append]:
    """The appends that are made at the same time."""
    random = Random(f"{writer} {number}")  # noqa: S311 - to be the same again
    names = sessions_of(writer)
    if number == 0 and names != [SHARED]:
        return [_append(writer, number, name, [OPENING], anywhere=False) for name in names]
    if random.random() < 0.1:
        names = [*names, SHARED] if SHARED not in names else names
    return [
        _append(
            writer,
            number,
            name,
            _values(random, f"{writer}-{number}"),
            anywhere=name == SHARED and (writer >= 2 or random.random() < 0.3),
        )
        for name in names
    ]


def _append(writer: int, number: int, session: str, values: list[Value], *, anywhere: bool):
    return Append(session, drafts(f"{writer} {number} {session}", *values), anywhere)


def _values(random: Random, mark: str) -> list[Value]:  # noqa: PLR0911 - one for each kind
    """A message, a batch, a large one, or entries that move the outline."""
    kind = random.random()
    if kind < 0.5:
        return [message(f"word {mark}")]
    if kind < 0.7:
        return [message(f"word {at} of {mark}") for at in range(random.randint(2, 8))]
    if kind < 0.8:
        return [_large(random, mark), message(f"after {mark}")]
    if kind < 0.85:
        return [Note(f"note {mark}", {"n": random.random()})]
    if kind < 0.9:
        return [Titled(f"title {mark}"), message("x")]
    if kind < 0.95:
        return [Pinned((PartRef(1, random.randint(0, 9)),))]
    fold = drafts(f"fold {mark}", OPENING)[0].id
    spans = (Span(1, 1),)
    return [FoldStarted(fold, spans, "test"), FoldCompleted(fold, spans, f"summary {mark}")]


def _large(random: Random, mark: str) -> Message:
    """Often the same as others have written, so that artifacts are shared."""
    own = mark if random.random() < 0.3 else ""
    return message("." * _LARGE * random.randint(1, 3) + own)


async def write(report: Report, path: str, writer: int, number: int) -> None:
    """Write to a file from operation `number` on, until told to stop."""
    async with open_store(path) as store:
        await write_to(store.log(), report, writer, number, search_every=20)


async def write_to(
    log: Log, report: Report, writer: int, number: int, *, search_every: int
) -> None:
    """Write from operation `number` on, until told to stop."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    heads: dict[str, int] = {}
    while not stop.is_set():
        if writer == 2 and (number + 1) % search_every == 0:  # kills meet the word index too
            await log.search("word")
        await asyncio.gather(
            *(
                _reported(report, log, (number, at), one, heads)
                for at, one in enumerate(operation(writer, number))
            )
        )
        number += 1


async def _reported(
    report: Report,
    log: Log,
    which: tuple[int, int],
    append: Append,
    heads: dict[str, int],
) -> None:
    what = (*which, append.session)
    report(["intent", *what])
    conflicts = 0
    while True:
        anywhere = append.anywhere or conflicts > _POLITE
        expected = None if anywhere else heads.get(append.session, 0)
        try:
            done = await log.append(append.session, append.drafts, expected=expected)
        except Conflict:
            conflicts += 1
            heads[append.session] = await log.head(append.session)
        else:
            break
    heads[append.session] = done.last
    report(["ack", *what, done.first, done.last, done.repeated, conflicts])
