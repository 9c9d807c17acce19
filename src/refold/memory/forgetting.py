"""Forgetting reaches the boards: what was put there of a session goes with what it rests on."""

from dataclasses import replace

from refold.errors import SessionForgotten, SessionNotFound
from refold.log import Erased, Log, Span
from refold.memory.board import NAME, PROFILE, Fact, ever_added

_PAGE = 200


async def forget(log: Log, session: str, span: Span | None = None) -> Erased:
    """As `Log.forget`, and the facts on boards too that rest on what is forgotten."""
    facts = 0
    for board in await _boards(log):
        for fact in ever_added(await log.read(board)):
            if await _rests_on(log, fact, session, span):
                await log.forget(board, Span(fact.number, fact.number))
                facts += 1
    erased = await log.forget(session, span)
    return replace(erased, derived=erased.derived + facts)


async def _boards(log: Log) -> list[str]:
    found: list[str] = []
    page = None
    while True:
        some = await log.sessions(search=NAME, limit=_PAGE, page=page)
        found += [one.session for one in some.sessions if one.profile == PROFILE]
        if (page := some.next) is None:
            return found


async def _rests_on(log: Log, fact: Fact, session: str, span: Span | None) -> bool:
    """Whether a fact comes from these entries, read in the session itself or in a fork of it."""
    of: str | None = fact.session
    entries = fact.entries
    while of is not None:
        if of == session:
            return span is None or any(span.first <= one <= span.last for one in entries)
        try:
            info = await log.info(of)
        except (SessionNotFound, SessionForgotten):
            return False
        entries = tuple(one for one in entries if one <= (info.forked_at or 0))
        of = info.forked_from if entries else None
    return False
