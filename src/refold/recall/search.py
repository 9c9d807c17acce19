"""Finding again what was said, wherever it lies: folded, rewound, cleared, or in another session.

The log keeps everything and its index finds any word of it; `refold.recall.search` says what
answers best. What was forgotten is nowhere, and so is never found.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
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
from refold.recall.text import EntryText, Reader, entry_text, outline_of, whole, wire_of
from refold.wire import Wire

# A query as terms: what to look for when any of it may be found.
#
# Words that say nothing are left out where others are there. An English word is also looked for in
# its other plain forms (`paint`, `paints`, `painted`, `painting`). A name of several words, such as
# `max_history_messages` or `src/app.py`, is looked for as a whole, and its words count besides.

MOST_TERMS = 32
"""More terms than this find nothing that fewer would not."""

_SAYING_NOTHING = frozenset(
    words(
        "a about after all am an and any are as at be been before but by can could d did do does "
        "for from had has have he her hers him his how i if in into is it its ll m me my no not of "
        "on or our re s she should so some t than that the their them then there these they this "
        "those to too up us ve was we were what when where which while who whom whose why will "
        "with would you your"
    )
)
_PLAIN = re.compile(r"[a-z]{4,}")
_SHORTEST = 3


def terms_of(query: str) -> tuple[Term, ...]:
    """What to look for, each term once, in the order of the query."""
    runs = [tuple(run) for run in runs_of(query)]
    telling = dict.fromkeys(islice(_telling(runs), 10 * MOST_TERMS))
    wanted = telling or dict.fromkeys((word,) for run in runs for word in run)
    return tuple(_forms(run) for run in islice(wanted, MOST_TERMS))


def _telling(runs: list[Run]) -> Iterator[Run]:
    for run in runs:
        telling = [word for word in run if word not in _SAYING_NOTHING]
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
    """The run, and if it is one plain word, the other forms of the word."""
    word, *more = run
    if more or not _PLAIN.fullmatch(word):
        return (run,)
    forms = {word: None}
    for stem in _stems(word):
        if len(stem) >= _SHORTEST:
            forms |= dict.fromkeys(_built(stem))
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


def _built(stem: str) -> Iterator[str]:
    yield from (stem, f"{stem}s", f"{stem}es", f"{stem}ed", f"{stem}ing")
    if stem.endswith("e"):
        yield from (f"{stem}d", f"{stem[:-1]}ing")
    elif stem.endswith("y"):
        yield from (f"{stem[:-1]}ies", f"{stem[:-1]}ied")
    elif stem[-1] not in "aiouwx":
        yield from (f"{stem}{stem[-1]}ed", f"{stem}{stem[-1]}ing")


# Ranking: how well each message, and each session, answers to some terms.
#
# BM25, on which entries hold a term rather than on how often: what people say in a message they
# rarely say twice there. A message's score takes in half of what the messages next to it score, so
# that an answer is found by its question. The figures were chosen on half of LoCoMo's
# conversations;
# see `benchmarks/recall.py`.

_SATURATION = 1.2
_BY_LENGTH = 0.4
"""How much a long message must hold more to be worth as much."""
_SESSION_BY_LENGTH = 0.75
_NEIGHBOUR = 0.5

Place = tuple[str, int]
"""A message: its session, and how many messages the session has up to it."""


def scores(found: Matches) -> list[float]:
    """The score of each match by itself."""
    weights = [_rarity(found.messages, holding) for holding in found.holding]
    usual = sum(match.words for match in found.matches) / max(1, len(found.matches))
    return [
        sum(weights[term] for term in match.terms) * _worth(1, match.words / usual, _BY_LENGTH)
        for match in found.matches
    ]


def with_neighbours(own: Mapping[Place, float]) -> dict[Place, float]:
    """The scores with what neighbours add; also of those that held nothing, or are not there."""
    total: defaultdict[Place, float] = defaultdict(float)
    for (session, nth), score in own.items():
        total[session, nth] += score
        total[session, nth - 1] += _NEIGHBOUR * score
        total[session, nth + 1] += _NEIGHBOUR * score
    return dict(total)


def session_scores(found: Matches, messages: Mapping[str, int]) -> dict[str, float]:
    """The score of each session, given how many messages each of them has."""
    held = Counter(
        (term, match.session)
        for match in found.matches
        if match.session in messages
        for term in match.terms
    )
    sessions = Counter(term for term, _ in held)
    usual = sum(messages.values()) / max(1, len(messages))
    total: defaultdict[str, float] = defaultdict(float)
    for (term, session), often in held.items():
        length = max(1, messages[session]) / max(1, usual)
        worth = _worth(often, length, _SESSION_BY_LENGTH)
        total[session] += _rarity(found.sessions, sessions[term]) * worth
    return dict(total)


def is_message(match: Match) -> bool:
    """Whether it has neighbours: a note stands by itself."""
    return match.kind == Message.KIND


def _rarity(all_of_them: int, holding: int) -> float:
    return log(1 + (max(all_of_them, holding) - holding + 0.5) / (holding + 0.5))


def _worth(often: int, length: float, by_length: float) -> float:
    """What a term counts that is there so often, in a text so many times the usual length."""
    return often * (_SATURATION + 1) / (often + _SATURATION * (1 - by_length + by_length * length))


HitState = Literal["in view", "folded", "off the line"]
"""Where a message stands: before the next request, beneath a fold, or rewound or cleared."""

TOOLS = "recall_"
"""How the names of the tools begin that recall offers to models."""
WIDTH = 240
"""About how many characters an excerpt has."""
_MOST_OF_SESSIONS = 20_000
_NEAR, _FAR = 8, 512  # entries in which a neighbour is looked for


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
    """The beginning of the message before it, and of the one after it."""
    after: str = ""


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A session that a search found."""

    info: SessionInfo
    score: float
    matches: int
    """How many of its entries hold a word of the query."""


