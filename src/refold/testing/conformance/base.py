"""What the parts of the suite share."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from uuid import UUID, uuid4

import pytest
from pydantic import JsonValue

from refold.log import (
    Appended,
    Author,
    Draft,
    Entry,
    FoldCompleted,
    FoldStarted,
    Log,
    Message,
    Opened,
    Span,
    Store,
    Value,
)
from refold.testing.strategies import TickingClock


class Conformance:
    clock = TickingClock()
    author = Author(clock, Random(7))  # noqa: S311 - the same drafts in every run

    @pytest.fixture
    def log(self, store: Store) -> Log:
        return store.log(f"tenant {uuid4()}")

    def drafts(self, *values: Value) -> list[Draft]:
        return [self.author.draft(value) for value in values]

    async def begin(
        self,
        log: Log,
        name: str,
        messages: int = 0,
        *,
        title: str | None = None,
        expected: int = 0,
    ) -> Appended:
        said = [Message(f'{{"content":"message {at}"}}'.encode()) for at in range(messages)]
        drafts = self.drafts(Opened("openai-chat", "balanced", title), *said)
        return await log.append(name, drafts, expected=expected)

    async def add(self, log: Log, name: str, *values: Value) -> Appended:
        return await log.append(name, self.drafts(*values), expected=await log.head(name))

    async def fold(self, log: Log, name: str, *spans: Span) -> UUID:
        fold = uuid4()
        summary: JsonValue = {"text": "what was said"}
        await self.add(log, name, FoldStarted(fold, spans, "manual"))
        await self.add(log, name, FoldCompleted(fold, spans, summary))
        return fold

    async def visible_seqs(self, log: Log, name: str) -> Sequence[int]:
        visible: Sequence[Entry] = (await log.visible(name)).entries
        return [entry.seq for entry in visible]

    async def names(self, log: Log, search: str | None = None) -> list[str]:
        return [info.session for info in (await log.sessions(search=search)).sessions]

    def now(self) -> int:
        return int((self.clock() + timedelta(milliseconds=1)).timestamp() * 1000)
