"""What came of checking a summary, in words for people."""

from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from refold.fold.quoting import one_line
from refold.fold.summary import Finding, Report, Summary, Verdict

HEADING: Final = "What was checked"
_CLAIM = 160  # characters
_TOLD: Final[dict[Verdict, str]] = {
    "left out": "left out, because the log does not bear them out",
    "masked": "lost a name or number that is not in the log",
    "quoted": "replaced by the user's own words",
    "marked": "marked as the model's own, or as unchecked",
    "attributed": "given their sources",
}


def told(summary: Summary) -> str:
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
