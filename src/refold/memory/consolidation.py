"""Consolidation: a session is read, and what is worth it goes to the board for later ones.

It is no fold. The session stays as it is to the letter; only the board changes.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import islice
from string import Template
from typing import Final, NamedTuple, Protocol

from refold.errors import NotRemembered, RefoldError
from refold.fold.material import Material, gather
from refold.fold.secrets import without_secrets
from refold.fold.summary import one_line
from refold.fold.write.transcript import BAR, Chunk, chunks
from refold.log import Log, Span
from refold.log.entry import intersect
from refold.memory.board import Board, Change, ContextBoard, Fact, NewFact
from refold.view import Counter as TokenCounter
from refold.wire import wire_for

LEAST: Final = 6
"""New messages that make a session worth reading without being asked to."""
MOST_CHUNKS: Final = 8
"""Records that are read in one go: more is left for the next time."""

_PURPOSE = "board"
_LEAST_ROOM = 800  # tokens of a prompt; with less, nothing is left for what was said
_READ = 2_000  # entries of a session that are read in one go
_WHY = 200


class Rem(Protocol):
    """Reads a record, and changes the board by its tool: a model."""

    @property
    def name(self) -> str:
        """Who it is."""
        ...

    @property
    def counter(self) -> TokenCounter:
        """Counts its tokens."""
        ...

    @property
    def room(self) -> int:
        """How many tokens it may be shown."""
        ...

    async def read(self, guard: str, record: str, board: ContextBoard) -> Mapping[str, int]:
        """Read the record and change the board; the tokens that it took."""
        ...


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What came of it."""

    added: tuple[Fact, ...] = ()
    pruned: tuple[Fact, ...] = ()
    messages: int = 0
    """How many were read."""
    left: bool = False
    """Whether there is more to read."""
    usage: Mapping[str, int] = field(default_factory=dict[str, int])


class _Unread(NamedTuple):
    """What a board does not know of a session yet."""

    material: Material
    head: int
    """How far these entries go."""
    more: bool


async def consolidate(log: Log, session: str, board: Board, rem: Rem) -> Consolidated:
    """Read what is new in a session, and change the board by it.

    Each record is settled with its changes in one append, so what a process had read when it died
    is not read again. Raises NotRemembered when another process does this, or the model fails.
    """
    await log.head(session)  # where there is none, no board is begun
    await board.begin()
    held = await log.locks(_PURPOSE).take(board.session)
    if held is None:
        raise NotRemembered(
            "Another process changes the board now.", "Wait a moment, and try again."
        )
    try:
        return await _consolidated(log, session, board, rem)
    finally:
        held.release()


async def is_worth_reading(log: Log, session: str, board: Board) -> bool:
    """Whether enough is new in a session."""
    unread = await _unread(log, session, (await board.state()).read.get(session, 0))
    return unread.more or len(unread.material.passages) >= LEAST


async def _consolidated(log: Log, session: str, board: Board, rem: Rem) -> Consolidated:
    before = await board.state()
    unread = await _unread(log, session, before.read.get(session, 0))
    records = [*islice(_records(unread.material, rem, before.facts), MOST_CHUNKS + 1)]
    usage: Counter[str] = Counter()
    for chunk in records[:MOST_CHUNKS]:
        change, used = await _read(chunk, unread.material, board, rem)
        usage.update(used)
        # An entry may go on in the next record: it is read when that one is.
        through = unread.head if chunk is records[-1] else max(chunk.entries) - 1
        living = await _living(log, session, change.add)
        await board.change(replace(change, add=living, session=session, through=through))
    after = await board.state()
    return Consolidated(
        added=tuple(one for one in after.facts if one not in before.facts),
        pruned=tuple(one for one in before.facts if one not in after.facts),
        messages=len(unread.material.passages),
        left=unread.more or len(records) > MOST_CHUNKS,
        usage=usage,
    )


def _records(material: Material, rem: Rem, facts: tuple[Fact, ...]) -> Iterator[Chunk]:
    beside = rem.counter.text(_prompt("record").template) + rem.counter.text(_listed(facts))
    room = rem.room - rem.counter.text(GUARD, "system") - 2 * beside
    if room < _LEAST_ROOM:
        raise NotRemembered(
            f"{rem.name} has room for {max(0, room)} tokens of a session.",
            "Choose a model with a larger window.",
        )
    return chunks(material, rem.counter, room)


async def _read(
    chunk: Chunk, material: Material, board: Board, rem: Rem
) -> tuple[Change, Mapping[str, int]]:
    facts = (await board.state()).facts
    shown = {*chunk.entries}
    record = Material(tuple(one for one in material.passages if one.seq in shown))
    tool = ContextBoard(facts, record)
    prompt = _prompt("record").substitute(board=_listed(facts), transcript=chunk.text)
    try:
        usage = await rem.read(GUARD, prompt, tool)
    except RefoldError:
        raise
    except Exception as error:
        why = one_line(without_secrets(f"{type(error).__name__}: {error}"), _WHY)
        raise NotRemembered(
            f"{rem.name} did not read the session: {why}",
            "See whether it answers otherwise, and try again; what was read is kept.",
        ) from error
    return tool.change, usage


async def _unread(log: Log, session: str, since: int) -> _Unread:
    """What was said in a session after an entry, as far as it was not taken back."""
    info, outline, _ = await log.outlined(session)
    line, wire = outline.on_line(info.entries), wire_for(info.format)
    while since < info.entries:
        head = min(info.entries, since + _READ)
        spans = intersect((Span(since + 1, head),), line)
        entries = [entry for span in spans for entry in await log.read(session, span)]
        gathered = await asyncio.to_thread(gather, entries, spans, outline, wire)
        if gathered.passages:
            return _Unread(Material(gathered.passages), head, more=head < info.entries)
        since = head
    return _Unread(Material(()), since, more=False)


async def _living(log: Log, session: str, new: tuple[NewFact, ...]) -> tuple[NewFact, ...]:
    """Those that rest on nothing that was forgotten while they were written."""
    living: list[NewFact] = []
    for one in new:
        spans = [Span(seq, seq) for seq in one.entries]
        found = [entry for span in spans for entry in await log.read(session, span, whole=False)]
        if found and not any(entry.forgotten for entry in found):
            living.append(one)
    return tuple(living)


def _listed(facts: tuple[Fact, ...]) -> str:
    return "\n".join(f"{BAR}{one.number}. {one.text}" for one in facts) or "(nothing yet)"


@cache
def _prompt(name: str) -> Template:
    return Template((files("refold.memory") / "prompts" / f"{name}.md").read_text("utf-8"))


GUARD: Final = _prompt("rem").template
"""The reader's instructions: what a board is for, and that everything quoted is data."""
