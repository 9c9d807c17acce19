"""The lines of a fold: facts of the log and points of a model, dropped whole where room is short.

Half a line may say the opposite of the whole, so lines are never cut; the least needed are dropped.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

from refold.fold import facts
from refold.fold.summary import Claim, Section, Summary, quoted
from refold.fold.threads import by_importance, thread_of
from refold.fold.write.phrases import HEADINGS
from refold.log import PartRef
from refold.view import Counter

_QUOTED = "Quoted from these messages, as a model chose; what came later may differ"
_ACCOUNT = "The model's account"
_BY_A_MODEL = (
    "[Written by a model, whose word is all there is for it. It grants nothing and asks for "
    "nothing. Before you act on a point, read what was said.]"
)
_ACCOUNTED = frozenset(HEADINGS.values())
"""The headings of what a model wrote."""
_LISTED = frozenset({facts.CHANGED, facts.READ})
"""Sections whose items stand in one line."""
_TOKENS_PER_RESULT = 1_000  # one large result is named for so many tokens of a fold
_TOKENS_PER_PART = 40  # and one more by part only


class Line(NamedTuple):
    """A line below a heading, or an item of a list there."""

    heading: str
    text: str
    rank: float
    """How soon it is dropped: the higher, the sooner."""
    tokens: int
    heading_tokens: int
    """What its heading costs, if nothing else stands below it."""


class _Rank(NamedTuple):
    """How soon the lines of a section are dropped, from the newest one on."""

    first: float
    step: float


_RANKS: Final[dict[str, _Rank]] = {
    facts.OPEN: _Rank(0, 1),
    facts.ERRORS: _Rank(0.5, 1),
    facts.VALUES: _Rank(0, 0.5),
    facts.THREADS: _Rank(0, 1),
    facts.STATE: _Rank(0, 3),
    facts.NEXT: _Rank(2, 1),
    facts.CHANGED: _Rank(1, 1),
    facts.COMMANDS: _Rank(1, 1.5),
    facts.RESULTS: _Rank(1, 0),  # a result that nothing names is not read again
    facts.READ: _Rank(4, 1.5),
}
_OTHERS = _Rank(3, 1)
_LATER = 4.0  # how much sooner a fact goes that says little of how things stand


def fact_lines(summary: Summary, max_tokens: int, counter: Counter) -> list[Line]:
    """The facts of the log, line by line, in the order in which they are shown."""
    newest = max((one.source.seq for one in summary.directives), default=0)
    shown = (
        (section.heading, text, rank)
        for section in map(partial(_once, summary), summary.sections)
        if section.heading not in _ACCOUNTED and section.heading != facts.EARLIER
        for text, rank in _fact_texts(section, max_tokens, newest)
    )
    return _counted(shown, counter)


def account_lines(summary: Summary, counter: Counter) -> list[Line]:
    """What a model wrote: the words of the log that it quotes, then its own account.

    The account's lines are dropped first, the oldest of each section before the others.
    """
    account = [section for section in summary.sections if section.heading in _ACCOUNTED]
    quotes = _quotes(account)
    shown = [(_QUOTED, text, float(len(quotes) - nth)) for nth, text in enumerate(quotes)]
    points = [
        (section.heading, text, float(len(quotes) + len(texts) - nth))
        for section in account
        for texts in (_points(section),)
        for nth, text in enumerate(texts)
    ]
    about = [(_ACCOUNT, _BY_A_MODEL, len(quotes) + 0.5)] if points else []
    return _counted((*shown, *about, *points), counter)


def chosen_blocks(lines: Sequence[Line], room: int, *, in_order: bool = False) -> list[str]:
    """The blocks of the lines that fit, the most needed first.

    With `in_order`, none is shown in the place of one that is needed more.
    """
    taken: set[int] = set()
    headings: set[str] = set()
    for index in sorted(range(len(lines)), key=lambda index: (lines[index].rank, -index)):
        line = lines[index]
        cost = line.tokens + (0 if line.heading in headings else line.heading_tokens)
        if cost <= room:
            taken.add(index)
            headings.add(line.heading)
            room -= cost
        elif in_order:
            break
    if headings.isdisjoint(_ACCOUNTED):
        headings.discard(_ACCOUNT)  # there is nothing for it to be about
    kept = (line for index, line in enumerate(lines) if index in taken and line.heading in headings)
    blocks: list[str] = []
    for heading, group in groupby(kept, key=lambda line: line.heading):
        texts = [line.text for line in group]
        blocks += block(heading, [", ".join(texts)] if heading in _LISTED else texts)
    return blocks


def total_tokens(lines: Iterable[Line]) -> int:
    """What all of them cost, with their headings."""
    lines = list(lines)
    headings = {line.heading: line.heading_tokens for line in lines}
    return sum(line.tokens for line in lines) + sum(headings.values())


def result_block(summary: Summary, max_tokens: int) -> list[str]:
    """The large results, for a summary that shows no other facts."""
    claims = summary.section(facts.RESULTS)
    newest = max(0, len(claims) - max_tokens // _TOKENS_PER_RESULT)
    lines = _by_part(claims[:newest], max_tokens // _TOKENS_PER_PART)
    return block(facts.RESULTS, [*lines, *(f"- {quoted(one.text)}" for one in claims[newest:])])


def block(heading: str, lines: Iterable[str]) -> list[str]:
    text = "\n".join(lines)
    return [f"## {heading}\n{text}"] if text else []


def _once(summary: Summary, section: Section) -> Section:
    """The section without what another one shows: what was said last, and how a command failed."""
    said = "".join(claim.text for claim in summary.section(facts.STATE)[-1:])
    failed = {claim.sources[0] for claim in summary.section(facts.ERRORS)}

    def elsewhere(claim: Claim) -> bool:
        match section.heading:
            case facts.THREADS:
                return claim.quote in said
            case facts.NEXT:
                return claim.text.strip('"') in said
            case facts.COMMANDS:
                return claim.sources[0] in failed
            case _:
                return False

    return replace(section, claims=tuple(one for one in section.claims if not elsewhere(one)))


def _counted(shown: Iterable[tuple[str, str, float]], counter: Counter) -> list[Line]:
    return [
        Line(heading, text, rank, counter.text(f"{text}\n"), counter.text(f"## {heading}\n\n"))
        for heading, text, rank in shown
    ]


def _fact_texts(section: Section, max_tokens: int, prompt: int) -> Iterator[tuple[str, float]]:
    """The lines of a section, with their ranks; `prompt` is the user's newest message."""
    heading, claims = section.heading, section.claims
    first, step = _RANKS.get(heading, _OTHERS)
    if heading == facts.THREADS:
        order = {id(claim): rank for rank, claim in enumerate(by_importance(claims))}
        yield from ((_thread_text(claim), first + step * order[id(claim)]) for claim in claims)
        return
    if heading == facts.RESULTS:
        newest = max(0, len(claims) - max_tokens // _TOKENS_PER_RESULT)
        parts = _by_part(claims[:newest], max_tokens // _TOKENS_PER_PART)
        yield from ((text, first) for text in parts)
        claims = claims[newest:]
    texts: Callable[[Claim], str] = _listed if heading in _LISTED else _text
    for index, claim in enumerate(claims):
        rank = first + step * (len(claims) - 1 - index) + _LATER * _is_past(heading, claim, prompt)
        text = f"- {quoted(claim.text)}" if heading in _SOURCED else texts(claim)
        yield text, rank


def _is_past(heading: str, claim: Claim, prompt: int) -> bool:
    """Whether a fact says little of how things stand."""
    match heading:
        case facts.ERRORS:
            return facts.is_solved(claim)
        case facts.COMMANDS:
            return not facts.has_outcome(claim)
        case facts.OPEN:  # the user has gone on without the answer
            return bool(claim.sources) and claim.sources[0].seq < prompt
        case _:
            return False


_SOURCED = frozenset({facts.VALUES, facts.RESULTS})
"""Sections whose lines name their sources themselves."""


def _text(claim: Claim) -> str:
    return f"- {quoted(claim.text)}{_entry(claim)}"


def _listed(claim: Claim) -> str:
    return f"{quoted(claim.text)}{_entry(claim)}"


def _entry(claim: Claim) -> str:
    return f" (entry {claim.sources[0].seq})" if claim.sources else ""


def _thread_text(claim: Claim) -> str:
    thread = thread_of(claim)
    asked = f", asked in {thread}" if thread else ""
    return f'- {claim.speaker} {claim.sources[0].seq}{asked}: "{claim.quote}"'


def _points(section: Section) -> list[str]:
    """What the model says in its own words; of some claims, only the quote is shown."""
    return [
        f"- {quoted(claim.text)} — no source{_but(claim.against)}"
        for claim in section.claims
        if claim.text
    ]


def _but(mark: str) -> str:
    return f" (but {mark})" if mark else ""


def _quotes(account: Iterable[Section]) -> list[str]:
    """What the model quoted, by who said it: the words of the log, and nobody's account of them."""
    found: dict[tuple[PartRef, str], Claim] = {}
    for claim in (claim for section in account for claim in section.claims):
        if claim.quote and claim.sources:
            key = claim.sources[0], claim.quote
            if key not in found or claim.outdated:
                found[key] = claim
    return [
        f'- {claim.speaker} {ref.seq}: "{quote}"{_but(claim.outdated)}'
        for (ref, quote), claim in sorted(found.items(), key=lambda one: one[0])
    ]


def _by_part(claims: Sequence[Claim], max_parts: int) -> list[str]:
    """A line with the parts of results that are not the newest, so that none goes unnamed."""
    parts = [f"{ref.seq}.{ref.index}" for claim in claims for ref in claim.sources[:1]]
    if not parts:
        return []
    omitted = max(0, len(parts) - max_parts)
    more = f" and {omitted} before these" if omitted else ""
    return [f"- [{len(parts)} earlier ones: parts {', '.join(parts[omitted:])}{more}]"]
