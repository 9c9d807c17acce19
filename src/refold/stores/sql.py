"""What the SQL stores share: statements, migrations, JSON columns, and addresses without secrets.

Statements live in `.sql` files, each under a line `-- name: …`.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from typing import Any, Self

from refold.errors import MigrationGap, StoreTooNew
from refold.log.artifact import Hole
from refold.log.entry import Entry, Span, union
from refold.log.outline import Segment

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_FILE = re.compile(r"(\d{4})_(\w+)\.sql")

Reach = Callable[[str], None]
"""Called with the name of each point that is reached, where a test can make the process die."""


def onwards(point: str) -> None:
    """The `Reach` outside tests: do nothing."""


def statements(package: str, file: str) -> dict[str, str]:
    _, *parts = _NAME.split(files(package).joinpath(file).read_text(encoding="utf-8"))
    return {
        name: text.strip().removesuffix(";")
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def is_clear(address: str) -> bool:
    """Whether it is plain where the password ends and the host begins: at the only `@`."""
    return "://" not in address or address.partition("?")[0].count("@") <= 1


def without_password(address: str) -> str:
    """The address as it may be shown, in logs too: without user, password and options."""
    before, at, place = address.rpartition("@")
    scheme, slashes, _ = before.partition("://")
    begin = (f"{scheme}{slashes}" if slashes and ":" not in scheme else "") + ("…@" if at else "")
    place, options, _ = place.partition("?")
    return f"{begin}{place}" + ("?…" if options else "")


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    script: str

    @property
    def digest(self) -> str:
        """Distinguishes an edited migration from the one that was applied."""
        return sha256(self.script.encode()).hexdigest()


def shipped_in(package: str) -> tuple[Migration, ...]:
    folder = files(package).joinpath("migrations")
    migrations = [
        Migration(int(match[1]), match[2], file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if (match := _FILE.fullmatch(file.name))
    ]
    return tuple(sorted(migrations, key=lambda migration: migration.number))


def check_shipped(migrations: Sequence[Migration]) -> None:
    """Refuse migrations whose numbers are not 1, 2, 3 and so on."""
    if [migration.number for migration in migrations] != list(range(1, len(migrations) + 1)):
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


def dump_rests_on(entry: Entry) -> str | None:
    return _json([[span.first, span.last] for span in entry.rests_on]) if entry.rests_on else None


def load_rests_on(column: str | None) -> tuple[Span, ...]:
    return tuple(Span(first, last) for first, last in json.loads(column)) if column else ()


def dump_artifacts(entry: Entry) -> str | None:
    """The column of the artifacts that an entry refers to: the holes they left, and hashes."""
    if not entry.holes and not entry.attached:
        return None
    holes = [[hole.offset, hole.length, hole.hash, hole.form] for hole in entry.holes]
    return _json([holes, list(entry.attached)])


def load_artifacts(column: str | None) -> tuple[tuple[Hole, ...], tuple[str, ...]]:
    if column is None:
        return (), ()
    holes, attached = json.loads(column)
    return tuple(Hole(*hole) for hole in holes), tuple(attached)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


@dataclass(slots=True)
class SessionSpans:
    """Spans of entries, by the key of the session that holds them."""

    by_key: dict[int, tuple[Span, ...]] = field(default_factory=dict[int, tuple[Span, ...]])

    @classmethod
    def of(cls, rows: Iterable[tuple[Any, ...]]) -> Self:
        """Of rows with a session's key, a first seq and a last one."""
        spans = cls()
        for key, first, last in rows:
            spans.add(key, [Span(first, last)])
        return spans

    def get(self, key: int) -> tuple[Span, ...]:
        return self.by_key.get(key, ())

    def add(self, key: int, spans: Iterable[Span]) -> None:
        if more := tuple(spans):
            self.by_key[key] = union((*self.get(key), *more))

    def segments(self) -> list[Segment]:
        return [
            Segment(key, span.first, span.last)
            for key, spans in self.by_key.items()
            for span in spans
        ]
