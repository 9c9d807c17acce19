"""A backup from before a forget is restored after it: one command forgets again."""

import asyncio
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copyfile

import pytest
from api_serving import API, serving
from needed import need_postgres
from word_scan import tables_with, words_in_database

from refold.errors import StoreFailed
from refold.log import Author, Message, Opened, Requested, Span
from refold.log.erasure_list import ForgottenEntries, ForgottenSession, parse
from refold.stores import open_store
from refold.stores.forget_journal import ForgetJournal
from refold.stores.postgres import migrate
from refold.testing.postgres import Cluster

SPAN_WORD, SESSION_WORD, KEPT_WORD = "xylographerquixotry", "zugzwangmoraine", "marmaladecistern"


class Backups:
    """A store whose backup can be made and restored, as the guide says."""

    def __init__(self, folder, cluster=None):
        self.folder, self.cluster = folder, cluster
        self.address = f"sqlite:///{folder / 'refold.db'}"
        self.restored = f"sqlite:///{folder / 'restored.db'}"
        if cluster:
            self.address, self.restored = cluster.database("live"), cluster.address("restored")

    def back_up(self):
        if not self.cluster:
            self.run("sqlite3", self.folder / "refold.db", self.folder / "backup.db")
            return
        self.run("pg_dump", "-Fc", "-f", self.folder / "backup.dump", self.address)

    def restore(self):
        if not self.cluster:
            copyfile(self.folder / "backup.db", self.folder / "restored.db")
            return
        self.cluster.database("restored")
        self.run("pg_restore", "-d", self.restored, "--exit-on-error", self.folder / "backup.dump")

    def run(self, program, *arguments):
        if program == "sqlite3":  # its own way to copy a database that is in use
            source, target = arguments
            code = (
                "import sqlite3, sys\n"
                "a, b = map(sqlite3.connect, sys.argv[1:])\n"
                "a.backup(b); a.close(); b.close()"
            )
            subprocess.run([sys.executable, "-c", code, source, target], check=True)
            return
        subprocess.run([program, *map(str, arguments)], check=True)

    def words(self):
        """Which of the words a restored store has, anywhere."""
        if self.cluster:
            return words_in_database(self.restored, (SPAN_WORD, SESSION_WORD, KEPT_WORD))
        data = (self.folder / "restored.db").read_bytes()
        return {word for word in (SPAN_WORD, SESSION_WORD, KEPT_WORD) if word.encode() in data}


@pytest.fixture(params=["sqlite", "postgres"])
async def backups(request, tmp_path):
    if request.param == "sqlite":
        yield Backups(tmp_path)
        return
    need_postgres()
    with Cluster(settings={"autovacuum": "off"}) as cluster:
        made = Backups(tmp_path, cluster)
        await migrate(made.address, partitions=4)
        yield made


