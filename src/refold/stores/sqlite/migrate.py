"""Numbered migrations, applied in order at open; gaps, changes and newer schemas are refused."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from refold.errors import NotAStore
from refold.stores.migrations import Migration, check_applied, check_shipped, shipped_in
from refold.stores.reach import Reach
from refold.stores.sqlite.connection import APPLICATION
from refold.stores.sqlite.ownership import sign

_RECORD = (
    "CREATE TABLE migrations"
    " (number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL) STRICT"
)


def shipped() -> tuple[Migration, ...]:
    """The migrations of this version, the first first."""
    return shipped_in("refold.stores.sqlite")


def migrate(
    db: sqlite3.Connection, path: Path, migrations: Sequence[Migration], reach: Reach
) -> None:
    """Bring the store to the newest schema, one transaction for each step."""
    check_shipped(migrations)
    while _apply_next(db, path, migrations, reach):
        pass


def check_ours(db: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is a store (or still empty: False); anything else is refused untouched."""
    # In this order: a store that another process makes meanwhile gets both in one transaction.
    tables = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    application = db.execute("PRAGMA application_id").fetchone()[0]
    if application == APPLICATION:
        return True
    if application or tables:
        raise NotAStore(f"{path} is a database of another program.")
    return False


def _apply_next(
    db: sqlite3.Connection, path: Path, migrations: Sequence[Migration], reach: Reach
) -> bool:
    """Apply the first migration that is missing; another process may be doing the same."""
    db.execute("BEGIN IMMEDIATE")
    try:
        applied = _applied(db, path)
        check_applied(applied, str(path), migrations)
        if len(applied) == len(migrations):
            db.execute("ROLLBACK")
            return False
        migration = migrations[len(applied)]
        for statement in _statements(migration.script):
            db.execute(statement)
        db.execute(
            "INSERT INTO migrations VALUES (?, ?, ?)",
            (migration.number, migration.name, migration.digest),
        )
        if not applied:
            sign(db)  # with the tables, so that no crash leaves a store that is nobody's
        reach("migrate.written")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    reach("migrate.committed")
    return True


def _applied(db: sqlite3.Connection, path: Path) -> list[tuple[int, str]]:
    if not check_ours(db, path):
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(_RECORD)
    return db.execute("SELECT number, digest FROM migrations ORDER BY number").fetchall()


def _statements(script: str) -> list[str]:
    """The script's statements, one by one: running it whole would commit in between."""
    found: list[str] = []
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found
