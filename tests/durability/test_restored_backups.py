"""A backup from before a forget is restored after it: one command forgets again."""

import json
import os
import subprocess
import sys
from shutil import copyfile

import pytest
from needed import need_postgres
from word_scan import tables_with, words_in_database

from refold.log import Author, Message, Opened, Requested, Span
from refold.stores import open_store
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
