"""Statements live in `.sql` files, each under a line `-- name: …`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

from refold.errors import MigrationGap, StoreTooNew
from refold.log.kinds import Message
from refold.log.protocol import Match, Matches
from refold.log.text import Searched, Term, gather

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def statements(package: str, file: str) -> dict[str, str]:
    """The named statements of one file."""
    _, *parts = _NAME.split(files(package).joinpath(file).read_text(encoding="utf-8"))
    return {
        name: text.strip().removesuffix(";")
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


# Addresses of stores, as they may be shown.


def is_clear(address: str) -> bool:
    """Whether it is plain where the password ends and the host begins: at the only `@`."""
    return "://" not in address or address.partition("?")[0].count("@") <= 1


def without_password(address: str) -> str:
    """The address as it may be shown, in logs too: without who is let in, and how."""
    before, at, place = address.rpartition("@")
    scheme, slashes, _ = before.partition("://")
    begin = (f"{scheme}{slashes}" if slashes and ":" not in scheme else "") + ("…@" if at else "")
    place, asks, _ = place.partition("?")
    return f"{begin}{place}" + ("?…" if asks else "")


# Looking for terms where there is no index: in every entry.


def matching(
    entries: Sequence[tuple[Match, Searched]], terms: Sequence[Term], sessions: int, most: int
) -> Matches:
    """The matches among these entries, which come oldest first and hold no terms yet."""
    newest_first = range(len(entries) - 1, -1, -1)
    places = [[at for at in newest_first if entries[at][1].holds(term)] for term in terms]
    return Matches(
        tuple(entries[at][0]._replace(terms=held) for at, held in gather(places, most).items()),
        tuple(map(len, places)),
        sum(match.kind == Message.KIND for match, _ in entries),
        sessions,
    )


# Numbered migrations: what each store ships, and whether what was applied is that.

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


# Named points in the stores' work, where a test can make the process die.

Reach = Callable[[str], None]
"""Called with the name of each point that is reached."""


def onwards(point: str) -> None:
    """Reach a point and go on: what happens outside tests."""
