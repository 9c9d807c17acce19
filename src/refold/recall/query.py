"""A query as terms: what to look for when any of it may be found.

Words that say nothing are left out where others are there. An English word is also looked for in
its other plain forms (`paint`, `paints`, `painted`, `painting`). A name of several words, such as
`max_history_messages` or `src/app.py`, is looked for as a whole, and its words count besides.
"""

import re
from collections.abc import Iterator
from itertools import islice, pairwise

from refold.log.text import Run, Term, words
from refold.log.text import terms as runs_of

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
