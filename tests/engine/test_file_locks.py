"""Lock files that are removed by whoever lets go of them, with several processes at once."""

import asyncio
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from agents import Scripted, agent_with, echo, small
from engines import JOB, begin

from refold import Refold
from refold.engine import LocalEngine, locks
from refold.engine.locks import FileLocks
from refold.log.protocol import LockHandle
from refold.stores import MemoryStore
from refold.testing.engine import Maker

PROCESSES, TURNS = 4, 150
WORKER = """
import asyncio, sys
from pathlib import Path
from refold.engine.locks import FileLocks

folder, turns = Path(sys.argv[1]), int(sys.argv[2])
inside = folder / "inside"

async def main():
    locks, done = FileLocks(folder / "locks", "t"), 0
    while done < turns:
        held = await locks.take("s")
        if held is None:
            await asyncio.sleep(0)
            continue
        inside.open("x").close()  # fails if another process is inside
        count = int((folder / "count").read_text())
        (folder / "count").write_text(str(count + 1))
        inside.unlink()
        held.release()
        done += 1

asyncio.run(main())
"""


async def taken(file_locks: FileLocks) -> LockHandle:
    held = await file_locks.take("s")
    assert held is not None
    return held


def test_one_process_at_a_time_holds_a_lock_whose_file_comes_and_goes(tmp_path):
    (tmp_path / "count").write_text("0")
    command = [sys.executable, "-c", WORKER, tmp_path, str(TURNS)]
    processes = [subprocess.Popen(command) for _ in range(PROCESSES)]
    assert [process.wait() for process in processes] == [0] * PROCESSES
    assert (tmp_path / "count").read_text() == str(PROCESSES * TURNS)
    assert not [*(tmp_path / "locks").iterdir()]


async def test_a_file_that_was_removed_before_it_was_locked_is_no_lock(tmp_path, monkeypatch):
    ours, theirs, third = (FileLocks(tmp_path, "t") for _ in range(3))
    held = await taken(ours)
    before: list[int] = []
    flock = fcntl.flock

    def late(file: int, how: int) -> None:
        if not before and how & fcntl.LOCK_NB:  # opened while it was held, locked afterwards
            before.append(os.fstat(file).st_ino)
            held.release()
        flock(file, how)

    monkeypatch.setattr(locks.fcntl, "flock", late)
    again = await taken(theirs)
    [path] = tmp_path.iterdir()
    assert before
    assert await third.take("s") is None, "what they hold is the file that others see"
    again.release()
    assert not path.exists()


async def test_who_lets_go_removes_no_file_that_is_not_its_own(tmp_path):
    held = await taken(FileLocks(tmp_path, "t"))
    [path] = tmp_path.iterdir()
    path.unlink()  # by hand
    other = await taken(FileLocks(tmp_path, "t"))
    held.release()
    assert await FileLocks(tmp_path, "t").take("s") is None
    other.release()
    assert not path.exists()


async def test_a_file_that_always_goes_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_is_at", lambda *_: False)
    assert await FileLocks(tmp_path, "t").take("s") is None


@pytest.mark.parametrize("compact", [False, True])
async def test_no_lock_file_is_left_after_a_hundred_conversations(tmp_path, compact):
    path: Path = tmp_path / "a.db"
    model = Scripted(echo)
    async with Refold(f"sqlite:///{path}", profile=small()) as memory:
        agent = agent_with(memory, model)

        async def talk(name: str) -> None:
            for nth in range(3 if compact else 1):
                await agent.run(f"prompt {nth}" + " word" * 50, conversation_id=name)
            if compact:
                await (await memory.session(name)).compact()

        names = [f"c{nth}" for nth in range(100)]
        for start in range(0, len(names), 10):
            await asyncio.gather(*map(talk, names[start : start + 10]))
    assert (path.parent / "a.db-locks").is_dir()
    assert not [*(path.parent / "a.db-locks").iterdir()]


async def test_a_canceled_fold_leaves_no_lock_file(tmp_path):
    async with MemoryStore() as store:
        await begin(store.log())
        async with LocalEngine(store.log(), Maker(held=True), locks=tmp_path) as engine:
            await engine.start(JOB)
            [file] = tmp_path.iterdir()
            assert file.read_text() == f"{JOB.fold} 1", "noted, in case its process dies"
            await engine.cancel("s", JOB.fold)
            await engine.drain()
            assert not [*tmp_path.iterdir()]
