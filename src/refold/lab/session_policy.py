"""Whole sessions as a policy: the lab measures what users run, compactions included.

A replay calls no model. Where a profile has a model write its summaries, a placeholder of the same
length that says nothing takes their place, so the figures are a lower bound of what is retained.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import takewhile
from math import inf

from refold.fold.compactor import Write
from refold.fold.events import CompactionComplete, FoldEvent
from refold.fold.extractive import extractive_summary
from refold.fold.facts import CHANGED, EARLIER, OPEN, RESULTS
from refold.fold.job import Job, Steps
from refold.fold.material import Material
from refold.fold.summary import Summary
from refold.lab.replay import Mark
from refold.log import Author
from refold.models import Usage
from refold.models.accounts import receipt_of
from refold.models.experience import Setup
from refold.models.receipt import Receipt
from refold.session import Session
from refold.stores import MemoryStore
from refold.view import Event, Messages, Request
from refold.view.view_input import describe_row, weight

SUMMARY_TOKENS = 1_500
"""The assumed length of a summary by a model."""

_WAIT = 3_600  # seconds
_PART_CHARS = 2_500  # characters of one part that a summarizer is shown
_CHARS_PER_TOKEN = 4
_SECTIONS = (EARLIER, CHANGED, OPEN, RESULTS)


class SessionPolicy:
    """A session in memory that is managed as the setup says.

    It waits for its folds, because a replay has no time between requests; and longer than a person
    would, so that the figures are the same on a slow machine.
    """

    def __init__(
        self,
        setup: Setup,
        format: str = "pydantic-ai",  # noqa: A002 - the glossary's word
        *,
        write: Write | None = None,
        times: Sequence[int | None] = (),
    ) -> None:
        """Open the session.

        Args:
            setup: The model and the profile to manage it for.
            format: The format of its messages.
            write: Writes the summaries where the profile has a model write them.
            times: When each message was recorded, in milliseconds, where that is known.
        """
        fold = setup.profile.fold.model_copy(update={"apply": "inline", "wait": _WAIT})
        self.setup = replace(setup, profile=setup.profile.model_copy(update={"fold": fold}))
        self.folds: list[CompactionComplete] = []
        self.store = MemoryStore()
        self._runner = asyncio.Runner()
        self._times = times
        self._time = datetime.now(UTC)
        self.marks: list[Mark] = []
        self.receipt = Receipt()
        """The session's, once it is closed: how far behind sending everything it was."""
        self._received = 0
        self._usage: Usage | None = None
        """Of the newest request, until it is answered."""
        self._before: tuple[Sequence[bytes], datetime] | None = None
        """What was sent the time before, and when."""
        self._weights: dict[bytes, int] = {}
        self._folds_before = 0
        log = self.store.log()
        self.session = self._runner.run(
            Session.open(
                log,
                "replay",
                self.setup,
                format=format,
                watch=self._watch,
                write=write,
                author=Author(lambda: self._time),
            )
        )
        self.session.allow_folds(summarizer=write is not None)

    def view(self, messages: Sequence[bytes]) -> Messages:
        """What the session sends, given all messages so far."""
        self._folds_before = len(self.folds)
        return self._runner.run(self._request(messages))

    def usage(self) -> Usage:
        """What the summaries of the last view would have used."""
        folds = self.folds[self._folds_before :]
        usages = [fold.usage for fold in folds if isinstance(fold.usage, dict)]
        sent, output = (
            sum(n for usage in usages if isinstance(n := usage.get(name), int))
            for name in ("input", "output")
        )
        return Usage(sent, output, cache_write=sent)

    def close(self) -> None:
        self._runner.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        await self.session.close()
        self.receipt = await receipt_of(self.store.log(), "replay", self._lifetime)

    async def _request(self, messages: Sequence[bytes]) -> Messages:
        for index in range(self._received, len(messages)):
            if index < len(self._times) and (time := self._times[index]):
                self._time = datetime.fromtimestamp(time / 1000, UTC)
            await self._take(messages[index])
        self._received = len(messages)
        request = await self.session.request()
        self._usage = self._used(request)
        return request.messages

    async def _take(self, payload: bytes) -> None:
        """Take in a message; the first one of the model's after a request is its answer."""
        usage, wire = self._usage, self.session.inputs.wire
        if usage is None or wire.describe(payload).role != "assistant":
            await self.session.say(payload)
            return
        self._usage = None
        await self.session.answer(payload, usage=usage._replace(output=self._weight(payload)))

    def _used(self, request: Request) -> Usage:
        """What a provider would report: what begins as the request before comes from its cache."""
        sent, before = request.plan.account.sent, self._before
        self._before = request.messages, self._time
        cached = 0
        if before and (self._time - before[1]).total_seconds() <= self._lifetime:
            pairs = zip(before[0], request.messages, strict=False)
            same = takewhile(lambda pair: pair[0] == pair[1], pairs)
            cached = sent - request.plan.tokens + sum(self._weight(now) for _, now in same)
        cached = min(sent, cached)
        return Usage(sent, 0, cached, sent - cached)

    def _weight(self, payload: bytes) -> int:
        if payload not in self._weights:
            row = describe_row(1, payload, self.session.inputs.wire, self.setup.counter)
            self._weights[payload] = weight(row)
        return self._weights[payload]

    @property
    def _lifetime(self) -> float:
        return self.setup.profile.trigger.cache_seconds or inf

    def _watch(self, event: Event | FoldEvent) -> None:
        if isinstance(event, CompactionComplete):
            self.folds.append(event)
            if event.success:
                self.marks.append(Mark(self._received, event.pre_tokens, event.post_tokens))


async def placeholder_summary(material: Material, job: Job, steps: Steps) -> Summary:  # noqa: ARG001
    """As long as a model's summary, and empty of content but for what the log itself adds."""
    extract = extractive_summary(material)
    texts = (shape.text for passage in material.passages for shape in passage.shapes)
    shown = sum(min(len(text), _PART_CHARS) for text in texts) // _CHARS_PER_TOKEN
    words = "The work goes on." + " the" * (SUMMARY_TOKENS - 4)
    sections = tuple(section for section in extract.sections if section.heading in _SECTIONS)
    usage = {"calls": 1, "input": shown, "output": SUMMARY_TOKENS}
    return replace(extract, by="placeholder", words=words, sections=sections, usage=usage)
