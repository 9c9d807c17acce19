"""Entries read a page at a time, and written as JSON with their bodies byte for byte."""

import json
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from refold.log import Entry, Log, Span
from refold.service.api.answers import moment

_LOOKED: Final = 2_000
"""Entries that one page looks through for those of some kinds."""
_PAGE: Final = 500
_WEIGHT: Final = 32 * 1024 * 1024
"""Bytes of bodies after which a page ends, however few entries it has."""


class Read(NamedTuple):
    """Some entries, and where the next page begins."""

    entries: list[Entry]
    head: int
    next: int | None


async def read_page(  # noqa: PLR0913 - a choice each
    log: Log,
    session: str,
    *,
    after: int = 0,
    limit: int = 100,
    kinds: Collection[str] = (),
    whole: bool = True,
) -> Read:
    """The entries behind `after`, of these kinds or of all; what one call costs is bounded."""
    head = await log.head(session)
    found: list[Entry] = []
    at, weight = after, 0
    end = min(head, after + (_LOOKED if kinds else limit))
    while at < end and len(found) < limit:
        span = Span(at + 1, min(end, at + _PAGE))
        for lean in await log.read(session, span, whole=False):
            at = lean.seq
            if kinds and lean.kind not in kinds:
                continue
            entry = await _whole(log, session, lean) if whole and lean.holes else lean
            found.append(entry)
            weight += len(entry.body)
            if len(found) == limit or weight > _WEIGHT:
                end = at
                break
    return Read(found, head, at if at < head else None)


async def _whole(log: Log, session: str, lean: Entry) -> Entry:
    entries = await log.read(session, Span(lean.seq, lean.seq))
    return entries[0] if entries else lean


def entry_json(entry: Entry) -> bytes:
    """An entry as `answers.Entry` has it."""
    about: dict[str, object] = {
        "seq": entry.seq,
        "id": str(entry.id),
        "at": moment(entry.at).isoformat(timespec="milliseconds"),
        "kind": entry.kind,
        "version": entry.version,
        "scope": entry.scope,
        "forgotten": entry.forgotten,
        "attached": list(entry.attached),
        "left_out": [hole.hash for hole in entry.holes],
    }
    return with_raw(about, "body", entry.body)


def with_raw(about: dict[str, object], name: str, raw: bytes) -> bytes:
    """An object with one more member, whose JSON goes in as it is."""
    return dumped(about)[:-1] + b',"' + name.encode() + b'":' + raw + b"}"


def listed(raws: Iterable[bytes]) -> bytes:
    """A list of what is JSON already."""
    return b"[" + b",".join(raws) + b"]"


def dumped(value: object) -> bytes:
    """A value as JSON in ASCII, so that half a character can be written, too."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
