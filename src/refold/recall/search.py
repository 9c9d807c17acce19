"""Search over everything that a log has: folded, rewound, cleared, or in another session.

The log's index finds the words, and this module ranks the messages. Forgotten entries are never
found.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from math import log
from typing import Literal, NamedTuple

from refold.errors import SessionForgotten, SessionNotFound
from refold.log import Entry, Log, Match, Matches, Message, Outline, SessionInfo
from refold.log.entry import Span
from refold.log.excerpt import best_excerpt, holds_any
from refold.log.text import Run, Term, text_of, words
from refold.log.text import terms as runs_of
from refold.recall.text import Reader, entry_text, outline_of, shapes_of, whole, wire_of
from refold.view.framing import is_recall_tool
from refold.wire import Wire

HitState = Literal["in view", "folded", "off the line"]
"""Where a message is: in the next request, beneath a fold, or rewound or cleared."""
Place = tuple[str, int]
"""A message: its session, and how many messages the session has up to it."""

WIDTH = 240
"""About how many characters an excerpt has."""
MAX_TERMS = 32
"""More terms than this find nothing that fewer would not."""
_MAX_MATCHES = 20_000  # of a search for sessions
_NEAR, _FAR = 8, 512  # entries among which a neighbor is looked for

# BM25, by which entries have a term and not how often: people rarely repeat themselves within a
# message. A message also scores half of what the messages next to it score, so that an answer is
# found by its question. The figures were chosen on half of LoCoMo's conversations; see
# `benchmarks/recall.py`.
_SATURATION = 1.2
_BY_LENGTH = 0.4
"""How much more a long message must have to be worth as much."""
_SESSION_BY_LENGTH = 0.75
_NEIGHBOR = 0.5

_STOP_WORDS = frozenset(
    words(
        "a about after all am an and any are as at be been before but by can could d did do does "
        "for from had has have he her hers him his how i if in into is it its ll m me my no not of "
        "on or our re s she should so some t than that the their them then there these they this "
        "those to too up us ve was we were what when where which while who whom whose why will "
        "with would you your"
    )
)
_PLAIN = re.compile(r"[a-z]{4,}")
_MIN_STEM = 3


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message or note that a search found."""

    session: str
    seq: int
    at: int
    """When it was written: milliseconds since 1970, UTC."""
    scope: str
    role: str
    standing: HitState
    score: float
    excerpt: str
    before: str = ""
    """The start of the message before it, and of the one after it."""
    after: str = ""


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A session that a search found."""

    info: SessionInfo
    score: float
    matches: int
    """How many of its entries have a word of the query."""


async def search(  # noqa: PLR0913 - what to look for, where, how much of it for whom
    log: Log,
    query: str,
    *,
    session: str | None = None,
    limit: int = 10,
    reader: Reader | None = None,
    width: int = WIDTH,
    neighbors: bool = True,
) -> list[SearchHit]:
    """The best matches among messages and notes, in one session or in all of the tenant's.

    With `neighbors`, a message next to a match is found too: an answer by its question. Without
    them, each excerpt has a word of the query.
    """
    terms = terms_of(query)
    if not terms or limit <= 0:
        return []
    resolver = _HitResolver(log, terms, reader or Reader(), width)
    hits: list[SearchHit] = []
    for ranked in _ranking(await log.matches(terms, session=session), resolver.reader):
        if ranked.offset and not neighbors:
            continue
        try:
            hit = await resolver.resolve(ranked)
        except (SessionForgotten, SessionNotFound):  # since the index was read
            continue
        if hit is not None:
            hits.append(hit)
        if len(hits) == limit:
            break
    return hits


async def search_sessions(log: Log, query: str, *, limit: int = 10) -> list[SessionHit]:
    """The sessions that say most about the query. What forks share counts for the oldest."""
    found = await log.matches(terms_of(query), max_matches=_MAX_MATCHES)
    infos: dict[str, SessionInfo] = {}
    for name in {match.session for match in found.matches}:
        with suppress(SessionForgotten, SessionNotFound):
            infos[name] = await log.info(name)
    ranked = _session_scores(found, {name: info.messages for name, info in infos.items()})
    best = sorted(ranked, key=lambda name: (-ranked[name], -infos[name].updated_at, name))
    return [
        SessionHit(infos[name], ranked[name], sum(m.session == name for m in found.matches))
        for name in best[: max(0, limit)]
    ]


def terms_of(query: str) -> tuple[Term, ...]:
    """The terms of a query, each once, in its order.

    Stop words are left out if there are others. An English word is also looked for in its other
    plain forms (`paint`, `paints`, `painted`, `painting`). A name of several words, such as
    `max_history_messages` or `src/app.py`, is looked for as a whole, and by its words.
    """
    runs = [tuple(run) for run in runs_of(query)]
    telling = dict.fromkeys(islice(_without_stop_words(runs), 10 * MAX_TERMS))
    terms = telling or dict.fromkeys((word,) for run in runs for word in run)
    return tuple(_forms(run) for run in islice(terms, MAX_TERMS))


def _without_stop_words(runs: list[Run]) -> Iterator[Run]:
    for run in runs:
        telling = [word for word in run if word not in _STOP_WORDS]
        if len(telling) > 1:
            yield run
        # A single character says little: in scripts without spaces, two of them make a word.
        for left, right in pairwise(run):
            if len(left) == len(right) == 1 and len(run) > len((left, right)):
                yield left, right
        for word in telling:
            if len(word) > 1 or len(run) == 1:
                yield (word,)


def _forms(run: Run) -> Term:
    word, *more = run
    if more or not _PLAIN.fullmatch(word):
        return (run,)
    forms = {word: None}
    for stem in _stems(word):
        if len(stem) >= _MIN_STEM:
            forms |= dict.fromkeys(_inflect(stem))
    return tuple((form,) for form in forms)


def _stems(word: str) -> Iterator[str]:
    yield word
    if word.endswith(("ies", "ied")):
        yield f"{word[:-3]}y"
    for ending in ("s", "es", "ed", "ing"):
        if word.endswith(ending) and not word.endswith("ss"):
            stem = word[: -len(ending)]
            yield stem
            yield f"{stem}e"
            if ending in ("ed", "ing") and stem[-1:] == stem[-2:-1]:
                yield stem[:-1]


def _inflect(stem: str) -> Iterator[str]:
    yield from (stem, f"{stem}s", f"{stem}es", f"{stem}ed", f"{stem}ing")
    if stem.endswith("e"):
        yield from (f"{stem}d", f"{stem[:-1]}ing")
    elif stem.endswith("y"):
        yield from (f"{stem[:-1]}ies", f"{stem[:-1]}ied")
    elif stem[-1] not in "aiouwx":
        yield from (f"{stem}{stem[-1]}ed", f"{stem}{stem[-1]}ing")


def _scores(found: Matches) -> list[float]:
    weights = [_rarity(found.messages, holding) for holding in found.holding]
    usual = sum(match.words for match in found.matches) / max(1, len(found.matches))
    return [
        sum(weights[term] for term in match.terms) * _worth(1, match.words / usual, _BY_LENGTH)
        for match in found.matches
    ]


def _session_scores(found: Matches, messages: Mapping[str, int]) -> dict[str, float]:
    counts = Counter(
        (term, match.session)
        for match in found.matches
        if match.session in messages
        for term in match.terms
    )
    sessions = Counter(term for term, _ in counts)
    usual = sum(messages.values()) / max(1, len(messages))
    total: defaultdict[str, float] = defaultdict(float)
    for (term, session), count in counts.items():
        length = max(1, messages[session]) / max(1, usual)
        worth = _worth(count, length, _SESSION_BY_LENGTH)
        total[session] += _rarity(found.sessions, sessions[term]) * worth
    return dict(total)


def _rarity(total: int, holding: int) -> float:
    return log(1 + (max(total, holding) - holding + 0.5) / (holding + 0.5))


def _worth(count: int, length: float, by_length: float) -> float:
    """The worth of a term that is there so often, in a text so many times the usual length."""
    return count * (_SATURATION + 1) / (count + _SATURATION * (1 - by_length + by_length * length))


class _Ranked(NamedTuple):
    """An entry that matched, or the message next to one."""

    score: float
    at: int
    seq: int
    session: str
    offset: int = 0
    """How many messages after that entry."""
    terms: tuple[int, ...] = ()
    """The terms that the entry has."""


def _ranking(found: Matches, reader: Reader) -> list[_Ranked]:
    own = {
        match: score
        for match, score in zip(found.matches, _scores(found), strict=True)
        if reader.may_see(match.kind, match.scope)
    }
    messages: dict[Place, Match] = {}
    total: defaultdict[Place, float] = defaultdict(float)
    ranked: list[_Ranked] = []
    for match, score in own.items():
        if match.kind != Message.KIND:  # a note has no neighbors
            ranked.append(_Ranked(score, match.at, match.seq, match.session, 0, match.terms))
            continue
        messages[match.session, match.nth] = match
        total[match.session, match.nth] += score
        total[match.session, match.nth - 1] += _NEIGHBOR * score
        total[match.session, match.nth + 1] += _NEIGHBOR * score
    for (session, nth), score in total.items():
        offset = next(offset for offset in (0, 1, -1) if (session, nth - offset) in messages)
        match = messages[session, nth - offset]
        terms = () if offset else match.terms
        ranked.append(_Ranked(score, match.at, match.seq, session, offset, terms))
    return sorted(ranked, reverse=True)


class _HitResolver:
    """Reads what the ranking names, and caches what it learns of sessions."""

    def __init__(self, log: Log, terms: tuple[Term, ...], reader: Reader, width: int) -> None:
        self.reader = reader
        self._log = log
        self._terms = terms
        self._width = width
        self._sessions: dict[str, tuple[Wire | None, Outline, tuple[Span, ...]]] = {}

    async def resolve(self, ranked: _Ranked) -> SearchHit | None:
        """The hit; None if there is no such message, or not for this reader."""
        session = ranked.session
        if session not in self._sessions:
            form = (await self._log.info(session)).format
            self._sessions[session] = (wire_of(form), *await outline_of(self._log, session))
        wire = self._sessions[session][0]
        entries = await _around(self._log, session, ranked.seq)
        here = _index(entries, ranked.seq) + ranked.offset
        if not 0 <= here < len(entries) or not self._is_visible(session, entries[here]):
            return None
        entry = await whole(self._log, session, entries[here])
        text = entry_text(wire, entry)
        if self.reader.scope is not None and _is_recall(wire, entry, entries):
            return None
        near: dict[bool, str] = {}
        for neighbor in (*entries[max(0, here - 1) : here], *entries[here + 1 : here + 2]):
            if neighbor.kind == Message.KIND and self._is_visible(session, neighbor):
                full = await whole(self._log, session, neighbor)
                line = best_excerpt(entry_text(wire, full).text, (), self._width)
                near[neighbor.seq < text.seq] = line
        return SearchHit(
            session,
            text.seq,
            text.at,
            text.scope,
            text.role,
            self._state(session, text.seq),
            ranked.score,
            self._excerpt(text.text, entry, ranked.terms),
            near.get(True, ""),
            near.get(False, ""),
        )

    def _is_visible(self, session: str, entry: Entry) -> bool:
        if entry.forgotten or not self.reader.may_see(entry.kind, entry.scope):
            return False
        return self.reader.off_line or self._state(session, entry.seq) != "off the line"

    def _state(self, session: str, seq: int) -> HitState:
        _, outline, line = self._sessions[session]
        if not any(seq in span for span in line):
            return "off the line"
        folded = any(seq in span for fold in outline.folds for span in fold.spans)
        return "folded" if folded else "in view"

    def _excerpt(self, text: str, entry: Entry, held: tuple[int, ...]) -> str:
        terms = [self._terms[index] for index in held]
        # The index knows strings of a message that its wire does not show, such as metadata.
        if terms and not holds_any(text, terms):
            text = text_of(entry)
        return best_excerpt(text, terms, self._width)


def _is_recall(wire: Wire | None, entry: Entry, around: Sequence[Entry]) -> bool:
    """Whether it is an earlier search, which repeats words and says nothing new.

    In some formats a result names no tool, but the call that it answers: that is one of `around`.
    """
    before = [shape for other in around for shape in shapes_of(wire, other)[1]]
    called = {shape.call: shape.tool for shape in before if shape.kind == "call"}
    shapes = [shape for shape in shapes_of(wire, entry)[1] if shape.kind in ("call", "return")]
    tools = [shape.tool or called.get(shape.call) for shape in shapes]
    return bool(tools) and all(map(is_recall_tool, tools))


async def _around(log: Log, session: str, seq: int) -> list[Entry]:
    """The entry, with two messages before and two after it: not read whole."""
    reach = _NEAR
    while True:
        span = Span(max(1, seq - reach), seq + reach)
        entries = await log.read(session, span, whole=False)
        near = [entry for entry in entries if entry.kind == Message.KIND or entry.seq == seq]
        index = _index(near, seq)
        enough_before = index >= 2 or span.first == 1  # noqa: PLR2004 - two, as said above
        enough_after = len(near) - index > 2 or len(entries) < len(span)  # noqa: PLR2004
        if (enough_before and enough_after) or reach >= _FAR:
            return near[max(0, index - 2) : index + 3]
        reach *= 8


def _index(entries: list[Entry], seq: int) -> int:
    return sum(entry.seq < seq for entry in entries)
