"""What engines are made of: jobs, reasons, locks, and work that is surely done."""

import asyncio
import errno
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from engines import JOB, begin, taken
from hypothesis import given
from hypothesis import strategies as st

from refold.engine import LocalEngine
from refold.engine.fold_runner import FoldRunner
from refold.engine.local import MAX_ATTEMPTS
from refold.engine.locks import FileLocks, retry_shielded
from refold.engine.protocol import MAX_REASON_CHARS, reason_of
from refold.engine.steps import LocalSteps
from refold.errors import InvalidEntry, RefoldError, SessionNotFound, StoreFailed
from refold.fold.job import Job
from refold.log import CODEC, Author, Entry, FoldStarted, Note, Span
from refold.stores import MemoryStore
from refold.testing.engine import Maker
from refold.testing.strategies import json_values

FOLD = UUID("0197a000-0000-7000-8000-000000000001")


@given(st.text(), st.none() | st.text(), json_values)
def test_a_job_can_be_made_again_from_its_start(trigger, focus, context):
    job = Job("s", FOLD, (Span(2, 3), Span(7, 7)), trigger, focus, context)
    draft = Author().draft(job.started())
    entry = Entry(9, draft.id, draft.at, draft.kind, draft.version, draft.body)
    started = CODEC.decode(entry)
    assert isinstance(started, FoldStarted)
    assert Job.from_started("s", started) == job


def test_starts_from_before_contexts_still_decode():
    body = b'{"fold":"%s","spans":[{"first":2,"last":3}],"trigger":"soft","focus":"x"}'
    entry = Entry(4, FOLD, 0, "fold.start", 1, body % str(FOLD).encode())
    assert CODEC.decode(entry) == FoldStarted(FOLD, (Span(2, 3),), "soft", "x")
    draft = Author().draft(FoldStarted(FOLD, (Span(2, 3),), "soft", "x"))
    assert draft.body == entry.body, "and are written as they were"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("401: Incorrect API key provided: sk-abcd1234EFGH", "401: Incorrect API key provided: …"),
        ("Authorization: Bearer abc.def.ghi was refused", "Authorization: … … was refused"),
        ('{"api_key": "hunter2", "model": "m"}', '{"api_key": …, "model": "m"}'),
        ("postgres://me:hunter2@db.example/x", "postgres://…@db.example/x"),
        ("https://h.example/v1?token=hunter2&n=3", "https://h.example/v1?token=…&n=3"),
        ("password='hunter2 and more'", "password=…"),
        ("AKIAIOSFODNN7EXAMPLE", "…"),
        ("at 0123456789abcdef0123456789abcdef01", "at …"),
        ("8192 tokens are too many for src/a_b.py", "8192 tokens are too many for src/a_b.py"),
        ("two\n  lines", "two lines"),
        ("lone \ud800 surrogate", "lone ? surrogate"),
    ],
)
def test_reasons_keep_what_was_said_but_no_secret(said, kept):
    assert reason_of(ValueError(said)) == f"ValueError: {kept}"


def test_reasons_are_short_and_always_there():
    class Silent(Exception):
        def __str__(self):
            raise RuntimeError

    assert reason_of(Silent()) == "Silent"
    assert reason_of(ValueError()) == "ValueError"
    assert reason_of(RefoldError("It is so.", "Do this.")) == "RefoldError: It is so."
    long = reason_of(ValueError("word " * 10**6))
    assert len(long) == MAX_REASON_CHARS
    assert long.endswith("…")


@given(st.text())
def test_any_reason_can_be_stored(said):
    reason = reason_of(ValueError(said))
    assert len(reason) <= MAX_REASON_CHARS
    reason.encode()


