"""A ledger: the identifiers of what was folded, the most likely to be used again first."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from refold.lab.reading import Reader

Rank = Callable[[Reader, Sequence[bytes]], dict[str, float]]
"""How likely each identifier of some messages is to be used again: higher comes first."""

_WEIGHT = {"system": 4.0, "user": 4.0, "assistant": 4.0, "tool": 1.0}
_HALF_LIFE = 300


def by_occurrence(reader: Reader, messages: Sequence[bytes]) -> dict[str, float]:
    """By how often each was said, and by whom."""
    score = defaultdict[str, float](float)
    for payload in messages:
        weight = _WEIGHT[reader.read(payload).speaker]
        for identifier, times in reader.identifiers(payload).items():
            score[identifier] += weight * times
    return score


def by_recency(reader: Reader, messages: Sequence[bytes]) -> dict[str, float]:
    """By how many messages hold each, by whom they are, and how long ago they were."""
    score = defaultdict[str, float](float)
    for age, payload in enumerate(reversed(messages)):
        weight = _WEIGHT[reader.read(payload).speaker] * 0.5 ** (age / _HALF_LIFE)
        for identifier in reader.identifiers(payload):
            score[identifier] += weight
    return score


def ledger(reader: Reader, tokens: int, rank: Rank) -> Callable[[Sequence[bytes]], str]:
    """A summary of at most this many tokens that only names identifiers, one on a line."""

    def summarise(messages: Sequence[bytes]) -> str:
        score = rank(reader, messages)
        left = tokens
        lines: list[str] = []
        for identifier in sorted(score, key=lambda one: (-score[one], one)):
            line = f"{identifier}\n"
            left -= reader.count(line)
            if left < 0:
                break
            lines.append(line)
        return "".join(lines)

    return summarise
