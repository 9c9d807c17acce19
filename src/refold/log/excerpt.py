"""The piece of a text that answers a query best, wherever in the text it is.

All of the text is searched, once and in blocks, so a match at its end is found as well as one at
its beginning; the search ends at a piece that holds every term. Only about as much text as the
excerpt is long is ever put on one line.
"""

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence

from refold.log.text import PlacedWord, Run, Term, index_words, placed_words, terms
from refold.terminal_text import whole_words

_BLOCK = 8_192
"""Characters in which words are looked for at once; few blocks of a long text hold any."""
_LONG_WORD = 24
"""Characters of a word that is cut at the beginning rather than left out."""
_SPACE = re.compile(r"\s")
_TOKEN = re.compile(r"\S+")


def excerpt(text: str, query: str, width: int = 160) -> str:
    """About `width` characters of the text, on one line, where most terms of the query are."""
    return best_excerpt(text, [(tuple(run),) for run in terms(query)], width)


def best_excerpt(text: str, looked_for: Sequence[Term], width: int) -> str:
    """About `width` characters of the text, on one line, where most of the terms are."""
    position = _densest(text, looked_for, width) or 0
    after, more_after = _line_from(text, position, width)
    room = max(width // 6, width - len(after))
    before, more_before = _line_to(text, position, room)
    line = before + after
    if len(line) > width:
        line, more_after = whole_words(line, width), True
    return f"{'…' if more_before else ''}{line}{'…' if more_after else ''}"


def holds_any(text: str, looked_for: Sequence[Term]) -> bool:
    return next(_places(text, looked_for), None) is not None


def _densest(text: str, looked_for: Sequence[Term], width: int) -> int | None:
    """Where the stretch begins that holds the most terms; None if there is none."""
    inside: deque[tuple[int, int]] = deque()
    counts = Counter[int]()
    best: int | None = None
    max_distinct = 0
    findable = sum(any(term) for term in looked_for)
    for position, nth in _places(text, looked_for):
        inside.append((position, nth))
        counts[nth] += 1
        while inside[0][0] < position - width * 2 // 3:
            _, left = inside.popleft()
            counts[left] -= 1
        distinct = sum(count > 0 for count in counts.values())
        if distinct > max_distinct:
            best, max_distinct = min(start for start, _ in inside), distinct
            if max_distinct == findable:
                break
    return best


def _places(text: str, looked_for: Sequence[Term]) -> Iterator[tuple[int, int]]:
    """Where the terms are, each by its place among them."""
    runs = {run: nth for nth, term in enumerate(looked_for) for run in term if run}
    by_last: dict[str, list[Run]] = {}
    for run in runs:
        by_last.setdefault(run[-1], []).append(run)
    longest = max(map(len, runs), default=0)
    recent: deque[PlacedWord] = deque(maxlen=longest)
    for placed in _candidates(text, {word for run in runs for word in run}):
        if placed is None:  # no run goes on across a block that holds none of the words
            recent.clear()
            continue
        recent.append(placed)
        for run in by_last.get(placed.word, ()):
            tail = list(recent)[-len(run) :]
            if tuple(placed.word for placed in tail) == run:
                yield tail[0].start, runs[run]


def _candidates(text: str, query_words: set[str]) -> Iterator[PlacedWord | None]:
    """The words of the blocks that hold any word of the query, and None for each other block."""
    start = 0
    while query_words and start < len(text):
        space = _SPACE.search(text, start + _BLOCK)  # so that no word is in two blocks
        end = space.end() if space else len(text)
        block = text[start:end]
        if query_words.isdisjoint(index_words(block)):
            yield None
        else:
            for first, last, word in placed_words(block):
                yield PlacedWord(start + first, start + last, word)
        start = end


def _line_from(text: str, position: int, width: int) -> tuple[str, bool]:
    """The text from a character on, on one line of at most `width`; whether there is more."""
    line = ""
    for token in _TOKEN.finditer(text, position):
        if line and len(line) >= width:
            return whole_words(line, width), True
        begin = token.start()
        gap = " " if line else ""
        line += gap + text[begin : min(token.end(), begin + width + 1)]
    return whole_words(line, width), len(line) > width


def _line_to(text: str, position: int, width: int) -> tuple[str, bool]:
    """The text up to a character, on one line of at most about `width`; whether there is more."""
    reach = 2 * width
    while True:
        first = max(0, position - reach)
        raw = text[first:position]
        line = " ".join(raw.split())
        if first == 0 or len(line) >= width:
            break
        reach *= 4
    line += " " if line and raw[-1:].isspace() else ""
    more = len(line) > width or _TOKEN.search(text, 0, first) is not None
    start = max(0, len(line) - width)
    if start and line[start - 1] != " ":
        start = 1 + line.find(" ", start, start + _LONG_WORD) or start
    return line[start:], more
