"""A summary as data: its claims with their sources, and what a model is shown of it.

A fold stores it whole, so that it can be printed, checked against the log, merged into the next one
and shown in another way. The helpers that quote and clip texts for it are here too.
"""

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


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement, with its sources."""

    text: str
    sources: tuple[PartRef, ...] = ()


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


Verdict = Literal["attributed", "quoted", "masked", "marked", "left out"]
"""What happened to a claim that was not kept as written: its sources were found or corrected; the
user's own words replaced it; a name missing from the log was removed; it was marked as unchecked;
it was dropped."""


class Finding(NamedTuple):
    """One claim that was not kept as the model wrote it, and why."""

    verdict: Verdict
    text: str
    """The claim as the model wrote it."""
    why: str
    sources: tuple[PartRef, ...] = ()


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
    shown: tuple[SummaryMessage, ...] = ()
    placement: Literal["own", "merge"] = "own"
    """Whether it is shown in messages of its own, or merged into the next prompt."""
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
    "left out": "left out, because the log does not bear them out",
    "masked": "lost a name or number that is not in the log",
    "quoted": "replaced by the user's own words",
    "marked": "marked as the model's own, or as unchecked",
    "attributed": "given their sources",
}


def report_markdown(summary: Summary) -> str:
    """The report of a summary as Markdown; empty if there is none."""
    report = summary.report
    return "\n".join(_report_lines(report, summary.by)) if report else ""


def counts(report: Report) -> dict[str, JsonValue]:
    """How many claims there were, and of which verdict; or why the summary was rejected."""
    if report.refused:
        return {"refused": report.refused}
    verdicts = {verdict: report.count(verdict) for verdict in _VERDICTS}
    return {"checked": report.checked, **verdicts, "no room": report.crowded, "added": report.added}


def _report_lines(report: Report, by: str) -> Iterator[str]:
    if report.refused:
        yield f"No model's summary is used here: {report.refused}."
        return
    changed = "" if not report.only else " Nothing was changed: this profile only reports."
    yield f"{report.checked} claims of {by} were checked against the log.{changed}"
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
        if finding.verdict != "attributed":
            parts = ", ".join(f"{ref.seq}.{ref.index}" for ref in finding.sources)
            text = one_line(finding.text, _MAX_CLAIM)
            suffix = f" (part {parts})" if parts else ""
            yield f'  - {finding.verdict}: "{text}": {finding.why}{suffix}'
