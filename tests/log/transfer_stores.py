"""Stores that sessions go out of and into, and their lines."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from itertools import count
from typing import Any, TypeVar

import pytest

from refold.log import (
    Artifact,
    Draft,
    Log,
    Note,
    Opened,
    SessionInfo,
    Store,
    export_session,
    import_session,
)
from refold.stores import MemoryStore, SqliteStore
from refold.testing.strategies import author

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]


class LogStore:
    """A store, and any number of empty logs in it."""

    def __init__(self, store: Store, runner: asyncio.Runner) -> None:
        self.store = store
        self.run = runner.run
        self._tenants = count(1)
        self.run(store.open())

    def log(self) -> Log:
        return self.store.log(f"tenant {next(self._tenants)}")

    def export(self, log: Log, session: str) -> str:
        return self.run(exported(log, session))

    def import_(self, log: Log, text: str, name: str | None = None) -> SessionInfo:
        return self.run(import_session(log, feed(text), name=name))

    def begin(self, log: Log, session: str, drafts: list[Draft]) -> None:
        self.run(log.append(session, drafts, expected=0))

    def entries(self, log: Log, session: str):
        return self.run(log.read(session))


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def memory(runner) -> Iterator[LogStore]:
    store = MemoryStore()
    yield LogStore(store, runner)
    runner.run(store.close())


@pytest.fixture(scope="module")
def sqlite(runner, tmp_path_factory) -> Iterator[LogStore]:
    store = SqliteStore(tmp_path_factory.mktemp("jsonl") / "refold.db")
    yield LogStore(store, runner)
    runner.run(store.close())


@pytest.fixture(params=["memory", "sqlite"])
def any_store(request) -> LogStore:
    return request.getfixturevalue(request.param)


async def exported(log: Log, session: str) -> str:
    return "".join([line async for line in export_session(log, session)])


async def feed(text: str) -> AsyncIterator[str]:
    """Lines as a file gives them: only a line feed ends one."""
    for line in io.BytesIO(text.encode()):
        yield line.decode()


def headless(text: str) -> str:
    """Everything but the line that names the session."""
    return text.partition("\n")[2]


def rewritten(text: str, **options: Any) -> str:
    """The lines as a tool writes them that reads JSON and writes it again."""
    return "".join(json.dumps(json.loads(line), **options) + "\n" for line in text.split("\n")[:-1])


OPENED = Opened("openai-chat", "balanced", "A title")


@pytest.fixture
def lines(memory) -> list[str]:
    """The lines of a session: its header, five entries with an artifact, its end."""
    log = memory.log()
    makes = author()
    picture = Artifact.of(b"picture", "image/png")
    drafts = [makes.draft(OPENED), *(makes.draft(Note(f"note {n}")) for n in range(3))]
    memory.begin(log, "s", [*drafts, makes.draft(Note("see"), artifacts=[picture])])
    return memory.export(log, "s").split("\n")[:-1]


def long_session(entries: int) -> list[Draft]:
    makes = author()
    return [makes.draft(OPENED), *(makes.draft(Note(f"note {n}")) for n in range(2, entries + 1))]
