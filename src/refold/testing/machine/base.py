"""What every history has: stores, a model of what they must hold, and the comparison."""

import asyncio
from collections.abc import Coroutine
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize

from refold.log import (
    Appended,
    Artifact,
    Draft,
    Entry,
    Log,
    Mark,
    Message,
    Span,
    Store,
    Value,
    export_session,
)
from refold.testing.conformance.totals import check_totals
from refold.testing.model import ModelEntry, ModelLog, ModelSession
from refold.testing.strategies import TickingClock, author

T = TypeVar("T")
picks = st.integers(0, 1 << 16)
KEYS = [bytes([at]) * 16 for at in range(4)]
"""Few enough that entries share them."""


class BaseMachine(RuleBasedStateMachine):
    """Stores over the same data beside plain lists; what is done with them, others add as rules."""

    PEERS: ClassVar[int] = 1

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.model = ModelLog()
        self.clock = TickingClock()
        self.author = author(clock=self.clock)
        self.names = 0
        self.appends: list[tuple[str, list[Draft], ModelEntry, Appended, Mark | None]] = []
        self.stores: list[Store] = []

    def new_store(self) -> Store:
        raise NotImplementedError

    @initialize()
    def open_stores(self) -> None:
        self.stores = [self.new_store() for _ in range(self.PEERS)]
        for store in self.stores:
            self.run(store.open())

    def teardown(self) -> None:
        try:
            if self.stores:
                self.check_all()
        finally:
            for store in self.stores:
                self.run(store.close())
            self.runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def log(self, pick: int) -> Log:
        return self.stores[pick % len(self.stores)].log()

    def session(self, pick: int) -> ModelSession:
        sessions = list(self.model.sessions.values())
        return sessions[pick % len(sessions)]

    def new_name(self) -> str:
        self.names += 1
        return f"session {self.names}"

    def append(  # noqa: PLR0913 - most have a default
        self,
        name: str,
        values: list[Value],
        *,
        pick: int,
        anywhere: bool = False,
        artifacts: list[Artifact] | None = None,
        rests_on: tuple[Span, ...] = (),
        mark: Mark | None = None,
    ) -> None:
        drafts = [self.author.draft(value, artifacts=artifacts or ()) for value in values]
        if rests_on:
            drafts = [draft._replace(rests_on=rests_on) for draft in drafts]
        session = self.model.sessions.get(name)
        head = len(session.entries) if session else 0
        expected = None if anywhere else head
        appended = self.run(self.log(pick).append(name, drafts, expected=expected, mark=mark))
        assert appended == Appended(head + 1, head + len(drafts))
        self.model.append(name, list(zip(values, drafts, strict=True)))
        life = self.model.sessions[name].entries[0]
        self.appends.append((name, drafts, life, appended, mark))
        if mark is not None:
            self.model.marks.append((mark.key, name, head + mark.nth + 1))

    def refused(self, call: Coroutine[Any, Any, Appended], *errors: type[Exception]) -> None:
        try:
            self.run(call)
        except errors:
            return
        raise AssertionError(f"none of {errors} was raised")

    def check_all(self) -> None:
        for at, store in enumerate(self.stores):
            log = store.log()
            listed = self.run(log.sessions(limit=1000)).sessions
            assert [info.session for info in listed] == self.model.newest_first()
            self.check_marks(log)
            for session in self.model.sessions.values():
                self.check_session(log, session, None)
            if at == 0:
                self.run(check_totals(log))
            if at == 0 and self.model.sessions:
                self.check_export(log, self.session(0))

    def check_marks(self, log: Log) -> None:
        assert self.run(log.marked(KEYS)) == self.model.marked()

    def check_session(self, log: Log, session: ModelSession, last: int | None) -> None:
        entries = self.run(log.read(session.name))
        assert [entry.seq for entry in entries] == list(range(1, len(session.entries) + 1))
        for entry, kept in zip(entries, session.entries, strict=True):
            _check_entry(entry, kept)
        visible = self.run(log.visible(session.name, last=last))
        assert [entry.seq for entry in visible.entries] == session.visible(last)
        assert {running.fold for running in visible.outline.running} == session.running()
        info = visible.info
        assert (info.title, info.entries) == (session.title, len(session.entries))
        assert info.messages == sum(kept.draft.kind == Message.KIND for kept in session.entries)
        assert info.updated_at == session.used

    def check_export(self, log: Log, session: ModelSession) -> None:
        async def lines() -> list[str]:
            return [line async for line in export_session(log, session.name)]

        assert sum('"seq":' in line for line in self.run(lines())) == len(session.entries)


def _check_entry(entry: Entry, kept: ModelEntry) -> None:
    draft = kept.draft
    assert (entry.id, entry.at, entry.kind) == (draft.id, draft.at, draft.kind)
    assert entry.forgotten == kept.forgotten
    if kept.forgotten:
        assert len(entry.body) <= len(draft.body)
        assert not entry.artifacts
    else:
        assert (entry.body, entry.rests_on) == (draft.body, draft.rests_on)
        assert entry.attached == tuple(artifact.hash for artifact in draft.attached)
