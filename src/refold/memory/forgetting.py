"""Forgetting reaches what holds the same words elsewhere: facts on boards, and titles.

Facts and most titles know the entries that they rest on. A title that a client wrote, or an older
version made, does not: it goes if most of its words are among those that are forgotten.
"""

from dataclasses import replace
from typing import Final

from refold.errors import SessionForgotten, SessionNotFound
from refold.log import CODEC, Entry, Erased, Log, Opened, Span, Titled
from refold.log.text import text_of, words
from refold.memory.board import NAME, PROFILE, Fact, ever_added

_PAGE: Final = 200
_READ: Final = 1_000  # entries at once
_SHARE: Final = 0.8
"""Of a title's words: if so many are forgotten, it is taken to be made of them."""


async def forget(log: Log, session: str, span: Span | None = None) -> Erased:
    """As `Log.forget`; the facts on boards and the titles that rest on it are forgotten too."""
    facts = 0
    for board in await _boards(log):
        for fact in ever_added(await log.read(board)):
            if await _rests_on(log, fact, session, span):
                await log.forget(board, Span(fact.number, fact.number))
                facts += 1
    titles = await _unsourced_titles(log, session, span) if span is not None else []
    # These first: when they alone were left by a crash, nobody could tell what they are made of.
    for seq in titles:
        await log.forget(session, Span(seq, seq))
    erased = await log.forget(session, span)
    return replace(erased, derived=erased.derived + facts + len(titles))


def shares_words(name: str, forgotten: set[str]) -> bool:
    """Whether a title or name is made of words that are forgotten, as far as that can be told."""
    # A title that was cut ends in a piece of a word.
    own = {*(words(name)[:-1] if name.endswith("…") else words(name))}
    return bool(own) and len(own & forgotten) >= _SHARE * len(own)


async def forgotten_words(log: Log, session: str, span: Span) -> set[str]:
    """The words of the entries that are to be forgotten."""
    found: set[str] = set()
    for some in _pages(span.first, min(span.last, (await log.info(session)).entries)):
        for entry in await log.read(session, some):
            if not entry.forgotten:
                found |= {*words(text_of(entry))}
    return found


async def _unsourced_titles(log: Log, session: str, span: Span) -> list[int]:
    """The entries outside of the span whose title has its words and names no source."""
    info = await log.info(session)
    [first] = await log.read(session, Span(1, 1))
    titled = _title_in(first)
    # Later titles are looked for only where there is one: few sessions have any.
    last = info.entries if info.title != titled else 1
    titles = {1: titled} if titled else {}
    for some in _pages(2, last):
        for entry in await log.read(session, some):
            if title := _title_in(entry):
                titles[entry.seq] = title
    outside = {seq: title for seq, title in titles.items() if seq not in span}
    if not outside:
        return []
    forgotten = await forgotten_words(log, session, span)
    return [seq for seq, title in outside.items() if shares_words(title, forgotten)]


def _title_in(entry: Entry) -> str | None:
    """The title that an entry gives, if it does not say what it is made of."""
    if entry.forgotten or entry.kind not in (Opened.KIND, Titled.KIND):
        return None
    match CODEC.decode(entry):
        case Opened(title=title, title_source=0) | Titled(title=title, source=0):
            return title
        case _:
            return None


def _pages(first: int, last: int) -> list[Span]:
    return [Span(at, min(at + _READ - 1, last)) for at in range(first, last + 1, _READ)]


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
