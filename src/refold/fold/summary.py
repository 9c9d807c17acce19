"""A summary as data: its claims with their sources, and what a model is shown of it.

A fold stores it whole, so that it can be printed, checked against the log, merged into the next one
and shown in another way. The helpers that quote and clip texts for it are here too.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError

from refold.log import PartRef
from refold.view import Counter
from refold.view.budget import PER_MESSAGE
from refold.view.framing import lines_of, on_one_line

SUMMARY_VERSION = 1
HAND = "hand"
"""The author of a summary that is only a text."""
ANY_CHANGE, NO_CHANGE = 0, -1
"""Which change makes a read outdated: that of any file, or none."""
TRUNCATED = "...<truncated>..."
HEADING: Final = "What was checked"
_MAX_CLAIM = 160  # characters
_MARKED: Final = re.compile(r"entry (\d+): ")


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement, with its sources."""

    text: str
    """Empty if a model said no more than its quote."""
    sources: tuple[PartRef, ...] = ()
    quote: str = ""
    """Words of the log that a model gave with its claim, in the sentence in which they stand."""
    speaker: str = ""
    """Who said them: `user`, `assistant` or `tool`."""
    against: str = ""
    """What in the log disagrees with the text, with its entry."""
    outdated: str = ""
    """What the log has since for a value in the quote, with its entry."""
    key: str = ""
    """What it is about: a newer claim with the same key takes its place."""

    @property
    def entries(self) -> tuple[int, ...]:
        """The entries of its quote, and those that disagree."""
        marks = (_MARKED.match(mark) for mark in (self.against, self.outdated))
        quoted = (ref.seq for ref in self.sources if self.quote)
        return tuple(dict.fromkeys((*quoted, *(int(mark[1]) for mark in marks if mark))))


@dataclass(frozen=True, slots=True)
class Section:
    heading: str
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Directive:
    """A message of the user, verbatim or clipped in the middle."""

    text: str
    source: PartRef
    chars: int
    """How long it is in the log."""


class Name(NamedTuple):
    """A name in the folded messages: a path, an identifier, a number."""

    name: str
    weight: float
    """How likely it is to be needed again, against the others."""
    last: int
    """The newest entry with this name."""
    by_tools: bool = False
    """Whether it occurs in tool results only, never in what the user or the model wrote."""


class Value(NamedTuple):
    """The newest value of a name in the log, and the one before it."""

    name: str
    value: str
    source: PartRef
    speaker: str
    """Who gave it: `user`, `assistant` or `tool`."""
    before: str = ""
    """Empty if it never had another one."""
    before_source: PartRef | None = None
    before_speaker: str = ""


class Read(NamedTuple):
    """A read of the model, stored as digests and positions in the log, without any text."""

    what: int
    """Digest of the tool and what it reads: a file, a search."""
    how: int
    """Digest of the tool and all of its arguments."""
    file: int
    """Digest of the file whose change makes it outdated; or `ANY_CHANGE`, `NO_CHANGE`."""
    content: int
    """Digest of the result."""
    call: PartRef
    part: PartRef
    """The newest result."""
    times: int = 1
    """How often the same call was made."""
    folds: int = 0
    """How many folds have come after the one that stands for it."""


class Region(NamedTuple):
    """Lines of a file that is being worked on, as they were read or written last."""

    path: str
    start: int
    """Where it stands among the lines that are known of the file."""
    text: str
    source: PartRef
    """The newest part that shows it, or changed it."""
    age: int = 0
    """How many folds ago the file was last read or changed."""
    edited: bool = False
    whole: bool = True
    """Whether all of the file was read or written."""
    changed: bool = False
    """Whether the model wrote one of these lines."""


Verdict = Literal["no source", "masked", "marked", "left out"]
"""What was found about a claim: it quotes nothing that bears it out; a name that the log does not
have was masked; the log disagrees; it says what is allowed, and was taken out."""


class Finding(NamedTuple):
    """One claim that was not kept as the model wrote it, and why."""

    verdict: Verdict
    text: str
    """The claim as the model wrote it."""
    why: str
    sources: tuple[PartRef, ...] = ()