async def test_a_lock_without_a_file_handle_left_says_what_to_do(tmp_path, monkeypatch):
    def too_many(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    locks = FileLocks(tmp_path, "t")
    monkeypatch.setattr(os, "open", too_many)
    with pytest.raises(StoreFailed, match="ulimit -n"):
        await locks.take("s")


async def test_a_file_lock_excludes_and_leaves_no_file(tmp_path):
    ours, theirs = (FileLocks(tmp_path / "a" / "locks", "t") for _ in "ab")
    held = await taken(ours)
    assert await theirs.take("s") is None
    assert await ours.take("s") is None
    for other in (await theirs.take("z"), await FileLocks(tmp_path / "a" / "locks", "u").take("s")):
        assert other is not None
        other.release()
    assert len([*(tmp_path / "a" / "locks").iterdir()]) == 1
    held.release()
    held.release()
    assert not [*(tmp_path / "a" / "locks").iterdir()]
    again = await taken(theirs)
    held.release()
    assert await ours.take("s") is None
    again.release()


def test_a_lock_is_free_when_its_process_was_killed(tmp_path):
    holder = (
        "import asyncio, signal, sys; from pathlib import Path\n"
        "from refold.engine.locks import FileLocks\n"
        "held = asyncio.run(FileLocks(Path(sys.argv[1]), 't').take('s'))\n"
        "print(held is not None, flush=True); signal.pause()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, tmp_path], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        locks = FileLocks(tmp_path, "t")
        assert asyncio.run(locks.take("s")) is None
        process.kill()
        process.wait()
        held = asyncio.run(locks.take("s"))
        assert held is not None
        held.release()


def test_no_forked_child_keeps_a_lock(tmp_path):
    """A child of `os.fork` has the file open as long as it lives."""
    forker = (
        "import asyncio, os, signal, sys; from pathlib import Path\n"
        "from refold.engine.locks import FileLocks\n"
        "locks = FileLocks(Path(sys.argv[1]), 't')\n"
        "held = asyncio.run(locks.take('s'))\n"
        "child = os.fork() or signal.pause()\n"
        "held.release()\n"
        "print(asyncio.run(locks.take('s')) is not None)\n"
        "os.kill(child, signal.SIGKILL)"
    )
    done = subprocess.run(
        [sys.executable, "-c", forker, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


async def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreFailed, match=r"lock .*file.* cannot be taken.* folder"):
        await FileLocks(tmp_path / "file", "t").take("s")


async def test_a_session_that_is_not_there_leaves_no_lock_file(tmp_path):
    async with MemoryStore() as store, LocalEngine(store.log(), Maker(), locks=tmp_path) as engine:
        with pytest.raises(SessionNotFound):
            await engine.start(JOB)
    assert not list(tmp_path.iterdir())


async def test_stores_in_memory_do_not_exclude_each_other():
    async with MemoryStore() as one, MemoryStore() as two:
        for store in (one, two):
            await begin(store.log())
        held = await taken(one.log().locks())
        assert await one.log().locks().take("s") is None, "the same store, asked twice"
        other = await taken(two.log().locks())
        held.release()
        other.release()


class Looked:
    """A log that counts how often its outline is looked at."""

    def __init__(self, log):
        self._log, self.looks = log, 0

    def __getattr__(self, name):
        return getattr(self._log, name)

    async def outlined(self, session):
        self.looks += 1
        return await self._log.outlined(session)


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _runner(log, at=NOW):
    return FoldRunner(
        log,
        Maker(),
        steps=lambda *_: LocalSteps(),
        author=Author(lambda: at),
        limit=None,
    )


async def test_what_was_planned_at_the_head_is_begun_without_a_look():
    log = Looked(MemoryStore().log())
    await begin(log)
    job = Job("s", FOLD, (Span(2, 4),), "soft", head=5, needs=(Span(2, 4), Span(5, 5)))
    assert await _runner(log).start(job) == "started"
    assert not log.looks
    (start,) = await log.read("s", Span(6, 6))
    assert start.rests_on == (Span(2, 5),), "it goes with all that it is made of"
    assert await _runner(log).start(job) == "started", "whoever had no answer asks again"
    later = _runner(log, NOW + timedelta(seconds=1))
    assert await later.start(job) == "refused", "it runs: who asks again looks after it"
    assert await log.head("s") == 6


async def test_what_was_planned_before_the_head_is_begun_after_a_look():
    log = Looked(MemoryStore().log())
    await begin(log)
    await log.append("s", [Author().draft(Note("n", "x"))], expected=5)
    job = Job("s", FOLD, (Span(2, 4),), "soft", head=5, needs=(Span(2, 4),))
    assert await _runner(log).start(job) == "started"
    assert log.looks == 1
    other = Job("s", uuid4(), (Span(2, 4),), "soft", head=5, needs=(Span(2, 4),))
    assert await _runner(log).start(other) == "refused"


async def test_spans_that_are_not_there_are_refused_however_they_were_planned():
    log = MemoryStore().log()
    await begin(log)
    job = Job("s", FOLD, (Span(4, 9),), "soft", head=5, needs=(Span(4, 9),))
    with pytest.raises(InvalidEntry):
        await _runner(log).start(job)


async def test_a_fold_that_kills_its_process_is_not_tried_for_ever(tmp_path):
    async with MemoryStore() as store:
        log = store.log()
        await begin(log)
        maker = Maker()
        await log.append("s", [Author().draft(JOB.started())], expected=None)
        for _ in range(MAX_ATTEMPTS):  # what is left when a process dies in the midst of it
            held = await taken(FileLocks(tmp_path, log.tenant))
            await held.attempt(JOB.fold)
            held.release()
        async with LocalEngine(log, maker, locks=tmp_path) as engine:
            (ended,) = await engine.recover("s")
            assert ended.reason == "interrupted too often"
            assert not maker.jobs


async def test_the_first_attempt_counts_too(tmp_path):
    async with MemoryStore() as store:
        await begin(store.log())
        async with LocalEngine(store.log(), Maker(held=True), locks=tmp_path) as engine:
            await engine.start(JOB)
            (file,) = tmp_path.iterdir()
            assert file.read_text() == f"{JOB.fold} 1"


async def test_attempts_are_counted_for_each_fold(tmp_path):
    held = await taken(FileLocks(tmp_path, "t"))
    one, two = uuid4(), uuid4()
    assert [await held.attempt(fold) for fold in (one, one, two)] == [1, 2, 1]
    held.release()
    held = await taken(FileLocks(tmp_path, "t"))
    assert await held.attempt(two) == 2
    held.release()
    next(tmp_path.iterdir()).write_bytes(b"\xff nonsense")
    held = await taken(FileLocks(tmp_path, "t"))
    assert [await held.attempt(two), await held.attempt(two)] == [1, 2]
    held.release()


async def test_a_cancellation_is_kept_for_later():
    done = []

    async def work():
        await asyncio.sleep(0.01)
        done.append(True)
        return 5

    async def caller():
        assert await retry_shielded(work) == 5
        await asyncio.sleep(60)

    task = asyncio.create_task(caller())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done

    async def limited():
        async with asyncio.timeout(0.005):
            await retry_shielded(work)
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await limited()
    assert len(done) == 2
