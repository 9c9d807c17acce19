"""Tenants in PostgreSQL: each statement of the store, tried on another's rows."""

# ruff: noqa: F811, F401 - fixtures are imported
# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportOptionalIterable=false
# None fails a test just as well.

from collections.abc import Iterable
from importlib.resources import files
from uuid import UUID

import pytest
from postgres_tenants import (
    BOUND,
    FIRSTS,
    FORK,
    GONE,
    HASHES,
    IDS,
    KEY,
    KEYS,
    LASTS,
    MARKED,
    NAME,
    WHOSE,
    WORD,
    all_rows,
    flat,
    logged_in,
    rows,
    tried,
)
from psycopg import errors

from refold.models.receipt import Receipt
from refold.stores.postgres.connection import execute
from refold.stores.sql import statements

OWNERS = {"forgotten.sql", "migrate.sql", "scrub.sql"}
"""What only the owner of the database, or who makes its backups, runs: they see everything."""
PARTS = (KEYS, FIRSTS, LASTS)
NEW = UUID(int=7)
ENTRY = (
    *([90], [NEW], [1], ["note"], [1], [1], [False], [False], [b"/"], [None], [None], [b"{}"]),
    *(HASHES, [1], [b"x"], [b"x"]),
)
PLACE = (91, 1, 1, b"{}")
LINES = ([20_000], [b"m"], [b"k"], [1.0] * len(Receipt().sums))
BOOKED = (1, b"{}", *LINES)

