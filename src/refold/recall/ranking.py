"""Ranking: how well each message, and each session, answers to some terms.

BM25, on which entries hold a term rather than on how often: what people say in a message they
rarely say twice there. A message's score takes in half of what the messages next to it score, so
that an answer is found by its question. The figures were chosen on half of LoCoMo's conversations;
see `benchmarks/recall.py`.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from math import log

from refold.log import Match, Matches, Message

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
