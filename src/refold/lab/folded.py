"""Whole sessions as a policy: what is measured is what users run, folds and all."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from refold.fold.events import CompactionComplete, FoldEvent
from refold.lab.reading import Reader
from refold.models.setup import Setup
from refold.session import Session
from refold.stores import MemoryStore
from refold.view import Event, Messages


class Folded:
    """A session that is managed as the setup says, in memory.

    Folds are waited for: a replay has no time between its requests.
    """

    def __init__(self, setup: Setup, format: str = "pydantic-ai") -> None:  # noqa: A002 - the glossary's word
        fold = setup.profile.fold.model_copy(update={"apply": "inline"})
        self.setup = replace(setup, profile=setup.profile.model_copy(update={"fold": fold}))
        self.folds: list[CompactionComplete] = []
        self.store = MemoryStore()
        self._runner = asyncio.Runner()
        self._known = 0
        log = self.store.log()
        self.session = self._runner.run(
            Session.open(log, "replay", self.setup, format=format, watch=self._watch)
        )

    def view(self, messages: Sequence[bytes]) -> Messages:
        """What the session sends, given all that was said so far."""
        return self._runner.run(self._request(messages))

    def close(self) -> None:
        """End the session's loop."""
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


def folded(setups: Iterable[Setup]) -> dict[str, Callable[[Reader], Folded]]:
    """The setups as policies to compare, by the names of their profiles."""
    return {one.profile.name: partial(_folded, one) for one in setups}


def _folded(setup: Setup, _: Reader) -> Folded:
    return Folded(setup)