class Offer(NamedTuple):
    """One way to have a summary written, and what it costs."""

    model: str
    how: Literal["warm", "transcript"]
    """On top of the request that was sent last, which is cached; or from quoted data."""
    dollars: float | None = None
    """None if a price is not known."""

    def __str__(self) -> str:
        price = "price unknown" if self.dollars is None else f"${self.dollars:.4f}"
        return f"{self.model} {self.way}: {price}"

    @property
    def way(self) -> str:
        return _HOW[self.how]


_HOW: Final = {"warm": "on its warm cache", "transcript": "from a transcript"}


@dataclass(frozen=True, slots=True)
class Report:
    """The result of checking a model's summary against the log."""

    checked: int = 0
    """How many claims the model made."""
    findings: tuple[Finding, ...] = ()
    crowded: int = 0
    """How many claims were dropped for lack of room."""
    added: int = 0
    """How many names were added from the log."""
    coverage: float | None = None
    """How much of the salient names it shows, relative to the extractive summary."""
    only: bool = False
    """Whether findings were only reported, and the model's words left as they are."""
    refused: str = ""
    """Why the model's summary was rejected in favor of the extractive one."""
    offers: tuple[Offer, ...] = ()
    """Between what the writer was chosen, the cheapest first."""
    not_asked: str = ""
    """Why no model was asked, although there was one."""

    def count(self, *verdicts: Verdict) -> int:
        """How many claims have one of these verdicts."""
        return sum(finding.verdict in verdicts for finding in self.findings)


@dataclass(frozen=True, slots=True)
class SummaryMessage:
    """One message shown in place of the folded ones."""

    kind: Literal["prompt", "reply"]
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary that a fold stores."""

    by: str
    """Who wrote it: `breadcrumb` for the log itself, or a model."""
    title: str = ""
    words: str = ""
    """The text as a model wrote it, if it is used as such."""
    sections: tuple[Section, ...] = ()
    directives: tuple[Directive, ...] = ()
    omitted: int = 0
    """How many older messages of the user are not quoted."""
    ledger: tuple[Name, ...] = ()
    """More names than are shown: the next fold chooses among them again."""
    values: tuple[Value, ...] = ()
    """More than are shown: a name with one value so far may have changed by the next fold."""
    regions: tuple[Region, ...] = ()
    """Of files, the likeliest to be needed by an edit first: more than are shown."""
    reads: tuple[Read, ...] = ()
    """What was read and has not changed since, so that rereads are noticed."""
    messages: int = 0
    """How many messages it stands for."""
    tokens: int = 0
    """What they would cost in a request."""
    over: tuple[int, ...] = ()
    """The entries of the earlier folds that it covers."""
    continues: int = 0
    """The entry of the fold that was partly opened and that this one continues; 0 if none."""
    report: Report | None = None
    """The result of the check, if a model was asked for the summary."""
    usage: dict[str, int] = field(default_factory=dict[str, int])
    """Tokens that writing it used, as its provider counts them, and the number of calls."""
    cost: float | None = None
    """Dollars that writing it cost, if a model was asked and its prices were known."""
    request: str = ""
    """The provider's id of the newest answer that it was written with."""
    shown: tuple[SummaryMessage, ...] = ()
    placement: Literal["own", "merge"] = "own"
    """Whether it is shown in messages of its own, or merged into the next prompt."""
    state: tuple[str, ...] = ()
    """What the framework noted among the folded messages and must see in every request: messages
    in the session's format."""
    for_delegates: "Summary | None" = None
    """What delegated agents are shown instead: it is made without the work of other delegates."""
    version: int = SUMMARY_VERSION

    @property
    def text(self) -> str:
        """What is shown, as one text."""
        return "\n\n".join(message.text for message in self.shown if message.kind == "prompt")

    def as_json(self) -> JsonValue:
        """The summary as a fold stores it."""
        return _ADAPTER.dump_python(self, mode="json", exclude_defaults=True)

    def section(self, heading: str) -> tuple[Claim, ...]:
        """The claims under a heading."""
        return next((found.claims for found in self.sections if found.heading == heading), ())

    def showing(self, *shown: SummaryMessage, merge: bool = False) -> "Summary":
        """The same summary, shown in this way."""
        return replace(self, shown=shown, placement="merge" if merge else "own")


