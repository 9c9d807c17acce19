"""Disks that are full, files that cannot be written, and others who hold on to the store."""

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest
import scenarios
from inspection import check, entries_of, files_of
from scenarios import SECRETS, drafts, filling, message, open_store, play, prepare

from refold.errors import ErasureUnfinished, StoreBusy, StoreFull
from refold.log import Opened, Span

PAGE = 4096
WAIT = 2.0
OPENING = drafts("opening", Opened("test", "balanced"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "refold.db"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if os.geteuid() or not sys.platform.startswith("linux") or not shutil.which("mount"):
        pytest.skip("mounting a small file system needs root on Linux")
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let us mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
async def prepared(path):
    async with open_store(path) as store:
        await prepare(store.log())
    await play(path, "expire")  # it holds the same secrets
    return path


async def _check_filled(path, taken):
    """Everything that was acknowledged is there, and what was refused came in later."""
    await check(path)
    found = (await entries_of(path))["full"]
    expected = [draft for number in range(taken + 1) for draft in filling(number)]
    assert [(entry.id, entry.body) for entry in found] == [(one.id, one.body) for one in expected]


async def test_a_full_disk_loses_nothing(small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1 << 20))
    path = small_disk / "refold.db"
    async with open_store(path) as store:
        log = store.log()
        taken, error = await scenarios.fill(log)
        assert isinstance(error, StoreFull)
        assert str(path) in error.what
        assert "disk space" in error.fix
        assert len(await log.read("full")) == taken
        ballast.unlink()
        assert (await log.append("full", filling(taken), expected=taken)).last == taken + 1
    await _check_filled(path, taken)


async def test_a_full_disk_cannot_be_opened_into_a_broken_store(small_disk):
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(PAGE)):
            pass
    path = small_disk / "refold.db"
    with pytest.raises(StoreFull) as caught:
        await open_store(path).open()
    assert caught.value.fix
    ballast.unlink()
    async with open_store(path) as store:
        await store.log().append("full", filling(0), expected=0)
    await check(path)


async def test_a_forget_on_a_full_disk_is_finished_when_there_is_room(small_disk):
    path = small_disk / "refold.db"
    async with open_store(path) as store:
        await prepare(store.log())
    await play(path, "expire")
    ballast = small_disk / "ballast"
    async with open_store(path) as store:
        room = shutil.disk_usage(small_disk).free - path.stat().st_size // 2
        ballast.write_bytes(bytes(room))
        with pytest.raises(ErasureUnfinished) as caught:
            await store.log().forget("doomed")
        assert caught.value.fix
    ballast.unlink()
    async with open_store(path):
        pass
    assert not _secrets_in(path)
    await check(path)


async def test_a_store_that_may_not_grow_takes_no_more(path, connections):
    async with open_store(path) as store:
        log = store.log()
        _limit_pages(connections, 100)
        taken, error = await scenarios.fill(log)
        assert isinstance(error, StoreFull)
        waiting = (log.append("full", filling(number), expected=None) for number in (90, 91, 92))
        refused = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(one, StoreFull) for one in refused)
        assert len(await log.read("full")) == taken
        _limit_pages(connections, 1_000_000)
        assert (await log.append("full", filling(taken), expected=taken)).last == taken + 1
    await _check_filled(path, taken)


@pytest.fixture
def connections(monkeypatch):
    """Every connection that is made."""
    made = []
    connect = sqlite3.connect

    def recorded(*given, **named):
        made.append(connect(*given, **named))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", recorded)
    return made


def _limit_pages(connections, pages):
    for db in connections:
        db.execute(f"PRAGMA max_page_count = {pages}")


async def test_a_file_over_the_size_limit_loses_nothing(nursery, path):
    (taken, name, what, fix), (first, last) = nursery.run("fill", path=path, limit=1 << 20)
    assert name in {"StoreFull", "StoreFailed"}
    assert str(path) in what
    assert fix
    assert first == last == taken + 1
    await _check_filled(path, taken)


async def test_a_forget_without_room_is_finished_at_the_next_open(nursery, prepared):
    limit = prepared.stat().st_size // 2
    [(name, what, fix)] = nursery.run("forget_within", path=prepared, limit=limit)
    assert name == "ErasureUnfinished"
    assert what
    assert "open the store again" in fix
    assert _secrets_in(prepared)
    async with open_store(prepared) as store:
        assert "doomed" not in await _names(store)
    assert not _secrets_in(prepared)
    await check(prepared)


async def _names(store):
    return {info.session for info in (await store.log().sessions(limit=1000)).sessions}


def _secrets_in(path):
    everything = b"\n".join(files_of(path).values()).lower()
    return {secret for secret in SECRETS if secret[3:].lower().encode() in everything}


