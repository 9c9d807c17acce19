"""`refold config`."""

import json
from itertools import groupby
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from refold.cli.options import ProfileOption
from refold.cli.outcome import explained
from refold.cli.tables import aligned, clipped, terminal_width
from refold.settings import Settings, Source, load_settings

_LEAST = 12
"""No value is clipped to less."""
_NEAR = 3
"""Folders further up are shown from the root on."""


class Row(NamedTuple):
    """One setting as it is printed."""

    table: str
    name: str
    value: str
    source: str


def config(
    key: Annotated[
        str | None,
        typer.Argument(metavar="[KEY]", help="Print the value of this one only."),
    ] = None,
    *,
    profile: ProfileOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print values and sources as JSON.")
    ] = False,
) -> None:
    """Show every setting and where its value comes from.

    Environment variables go before the project's files, those before the user's, and those before
    what the profile says.
    """
    with explained():
        settings = load_settings(profile)
        if key is not None:
            typer.echo(_written(settings.value(key)))
        elif as_json:
            typer.echo(json.dumps(_as_json(settings), ensure_ascii=False, indent=2))
        else:
            typer.echo("\n".join(_lines(settings)))


def _as_json(settings: Settings) -> dict[str, object]:
    return {
        key: {"value": value, "source": str(source), "level": source.level}
        for key, value in settings.values().items()
        for source in (settings.sources[key],)
    }


def _lines(settings: Settings) -> list[str]:
    values = sorted(settings.values().items(), key=lambda one: "." in one[0])
    rows = [_row(key, value, settings.sources[key]) for key, value in values]
    room = terminal_width() - max(len(row.source) for row in rows) - 4
    room = max(_LEAST, room - max(len(row.name) for row in rows))
    cells = [(row.name, clipped(row.value, room), row.source) for row in rows]
    lines: list[str] = []
    pairs = zip(rows, aligned(cells), strict=True)
    for table, members in groupby(pairs, key=lambda pair: pair[0].table):
        lines += [f"\n[{table}]"] if table else []
        lines += [line for _, line in members]
    return lines


def _row(key: str, value: object, source: Source) -> Row:
    table, _, name = key.rpartition(".")
    return Row(table, name, _written(value), _shorter(source))


def _written(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() and value else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shorter(source: Source) -> str:
    """The user's files from the home on, the project's from here."""
    if source.level == "user":
        return str(source).replace(f"{Path.home()}/", "~/", 1)
    here = Path.cwd()
    for depth, folder in enumerate((here, *here.parents[:_NEAR])):
        if str(source).startswith(f"{folder}/"):
            return str(source).replace(f"{folder}/", "../" * depth, 1)
    return str(source)
