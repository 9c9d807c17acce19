"""The context that would be sent now, part by part; nothing is sent, folded or written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from pydantic_ai.messages import ModelRequest
from rich.console import RenderableType
from rich.text import Text

from refold.cli.chat.commands.output import faint, preview, share, words
from refold.cli.chat.conversation import Conversation
from refold.cli.chat.surface import Row
from refold.fold.trigger import while_folding
from refold.integrations.pydantic_ai.history import payload_of
from refold.log import Entry, PartRef, SessionInfo
from refold.log.entry import spans_of, subtract, up_to
from refold.models.experience import Setup
from refold.recall.text import last_record
from refold.session import Forecast
from refold.terminal_text import counted
from refold.view import Explanation, Plan, ViewInput, explain, project
from refold.view.explanation import PartLine, sentence
from refold.view.view import assemble
from refold.wire import Described, Replace, Shape, wire_for

A_PROMPT: Final = payload_of(ModelRequest.user_text_prompt("Go on."))
"""Stands for the next prompt when a request is planned before there is one."""
_WIDTH: Final = 60
_SPEAKERS: Final = {
    "system": "system",
    "prompt": "you",
    "text": "answer",
    "thought": "thought",
    "call": "call",
    "return": "result",
}


@dataclass(frozen=True)
class ContextSnapshot:
    """A session as its next request would show it."""

    info: SessionInfo
    setup: Setup
    inputs: ViewInput
    plan: Plan
    entries: tuple[Entry, ...]  # those that were read for it

    @cached_property
    def explanation(self) -> Explanation:
        return explain(
            self.inputs,
            self.plan,
            self.setup.budget,
            info=self.info,
            model=self.setup.model,
            entries=self.entries,
        )

    @cached_property
    def messages(self) -> Sequence[Described]:
        payloads = assemble(self.inputs.wire, self.inputs.rows, self.plan.layout, {})
        return [self.inputs.wire.describe(payload) for payload in payloads]


async def context_snapshot(talk: Conversation, *, every: bool = False) -> ContextSnapshot | None:
    """What the next request would send; None before the first message.

    With `every`, entries that the context does not need are read, too, to be explained.
    """
    session = await talk.session()
    if session is None:
        return None
    log, name, setup = talk.log, session.name, session.setup
    visible = await log.visible(name, last=setup.profile.window.read or None)
    before = await last_record(log, name, visible.outline.record)
    wire = wire_for(visible.info.format)
    isolated = setup.profile.delegates == "apart"
    inputs = ViewInput.of(visible, wire, setup.counter, isolated=isolated)
    values = setup.profile
    if values.summarizer or values.fold.writer == "model" or values.fold.breadcrumb:
        values = while_folding(values)
    plan = project(inputs, values, setup.budget, before and before.plan)
    entries = [*visible.entries]
    if every:
        missing = subtract(up_to(visible.info.entries), spans_of(entry.seq for entry in entries))
        for span in missing:
            entries += await log.read(visible.info.session, span)
    return ContextSnapshot(visible.info, setup, inputs, plan, tuple(entries))


class SentPart(NamedTuple):
    who: str
    seq: int  # the entry it comes from, or stands in front of
    tokens: int
    why: str
    text: str  # what is sent of it
    ref: PartRef | None = None  # None if it is not in the log
    chars: int = 0  # its characters in the log

    @property
    def where(self) -> str:
        return f"entry {self.seq}" if self.ref else "not in the log"

    def row(self, window: int) -> Row:
        of = f"{counted(self.tokens, 'token')}, {share(self.tokens, window)}"
        label = f"{self.who}: {words(self.text, _WIDTH)}"
        return Row(label, f"{self.where} · {of}", preview(self.text))


def sent_parts(snapshot: ContextSnapshot) -> list[SentPart]:
    parts = [*_instructions(snapshot), *_logged_parts(snapshot), *_inserts(snapshot)]
    return sorted(parts, key=lambda part: (part.seq, part.ref is not None))


def _instructions(snapshot: ContextSnapshot) -> Iterator[SentPart]:
    inputs = snapshot.inputs
    row = next((row for row in reversed(inputs.rows) if row.instructions), None)
    if row is not None:
        text = inputs.wire.describe(row.payload).instructions or ""
        yield SentPart("system instructions", 0, row.instructions, "sent with each request", text)


def _logged_parts(snapshot: ContextSnapshot) -> Iterator[SentPart]:
    inputs = snapshot.inputs
    for line in snapshot.explanation.lines:
        sent = [part for part in line.parts if part.after]
        if sent:
            shapes = inputs.wire.describe(inputs.rows[inputs.at(line.seq)].payload).shapes
            yield from (_sent_part(snapshot, part, shapes[part.ref.index]) for part in sent)


def _sent_part(snapshot: ContextSnapshot, part: PartLine, shape: Shape) -> SentPart:
    change = snapshot.plan.layout.changes.get(part.ref)
    text = shape.text
    if isinstance(change, Replace):
        text = change.text if part.kind == "call" else change.applied(text)
    who = _SPEAKERS.get(part.kind, "other") + (f" {words(part.tool, 30)}" if part.tool else "")
    why = part.disposition.sentence
    return SentPart(who, part.ref.seq, part.after, why, text, part.ref, len(shape.text))


def _inserts(snapshot: ContextSnapshot) -> Iterator[SentPart]:
    explained = snapshot.explanation.inserts
    for insert, planned in zip(explained, snapshot.plan.layout.inserts, strict=True):
        who = "fold" if insert.reason == "summary" else "added"
        why = sentence(insert.reason, added=True)
        yield SentPart(who, insert.before, insert.tokens, why, planned.text)


def forecast_lines(forecast: Forecast) -> list[RenderableType]:
    total = len(forecast.messages)
    if not forecast.changes:
        whole = "it" if total == 1 else f"all {total:,} messages"
        return [Text(f"The next request sends {whole} as said, word for word.")]
    sent = f"{forecast.verbatim:,} of {counted(total, 'message')}"
    lines: list[RenderableType] = [Text(f"The next request sends {sent} as said.")]
    for change in forecast.changes:
        size = f"{change.before:,} → {counted(change.after, 'token')}"
        lines.append(
            faint(f"{counted(change.parts, 'part')}: {change.disposition.sentence}, {size}")
        )
    return lines
