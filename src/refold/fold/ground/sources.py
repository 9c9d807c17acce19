"""Where a point of a summary comes from: words that stand in the log, and who said them.

Whose words these are can be decided by code without error; whether a point is true cannot. So a
quote is shown as it stands in the log, in its line, and a point that says more than its quote has
no source.
"""

import re
from collections.abc import Container, Iterator
from typing import Final, NamedTuple

from refold.fold.ground.disguise import folded, forges
from refold.fold.ground.evidence import (
    LEAST_TRUSTED_FIRST,
    SENTENCE_END,
    Evidence,
    Piece,
    Speaker,
)
from refold.fold.secrets import redact
from refold.log import PartRef
from refold.log.text import words

MIN_WORDS: Final = 4
"""A shorter quote stands in many places, and says little."""
_MAX_QUOTE = 400  # characters
_AROUND = 160  # characters of the line, before and behind a quote
_GAP: Final = " […] "
"""Between the line that introduces a list and the item that is quoted."""
_LINES: Final = " / "
"""Between the lines of a quote."""
_BETWEEN = r"[\s*_`#>|~\\/]*"
"""Spaces and signs of Markdown, which are not compared."""
_ENDS = re.compile(r"^[\s\"'“”„‘’«».…*_`]+|[\s\"'“”„‘’«».,;:!?…*_`]+$")  # noqa: RUF001 - quotation marks
_WRAPPED = re.compile(r"(?<=[\w,])\n[ \t]*(?=[a-z])")
"""The end of a line within a sentence, as in text that is wrapped at a column."""
_ITEM = re.compile(r"(\s*)(?:[-*+•]|\(?\d{1,3}[.)]|\(?[a-z]\))\s")
_MAX_LIST = 4_000  # characters of a list above a quoted item
_ARTICLES: Final = frozenset({"a", "an", "the"})


class Source(NamedTuple):
    """Words of the log that a model quoted, in the line in which they stand."""

    ref: PartRef
    speaker: Speaker
    quote: str
    """As it stands there, on one line."""


def find_source(
    evidence: Evidence, quote: str, entry: int = 0, shown: Container[tuple[PartRef, str]] = ()
) -> Source | None:
    """Where a quote stands: in the entry that the point names, or else in any.

    Of several, the least trusted speaker counts. `shown` has the quotes of earlier folds.
    """
    bare = quote.rpartition(_GAP)[2]
    if len(bare) > _MAX_QUOTE:  # not within a word
        bare = bare[:_MAX_QUOTE].rpartition(" ")[0]
    bare = _ENDS.sub("", bare)
    run = words(folded(bare))
    if len(run) < MIN_WORDS:
        return None
    found = list(_standing(evidence, bare, run))
    cited = [one for one in found if one.ref.seq == entry]
    trust = LEAST_TRUSTED_FIRST.index
    source = min(cited or found, key=lambda one: (trust(one.speaker), one.ref), default=None)
    # It was shown with what stands around it. With more at each fold, it would reach a secret or a
    # permission in the end, and be refused for words that nobody quoted.
    if source and (source.ref, quote) in shown:
        source = source._replace(quote=quote)
    if source and (forges(source.quote) or redact(source.quote) != source.quote):
        return None
    return source


def repeats(text: str, quote: str) -> bool:
    """Whether a point has no word of its own: all of them stand in the quote, in this order."""
    there = iter(words(folded(quote)))
    return all(word in there for word in words(folded(text)) if word not in _ARTICLES)


def _standing(evidence: Evidence, quote: str, run: list[str]) -> Iterator[Source]:
    """Where the quote stands, once in each part."""
    pattern = re.compile(
        _BETWEEN.join(map(re.escape, re.findall(r"\w+|[^\w\s*_`#>|~\\/]", folded(quote))))
    )
    seen: set[PartRef] = set()
    for piece in (evidence.pieces[at] for at in evidence.holding(run)):
        if piece.ref in seen or piece.names_only:
            continue
        match = next((one for one in pattern.finditer(piece.folded) if _whole(one)), None)
        if match:
            seen.add(piece.ref)
            yield Source(piece.ref, piece.speaker, _in_context(piece, match))


def _whole(match: re.Match[str]) -> bool:
    """Whether it begins and ends with words, not within them."""
    # Letters of scripts without spaces are words by themselves.
    return not any(
        0 < at < len(match.string)
        and match.string[at - 1 : at + 1].isalnum()
        and len(words(match.string[at - 1 : at + 1])) == 1
        for at in match.span()
    )


def _in_context(piece: Piece, match: re.Match[str]) -> str:
    """The quote as it was said, in its line: what is left out could be an `if`, or who said it.

    Of a long line, the sentences around it, as far as there is room; at least its own, or as much
    of that as there is room for.
    """
    text, start, end = _as_said(piece, match)
    first, last = max(0, start - _AROUND), min(len(text), end + _AROUND)
    before = _unwrapped(text[first : start + 1])[:-1]
    behind = _unwrapped(text[end - 1 : last])[1:]
    line = before.rfind("\n") + 1
    if line or not first:
        first, before = first + line, before[line:]
    elif begins := SENTENCE_END.search(before):
        first, before = first + begins.end(), f"…{before[begins.end() :]}"
    else:
        before = f"…{before.partition(' ')[2] or before}"
    stop = behind.find("\n")
    if stop >= 0 or last == len(text):
        behind = behind[:stop] if stop >= 0 else behind
    elif ends := [*SENTENCE_END.finditer(behind)]:
        behind = f"{behind[: ends[-1].end()].rstrip()}…"
    else:
        behind = f"{behind.rpartition(' ')[0] or behind}…"
    lines = _unwrapped(f"{before}{text[start:end]}{behind}").splitlines()
    shown = _LINES.join(" ".join(one.split()) for one in lines if one.strip())
    leads = [" ".join(lead.split())[-_AROUND:] for lead in _leads(text, first)]
    return _GAP.join((*leads, shown))


def _unwrapped(text: str) -> str:
    """The text with its wrapped lines as one, and as long as before."""
    return _WRAPPED.sub(lambda end: " " * len(end.group()), text)


def _as_said(piece: Piece, match: re.Match[str]) -> tuple[str, int, int]:
    """The text of a piece as it was said, and where the match of its folded form stands in it."""
    start, end = match.span()
    if folded(piece.text[start:end]) == match.group():
        return piece.text, start, end
    # A letter may be folded to none or to several.
    origins = [at for at, char in enumerate(piece.text) for _ in folded(char)]
    if len(origins) != len(piece.folded):
        return piece.folded, start, end
    return piece.text, origins[start], origins[end - 1] + 1


def _leads(text: str, start: int) -> list[str]:
    """The lines that introduce the list of a quoted item: they may say `never`."""
    start = text.rfind("\n", 0, start) + 1
    item = _ITEM.match(text, start)
    found: list[str] = []
    for line in reversed(text[max(0, start - _MAX_LIST) : start].splitlines()):
        if item is None or not (bare := line.strip().rstrip("*_`")):
            continue
        above = _ITEM.match(line)
        depth = len(line) - len(line.lstrip())
        if depth >= len(item.group(1)) and (above or depth):
            continue  # an item beside it, or more of one
        if bare[-1] not in ".!?;":
            found.append(line)
        if above is None:
            break
        item = above
    return found[::-1]
