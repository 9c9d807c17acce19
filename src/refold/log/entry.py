"""Entries: what the log is made of.

A `Draft` is what a writer makes; an `Entry` is a draft that the log has placed. Both carry their
body as the raw JSON it came in, so that nothing is lost on the way and nothing is parsed that
nobody reads. `refold.log.codec` turns a body into a value and back.
"""

import json
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from refold.errors import InvalidEntry
from refold.log.artifact import Artifact, Hole
from refold.log.span import Span

MAIN_SCOPE = "/"
"""The scope of the session's own work; a delegation's scope is a path below it."""

_TOO_LARGE = 1 << 63
_KIND = re.compile(r"(?=.{1,64}$)[a-z][a-z0-9]*(?:[.-][a-z0-9]+)*")


class Draft(NamedTuple):
    """An entry not yet appended: it has an id and a time, but no seq."""

    id: UUID
    """Made by the writer (uuid7), so that the same append can be repeated safely."""
    at: int
    """Milliseconds since 1970, UTC, by the writer's clock. Only seq orders."""
    kind: str
    version: int
    """The version of the kind's body."""
    body: bytes
    """Raw JSON."""
    scope: str = MAIN_SCOPE
    rests_on: tuple[Span, ...] = ()
    """The entries this one was derived from: when one of them is forgotten, so is this."""
    attached: tuple[Artifact, ...] = ()
    """Artifacts to store together with the entry."""
    forgotten: bool = False
    """A tombstone, as an import brings it."""


class Entry(NamedTuple):
    """One record of a session's log.

    A named tuple, like a draft, because a long view holds thousands and each must cost little.
    """

    seq: int
    """Its position, from 1 without gaps."""
    id: UUID
    at: int
    kind: str
    version: int
    body: bytes
    scope: str = MAIN_SCOPE
    rests_on: tuple[Span, ...] = ()
    holes: tuple[Hole, ...] = ()
    """What was lifted out of the body; none when the entry was read whole."""
    attached: tuple[str, ...] = ()
    """The hashes of the artifacts stored with it."""
    forgotten: bool = False
    """A tombstone: the body holds only what may be kept."""

    @property
    def time(self) -> datetime:
        """When it was written, by its writer's clock."""
        return datetime.fromtimestamp(self.at / 1000, UTC)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Every hash the entry refers to, once for each reference."""
        return (*(hole.hash for hole in self.holes), *self.attached)


def placed(
    draft: Draft, seq: int, body: bytes | None = None, holes: tuple[Hole, ...] = ()
) -> Entry:
    """The entry that a draft becomes at a position; with `body`, what was left of its own."""
    return Entry(
        seq,
        draft.id,
        draft.at,
        draft.kind,
        draft.version,
        draft.body if body is None else body,
        draft.scope,
        draft.rests_on,
        holes,
        tuple(artifact.hash for artifact in draft.attached) if draft.attached else (),
        draft.forgotten,
    )


def check_draft(draft: Draft) -> None:
    """Refuse a draft that no later reader could make sense of."""
    _check_names(draft.kind, draft.scope)
    if not (1 <= draft.version < _TOO_LARGE and 0 <= draft.at < _TOO_LARGE):
        raise InvalidEntry(f"Version {draft.version} at time {draft.at} cannot be.")


@lru_cache(256)
def _check_names(kind: str, scope: str) -> None:
    if not _KIND.fullmatch(kind):
        raise InvalidEntry(f"{kind!r} is no kind of entry.", "Use lower-case words and dots.")
    if not scope.startswith(MAIN_SCOPE) or any("\ud800" <= c <= "\udfff" for c in scope):
        raise InvalidEntry(f"Scope {scope!r} is no path.", "Start it with '/'.")


def check_json(body: bytes) -> None:
    """Refuse a body that is not JSON, while its writer can still be told."""
    try:
        json.loads(body.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidEntry(
            f"The body is not JSON: {error}.", "Pass the message as UTF-8 encoded JSON."
        ) from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")
