"""Folds, remembered: what a summary says is noted before anything leaves the view."""

from collections.abc import Callable, Iterator

from refold.fold.breadcrumb import STATE
from refold.fold.job import Job
from refold.fold.quoting import one_line
from refold.fold.run import Remember
from refold.fold.summary import Summary
from refold.fold.write.subjects import HEADINGS
from refold.log.author import wall_clock
from refold.memory.protocol import MemorySink, Note, Reason

OVERFLOW = "overflow"
"""The trigger of what is summarised because a provider refused a request for its length."""

_REFUSED = (OVERFLOW, "forced")
_MOST_LINES = 10
_LINE = 200


def wall_ms() -> int:
    """The time, in milliseconds since 1970."""
    return int(wall_clock().timestamp() * 1000)


def remembering(sink: MemorySink, *, now: Callable[[], int] = wall_ms) -> Remember:
    """Notes what summaries say in the sink; give it to a session, or to a folder.

    When the sink cannot keep a note, the fold fails, and the view stays as it is.
    """

    async def remember(summary: Summary, job: Job) -> None:
        text = noted(summary)
        if text:
            reason: Reason = "overflow" if job.trigger in _REFUSED else "trimmed"
            await sink.write(Note(job.session, now(), reason, text, job.fold, summary.messages))

    return remember


def noted(summary: Summary) -> str:
    """What is worth a note: a model's words, else a few lines from the log."""
    return summary.words.strip() or _claims(summary) or "\n".join(_lines(summary))


def _claims(summary: Summary) -> str:
    """What a model claimed and the log bears out, where one wrote the summary."""
    if summary.report is None or summary.report.refused:
        return ""
    headings = {*HEADINGS.values()}
    told = (one for part in summary.sections if part.heading in headings for one in part.claims)
    return "\n".join(f"- {one_line(claim.text, 2 * _LINE)}" for claim in told)


def _lines(summary: Summary) -> Iterator[str]:
    """The user's newest messages, and what the model last said."""
    last = summary.section(STATE)[-1:]
    room = _MOST_LINES - len(last)
    said = [one.text for one in summary.directives if one.text.strip()]
    newest = said if len(said) + bool(summary.omitted) <= room else said[1 - room :]
    omitted = len(said) - len(newest) + summary.omitted
    if omitted:
        yield f"- [{omitted} earlier messages of the user]"
    yield from (f'- The user: "{one_line(text, _LINE)}"' for text in newest)
    yield from (f"- {one_line(claim.text, _LINE)}" for claim in last)
