"""Consolidation: a model reads a session and puts facts for later ones on the board.

The session itself does not change.
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

MIN_MESSAGES: Final = 6
"""New messages that make a session worth reading automatically."""
MAX_CHUNKS: Final = 8
"""Records that are read at once; the rest is left for the next time."""

_PURPOSE = "board"
_MIN_ROOM = 800  # tokens of a prompt; with less, none are left for the session
_BATCH = 2_000  # entries of a session that are read at once
_MAX_REASON = 200


class Rem(Protocol):
    """A model that reads a record and changes the board with its tool."""

    @property
    def name(self) -> str: ...

    @property
    def counter(self) -> TokenCounter: ...

    @property
    def room(self) -> int:
        """How many tokens a record may have."""
        ...

    async def read(self, guard: str, record: str, board: ContextBoard) -> Mapping[str, int]:
        """Read the record and change the board; returns the tokens that it used."""
        ...


@dataclass(frozen=True, slots=True)
class Consolidated:
    """The result of a consolidation."""

    added: tuple[Fact, ...] = ()
    pruned: tuple[Fact, ...] = ()
    messages: int = 0
    """How many messages were read."""
    left: bool = False
    """Whether there are more to read."""
    usage: Mapping[str, int] = field(default_factory=dict[str, int])


class _Unread(NamedTuple):
    material: Material
    head: int
    """The last entry that was read."""
    more: bool


async def consolidate(log: Log, session: str, board: Board, rem: Rem) -> Consolidated:
    """Read what is new in a session, and change the board accordingly.

    Progress is stored with the changes of each record, so that a record is not read again after a
    crash. Raises NotRemembered if another process changes the board, or if the model fails.
    """
    await log.head(session)  # raises without such a session, before a board is created
    await board.begin()
    lock = await log.locks(_PURPOSE).take(board.session)
    if lock is None:
        raise NotRemembered(
            "Another process is changing the board.", "Wait a moment, and try again."
        )
    try:
        return await _consolidated(log, session, board, rem)
    finally:
        lock.release()


async def is_worth_reading(log: Log, session: str, board: Board) -> bool:
    unread = await _unread(log, session, (await board.state()).read.get(session, 0))
    return unread.more or len(unread.material.passages) >= MIN_MESSAGES


async def _consolidated(log: Log, session: str, board: Board, rem: Rem) -> Consolidated:
    before = await board.state()
    unread = await _unread(log, session, before.read.get(session, 0))
    records = [*islice(_records(unread.material, rem, before.facts), MAX_CHUNKS + 1)]
    usage: Counter[str] = Counter()
    for chunk in records[:MAX_CHUNKS]:
        change, used = await _read(chunk, unread.material, board, rem)
        usage.update(used)
        # An entry may continue in the next record: it counts as read with that one.
        through = unread.head if chunk is records[-1] else max(chunk.entries) - 1
        add = await _without_forgotten(log, session, change.add)
        await board.change(replace(change, add=add, session=session, through=through))
    after = await board.state()
    return Consolidated(
        added=tuple(fact for fact in after.facts if fact not in before.facts),
        pruned=tuple(fact for fact in before.facts if fact not in after.facts),
        messages=len(unread.material.passages),
        left=unread.more or len(records) > MAX_CHUNKS,
        usage=usage,
    )


def _records(material: Material, rem: Rem, facts: tuple[Fact, ...]) -> Iterator[Chunk]:
    overhead = rem.counter.text(_prompt("record").template) + rem.counter.text(_listing(facts))
    room = rem.room - rem.counter.text(GUARD, "system") - 2 * overhead
    if room < _MIN_ROOM:
        raise NotRemembered(
            f"{rem.name} has room for {max(0, room)} tokens of a session.",
            "Choose a model with a larger window.",
        )
    return chunks(material, rem.counter, room)


async def _read(
    chunk: Chunk, material: Material, board: Board, rem: Rem
) -> tuple[Change, Mapping[str, int]]:
    facts = (await board.state()).facts
    entries = {*chunk.entries}
    tool = ContextBoard(facts, Material(tuple(p for p in material.passages if p.seq in entries)))
    prompt = _prompt("record").substitute(board=_listing(facts), transcript=chunk.text)
    try:
        usage = await rem.read(GUARD, prompt, tool)
    except RefoldError:
        raise
    except Exception as error:
        why = one_line(without_secrets(f"{type(error).__name__}: {error}"), _MAX_REASON)
        raise NotRemembered(
            f"{rem.name} did not read the session: {why}",
            "Check that it answers elsewhere, and try again; what was read so far is saved.",
        ) from error
    return tool.change, usage


async def _unread(log: Log, session: str, since: int) -> _Unread:
    """The messages of a session after an entry, without those that were rewound or cleared."""
    info, outline, _ = await log.outlined(session)
    line, wire = outline.on_line(info.entries), wire_for(info.format)
    while since < info.entries:
        head = min(info.entries, since + _BATCH)
        spans = intersect((Span(since + 1, head),), line)
        entries = [entry for span in spans for entry in await log.read(session, span)]
        gathered = await asyncio.to_thread(gather, entries, spans, outline, wire)
        if gathered.passages:
            return _Unread(Material(gathered.passages), head, more=head < info.entries)
        since = head
    return _Unread(Material(()), since, more=False)


async def _without_forgotten(
    log: Log, session: str, facts: tuple[NewFact, ...]
) -> tuple[NewFact, ...]:
    """The facts of which no source was forgotten in the meantime."""
    living: list[NewFact] = []
    for fact in facts:
        spans = [Span(seq, seq) for seq in fact.entries]
        sources = [entry for span in spans for entry in await log.read(session, span, whole=False)]
        if sources and not any(entry.forgotten for entry in sources):
            living.append(fact)
    return tuple(living)


def _listing(facts: tuple[Fact, ...]) -> str:
    return "\n".join(f"{BAR}{fact.number}. {fact.text}" for fact in facts) or "(nothing yet)"


@cache
def _prompt(name: str) -> Template:
    return Template((files("refold.memory") / "prompts" / f"{name}.md").read_text("utf-8"))


GUARD: Final = _prompt("rem").template
"""The model's instructions: what a board is for, and that quotes are data."""
