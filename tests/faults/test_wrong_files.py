"""Files that are no store, no longer one, or not yet one for this version."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from random import Random

import pytest
from inspection import check, contents, entries_of, files_of
from scenarios import drafts, message, open_store, prepare

from refold.errors import (
    MigrationGap,
    NotAStore,
    RefoldError,
    StoreCorrupt,
    StoreError,
    StoreNotFound,
    StoreTooNew,
)
from refold.log import Opened, Span
from refold.stores import SqliteStore
from refold.stores.sql import Migration
from refold.stores.sqlite.store import check_ours, shipped
from refold.stores.sqlite.writer import APPLICATION

PAGE = 4096


@pytest.fixture
def path(tmp_path):
    return tmp_path / "refold.db"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    path = tmp_path_factory.mktemp("prepared") / "refold.db"

    async def make():
        async with open_store(path) as store:
            await prepare(store.log())

    asyncio.run(make())
    return path


@pytest.fixture
async def made(path):
    """A store with one session."""
    async with open_store(path) as store:
        opening = drafts("opening", Opened("test", "balanced"), message("hello"))
        await store.log().append("mine", opening, expected=0)
    return path


async def _refused(path, error, **options):
    """Opening fails with a helpful error, and leaves everything as it was."""
    folder = path if path.is_dir() else path.parent
    before = _files_in(folder)
    with pytest.raises(error) as caught:
        await SqliteStore(path, **options).open()
    assert type(caught.value) is error
    assert caught.value.fix
    assert str(path if path.parent.exists() else path.parent) in caught.value.what
    assert _files_in(folder) == before


def _files_in(folder):
    return {file.name: file.read_bytes() for file in folder.glob("*")}


def _database(path, *script):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        return [db.execute(statement).fetchall() for statement in script]


@pytest.mark.parametrize("text", [b"##", b"not a database\n", b"All work and no play. " * 1000])
async def test_a_text_file_is_refused(path, text):
    path.write_bytes(text)
    await _refused(path, NotAStore)
    assert path.read_bytes() == text


async def test_an_empty_file_becomes_a_store(path):
    path.touch()
    async with open_store(path):
        pass
    await check(path)


@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_another_programs_database_is_refused_untouched(path, mode):
    _database(
        path, f"PRAGMA journal_mode = {mode}", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)"
    )
    await _refused(path, NotAStore)
    assert [*files_of(path)] == [path.name]
    assert _database(path, "PRAGMA journal_mode", "SELECT * FROM t") == [[(mode,)], [(1,)]]


async def test_a_database_with_another_application_id_is_refused_untouched(path):
    _database(path, "PRAGMA application_id = 1234")
    await _refused(path, NotAStore)


async def test_a_folder_is_refused(tmp_path):
    await _refused(tmp_path, NotAStore)


async def test_a_missing_folder_is_not_made(tmp_path):
    await _refused(tmp_path / "missing" / "refold.db", StoreNotFound)
    assert not [*tmp_path.iterdir()]


async def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError) as caught:
        await SqliteStore(tmp_path / "file" / "refold.db").open()
    assert caught.value.fix


async def test_a_store_that_must_be_there_is_not_made(path):
    await _refused(path, StoreNotFound, create=False)
    assert not path.exists()


async def test_a_name_with_odd_characters_is_just_a_name(tmp_path):
    path = tmp_path / "a b%20?mode=memory#ü.db"
    async with open_store(path) as store:
        await store.log().append("x", drafts("x", Opened("t", "p")), expected=0)
    assert path.exists()
    await check(path)


async def test_a_newer_schema_is_refused_untouched(made):
    _database(made, "INSERT INTO migrations VALUES (99, 'future', 'digest')")
    await _refused(made, StoreTooNew)


async def test_a_next_schema_is_refused_untouched(made):
    number = len(shipped()) + 1
    _database(made, f"INSERT INTO migrations VALUES ({number}, 'next', 'digest')")  # noqa: S608
    await _refused(made, StoreTooNew)


async def test_a_gap_in_the_applied_migrations_is_refused(made):
    newest = shipped()[-1].number
    migrations = (*shipped(), Migration(newest + 1, "next", "CREATE TABLE next (x);"))
    async with SqliteStore(made, migrations=migrations):
        pass
    _database(made, f"DELETE FROM migrations WHERE number = {newest}")  # noqa: S608
    await _refused(made, MigrationGap, migrations=migrations)


async def test_an_edited_migration_is_refused(made):
    _database(made, "UPDATE migrations SET digest = 'edited' WHERE number = 1")
    await _refused(made, MigrationGap)


async def test_a_gap_in_the_shipped_migrations_is_refused(path):
    migrations = (*shipped(), Migration(len(shipped()) + 2, "late", "SELECT 1;"))
    with pytest.raises(MigrationGap) as caught:
        await SqliteStore(path, migrations=migrations).open()
    assert "einstall" in caught.value.fix
    async with open_store(path):
        pass


async def test_a_failing_migration_leaves_the_store_as_it_was(made):
    before = contents(made)
    broken = Migration(len(shipped()) + 1, "broken", "CREATE TABLE next (x);\nNONSENSE;\n")
    with pytest.raises(StoreError) as caught:
        await SqliteStore(made, migrations=(*shipped(), broken)).open()
    assert str(made) in caught.value.what
    assert contents(made) == before
    await check(made)


async def test_many_processes_make_one_store(nursery, path):
    waiting = [nursery.start("open_and_append", path=path) for _ in range(8)]
    assert [child.all() for child in waiting] == [["appended"]] * 8
    await check(path)
    [[(migrations,)]] = _database(path, "SELECT count(*) FROM migrations")
    assert migrations == len(shipped())
    assert len((await entries_of(path))["full"]) == 1


class Interrupted(sqlite3.Connection):
    """A connection, and what happens after its first statement."""

    then: Callable[[], None] | None = None

    def execute(self, *statement):
        found = super().execute(*statement).fetchall()
        if self.then:
            self.then, then = None, self.then
            then()
        return super().execute("SELECT ?", found[0])


async def test_a_store_that_is_made_while_we_look_is_ours(path):
    """An empty file is looked at, and before the second look another process makes a store."""

    def make():
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.executescript(
                f"BEGIN; PRAGMA application_id = {APPLICATION}; CREATE TABLE t (x); COMMIT"
            )

    path.touch()
    with closing(sqlite3.connect(path, isolation_level=None, factory=Interrupted)) as db:
        db.then = make
        check_ours(db, path)
        assert check_ours(db, path)


async def _surviving(path, expected):
    """The sessions that can be read whole. What cannot be is refused by an error of ours, or ends
    early: never with a hole, never with something else in it."""
    survived = set()
    async with open_store(path) as store:
        log = store.log()
        for name, entries in expected.items():
            with suppress(RefoldError):
                found = await log.read(name)
                assert found == entries[: len(found)]
                if len(found) == len(entries):
                    survived.add(name)
        for other in (
            log.sessions(limit=1000),
            log.search("words"),
            log.visible("kept"),
            log.append("kept", drafts("new", message("new")), expected=None),
            log.append("new", drafts("newer", Opened("t", "p"), message("x")), expected=0),
            log.fork("kept", "forked"),
            log.forget("doomed"),
        ):
            with suppress(RefoldError):
                await other
    return survived


@pytest.fixture(scope="module")
def acknowledged(prepared):
    return asyncio.run(entries_of(prepared))


async def test_garbage_in_a_page_is_told_and_spares_other_sessions(path, prepared, acknowledged):
    whole = prepared.read_bytes()
    spared = []
    for page in range(len(whole) // PAGE):
        random = Random(page)  # noqa: S311 - the same garbage in every run
        length = random.choice((16, 64, 512, 2048))
        start = page * PAGE + random.choice((0, 8, 1000, PAGE - length))
        for file in files_of(path):
            (path.parent / file).unlink()
        path.write_bytes(whole[:start] + random.randbytes(length) + whole[start + length :])
        with suppress(StoreError):
            spared.append(len(await _surviving(path, acknowledged)))
    assert len(spared) > len(whole) / PAGE / 2, "most damage does not keep a store from opening"
    assert sum(spared) > len(spared) * len(acknowledged) / 4
    assert max(spared) == len(acknowledged), "and some is not even met"


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.5, 0.9])
async def test_a_truncated_store_is_told(path, prepared, acknowledged, share):
    whole = prepared.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    survived = set()
    with suppress(StoreCorrupt, NotAStore):  # some of it may still open
        survived = await _surviving(path, acknowledged)
    assert survived != acknowledged.keys()


async def test_a_hole_in_a_session_is_not_passed_over(made):
    async with open_store(made) as store:
        await store.log().append("mine", drafts("last", message("last")), expected=2)
    _database(made, "DELETE FROM entries WHERE place & 0xffffffff = 2")
    async with open_store(made) as store:
        with pytest.raises(StoreCorrupt):
            await store.log().read("mine")
        assert len(await store.log().read("mine", Span(3, 3))) == 1


async def test_a_damaged_artifact_is_not_handed_out(made):
    body = "." * 20_000
    async with open_store(made) as store:
        done = await store.log().append("mine", drafts("large", message(body)), expected=None)
    whole = made.read_bytes()
    at = whole.index(b"." * 3000)
    made.write_bytes(whole[:at] + b"!" + whole[at + 1 :])
    async with open_store(made) as store:
        with pytest.raises(StoreCorrupt) as caught:
            await store.log().read("mine")
        assert "backup" in caught.value.fix
        before = await store.log().read("mine", Span(1, done.last - 1))
        assert len(before) == done.last - 1