def refold(*arguments, store):
    done = subprocess.run(
        [sys.executable, "-m", "refold.cli", *arguments, "--store", store],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(word, role="user"):
    return Message(json.dumps({"role": role, "content": f"The word is {word}."}).encode())


async def filled(store):
    """Sessions of two tenants, a fork, and a session whose name is used again later."""
    author = Author()
    opened = Opened("openai-chat", "balanced")
    values = [
        opened,
        said(SPAN_WORD),
        said(KEPT_WORD),
        Requested((Span(2, 3),), plan=["keep"], model="m", digest="d"),
    ]
    for tenant in ("default", "other"):
        log = store.log(tenant)
        await log.append("talk", [author.draft(one) for one in values], expected=0)
        await log.append(
            "gone", [author.draft(one) for one in (opened, said(SESSION_WORD))], expected=0
        )
        await log.append(
            "again", [author.draft(one) for one in (opened, said(SESSION_WORD))], expected=0
        )
        await log.fork("talk", "fork")


async def test_one_command_forgets_again(backups, tmp_path):
    address, restored = backups.address, backups.restored
    author = Author()
    async with open_store(address) as store:
        await filled(store)
    backups.back_up()
    for tenant in ("default", "other"):
        refold("forget", "talk", "--span", "2", "--yes", "--tenant", tenant, store=address)
        refold("forget", "gone", "--yes", "--tenant", tenant, store=address)
        refold("forget", "again", "--yes", "--tenant", tenant, store=address)
    async with open_store(address) as store:
        first = [author.draft(one) for one in (Opened("openai-chat", "balanced"), said(KEPT_WORD))]
        await store.log().append("again", first, expected=0)
    backups_list = tmp_path / "forgotten.jsonl"
    refold("store", "forgotten", "-o", str(backups_list), store=address)
    text = backups_list.read_text()
    assert not any(word in text for word in (SPAN_WORD, SESSION_WORD, KEPT_WORD))

    backups.restore()
    assert backups.words() == {SPAN_WORD, SESSION_WORD, KEPT_WORD}, "a backup has the words"
    async with open_store(restored) as store:  # the name was used again after the restore
        await store.log("other").append("talk", [author.draft(said(KEPT_WORD))], expected=4)
    # In each tenant: a prompt and the request record made of it, seen from two sessions.
    done = json.loads(refold("store", "forget-again", str(backups_list), "--json", store=restored))
    assert (done["sessions"], done["entries"]) == (4, 4)
    if backups.cluster:
        refold("store", "scrub", store=restored)
        assert tables_with(restored, SPAN_WORD) == tables_with(restored, SESSION_WORD) == []
    assert backups.words() == {KEPT_WORD}
    async with open_store(restored) as store:
        for tenant in ("default", "other"):
            log = store.log(tenant)
            assert [one.session for one in (await log.sessions()).sessions] in (
                ["fork", "talk"],
                ["talk", "fork"],
            )
            assert [one.forgotten for one in await log.read("fork")] == [False, True, False, True]
        assert len(await store.log("other").read("talk")) == 5
    # Once more changes nothing.
    done = json.loads(refold("store", "forget-again", str(backups_list), "--json", store=restored))
    assert (done["sessions"], done["entries"]) == (0, 0)


async def test_what_was_written_since_is_not_taken_for_the_forgotten(backups, tmp_path):
    """By the same name, or in the same place."""
    author = Author()
    async with open_store(backups.address) as store:
        await filled(store)
    backups.back_up()
    async with open_store(backups.address) as store:
        log = store.log()
        await log.append("talk", [author.draft(said(SPAN_WORD))], expected=4)
        await log.forget("talk", Span(5, 5))
        await log.forget("gone")
    file = tmp_path / "forgotten.jsonl"
    refold("store", "forgotten", "-o", str(file), store=backups.address)
    backups.restore()
    async with open_store(backups.restored) as store:
        log = store.log()
        await log.append("talk", [author.draft(said(KEPT_WORD))], expected=4)
        await log.forget("gone")
        first = [author.draft(one) for one in (Opened("openai-chat", "balanced"), said(KEPT_WORD))]
        await log.append("gone", first, expected=0)
    refold("store", "forget-again", str(file), store=backups.restored)
    async with open_store(backups.restored) as store:
        log = store.log()
        assert not (await log.read("talk"))[-1].forgotten
        assert (await log.info("gone")).messages == 1


@pytest.mark.parametrize("text", ["", "{}\n", '{"refold": "forgotten", "version": 1}\n{"a": 1}\n'])
def test_a_file_that_is_no_list_changes_nothing(text, tmp_path):
    file = tmp_path / "list.jsonl"
    file.write_text(text)
    store = f"sqlite:///{tmp_path / 'refold.db'}"
    done = subprocess.run(
        [sys.executable, "-m", "refold.cli", "store", "forget-again", file, "--store", store],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "error[invalid-input]" in done.stderr
    assert "refold store forgotten" in done.stderr


def test_a_role_that_sees_one_tenant_is_refused(postgres_address):
    """Rather than that the list lacks what it cannot see."""
    done = subprocess.run(
        [sys.executable, "-m", "refold.cli", "store", "forgotten", "--store", postgres_address],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "BYPASSRLS" in done.stderr
    assert done.stdout == ""


# The journal, to which each erasure is appended.


async def test_a_restored_store_forgets_again_by_the_journal(backups, tmp_path, monkeypatch):
    """What any surface has forgotten since the backup, with no list made by hand."""
    journal = tmp_path / "journal.jsonl"
    monkeypatch.setenv("REFOLD_STORE__FORGET_JOURNAL", str(journal))
    async with open_store(backups.address) as store:
        await filled(store)
    backups.back_up()
    refold("forget", "talk", "--span", "2", "--yes", store=backups.address)
    async with open_store(backups.address, forget_journal=journal) as store:
        await store.log("other").forget("talk", Span(2, 2))
        for tenant in ("default", "other"):
            await store.log(tenant).forget("gone")
            assert await store.log(tenant).expire(2**60, only=["again"]) == ["again"]
    text = journal.read_text()
    assert not any(word in text for word in (SPAN_WORD, SESSION_WORD, KEPT_WORD))

    backups.restore()
    listed = refold("store", "forget-again", "--dry-run", store=backups.restored)
    assert "default: talk: 2\n" in listed
    assert "other: again: all of it\n" in listed
    assert backups.words() == {SPAN_WORD, SESSION_WORD, KEPT_WORD}, "a dry run changes nothing"
    done = json.loads(refold("store", "forget-again", "--json", store=backups.restored))
    assert done["sessions"] == 4
    if backups.cluster:
        refold("store", "scrub", store=backups.restored)
    assert backups.words() == {KEPT_WORD}
    async with open_store(backups.restored) as store:
        for tenant in ("default", "other"):
            names = [each.session for each in (await store.log(tenant).sessions()).sessions]
            assert sorted(names) == ["fork", "talk"]
            entries = await store.log(tenant).read("fork")
            assert [entry.forgotten for entry in entries] == [False, True, False, True]


async def test_a_journal_lies_beside_an_sqlite_file_and_survives_half_a_line(tmp_path):
    address = f"sqlite:///{tmp_path}/refold.db"
    journal = tmp_path / "refold.db-forgotten.jsonl"
    async with open_store(address) as store:
        await filled(store)
        await store.log().forget("talk", Span(2, 2))
        assert journal.stat().st_mode & 0o077 == 0
        whole = journal.read_text()
        with journal.open("a") as file:
            file.write('{"tenant": "default", "sess')
        with journal.open() as lines:
            assert len([*parse(lines)]) == 1
        assert "Forgot 0 sessions" in refold("store", "forget-again", store=address)
        await store.log().forget("gone")
    assert journal.read_text().startswith(whole)
    with journal.open() as lines:
        items = [*parse(lines)]
    assert [type(item) for item in items] == [ForgottenEntries, ForgottenEntries, ForgottenSession]


async def test_nothing_is_forgotten_that_the_journal_cannot_list(backups, tmp_path):
    (tmp_path / "file").touch()
    async with open_store(backups.address, forget_journal=tmp_path / "file" / "j") as store:
        await filled(store)
        with pytest.raises(StoreFailed, match=r"store\.forget_journal"):
            await store.log().forget("talk", Span(2, 2))
        with pytest.raises(StoreFailed):
            await store.log().expire(2**60, only=["gone"])
        assert not any(entry.forgotten for entry in await store.log().read("talk"))
        assert (await store.log().info("gone")).messages == 1


def locks():
    """The locks of files that are held or waited for (`->`), by inode."""
    return Path("/proc/locks").read_text().splitlines()


async def test_an_append_waits_for_the_one_before(tmp_path):
    """Else it would take the line that the other is writing for half a line, and cut it off."""
    path = tmp_path / "journal.jsonl"
    journal = ForgetJournal(path)
    journal.record("default", "first", removed_at=1)
    with path.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        inode = f":{os.fstat(other.fileno()).st_ino} "
        second = asyncio.to_thread(journal.record, "default", "second", removed_at=2)
        task = asyncio.create_task(second)
        async with asyncio.timeout(60):
            while not task.done():
                if any("->" in line and inode in line for line in locks()):
                    break
                await asyncio.sleep(0.01)
        assert not task.done()
    await task
    with path.open() as lines:
        assert [item.session for item in parse(lines)] == ["first", "second"]


async def test_processes_append_to_one_journal_at_once(tmp_path):
    code = (
        "import sys; from refold.stores.forget_journal import ForgetJournal\n"
        "journal = ForgetJournal(sys.argv[1])\n"
        "for n in range(50): journal.record('default', f'{sys.argv[2]}-{n}', removed_at=n)"
    )
    journal = tmp_path / "journal.jsonl"
    names = [f"process{n}" for n in range(3)]
    running = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(journal), name)
        for name in names
    ]
    assert [await process.wait() for process in running] == [0, 0, 0]
    with journal.open() as lines:
        listed = [item.session for item in parse(lines)]
    assert sorted(listed) == sorted(f"{name}-{n}" for name in names for n in range(50))
    assert all(
        [x for x in listed if x.startswith(name)] == [f"{name}-{n}" for n in range(50)]
        for name in names
    )


async def test_the_service_lists_what_it_forgets(tmp_path):
    address = f"sqlite:///{tmp_path}/refold.db"
    async with serving(store=open_store(address)) as service:
        values = [Opened("openai-chat", "balanced"), said(SPAN_WORD)]
        drafts = [Author().draft(value) for value in values]
        await service.store.log("acme").append("talk", drafts, expected=0)
        async with service.client(await service.key("acme")) as client:
            assert (await client.delete(f"{API}/sessions/talk")).status_code == 200
    with (tmp_path / "refold.db-forgotten.jsonl").open() as lines:
        listed = [(item.tenant, item.session, type(item)) for item in parse(lines)]
    assert ("acme", "talk", ForgottenSession) in listed
