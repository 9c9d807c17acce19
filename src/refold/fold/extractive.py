"""The extractive summary: the user's words and the facts of the log, without a model.

It only quotes and counts: the user's messages, values that changed, what the assistant said of
causes and decisions, files, commands, errors and their outcome, calls without an answer, the state
of the work, and the names in use. A quote can be false or out of date, and what is left out can
matter.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from refold.fold import facts
from refold.fold.facts import CallResult, call_results
from refold.fold.identifiers import ledger
from refold.fold.material import Earlier, Material, Passage
from refold.fold.regions import regions
from refold.fold.summary import HAND, Claim, Section, Summary, Value, clipped, one_line
from refold.fold.threads import thread_quotes
from refold.fold.user_words import directives, storable
from refold.fold.values import changed_values, newest_values
from refold.fold.watchdog import reads_of
from refold.log import PartRef

BY = "breadcrumb"  # stored in logs

_MAX_EARLIER = 3
_MAX_EARLIER_WORDS = 4_000  # characters
_RECENT = 3_000  # messages whose facts are still of interest
_TITLE = 60


def extractive_summary(material: Material) -> Summary:
    """Summarize the material from the log alone."""
    passages = [passage for passage in material.passages if passage.role != "system"]
    own = [passage for passage in passages if not passage.delegated]
    said = directives(own, material.earlier)
    quoted = storable(said)
    recent = own[-_RECENT:]
    values = newest_values(recent, material.earlier)
    prompts = [directive.source.seq for directive in said]
    return Summary(
        BY,
        title=one_line(said[-1].text, _TITLE) if said else "",
        sections=tuple(_sections(recent, material.earlier, values, prompts)),
        directives=tuple(quoted),
        omitted=sum(fold.summary.omitted for fold in material.earlier) + len(said) - len(quoted),
        ledger=ledger(passages, material.earlier),
        values=values,
        regions=regions(material),
        messages=material.messages,
    )


def with_results(summary: Summary, material: Material) -> Summary:
    """Add references to large results to any summary, and the reads that rereads are noticed by."""
    summary = replace(summary, reads=reads_of(material))
    earlier = _claims(material.earlier, facts.RESULTS)
    found = facts.large_results(call_results(material.passages), earlier)
    if summary.section(facts.RESULTS) or not found:
        return summary
    section = Section(facts.RESULTS, tuple(found))
    return replace(summary, sections=(*summary.sections, section))


def _sections(
    passages: Sequence[Passage],
    earlier: Sequence[Earlier],
    values: Iterable[Value],
    prompts: Sequence[int],
) -> Iterator[Section]:
    calls = call_results(passages)

    def merged(
        heading: str, find: Callable[[Sequence[CallResult], Iterable[Claim]], list[Claim]]
    ) -> tuple[str, list[Claim]]:
        return heading, find(calls, _claims(earlier, heading))

    changed = merged(facts.CHANGED, facts.changed_files)
    sections = (
        (facts.EARLIER, _earlier_words(earlier)),
        (facts.VALUES, changed_values(values)),
        (facts.THREADS, thread_quotes(passages, prompts, _claims(earlier, facts.THREADS))),
        changed,
        (facts.READ, facts.files_read(calls, _claims(earlier, facts.READ), changed[1])),
        merged(facts.COMMANDS, facts.commands),
        merged(facts.ERRORS, facts.errors),
        (facts.OPEN, facts.open_calls(passages, _claims(earlier, facts.OPEN))),
        merged(facts.RESULTS, facts.large_results),
        (facts.STATE, facts.state(passages, prompts[-1] if prompts else 0)),
        (facts.NEXT, facts.next_steps(passages)),
    )
    return (Section(heading, tuple(claims)) for heading, claims in sections if claims)


def _claims(earlier: Iterable[Earlier], heading: str) -> list[Claim]:
    return [claim for fold in earlier for claim in fold.summary.section(heading)]


def _earlier_words(earlier: Sequence[Earlier]) -> list[Claim]:
    """What a model or a person wrote in earlier folds, each text once."""
    found = _claims(earlier, facts.EARLIER)
    for fold in earlier:
        summary = fold.summary
        words = summary.words or (summary.text if summary.by == HAND else "")
        if words.strip():
            found.append(Claim(clipped(words, _MAX_EARLIER_WORDS), (PartRef(fold.seq, 0),)))
    unique: dict[str, Claim] = {}
    for claim in reversed(found):
        unique.setdefault(claim.text, claim)
    return [*unique.values()][:_MAX_EARLIER][::-1]
