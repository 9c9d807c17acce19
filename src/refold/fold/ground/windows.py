"""A text cut into what is looked at together: a sentence of the user, a few lines of others."""

import re
from collections.abc import Iterator

from refold.fold.ground.clauses import sentences

_WINDOW = 480
_LONGEST_WORD = 200


def cut(text: str) -> Iterator[str]:
    """The text in windows, between lines where that can be."""
    at = 0
    while at < len(text):
        end = at + _WINDOW
        if end < len(text):
            line, space = text.rfind("\n", at + 1, end), text.rfind(" ", at + 1, end)
            if max(line, space) > at:
                end = (line if line > at else space) + 1
            else:
                gap = re.compile(r"\W").search(text, end, end + _LONGEST_WORD)
                end = gap.end() if gap else end
        yield text[at:end]
        at = end


def sentence_windows(text: str) -> Iterator[tuple[str, str]]:
    """What the user said, sentence by sentence, with the line that a list stands under."""
    lead = ""
    for line in text.splitlines():
        bare = " ".join(line.split())
        listed = re.match(r"[-*+•]\s|\d+[.)]\s|\[", bare)
        if not bare:
            continue
        if not listed and not line.startswith((" ", "\t")):
            lead = ""
        for sentence in sentences(bare):
            for window in cut(sentence.strip()):
                yield window, lead
        if bare.endswith(":") and not listed:
            lead = bare
