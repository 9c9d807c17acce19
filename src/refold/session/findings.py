"""Findings: what a delegated agent's tools returned, summarized while the agent works.

A delegated agent is never folded: its task and the conversation that it was called from stay as
they are. When its tool results fill its window, a model writes down what was found, and
each result becomes a reference that recall reads. Without a summarizer, or when that fails, the
profile's excerpts and fixed limits make room instead.
"""

import asyncio
from dataclasses import replace
from typing import Final, NamedTuple
from uuid import uuid4

from refold.engine import LocalSteps
from refold.engine.protocol import reason_of
from refold.errors import FoldNotMade
from refold.fold.compactor import Write, context
from refold.fold.extractive import BY
from refold.fold.job import Job
from refold.fold.material import Earlier, Material, Passage
from refold.fold.replace import render_summary
from refold.fold.summary import parse, sound
from refold.log import CODEC, Findings, Span
from refold.log.entry import spans_of, union
from refold.session.compaction import Hook, Host, fold_values
from refold.session.events import CompactionEvents
from refold.session.live_view import LiveView
from refold.view import Budget, Fold, ViewInput
from refold.view.budget import GAIN

GENERATION: Final = "generation"
MARKER: Final = (
    "[Findings from {count} tool results, as a model summarized them. In the place of each result "
    "stands the part that it is archived as.]\n{text}"
)
_FOCUS: Final = "What the tools found, with names and numbers, for this task: {task}"
_MAX_TASK: Final = 1_000  # characters
_WHOLE: Final = 100_000  # characters of a result: findings are made of all of it


class _Results(NamedTuple):
    """The tool results that new findings would cover."""

    rows: range
    """The steps since the task, or since the previous findings, without the newest."""
    spans: tuple[Span, ...]
    """The entries of the results."""
    tokens: int


def _results(inputs: ViewInput) -> _Results:
    rows, start = inputs.rows, inputs.turn()
    if (before := inputs.findings.get(inputs.scope)) is not None:
        start = max(start, inputs.at(before.spans[-1].last + 1))
    end = inputs.steps[-1] if rows else 0
    steps = range(start, max(start, end))
    found = [rows[index] for index in steps if rows[index].has("return")]
    parts = (part for row in found for part in row.parts)
    tokens = sum(part.tokens for part in parts if part.kind == "return")
    return _Results(steps, spans_of(row.seq for row in found), tokens)


class DelegateFindings:
    """Writes the findings of one delegated agent, before a request that needs the room."""

    def __init__(
        self,
        live: LiveView,
        events: CompactionEvents,
        write: Write,
        *,
        before: Hook | None,
        host: Host,
    ) -> None:
        self._live = live
        self._events = events
        self._write = write
        self._before = before
        self._host = host
        self._retry_at = 0
        """After a failure: the tokens of results at which to try again."""

    async def make_room(self, *, forced: bool, budget: Budget) -> None:
        """Write findings if the results pass the profile's mark, or a provider refused them."""
        live = self._live
        marks = live.thresholds
        results = _results(live.view.inputs)
        size = live.view.size(live.setup.budget) + marks.floor
        if not (forced or 0 < marks.generation < size):
            return
        least = 1 if forced else GAIN * marks.generation  # else too little would be gained
        if results.tokens < max(self._retry_at, least):
            return
        values = fold_values(live.setup, budget)
        job = Job(
            live.name,
            uuid4(),
            results.spans,
            GENERATION,
            _FOCUS.format(task=self._task()),
            context(
                values,
                self._host(),
                results.tokens,
                model=live.setup.model,
                summarizer=live.setup.profile.summarizer,
            ),
            scope=live.scope,
        )
        self._events.report_start(job.fold, GENERATION)
        try:
            if self._before is not None:
                await self._before(job)
            async with asyncio.timeout(values.wait):
                findings = await self._make(job, results, values)
            await live.append(findings)
        except Exception as error:  # noqa: BLE001 - reported; the request has excerpts instead
            self._retry_at = results.tokens + int(GAIN * marks.generation)
            live.limit(on=True)
            self._events.report_failure(job.fold, reason_of(error))
            return
        except BaseException as error:
            self._events.report_failure(job.fold, reason_of(error))
            raise
        self._retry_at = 0
        live.limit(on=False)
        await self._events.report_completed(job.fold, parse(findings.summary))

    async def _make(self, job: Job, results: _Results, values: Fold) -> Findings:
        live, inputs = self._live, self._live.view.inputs
        earlier = await self._earlier()
        material = Material(
            tuple(self._passage(index) for index in results.rows), earlier, result_chars=_WHOLE
        )
        summary = await self._write(material, job, LocalSteps())
        if summary.by == BY:  # a summary from the log is no better than excerpts
            reason = summary.report.refused if summary.report else "there is no summarizer"
            raise FoldNotMade(f"No findings were written: {reason}.")
        before = inputs.findings.get(inputs.scope)
        spans = union((*(before.spans if before else ()), *results.spans))
        count = sum(
            part.kind == "return"
            for row in inputs.rows
            if any(row.seq in span for span in spans)
            for part in row.parts
        )
        plainly = values.model_copy(update={"placement": "message", "references": False})
        summary = replace(
            summary,
            messages=count,
            tokens=results.tokens + sum(fold.summary.tokens for fold in earlier),
            over=tuple(fold.seq for fold in earlier),
        )
        shown = render_summary(summary, plainly, live.setup.counter, marker=MARKER)
        return Findings(spans, shown.as_json())

    def _passage(self, index: int) -> Passage:
        row = self._live.view.inputs.rows[index]
        shapes = self._live.view.inputs.wire.describe(row.payload).shapes
        sound_shapes = (shape._replace(text=sound(shape.text)) for shape in shapes)
        return Passage(row.seq, row.role, tuple(sound_shapes))

    async def _earlier(self) -> tuple[Earlier, ...]:
        """The findings so far: new ones are written from them and the results since then."""
        live = self._live
        findings = live.view.inputs.findings.get(live.scope)
        if findings is None:
            return ()
        entries = await live.log.read(live.name, Span(findings.seq, findings.seq))
        summaries = [x.summary for x in map(CODEC.decode, entries) if isinstance(x, Findings)]
        last = findings.spans[-1].last
        return tuple(Earlier(findings.seq, parse(summary), last) for summary in summaries)

    def _task(self) -> str:
        inputs = self._live.view.inputs
        row = inputs.rows[inputs.turn()]
        shapes = inputs.wire.describe(row.payload).shapes
        texts = (shape.text for shape in shapes if shape.kind == "prompt")
        return sound("\n".join(texts))[:_MAX_TASK]