CASES: dict[str, tuple[object, ...]] = {
    "append.append_plain": (WHOSE, KEY, 0, None, NEW, 1, "note", 1, b"/", False, b"{}"),
    "append.append": (WHOSE, KEY, 0, 5, *PLACE, *ENTRY),
    "append.begin_session": (WHOSE, "new", 0, b"f", b"p", 1, *PLACE, *ENTRY),
    "fork.lock_tenant": (WHOSE,),
    "fork.messages_at": (WHOSE, KEY, 2),
    "fork.add_fork": (WHOSE, "new", NAME, 60_000, 1, 1, 0, b"f", b"p", b"{}"),
    "fork.add_segments": (WHOSE, 999, *PARTS),
    "fork.copied_artifacts": (WHOSE, *PARTS),
    "fork.use_artifacts": (WHOSE, HASHES, [1]),
    "fork.copy_entries": (WHOSE, 999, *PARTS),
    "fork.add_copies": (WHOSE, 999, *PARTS),
    "forget.hold_family": (WHOSE, NAME),
    "forget.hold_sessions": (WHOSE, KEYS),
    "forget.living": (WHOSE, *PARTS),
    "forget.copies": (WHOSE, *PARTS),
    "forget.readers": (WHOSE, *PARTS),
    "forget.segments": (WHOSE, KEYS),
    "forget.derived": (WHOSE, *PARTS),
    "forget.set_outlines": (WHOSE, [KEY], [b"{}"]),
    "forget.raise_revisions": (WHOSE, KEYS),
    "forget.add_tombstone": (WHOSE, GONE, 1),
    "forget.sources": (WHOSE, FORK),
    "forget.unname": (WHOSE, KEY),
    "forget.orphan_forks": (WHOSE, NAME),
    "forget.drop_segments": (WHOSE, FORK),
    "forget.nameless": (WHOSE, KEYS),
    "forget.still_read": (WHOSE, KEYS),
    "forget.drop_copies": (WHOSE, FORK),
    "forget.drop_session": (WHOSE, KEY),
    "forget.end_earlier": (WHOSE, KEY),
    "forget.maybe_unused": (WHOSE, 2**40),
    "forget.keeping": (WHOSE, *PARTS, ["message"]),
    "forget.erase_keeping": (WHOSE, [KEY], [2], IDS, [b"{}"], b"/"),
    "forget.erase": (WHOSE, *PARTS, b"{}", b"/"),
    "forget.drop_entries": (WHOSE, *PARTS, "message"),
    "forget.drop_words": (WHOSE, *PARTS),
    "forget.drop_chunks": (WHOSE, *PARTS),
    "forget.note_erased_chunks": (),
    "forget.drop_uses": (WHOSE, HASHES, [1]),
    "forget.drop_artifacts": (WHOSE, HASHES),
    "forget.forget_folds": (WHOSE, IDS),
    "forget.note_erasure": (KEYS, HASHES),
    "glance.session": (WHOSE, NAME),
    "glance.entries": (WHOSE, KEY, 0, [1], [9]),
    "glance.artifacts": (WHOSE, KEY, 0, HASHES),
    "index.facts": (WHOSE,),
    "index.unindexed": (WHOSE,),
    "index.next_entries": (WHOSE, KEYS, 100, 2**40),
    "index.keep_version": (WHOSE, "words_version"),
    "index.keep_sessions": (WHOSE, [KEY], [3], [0]),
    "index.add_words": (WHOSE, [KEY], [99], [1], ["word"]),
    "index.add_chunks": (WHOSE, [KEY], [99], [1], [1], ["word"]),
    "index.set_progress": (WHOSE, [KEY], [3], [0]),
    "index.hold_version": (WHOSE, "words_version"),
    "index.hold_indexed": (WHOSE, 0, 100),
    "index.drop_words": (WHOSE, KEYS),
    "index.drop_chunks": (WHOSE, KEYS),
    "index.index_anew": (WHOSE, KEYS),
    "index.set_fact": (WHOSE, "words_version", 0),
    "list.newest": (WHOSE, 2**40, 2**60, 2**60, 100),
    "list.named": (WHOSE, "A", "C", 100),
    "list.newest_of_few": (WHOSE, 2**60, 2**60, 100, KEYS),
    "list.newest_of_many": (WHOSE, 2**40, 2**60, 2**60, 100, KEYS, "B"),
    "marks.append_plain": (
        *(WHOSE, KEY, 0, None, NEW, 1, "note", 1, b"/", False, b"{}", MARKED, None),
    ),
    "marks.append": (WHOSE, KEY, 0, 5, *PLACE, *ENTRY, MARKED, None, 0),
    "marks.begin_session": (WHOSE, "new", 0, b"f", b"p", 1, *PLACE, *ENTRY, MARKED, None, 0),
    "marks.newest": (WHOSE, KEY),
    "marks.marked": (WHOSE, [MARKED]),
    "marks.drop": (WHOSE, *PARTS),
    "marks.drop_all": (WHOSE, KEY),
    "marks.note_erased": (),
    "read.session": (WHOSE, NAME),
    "read.forgotten_at": (WHOSE, GONE),
    "read.segments": (WHOSE, FORK, 1, 2**40),
    "read.entries": (WHOSE, KEY, 1, 2**40),
    "read.entries_of_many": (WHOSE, *PARTS),
    "read.controls": (WHOSE, *PARTS),
    "read.seen": (WHOSE, *PARTS, IDS),
    "read.artifacts": (WHOSE, HASHES),
    "search.found": (WHOSE, [WORD], 100),
    "search.found_within": ([WORD], *PARTS, 100),
    "search.entries_at": (WHOSE, [KEY], [2]),
    "search.matches": (WHOSE, [0], [WORD], 100, None, None, None),
    "search.size": (WHOSE,),
    "search.sessions_with": (WHOSE, [WORD]),
    "totals.append": (WHOSE, KEY, 0, 5, *PLACE, *ENTRY, *BOOKED),
    "totals.begin_session": (WHOSE, "new", 0, b"f", b"p", 1, *PLACE, *ENTRY, *BOOKED),
    "totals.append_marked": (WHOSE, KEY, 0, 5, *PLACE, *ENTRY, MARKED, None, 0, *BOOKED),
    "totals.begin_session_marked": (
        *(WHOSE, "new", 0, b"f", b"p", 1, *PLACE, *ENTRY, MARKED, None, 0, *BOOKED),
    ),
    "totals.accounts": (WHOSE, KEY),
    "totals.count_later": (WHOSE, [KEY]),
    "totals.add_uncounted": (WHOSE, 2**40),
    "totals.count_all_later": (WHOSE,),
    "totals.drop_lost_states": (WHOSE,),
    "totals.drop_lost_lines": (WHOSE,),
    "totals.put_state": (WHOSE, KEY, b"{}"),
    "totals.drop_state": (WHOSE, KEY),
    "totals.drop_lines": (WHOSE, KEY),
    "totals.add_lines": (WHOSE, KEY, *LINES),
    "totals.hold": (WHOSE, NAME),
    "totals.by_day": (WHOSE, -(2**40), 2**40),
    "totals.dearest": (WHOSE, -(2**40), 2**40, 100, True),
    "totals.sessions": (WHOSE, -(2**40), 2**40),
    "totals.uncounted": (WHOSE,),
    "totals.some_uncounted": (WHOSE, 100),
}
FUNCTIONS: dict[str, tuple[object, ...]] = {
    "add_entries": (WHOSE, KEY, *ENTRY),
    "add_lines": (WHOSE, KEY, *LINES),
    "append": CASES["append.append"],
    "append_plain": CASES["append.append_plain"],
    "attempt": (WHOSE, NAME, NEW),
    "begin_session": CASES["append.begin_session"],
    "book": (True, WHOSE, KEY, *BOOKED),
    "bound_tenant": (),
    "enter": (WHOSE,),
    "forget_folds": (WHOSE, IDS),
    "held_within": ([WORD], *PARTS),
    "keep_no_samples": (),
    "long_places": ([WORD],),
    "make_partitions": (4,),
    "note_erased_chunks": (),
    "note_erased_marks": (),
    "note_erasure": (KEYS, HASHES),
    "places": ([WORD],),
    "put_mark": (WHOSE, KEY, 90, MARKED, None),
    "read_artifacts": CASES["glance.artifacts"],
    "read_entries": CASES["glance.entries"],
    "read_session": CASES["glance.session"],
    "tenant": (),
    "word_keys": (WHOSE, "word"),
}
SAYS_ONLY_WHAT_IT_IS_TOLD = {"bound_tenant", "enter", "tenant", "word_keys"}
"""Functions that read no table of tenants: they answer with what they were given."""
SILENT = {
    *("fork.lock_tenant", "forget.forget_folds", "forget.note_erasure", "marks.note_erased"),
    *("forget.note_erased_chunks", "totals.add_lines"),
}
"""Statements whose answer says nothing, and of which no row count does."""
TRIGGERS = {"write_free_roles"}