_ADAPTER = TypeAdapter(Summary)


def parse(value: JsonValue) -> Summary:
    """Read the summary that a fold stores; one that was written by hand is only a text."""
    try:
        return _ADAPTER.validate_python(value)
    except ValidationError:
        pass
    match value:
        case str() as text:
            return Summary(HAND, shown=(SummaryMessage("prompt", text),))
        case {"text": str() as text}:
            seq = value.get("continues")
            continues = seq if isinstance(seq, int) else 0
            return Summary(HAND, shown=(SummaryMessage("prompt", text),), continues=continues)
        case _:
            return Summary(HAND)


def shown_tokens(summary: Summary, counter: Counter) -> int:
    return sum(counter.text(message.text) + PER_MESSAGE for message in summary.shown)


def clipped(text: str, room: int) -> str:
    """The text, or its beginning and end around a mark, within about `room` characters."""
    text = text.strip()
    if len(text) <= room:
        return text
    room = max(0, room - len(TRUNCATED))
    tail = room // 2
    return f"{text[: room - tail]}{TRUNCATED}{text[len(text) - tail :] if tail else ''}"


def sound(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded and so not be stored."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def quoted(text: str) -> str:
    """Indent every line after the first, so that none can pass for one of ours."""
    return "\n  > ".join(lines_of(text))


def one_line(text: str, room: int) -> str:
    return clipped(on_one_line(text), room)


def fair_clip(lengths: Iterable[int], room: int, limit: int) -> int:
    """How long each of these texts may be so that together they fit: short ones stay whole."""
    ordered = sorted(lengths)
    for index, length in enumerate(ordered):
        share = room // (len(ordered) - index)
        if length > share:
            return min(limit, share)
        room -= length
    return limit


_VERDICTS: Final[dict[Verdict, str]] = {
    "no source": "without a source",
    "marked": "contradicted by the log, which is said beside them",
    "masked": "lost a name or number that is not in the log",
    "left out": "left out, because they say what is allowed",
}


def report_markdown(summary: Summary) -> str:
    """The report of a summary as Markdown; empty if there is none."""
    report = summary.report
    if report is None:
        return ""
    offers = "; ".join(map(str, report.offers))
    priced = [f"Who could have written it: {offers}."] if offers else []
    return "\n".join((*_report_lines(report, summary.by), *priced))


def counts(report: Report) -> dict[str, JsonValue]:
    """How many claims there were, and of which verdict; or why there is no model's summary."""
    found: dict[str, JsonValue] = {}
    if report.offers:
        found["offers"] = [offer._asdict() for offer in report.offers]
    if report.refused:
        return {**found, "refused": report.refused}
    if report.not_asked:
        return {**found, "not asked": report.not_asked}
    verdicts = {verdict: report.count(verdict) for verdict in _VERDICTS}
    found |= {"checked": report.checked, **verdicts}
    return {**found, "no room": report.crowded, "added": report.added}


def _report_lines(report: Report, by: str) -> Iterator[str]:
    if report.refused or report.not_asked:
        why = report.refused and f"No model's summary is used here: {report.refused}."
        yield why or f"No model was asked: {report.not_asked}."
        return
    changed = "" if not report.only else " Nothing was changed: this profile only reports."
    yield f"{report.checked} claims of {by} were looked up in the log.{changed}"
    for verdict, what in _VERDICTS.items():
        if number := report.count(verdict):
            yield f"- {number} {what}"
    if report.crowded:
        yield f"- {report.crowded} found no room"
    if report.added:
        yield f"- {report.added} names added from the log"
    if report.coverage is not None:
        yield f"- {report.coverage:.0%} of the names that the log's own summary would show"
    for finding in report.findings:
        parts = ", ".join(f"{ref.seq}.{ref.index}" for ref in finding.sources)
        text = one_line(finding.text, _MAX_CLAIM)
        suffix = f" (part {parts})" if parts else ""
        yield f'  - {finding.verdict}: "{text}": {finding.why}{suffix}'