@pytest.fixture
def others_folder():
    """A folder that a user without privileges can reach."""
    folder = Path(tempfile.mkdtemp(prefix="refold-faults-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


async def _made(path):
    async with open_store(path) as store:
        await store.log().append("mine", OPENING, expected=0)


async def test_a_read_only_file_is_said_to_be_one(nursery, others_folder):
    path = others_folder / "refold.db"
    await _made(path)
    path.chmod(0o444)
    others_folder.chmod(0o777)
    _check_read_only(nursery, path)


async def test_a_file_in_a_read_only_folder_is_said_to_be_one(nursery, others_folder):
    path = others_folder / "refold.db"
    await _made(path)
    path.chmod(0o666)
    others_folder.chmod(0o555)
    _check_read_only(nursery, path)


async def test_a_new_file_in_a_read_only_folder_is_refused(nursery, others_folder):
    others_folder.chmod(0o555)
    _check_read_only(nursery, others_folder / "refold.db")


async def test_a_file_that_may_not_be_read_is_refused(nursery, others_folder):
    path = others_folder / "refold.db"
    await _made(path)
    path.chmod(0o000)
    _check_read_only(nursery, path)


async def test_a_folder_that_may_not_be_entered_is_refused(nursery, others_folder):
    path = others_folder / "refold.db"
    await _made(path)
    others_folder.chmod(0o000)
    _check_read_only(nursery, path)


def _check_read_only(nursery, path):
    [told] = nursery.run("open_and_append", path=path, unprivileged=True)
    name, what, fix = told
    assert name == "StoreReadOnly"
    assert str(path) in what
    assert "writable" in fix


async def test_a_lock_is_waited_for_without_holding_up_the_loop(nursery, path):
    await _made(path)
    async with open_store(path, wait=WAIT) as store:
        log = store.log()
        await log.append("mine", drafts("one", message("one")), expected=1)
        other = nursery.start("hold_lock", path=path)
        assert other.next() == "held"
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        draft = drafts("two", message("two"))
        began = monotonic()
        with pytest.raises(StoreBusy) as caught:
            await log.append("mine", draft, expected=2)
        assert monotonic() - began > WAIT / 2
        assert ticks > 10, "the loop itself waited for the lock"
        assert str(path) in caught.value.what
        assert "lock" in caught.value.fix
        with pytest.raises(StoreBusy):
            await log.fork("mine", "fork")
        assert len(await log.read("mine")) == 2, "reading needs no lock"
        waiting = asyncio.create_task(log.append("mine", draft, expected=2))
        await asyncio.sleep(0.1)
        other.kill()
        assert (await waiting).last == 3
        ticking.cancel()
    await check(path)


async def test_a_lock_at_opening_is_waited_for(nursery, path):
    await _made(path)
    other = nursery.start("hold_lock", path=path)
    assert other.next() == "held"
    with pytest.raises(StoreBusy) as caught:
        await open_store(path, wait=0.2).open()
    assert str(path) in caught.value.what
    other.kill()
    async with open_store(path, wait=0.2):
        pass


@pytest.mark.parametrize("span", [None, Span(2, 3)])
async def test_a_reader_of_an_older_state_puts_off_the_erasure(nursery, prepared, span):
    other = nursery.start("hold_snapshot", path=prepared)
    assert other.next() == "held"
    store = open_store(prepared, wait=0.5)
    await store.open()
    log = store.log()
    with pytest.raises(ErasureUnfinished) as caught:
        await log.forget("doomed", span)
    assert "open the store again" in caught.value.fix
    assert not await log.search(SECRETS[1]), "what is forgotten can be read no more"
    await store.close()
    assert _secrets_in(prepared)

    async with open_store(prepared, wait=0.2):
        pass  # the reader is still there, and that is no reason not to open
    assert _secrets_in(prepared)
    other.kill()
    async with open_store(prepared):
        pass
    assert not _secrets_in(prepared) - ({SECRETS[0], SECRETS[2]} if span else set())
    await check(prepared)


async def test_two_erasures_at_once_are_both_finished(nursery, prepared):
    """One process has rewritten the file when another erases more and dies."""
    ended = []

    def meanwhile(point):
        if point == "scrub.vacuumed":
            values = {"scenario": "forget_session", "point": "write.done", "after": 0}
            ended.append(nursery.start("crash", path=prepared, **values).wait())

    async with open_store(prepared, meanwhile) as store:
        await store.log().forget("kept", Span(2, 2))
    assert ended == [-signal.SIGKILL]
    assert _secrets_in(prepared)
    async with open_store(prepared):
        pass
    assert not _secrets_in(prepared)
    await check(prepared)
