"""Whole sessions as a policy: what is measured is what users run, folds and all.

A replay has no model. Where a profile lets one write its summaries, a text stands in for it that is
as long as such a summary and says nothing: what is measured is then the least that is kept.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from refold.fold.compactor import Write
from refold.fold.events import CompactionComplete, FoldEvent
from refold.fold.extractive import CHANGED, EARLIER, OPEN, RESULTS, breadcrumb
from refold.fold.job import Job, Steps
from refold.fold.material import Material
from refold.fold.summary import Summary
from refold.lab.messages import Reader
from refold.lab.replay import Mark, Spent
from refold.models.experience import Setup
from refold.session import Session
from refold.stores import MemoryStore
from refold.view import Event, Messages

SUMMARY_TOKENS = 1_500
"""What a summary by a model is taken to have."""

_SHOWN_OF_A_PART = 2_500  # characters that a summariser is shown of one
_CHARS_A_TOKEN = 4
_BESIDE = (EARLIER, CHANGED, OPEN, RESULTS)


class Folded:
    """A session that is managed as the setup says, in memory.

    Folds are waited for: a replay has no time between its requests.
    """

    def __init__(
        self,
        setup: Setup,
        format: str = "pydantic-ai",  # noqa: A002 - the glossary's word
        *,
        write: Write | None = None,
    ) -> None:
        """`write` writes the summaries, where the profile lets a model do so."""
        fold = setup.profile.fold.model_copy(update={"apply": "inline"})
        self.setup = replace(setup, profile=setup.profile.model_copy(update={"fold": fold}))
        self.folds: list[CompactionComplete] = []
        self.store = MemoryStore()
        self._runner = asyncio.Runner()
        self._known = 0
        self._marks: list[Mark] = []
        self._told = 0
        log = self.store.log()
        self.session = self._runner.run(
            Session.open(log, "replay", self.setup, format=format, watch=self._watch, write=write)
        )

    def view(self, messages: Sequence[bytes]) -> Messages:
        """What the session sends, given all that was said so far."""
        self._told = len(self.folds)
        return self._runner.run(self._request(messages))

    def spent(self) -> Spent:
        """What the summaries of the last view would have cost."""
        usages = [one.usage for one in self.folds[self._told :] if isinstance(one.usage, dict)]
        sent, output = (
            sum(n for one in usages if isinstance(n := one.get(name), int))
            for name in ("input", "output")
        )
        return Spent(new=sent, output=output)

    @property
    def marks(self) -> list[Mark]:
        return self._marks

    def close(self) -> None:
        self._runner.run(self.session.close())
        self._runner.close()

    async def _request(self, messages: Sequence[bytes]) -> Messages:
        new = messages[self._known :]
        self._known = len(messages)
        if new:
            await self.session.say(*new)
        return (await self.session.request()).messages

    def _watch(self, event: Event | FoldEvent) -> None:
        if isinstance(event, CompactionComplete):
            self.folds.append(event)
            if event.success:
                self._marks.append(Mark(self._known, event.pre_tokens, event.post_tokens))


async def stand_in(material: Material, job: Job, steps: Steps) -> Summary:  # noqa: ARG001
    """A summary as long as a model's, that says nothing; beside it, what the log always tells."""
    own = breadcrumb(material)
    texts = (shape.text for one in material.passages for shape in one.shapes)
    shown = sum(min(len(text), _SHOWN_OF_A_PART) for text in texts) // _CHARS_A_TOKEN
    words = "The work goes on." + " the" * (SUMMARY_TOKENS - 4)
    beside = tuple(one for one in own.sections if one.heading in _BESIDE)
    usage = {"calls": 1, "input": shown, "output": SUMMARY_TOKENS}
    return replace(own, by="stand-in", words=words, sections=beside, usage=usage)


def folded(setups: Iterable[Setup]) -> dict[str, Callable[[Reader], Folded]]:
    """The setups as policies to compare, by the names of their profiles."""
    return {one.profile.name: partial(_folded, one) for one in setups}


def _folded(setup: Setup, _: Reader) -> Folded:
    return Folded(setup)
