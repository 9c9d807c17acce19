"""Numbered migrations, applied in order at open; gaps, changes and newer schemas are refused."""

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from refold.errors import MigrationGap, NotAStore, StoreTooNew
from refold.stores.reach import Reach
from refold.stores.sqlite.connection import APPLICATION

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
_RECORD = (
    "CREATE TABLE migrations"
    " (number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL) STRICT"
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step from a schema to the next."""

    number: int
    name: str
    script: str

    @property
    def digest(self) -> str:
        """Tells an edited migration from the one that was applied."""
        return sha256(self.script.encode()).hexdigest()


def shipped() -> tuple[Migration, ...]:
    """The migrations of this version, the first first."""
    folder = files("refold.stores.sqlite").joinpath("migrations")
    found = [
        Migration(int(match[1]), match[2], file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if (match := _FILE.fullmatch(file.name))
    ]
    return tuple(sorted(found, key=lambda migration: migration.number))


def migrate(
    db: sqlite3.Connection, path: Path, migrations: Sequence[Migration], reach: Reach
) -> None:
    """Bring the store to the newest schema, one transaction for each step."""
    if [one.number for one in migrations] != list(range(1, len(migrations) + 1)):
        raise MigrationGap("The migrations shipped with Refold have a gap.", "Reinstall Refold.")
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
        _check(applied, path, migrations)
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


def _check(applied: list[tuple[int, str]], path: Path, migrations: Sequence[Migration]) -> None:
    if len(applied) > len(migrations) or (applied and applied[-1][0] > len(migrations)):
        raise StoreTooNew(
            f"The store {path} has schema {applied[-1][0]}; this Refold knows {len(migrations)}."
        )
    for (number, digest), migration in zip(applied, migrations, strict=False):
        if number != migration.number:
            raise MigrationGap(f"The store {path} lacks migration {migration.number}.")
        if digest != migration.digest:
            raise MigrationGap(f"Migration {number} of the store {path} is not the one shipped.")


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