class _Ranked(NamedTuple):
    """A place in the ranking: an entry that matched, or the message next to one."""

    score: float
    at: int
    seq: int
    session: str
    aside: int = 0
    """How many messages after that entry."""
    terms: tuple[int, ...] = ()
    """Which of the terms the entry holds."""


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
    """The messages and notes that answer best, in one session or in all of the tenant's.

    With `neighbors`, a message next to a match is found too: an answer by its question. Without
    them, each excerpt holds something that was looked for.
    """
    looked_for = terms_of(query)
    if not looked_for or limit <= 0:
        return []
    finding = _Finding(log, looked_for, reader or Reader(), width)
    found = await log.matches(looked_for, session=session)
    hits: list[SearchHit] = []
    for place in _ranking(found, finding.reader):
        if place.aside and not neighbors:
            continue
        try:
            hit = await finding.at(place)
        except (SessionForgotten, SessionNotFound):  # since it was found
            continue
        if hit is not None:
            hits.append(hit)
        if len(hits) == limit:
            break
    return hits


async def search_sessions(log: Log, query: str, *, limit: int = 10) -> list[SessionHit]:
    """The sessions in which most was said about it. What forks share counts for the oldest."""
    found = await log.matches(terms_of(query), most=_MOST_OF_SESSIONS)
    infos: dict[str, SessionInfo] = {}
    for name in {match.session for match in found.matches}:
        with suppress(SessionForgotten, SessionNotFound):
            infos[name] = await log.info(name)
    ranked = session_scores(found, {name: info.messages for name, info in infos.items()})
    best = sorted(ranked, key=lambda name: (-ranked[name], -infos[name].updated_at, name))
    return [
        SessionHit(infos[name], ranked[name], sum(m.session == name for m in found.matches))
        for name in best[: max(0, limit)]
    ]


def _ranking(found: Matches, reader: Reader) -> list[_Ranked]:
    own = {
        match: score
        for match, score in zip(found.matches, scores(found), strict=True)
        if reader.may_see(match.kind, match.scope)
    }
    messages = {(match.session, match.nth): match for match in own if is_message(match)}
    total = with_neighbours({place: own[match] for place, match in messages.items()})
    ranked = [_beside(messages, place, score) for place, score in total.items()]
    ranked += [
        _Ranked(score, match.at, match.seq, match.session, 0, match.terms)
        for match, score in own.items()
        if not is_message(match)
    ]
    return sorted(ranked, reverse=True)


