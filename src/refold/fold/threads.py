"""What the assistant said of causes, decisions and results, thread by thread, in its own words.

A thread is the work under one message of the user. These are quotations: they say what the
assistant said, not what is so. What says that something is allowed is left out, because only the
user's own words may say that.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final, Literal, NamedTuple

from refold.fold.ground.permissions import permits
from refold.fold.material import Passage
from refold.fold.summary import Claim
from refold.log import PartRef
from refold.view.framing import on_one_line

SPEAKER: Final = "assistant"
Topic = Literal["cause", "decision", "result"]
"""What a quotation is about; `result` is what a thread ended with."""

_TOPICS: Final[tuple[Topic, ...]] = ("cause", "decision", "result")
_MAX_STORED = 60  # quotations
_MAX_PER_THREAD: Final[dict[Topic, int]] = {"cause": 3, "decision": 3, "result": 1}
_AGE: Final[dict[Topic, int]] = {"cause": 0, "decision": 2, "result": 4}
"""By how many threads each seems older than it is, when there is no room for all."""
_SHORT = 320  # characters of an answer that is quoted whole
_LEAD = 240  # characters of a longer one that are quoted
_MIN_WORDS: Final[dict[Topic, int]] = {"cause": 6, "decision": 6, "result": 4}
_LEFT_OUT = "[…]"
"""What stands for a block of code in a quotation."""
_MAX_SEARCHED = 20_000  # characters of an answer

_CAUSE: Final = re.compile(
    r"\bbecause\b|\broot cause|\bthe reason\b|\bturn(?:s|ed) out\b|\bcaused by\b|\bdue to\b"
    r"|\bculprit\b|\bthe (?:real |actual )?(?:bug|problem|issue|cause) (?:is|was)\b"
    r"|\bwhich is (?:why|how)\b|\bthat(?:'s| is) (?:why|the (?:bug|problem|cause|reason))\b"
    r"|\bhere it is\b|\bfound (?:it|the (?:bug|problem|cause|reason|culprit))\b",
    re.IGNORECASE,
)
_DECISION: Final = re.compile(
    r"\bdecided\b|\bdecision\b|\b(?:we'll|we will|i'll|i will|let's) (?:go with|use|keep|stick)"
    r"|\bwent with\b|\binstead of\b|\brather than\b|(?:^|\W)so I\b|\bI (?:chose|opted|picked)\b"
    r"|\bchose\b|\bswitched to\b|\bthe fix (?:is|was)\b",
    re.IGNORECASE,
)
_CAUSE_LABEL: Final = re.compile(r"\b(?:cause|problem|issue|reason|why|bug)s?\b", re.IGNORECASE)
_DECISION_LABEL: Final = re.compile(
    r"\b(?:decision|solution|fix|approach)(?:e?s)?\b", re.IGNORECASE
)
_FENCED: Final = re.compile(
    r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE
)
_BLOCK_END: Final = re.compile(
    r"\n\s*\n|\n(?=\s*(?:[-*+•]|\d{1,2}[.)]|#{1,6}|\|)\s)|(?<=\n)(?=#)|(?m:^(#{1,6}\s[^\n]*)$)"
)
_BULLET: Final = re.compile(r"\A\s*(?:[-*+•]|\d{1,2}[.)])\s+")
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?…])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\.\.\.)[\"')*`_]*\s+(?=[^a-z])"
)
_FILLER: Final = re.compile(
    r"#|\W*(?:perfect|great|excellent|awesome|nice|good|done|okay|ok|alright|sure|yes|right|now"
    r"|you'?re (?:absolutely |totally )?right|summary|fixed|got it|i see)\W*$"
    r"|\W*(?:\w+[,!.]? ){0,3}(?:let me|let's|i'll|i will|here'?s|here is|here are)\b[^.]*:$"
    r"|\W*(?:now|next|then|first|finally)\b[^.]*:$"
    r"|\W*(?:[\w'-]+ ?){1,4}:\W*$|[\W\d]*$",
    re.IGNORECASE,
)
"""Headings, and sentences that say nothing of the work."""
_LEANS: Final = re.compile(
    r"\W*(?:because|so|that|this|these|it|they|which|the same|hence|therefore|but|and)\b",
    re.IGNORECASE,
)
"""How a sentence begins that needs the one before it."""


class _Text(NamedTuple):
    ref: PartRef
    text: str


def thread_quotes(
    passages: Sequence[Passage], prompts: Iterable[int], earlier: Iterable[Claim]
) -> list[Claim]:
    """The quotations of these messages and of earlier folds, the oldest first.

    `prompts` are the entries of the user's messages, those of earlier folds included.
    """
    starts = sorted(prompts)
    threads: dict[int, list[_Text]] = defaultdict(list)
    for passage in passages:
        at = bisect_right(starts, passage.seq)
        for index, shape in enumerate(passage.shapes):
            if shape.kind == "text" and passage.role == SPEAKER and shape.text.strip():
                text = _FENCED.sub(f"\n\n{_LEFT_OUT}\n\n", shape.text[:_MAX_SEARCHED])
                threads[starts[at - 1] if at else 0].append(_Text(passage.ref(index), text))
    found = [*earlier, *(claim for key, said in threads.items() for claim in _quotes(key, said))]
    return _select(found)


def by_importance(claims: Sequence[Claim]) -> list[Claim]:
    """The quotations as they are needed: newer ones first, and causes before results."""
    threads = sorted({*map(thread_of, claims)}, reverse=True)
    ages = {thread: age for age, thread in enumerate(threads)}

    def rank(claim: Claim) -> tuple[int, PartRef]:
        return -ages[thread_of(claim)] - _AGE[_topic(claim)], claim.sources[0]

    return sorted(claims, key=rank, reverse=True)


def thread_of(claim: Claim) -> int:
    """The entry of the user's message under which a quotation was said; 0 if it is not known."""
    number = claim.key.partition(" ")[0]
    return int(number) if number.isdecimal() else 0


