"""A summary as data: what it says, what that rests on, and what a model is shown of it.

A fold keeps it whole, so that it can be printed, checked against the log, merged into the next one
and shown in another way.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError

from refold.log import PartRef
from refold.view.framing import lines_of, on_one_line

SUMMARY_VERSION = 1
HAND = "hand"
"""Who wrote a summary that is a text and no more."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement, and the parts it rests on."""

    text: str
    sources: tuple[PartRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Claims on one subject."""

    heading: str
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Directive:
    """What the user said, in the user's own words, whole or clipped in the middle."""

    text: str
    source: PartRef
    chars: int
    """How long it is in the log."""


class Name(NamedTuple):
    """A name that the folded messages hold: a path, an identifier, a number."""

    name: str
    weight: float
    """How likely it is to be needed again, against the others."""
    last: int
    """The newest entry that holds it."""
    by_tools: bool = False
    """Whether only tools returned it: nobody who may ask for something wrote it."""


ANY_CHANGE, NO_CHANGE = 0, -1
"""Of which change a read becomes old: of any, or of none."""


class Read(NamedTuple):
    """Something that the model read, as numbers alone: digests, and where it is in the log."""

    what: int
    """The tool, and what it reads: a file, a search."""
    how: int
    """The tool, and all of its arguments."""
    file: int
    """The file whose change makes it old; or `ANY_CHANGE`, `NO_CHANGE`."""
    content: int
    """What was returned."""
    call: PartRef
    part: PartRef
    """The newest result."""
    times: int = 1
    """How often the same call was made."""
    folds: int = 0
    """Through how many folds it went since the one that stands for it."""


Verdict = Literal["attributed", "quoted", "masked", "marked", "left out"]
"""What came of a claim that does not stand as a model wrote it: its sources were found or put
right; the user's own words stand for it; a name that the log does not have was taken out; it could
not be checked, and says so; it is not there any more."""


class Finding(NamedTuple):
    """One claim that does not stand as a model wrote it, and why."""

    verdict: Verdict
    text: str
    """The claim as the model wrote it."""
    why: str
    sources: tuple[PartRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What came of checking a model's summary against the log."""

    checked: int = 0
    """How many claims the model made."""
    findings: tuple[Finding, ...] = ()
    crowded: int = 0
    """How many claims found no room."""
    added: int = 0
    """How many names were added from the log."""
    coverage: float | None = None
    """How much of what is salient the fold holds, beside one that the log itself gives."""
    only: bool = False
    """Whether the findings were written down, but the model's words left as they are."""
    refused: str = ""
    """Why the model's summary was not believed at all, and the log's own stands in its place."""

    def count(self, *verdicts: Verdict) -> int:
        """How many claims came to such an end."""
        return sum(one.verdict in verdicts for one in self.findings)


@dataclass(frozen=True, slots=True)
class SummaryMessage:
    """One message that stands for the folded ones."""

    kind: Literal["prompt", "reply"]
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What a fold says of the entries it stands for."""

    by: str
    """Who wrote it: `breadcrumb` for the log itself, or a model."""
    title: str = ""
    words: str = ""
    """What a model wrote, where one did."""
    sections: tuple[Section, ...] = ()
    directives: tuple[Directive, ...] = ()
    omitted: int = 0
    """How many older messages of the user it does not quote."""
    ledger: tuple[Name, ...] = ()
    """More names than are shown: the next fold chooses anew among them."""
    reads: tuple[Read, ...] = ()
    """What was read and has not changed since: reading it again is noticed."""
    messages: int = 0
    """How many messages it stands for."""
    tokens: int = 0
    """What they would cost in a request."""
    over: tuple[int, ...] = ()
    """The entries of the folds that it stands for in their turn."""
    continues: int = 0
    """The entry of the fold of which it is what was left when a part was opened; 0: of none."""
    report: Report | None = None
    """What came of checking it, where a model wrote it or was asked to."""
    usage: dict[str, int] = field(default_factory=dict[str, int])
    """Tokens that writing it used, as its provider counts them, and how many calls that took."""
    shown: tuple[SummaryMessage, ...] = ()
    placement: Literal["own", "merge"] = "own"
    """Whether what is shown are messages of its own, or the beginning of the next prompt."""
    version: int = SUMMARY_VERSION

    @property
    def text(self) -> str:
        """What is shown, as one text."""
        return "\n\n".join(one.text for one in self.shown if one.kind == "prompt")

    def as_json(self) -> JsonValue:
        """The summary as a fold keeps it."""
        return _ADAPTER.dump_python(self, mode="json", exclude_defaults=True)

    def section(self, heading: str) -> tuple[Claim, ...]:
        """The claims under a heading."""
        return next((one.claims for one in self.sections if one.heading == heading), ())

    def showing(self, *shown: SummaryMessage, merge: bool = False) -> "Summary":
        """The same summary, shown in this way."""
        return replace(self, shown=shown, placement="merge" if merge else "own")


def parse(value: JsonValue) -> Summary:
    """The summary that a fold keeps; one that somebody wrote by hand is a text and no more."""
    try:
        return _ADAPTER.validate_python(value)
    except ValidationError:
        pass
    match value:
        case str() as text:
            return Summary(HAND, shown=(SummaryMessage("prompt", text),))
        case {"text": str() as text}:
            since = value.get("continues")
            left_of = since if isinstance(since, int) else 0
            return Summary(HAND, shown=(SummaryMessage("prompt", text),), continues=left_of)
        case _:
            return Summary(HAND)


_ADAPTER = TypeAdapter(Summary)


# Quoting: what was said, in as few characters as asked, with both ends where it was cut.

TRUNCATED = "...<truncated>..."


def clipped(text: str, room: int) -> str:
    """The text, or its beginning and end around a mark, within about `room` characters."""
    text = text.strip()
    if len(text) <= room:
        return text
    room = max(0, room - len(TRUNCATED))
    tail = room // 2
    return f"{text[: room - tail]}{TRUNCATED}{text[len(text) - tail :] if tail else ''}"


def sound(text: str) -> str:
    """The text without lone surrogates, which are no text and could not be kept."""
    return text.encode(errors="replace").decode()


def quoted(text: str) -> str:
    """The text with every line after the first set in, so that none can pass for one of ours."""
    return "\n  > ".join(lines_of(text))


def one_line(text: str, room: int) -> str:
    """The same, on one line."""
    return clipped(on_one_line(text), room)


def fair_clip(lengths: Iterable[int], room: int, most: int) -> int:
    """How long each of these texts may be so that together they fit: short ones stay whole."""
    left = sorted(lengths)
    for at, length in enumerate(left):
        share = room // (len(left) - at)
        if length > share:
            return min(most, share)
        room -= length
    return most


# What came of checking a summary, in words for people.

HEADING: Final = "What was checked"
_CLAIM = 160  # characters
_TOLD: Final[dict[Verdict, str]] = {
    "left out": "left out, because the log does not bear them out",
    "masked": "lost a name or number that is not in the log",
    "quoted": "replaced by the user's own words",
    "marked": "marked as the model's own, or as unchecked",
    "attributed": "given their sources",
}


def report_markdown(summary: Summary) -> str:
    """The report of a summary as Markdown; nothing where there is none."""
    report = summary.report
    return "\n".join(_lines(report, summary.by)) if report else ""


def counts(report: Report) -> dict[str, JsonValue]:
    """How many claims there were, and what came of them; or why none were believed."""
    if report.refused:
        return {"refused": report.refused}
    found = {verdict: report.count(verdict) for verdict in _TOLD}
    return {"checked": report.checked, **found, "no room": report.crowded, "added": report.added}


def _lines(report: Report, by: str) -> Iterator[str]:
    if report.refused:
        yield f"No model's summary is used here: {report.refused}."
        return
    changed = "" if not report.only else " Nothing was changed: this profile only reports."
    yield f"{report.checked} claims of {by} were checked against the log.{changed}"
    for verdict, what in _TOLD.items():
        if number := report.count(verdict):
            yield f"- {number} {what}"
    if report.crowded:
        yield f"- {report.crowded} found no room"
    if report.added:
        yield f"- {report.added} names added from the log"
    if report.coverage is not None:
        yield f"- {report.coverage:.0%} of the names that the log's own summary would show"
    yield from (_line(one) for one in report.findings if one.verdict != "attributed")


def _line(finding: Finding) -> str:
    where = ", ".join(f"{one.seq}.{one.index}" for one in finding.sources)
    sources = f" (part {where})" if where else ""
    return f'  - {finding.verdict}: "{one_line(finding.text, _CLAIM)}": {finding.why}{sources}'