def _beside(
    messages: dict[tuple[str, int], Match], place: tuple[str, int], score: float
) -> _Ranked:
    session, nth = place
    aside = next(aside for aside in (0, 1, -1) if (session, nth - aside) in messages)
    match = messages[session, nth - aside]
    return _Ranked(score, match.at, match.seq, session, aside, () if aside else match.terms)


class _Finding:
    """Reads what the ranking names; what it learns of a session it keeps for this search."""

    def __init__(self, log: Log, terms: tuple[Term, ...], reader: Reader, width: int) -> None:
        self.reader = reader
        self._log = log
        self._terms = terms
        self._width = width
        self._sessions: dict[str, tuple[Wire | None, Outline, tuple[Span, ...]]] = {}

    async def at(self, place: _Ranked) -> SearchHit | None:
        """What is there; None if there is no such message, or none for this reader."""
        session = place.session
        if session not in self._sessions:
            form = (await self._log.info(session)).format
            self._sessions[session] = (wire_of(form), *await outline_of(self._log, session))
        entries = await _around(self._log, session, place.seq)
        here = _index(entries, place.seq) + place.aside
        if not 0 <= here < len(entries) or not self._shown(session, entries[here]):
            return None
        entry = await whole(self._log, session, entries[here])
        told = entry_text(self._sessions[session][0], entry)
        if self.reader.scope is not None and _of_recall(told):
            return None
        nearby = [entries[at] for at in (here - 1, here + 1) if 0 <= at < len(entries)]
        near = {
            entry.seq < told.seq: self._line((await self._told(session, entry)).text)
            for entry in nearby
            if entry.kind == Message.KIND and self._shown(session, entry)
        }
        return SearchHit(
            session,
            told.seq,
            told.at,
            told.scope,
            told.role,
            self._standing(session, told.seq),
            place.score,
            self._excerpt(told.text, entry, place.terms),
            near.get(True, ""),
            near.get(False, ""),
        )

    def _shown(self, session: str, entry: Entry) -> bool:
        if entry.forgotten or not self.reader.may_see(entry.kind, entry.scope):
            return False
        return self.reader.off_line or self._standing(session, entry.seq) != "off the line"

    def _standing(self, session: str, seq: int) -> HitState:
        _, outline, line = self._sessions[session]
        if not any(seq in span for span in line):
            return "off the line"
        folded = any(seq in span for fold in outline.folds for span in fold.spans)
        return "folded" if folded else "in view"

    async def _told(self, session: str, entry: Entry) -> EntryText:
        return entry_text(self._sessions[session][0], await whole(self._log, session, entry))

    def _excerpt(self, text: str, entry: Entry, held: tuple[int, ...]) -> str:
        """Where the text has most of the terms that the entry is known to hold."""
        terms = [self._terms[nth] for nth in held]
        # The index knows strings of a message that its wire does not show, such as metadata.
        if terms and not holds_any(text, terms):
            text = text_of(entry)
        return best_excerpt(text, terms, self._width)

    def _line(self, text: str) -> str:
        return best_excerpt(text, (), self._width)


def _of_recall(told: EntryText) -> bool:
    """Whether it is an earlier search: its words were found once, and say nothing new."""
    tools = [part.partition(" ")[2] for part in told.parts if " " in part]
    return bool(tools) and all(tool.startswith(TOOLS) for tool in tools)


async def _around(log: Log, session: str, seq: int) -> list[Entry]:
    """The entry, with two messages before and two after it: not read whole."""
    reach = _NEAR
    while True:
        span = Span(max(1, seq - reach), seq + reach)
        entries = await log.read(session, span, whole=False)
        kept = list(_messages(entries, seq))
        at = _index(kept, seq)
        begins = at >= 2 or span.first == 1  # noqa: PLR2004 - two, as said above
        ends = len(kept) - at > 2 or len(entries) < len(span)  # noqa: PLR2004
        if (begins and ends) or reach >= _FAR:
            return kept[max(0, at - 2) : at + 3]
        reach *= 8


def _index(entries: list[Entry], seq: int) -> int:
    return sum(entry.seq < seq for entry in entries)


def _messages(entries: list[Entry], seq: int) -> Iterator[Entry]:
    for entry in entries:
        if entry.kind == Message.KIND or entry.seq == seq:
            yield entry
