"""What was forgotten, as a list, and forgetting it again in a store that came from a backup.

A backup that was made before a `forget` has the words. The store knows what it forgot: the names of
sessions that are gone, and the places and ids of entries that are tombstones. A list of these is
kept beside the backups. It holds no words of a conversation, except where a session's name does.

An entry is known by its place and its id, and a session by the id of its first entry. So a session
that was begun again by the same name, or an entry that was written after the restore in a place
where another one was, is not taken for the forgotten one.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias
from uuid import UUID

from pydantic import PositiveInt, TypeAdapter, ValidationError

from refold.errors import InvalidInput, SessionForgotten, SessionNotFound
from refold.log.entry import Span, check_name, spans_of
from refold.log.protocol import Log, Store

_HEADER: Final = {"refold": "forgotten", "version": 1}
_MAX_ENTRIES: Final = 1_000  # in one line
_WRONG_FILE: Final = "Give a file that `refold store forgotten` wrote."


@dataclass(frozen=True, slots=True)
class ForgottenEntries:
    """Entries of a session that are tombstones."""

    tenant: str
    session: str
    entries: tuple[tuple[PositiveInt, UUID], ...]
    """Their seqs and ids."""


@dataclass(frozen=True, slots=True)
class ForgottenSession:
    """The name of a session that was forgotten whole."""

    tenant: str
    session: str
    forgotten_at: int
    """Milliseconds since 1970, and not before anything that was written in it."""
    successor: UUID | None = None
    """The first entry of the session that has the name now, if there is one."""


Forgotten: TypeAlias = ForgottenEntries | ForgottenSession
_LINE: Final[TypeAdapter[Forgotten]] = TypeAdapter(Forgotten)


@dataclass(slots=True)
class ForgottenAgain:
    """What was forgotten again."""

    sessions: int = 0
    entries: int = 0
    absent: int = 0
    """Sessions and entries on the list that were not there, or were forgotten already."""


def dump_header() -> str:
    """The first line of a list."""
    return json.dumps(_HEADER)


def dump(forgotten: Forgotten) -> Iterator[str]:
    """The lines of a list that stand for this."""
    if isinstance(forgotten, ForgottenSession):
        yield _LINE.dump_json(forgotten).decode()
        return
    for at in range(0, len(forgotten.entries), _MAX_ENTRIES):
        some = forgotten.entries[at : at + _MAX_ENTRIES]
        yield _LINE.dump_json(replace(forgotten, entries=some)).decode()


def parse(lines: Iterable[str]) -> Iterator[Forgotten]:
    """What a list holds."""
    numbered = enumerate(lines, 1)
    _, first = next(numbered, (0, ""))
    if first.strip() != dump_header():
        raise InvalidInput("The file is no list of what was forgotten.", _WRONG_FILE)
    for number, line in numbered:
        try:
            found = _LINE.validate_json(line)
        except ValidationError as error:
            raise InvalidInput(f"Line {number} of the list cannot be read.", _WRONG_FILE) from error
        check_name(found.tenant, "tenant")
        check_name(found.session)
        yield found


async def forget_again(store: Store, forgotten: Iterable[Forgotten]) -> ForgottenAgain:
    """Forget what the list names, as far as it is there."""
    done = ForgottenAgain()
    sessions: list[ForgottenSession] = []
    for item in forgotten:
        if isinstance(item, ForgottenSession):
            sessions.append(item)
        else:
            await _forget_entries(store.log(item.tenant), item, done)
    # Forks keep what they read of a session that goes, so what they forgot goes first.
    for item in sessions:
        await _forget_session(store.log(item.tenant), item, done)
    return done


async def _forget_entries(log: Log, forgotten: ForgottenEntries, done: ForgottenAgain) -> None:
    ids = dict(forgotten.entries)
    try:
        head = await log.head(forgotten.session)
        found = [
            entry.seq
            for span in spans_of(sorted(seq for seq in ids if seq <= head))
            for entry in await log.read(forgotten.session, span, whole=False)
            if entry.id == ids[entry.seq] and not entry.forgotten
        ]
        for span in spans_of(found):
            await log.forget(forgotten.session, span)
    except (SessionNotFound, SessionForgotten):
        found = []
    done.entries += len(found)
    done.absent += len(ids) - len(found)


async def _forget_session(log: Log, forgotten: ForgottenSession, done: ForgottenAgain) -> None:
    try:
        [first] = await log.read(forgotten.session, Span(1, 1), whole=False)
    except (SessionNotFound, SessionForgotten):
        done.absent += 1
        return
    names = [] if first.id == forgotten.successor else [forgotten.session]
    # As retention does: what was forgotten in its forks, too, is on the list by itself.
    gone = await log.expire(forgotten.forgotten_at + 1, only=names) if names else []
    done.sessions += len(gone)
    done.absent += 1 - len(gone)
