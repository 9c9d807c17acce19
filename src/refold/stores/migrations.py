"""Numbered migrations: what each store ships, and whether what was applied is that."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

from refold.errors import MigrationGap, StoreTooNew

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


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


def shipped_in(package: str) -> tuple[Migration, ...]:
    """The migrations in a package's folder `migrations`, the first first."""
    folder = files(package).joinpath("migrations")
    found = [
        Migration(int(match[1]), match[2], file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if (match := _FILE.fullmatch(file.name))
    ]
    return tuple(sorted(found, key=lambda migration: migration.number))


def check_shipped(migrations: Sequence[Migration]) -> None:
    """Refuse migrations whose numbers are not 1, 2, 3 and so on."""
    if [one.number for one in migrations] != list(range(1, len(migrations) + 1)):
        raise MigrationGap("The migrations shipped with Refold have a gap.", "Reinstall Refold.")


def check_applied(
    applied: Sequence[tuple[int, str]], where: str, migrations: Sequence[Migration]
) -> None:
    """Refuse a store whose migrations (number and digest) are not the first of those shipped."""
    if len(applied) > len(migrations) or (applied and applied[-1][0] > len(migrations)):
        raise StoreTooNew(
            f"The store {where} has schema {applied[-1][0]}; this Refold knows {len(migrations)}."
        )
    for (number, digest), migration in zip(applied, migrations, strict=False):
        if number != migration.number:
            raise MigrationGap(f"The store {where} lacks migration {migration.number}.")
        if digest != migration.digest:
            raise MigrationGap(f"Migration {number} of the store {where} is not the one shipped.")
