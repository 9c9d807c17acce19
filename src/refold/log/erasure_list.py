"""The list of what was forgotten, and forgetting it again in a store restored from a backup.

A backup made before a `forget` still has the text. The store knows what it forgot: the names of
removed sessions, and the seqs and ids of entries that are tombstones. Keep the list of these next
to the backups. It holds no text of a conversation, except where a session's name does. A store's
forget journal is such a list too, to which each erasure is appended.

An entry is identified by its seq and id, a session by the id of its first entry. So a new session
of the same name, or an entry written after the restore at the same seq, is not mistaken for the
forgotten one.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
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
    tenant: str
    session: str
    entries: tuple[tuple[PositiveInt, UUID], ...]
    """Their seqs and ids."""


@dataclass(frozen=True, slots=True)
class ForgottenSession:
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
    """What was forgotten again, or in a dry run, what would be."""

    sessions: int = 0
    entries: int = 0
    absent: int = 0
    """Sessions and entries on the list that were not there, or were forgotten already."""
    places: list[str] = field(default_factory=list[str])
    """Each session with its entries, for people."""


def dump_header() -> str:
    return json.dumps(_HEADER)


def dump(forgotten: Forgotten) -> Iterator[str]:
    if isinstance(forgotten, ForgottenSession):
        yield _LINE.dump_json(forgotten).decode()
        return
    for first in range(0, len(forgotten.entries), _MAX_ENTRIES):
        some = forgotten.entries[first : first + _MAX_ENTRIES]
        yield _LINE.dump_json(replace(forgotten, entries=some)).decode()


def parse(lines: Iterable[str]) -> Iterator[Forgotten]:
    """Read a list. Half a line at its end is left out: its writer was killed before it erased."""
    numbered = enumerate(lines, 1)
    _, first = next(numbered, (0, ""))
    if first.strip() != dump_header():
        raise InvalidInput("The file is not a list of forgotten entries.", _WRONG_FILE)
    for number, line in numbered:
        try:
            item = _LINE.validate_json(line)
        except ValidationError as error:
            if not line.endswith("\n"):
                return
            raise InvalidInput(f"Line {number} of the list cannot be read.", _WRONG_FILE) from error
        check_name(item.tenant, "tenant")
        check_name(item.session)
        yield item


async def forget_again(
    store: Store, forgotten: Iterable[Forgotten], *, dry_run: bool = False
) -> ForgottenAgain:
    report = ForgottenAgain()
    sessions: list[ForgottenSession] = []
    for item in forgotten:
        if isinstance(item, ForgottenSession):
            sessions.append(item)
        else:
            await _forget_entries(store.log(item.tenant), item, report, dry_run=dry_run)
    # Forks keep what they read of a removed session, so their own entries are forgotten first.
    for item in sessions:
        await _forget_session(store.log(item.tenant), item, report, dry_run=dry_run)
    return report


async def _forget_entries(
    log: Log, forgotten: ForgottenEntries, report: ForgottenAgain, *, dry_run: bool
) -> None:
    ids = dict(forgotten.entries)
    try:
        head = await log.head(forgotten.session)
        living = [
            entry.seq
            for span in spans_of(sorted(seq for seq in ids if seq <= head))
            for entry in await log.read(forgotten.session, span, whole=False)
            if entry.id == ids[entry.seq] and not entry.forgotten
        ]
        for span in spans_of(living):
            if not dry_run:
                await log.forget(forgotten.session, span)
    except (SessionNotFound, SessionForgotten):
        living = []
    if living:
        spans = ", ".join(_as_text(span) for span in spans_of(living))
        report.places.append(f"{forgotten.tenant}: {forgotten.session}: {spans}")
    report.entries += len(living)
    report.absent += len(ids) - len(living)


def _as_text(span: Span) -> str:
    return f"{span.first}-{span.last}" if len(span) > 1 else str(span.first)


async def _forget_session(
    log: Log, forgotten: ForgottenSession, report: ForgottenAgain, *, dry_run: bool
) -> None:
    try:
        [first] = await log.read(forgotten.session, Span(1, 1), whole=False)
        updated_at = (await log.info(forgotten.session)).updated_at
    except (SessionNotFound, SessionForgotten):
        report.absent += 1
        return
    names = [] if first.id == forgotten.successor else [forgotten.session]
    # As retention does: what its forks forgot too is on the list by itself.
    if dry_run:
        gone = names if updated_at <= forgotten.forgotten_at else []
    else:
        gone = await log.expire(forgotten.forgotten_at + 1, only=names) if names else []
    report.places += [f"{forgotten.tenant}: {session}: all of it" for session in gone]
    report.sessions += len(gone)
    report.absent += 1 - len(gone)