def shipped() -> dict[str, str]:
    folder = files("refold.stores.postgres").joinpath("sql")
    names = [file.name for file in folder.iterdir() if file.name not in OWNERS]
    return {
        f"{name.removesuffix('.sql')}.{statement}": text
        for name in names
        for statement, text in statements("refold.stores.postgres", f"sql/{name}").items()
    }


def empty(found: Iterable[tuple[object, ...]] | None) -> bool:
    return not any(value for row in found or () for value in row)


def called(name: str, count: int) -> str:
    return f"SELECT * FROM refold.{name}({', '.join(f'${at + 1}' for at in range(count))})"  # noqa: S608 - ours


def test_no_statement_is_left_out():
    assert CASES.keys() == shipped().keys()


@pytest.mark.parametrize("user", [BOUND, "refold_app"])
async def test_no_statement_reaches_another_tenant(logged_in, rows, user):
    there = await all_rows(rows.owner, "SELECT proname::text FROM pg_proc p JOIN pg_namespace n"
                           " ON n.oid = pronamespace WHERE nspname = 'refold'")  # fmt: skip
    assert {name for (name,) in there} == FUNCTIONS.keys() | TRIGGERS
    every = {name: (sql, CASES[name]) for name, sql in shipped().items()}
    every |= {f"{name}()": (called(name, len(case)), case) for name, case in FUNCTIONS.items()}
    before = await rows.dump()
    connection = await logged_in(user)
    # Whoever is bound may say what it likes; others can only see what they say they are.
    says = "B" if user == BOUND else "A"
    for name, (sql, case) in every.items():
        for whose in "BA":
            found = await tried(connection, sql, rows.filled(case, whose), says)
            if name.removesuffix("()") not in SAYS_ONLY_WHAT_IT_IS_TOLD:
                if whose == "B":
                    assert empty(found), f"{name} of {whose} gives {flat(found or ())[:200]}"
                assert " of B" not in flat(found or ()), f"{name} tells of B"
            assert await rows.dump() == before, f"{name} in the name of {whose} changes B's rows"


async def test_the_cases_reach_their_own_tenant(logged_in, rows):
    """The same statements find something where they may: so the test above can fail."""
    connection = await logged_in("refold_app")
    found = set()
    for name, sql in shipped().items():
        try:
            async with connection.transaction(force_rollback=True):
                await execute(connection, "SELECT set_config('refold.tenant', 'B', true)")
                cursor = await execute(connection, sql, rows.filled(CASES[name], "B"))
                given = await cursor.fetchall() if cursor.description else [(cursor.rowcount,)]
                if not empty(given):
                    found.add(name)
        except errors.IntegrityError:
            found.add(name)
    assert CASES.keys() - found == SILENT


async def test_parts_of_tables_are_read_by_nobody(logged_in, rows):
    [(number,)] = await all_rows(
        rows.owner, "SELECT count(*) FROM pg_inherits JOIN pg_class ON oid = inhrelid"
        " WHERE relkind = 'r' AND NOT relrowsecurity"
    )  # fmt: skip
    assert number == 0
    app = await logged_in("refold_app")
    parts = [f"refold.entries_{at}" for at in range(4)]
    for part in parts:
        with pytest.raises(errors.InsufficientPrivilege):
            await execute(app, f"SELECT * FROM {part}")  # noqa: S608 - ours
        await execute(rows.owner, f"GRANT SELECT ON {part} TO refold_app")
    async with app.transaction():
        await execute(app, "SELECT set_config('refold.tenant', 'A', true)")
        assert await all_rows(app, "SELECT 1 FROM refold.entries LIMIT 1")
        for part in parts:
            assert not await all_rows(app, f"SELECT 1 FROM {part}")  # noqa: S608 - ours
