"""The piece of a text that says most about some terms."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence

from refold.log.text import Term, placed_words

_LONGEST = 200_000
"""How much of a text is looked at: an excerpt from further on would be no better."""


def best_excerpt(text: str, terms: Sequence[Term], width: int) -> str:
    """About `width` characters of the text, on one line, where most of the terms are."""
    flat = " ".join(text[:_LONGEST].split())
    start = max(0, min(_best(flat, terms, width) - width // 6, len(flat) - width))
    piece = flat[start : start + width]
    cut = start + width < len(flat) or len(text) > _LONGEST
    return f"{'…' if start else ''}{piece}{'…' if cut else ''}"


def _best(text: str, terms: Sequence[Term], width: int) -> int:
    """Where the stretch begins that holds the most terms."""
    inside: deque[tuple[int, int]] = deque()
    counts = Counter[int]()
    best, most = 0, 0
    for at, nth in _places(text, terms):
        inside.append((at, nth))
        counts[nth] += 1
        while inside[0][0] < at - width * 2 // 3:
            _, left = inside.popleft()
            counts[left] -= 1
        distinct = sum(count > 0 for count in counts.values())
        if distinct > most:
            best, most = inside[0][0], distinct
    return best


def _places(text: str, terms: Sequence[Term]) -> Iterator[tuple[int, int]]:
    wanted = {word: nth for nth, term in enumerate(terms) for run in term for word in run}
    for at, word in placed_words(text) if wanted else ():
        if word in wanted:
            yield at, wanted[word]