def _topic(claim: Claim) -> Topic:
    match claim.key.partition(" ")[2]:
        case "cause" | "decision" as topic:
            return topic
        case _:
            return "result"


def _select(claims: Iterable[Claim]) -> list[Claim]:
    """The newest of each thread and topic, each once; of too many, the most important."""
    unique = {(claim.sources[0], claim.quote): claim for claim in claims if claim.sources}
    groups: dict[str, list[Claim]] = defaultdict(list)
    for claim in sorted(unique.values(), key=lambda one: one.sources[0]):
        groups[claim.key].append(claim)
    newest = [
        claim for group in groups.values() for claim in group[-_MAX_PER_THREAD[_topic(group[0])] :]
    ]
    results = {one.sources[0]: one.quote for one in newest if _topic(one) == "result"}
    apart = [
        claim
        for claim in newest
        if _topic(claim) == "result" or claim.quote not in results.get(claim.sources[0], "")
    ]
    kept = by_importance(apart)[:_MAX_STORED]
    return sorted(kept, key=lambda one: (one.sources[0], one.key))


def _quotes(thread: int, texts: Sequence[_Text]) -> Iterator[Claim]:
    ending = next(filter(lambda one: _lead(one.text), reversed(texts)), texts[-1])
    lead = _lead(ending.text)
    in_lead: set[Topic] = set()
    for said in texts:
        for topic, quote in _causes_and_decisions(said.text):
            if said is ending and (quote in lead or lead in quote):
                in_lead.add(topic)
            else:
                yield from _claim(thread, topic, said, quote)
    in_lead.add("result")
    yield from _claim(thread, min(in_lead, key=_TOPICS.index), ending, lead)


def _causes_and_decisions(text: str) -> Iterator[tuple[Topic, str]]:
    """The causes and decisions in a text."""
    line, pieces = on_one_line(text), _pieces(text)
    for nth, piece in enumerate(pieces):
        topic, quote = _label_topic(piece), piece
        if topic is not None:  # what follows "Root cause:" is the cause
            below = takewhile(lambda one: not _is_filler(one), pieces[nth + 1 :])
            quote = _join(below, line, _SHORT)
        else:
            topic = _topic_of(piece)
            both = f"{pieces[nth - 1]} {piece}" if nth else ""
            if _LEANS.match(piece) and 0 < len(both) <= _SHORT and both in line:
                quote = both
        if topic != "result" and 0 < len(quote) <= _SHORT:
            yield topic, quote


def _claim(thread: int, topic: Topic, said: _Text, quote: str) -> Iterator[Claim]:
    if len(quote.split()) >= _MIN_WORDS[topic] and not permits(quote):
        yield Claim("", (said.ref,), quote, SPEAKER, key=f"{thread} {topic}")


def _topic_of(text: str) -> Topic:
    if _CAUSE.search(text):
        return "cause"
    return "decision" if _DECISION.search(text) else "result"


def _label_topic(piece: str) -> Topic | None:
    """What a heading or a label says of what follows it."""
    if not _is_filler(piece):
        return None
    if _CAUSE_LABEL.search(piece):
        return "cause"
    return "decision" if _DECISION_LABEL.search(piece) else None


def _lead(text: str) -> str:
    """A short answer whole, or of a longer one the first sentences and items that say something."""
    line = on_one_line(text)
    pieces = [piece for piece in _pieces(text) if not _is_filler(piece)]
    if len(line) <= _SHORT:
        return line if pieces else ""
    return _join(pieces, line)


def _join(pieces: Iterable[str], line: str, limit: int = _LEAD) -> str:
    """The first pieces of a text, as many as are short enough together."""
    joined = before = ""
    for piece in pieces:
        gap = "" if f"{before} {piece}" in line else f" {_LEFT_OUT}"
        longer = f"{joined}{gap} {piece}" if joined else piece
        if joined and len(longer) > limit:
            break
        joined, before = longer, piece
    return joined if len(joined) <= _SHORT else f"{joined[:_LEAD].rpartition(' ')[0]}…"


def _is_filler(piece: str) -> bool:
    return len(piece) <= _LEAD and bool(_FILLER.match(piece))


def _pieces(text: str) -> list[str]:
    """Headings, items of lists, and sentences, each on one line and without its bullet."""
    blocks = (block for block in _BLOCK_END.split(text) if block and block.strip())
    pieces = (
        on_one_line(piece)
        for block in blocks
        for piece in _SENTENCE_END.split(_BULLET.sub("", block, count=1))
    )
    return [piece for piece in pieces if piece and piece != _LEFT_OUT]
