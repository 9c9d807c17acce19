"""Reading conversations from a log: as little of a session as will do."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from refold.errors import InvalidInput, SessionForgotten, SessionNotFound
from refold.integrations.pydantic_ai.conversation_state import (
    TURNS,
    Kept,
    is_message,
    kept_of,
    line_at,
    seq_of,
)
from refold.log import Entry, Log, SessionInfo, Span, Store
from refold.wire.pydantic_ai import PydanticAI

GONE: Final = (SessionNotFound, SessionForgotten)
_FEW: Final = 8
"""The newest entries that are read first; after a save they tell all of its record."""
_MORE: Final = 4
"""How many times as many are read next, when they do not."""


class Reading:
    """Reads a log, and opens its store at first use when that is ours to open."""

    def __init__(self, log: Log, own: Store | None) -> None:
        self._log = log
        self._own = own

    async def opened(self) -> Log:
        """The log, ready to be used."""
        if self._own is not None:
            await self._own.open()
        return self._log

    async def kept(self, name: str) -> Kept | None:
        """The conversation that a session keeps; None where there is no session."""
        log = await self.opened()
        try:
            info = await log.info(name)
            _check_format(info)
            count = _FEW
            while True:
                span = Span(max(1, info.entries - count + 1), info.entries)
                if kept := kept_of(info, await log.read(name, span)):
                    return kept
                count *= _MORE
        except GONE:
            return None

    async def line(self, session: str, head_id: str, limit: int | None) -> list[Entry]:
        """The messages on the line up to this one; with a limit, at most one more than that."""
        log = await self.opened()
        head = await log.head(session)
        count = head if limit is None else _FEW + 2 * limit
        while True:
            span = Span(max(1, head - count + 1), head)
            entries = await log.read(session, span)
            seq = seq_of(entries, head_id)
            if span.first == 1:
                if seq is None:
                    raise KeyError(head_id)
                return _last(line_at(entries, seq), limit)
            if seq is not None and TURNS.isdisjoint(entry.kind for entry in entries):
                line = [entry for entry in entries if entry.seq <= seq and is_message(entry)]
                if limit is not None and len(line) > limit:
                    return _last(line, limit)
            count *= _MORE

    async def find(self, entry_id: str) -> str:
        """The session that holds the entry: all are looked through, the last used first."""
        log = await self.opened()
        async with aclosing(self.sessions()) as sessions:
            async for info in sessions:
                if seq_of(await log.read(info.session, whole=False), entry_id) is not None:
                    return info.session
        raise KeyError(entry_id)

    async def sessions(self) -> AsyncGenerator[SessionInfo]:
        """The sessions with Pydantic AI's messages, the last used first."""
        log, page = await self.opened(), None
        while True:
            found = await log.sessions(page=page)
            for info in found.sessions:
                if info.format == PydanticAI.name:
                    yield info
            if (page := found.next) is None:
                return


def _last(line: list[Entry], limit: int | None) -> list[Entry]:
    return line if limit is None else line[-limit - 1 :]


def _check_format(info: SessionInfo) -> None:
    if info.format != PydanticAI.name:
        raise InvalidInput(
            f"Session {info.session!r} holds {info.format} messages, not {PydanticAI.name}.",
            "Give the conversation another id.",
        )
