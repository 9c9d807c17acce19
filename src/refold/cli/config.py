"""`refold config`."""

import json
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from refold.cli.left_out import left_out_json, left_out_lines, left_out_notice
from refold.cli.options import ProfileChoice, setting_names, setting_values
from refold.cli.outcome import explained
from refold.cli.output import aligned, clipped, terminal_width
from refold.errors import InvalidInput
from refold.settings import (
    Kept,
    Settings,
    Source,
    load_settings,
    set_setting,
    unset_setting,
)

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


def config(  # noqa: PLR0913 - an option each
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY]",
            help="Print the value of this one only.",
            show_default=False,
            autocompletion=setting_names,
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Argument(
            metavar="[VALUE]",
            help="Set it to this value, and keep that.",
            show_default=False,
            autocompletion=setting_values,
        ),
    ] = None,
    *,
    project: Annotated[
        bool, typer.Option("--project", help="Write it for this project, not for you.")
    ] = False,
    unset: Annotated[bool, typer.Option("--unset", help="Take the value out again.")] = False,
    profile: ProfileChoice = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print values and sources as JSON.")
    ] = False,
) -> None:
    """Show every setting and where its value comes from, or set one for good.

    Environment variables go before the project's files, those before the user's, and those before
    what the profile says. Of project files that you do not trust, only policy values apply: the
    rest is listed with its reason, and `refold trust` lets it apply. What you set is checked first
    and written to your own file, or with --project to the project's; comments there stay.

    Example: refold config trigger.tokens 80000
    """
    with explained():
        if value is not None or unset:
            _change(key, value, unset=unset, project=project, as_json=as_json)
            return
        settings = load_settings(profile)
        if key is not None:
            found = settings.value(key)
            typer.echo(_json(found) if as_json else _written(found))
            left_out = [one for one in settings.left_out if one.key == key]
            if left_out:
                typer.echo(left_out_notice(left_out), err=True)
        elif as_json:
            typer.echo(json.dumps(_as_json(settings), ensure_ascii=False, indent=2))
        else:
            typer.echo("\n".join(_lines(settings)))


def _change(
    key: str | None, value: str | None, *, unset: bool, project: bool, as_json: bool
) -> None:
    if key is None or (value is not None) == unset:
        raise InvalidInput(
            "A value is set, or it is taken out.",
            "Write `refold config KEY VALUE`, or `refold config KEY --unset`.",
        )
    kept = (
        unset_setting(key, project=project)
        if value is None
        else set_setting(key, value, project=project)
    )
    if as_json:
        typer.echo(json.dumps(asdict(kept) | {"path": str(kept.path)}, ensure_ascii=False))
        return
    typer.echo(_said(kept))
    if kept.instead:
        typer.echo(f"It does not apply here: {kept.instead}.", err=True)


def _said(kept: Kept) -> str:
    was = f" (before: {_written(kept.before)})" if kept.before is not None else ""
    return f"{kept.key} is {_written(kept.value)} now{was}. Written to {_near_home(kept.path)}."


def _near_home(path: Path) -> str:
    return str(path).replace(f"{Path.home()}/", "~/", 1)


def _as_json(settings: Settings) -> dict[str, object]:
    values: dict[str, object] = {
        key: {"value": value, "source": str(source), "level": source.level}
        for key, value in settings.values().items()
        for source in (settings.sources[key],)
    }
    left_out = left_out_json(settings.left_out)
    return {**values, "left_out": left_out} if left_out else values


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
    return [*lines, *left_out_lines(settings.left_out)] if settings.left_out else lines


def _row(key: str, value: object, source: Source) -> Row:
    table, _, name = key.rpartition(".")
    return Row(table, name, _written(value), _shorter(source))


def _written(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() and value else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shorter(source: Source) -> str:
    if source.level == "user":
        return str(source).replace(f"{Path.home()}/", "~/", 1)
    here = Path.cwd()
    for depth, folder in enumerate((here, *here.parents[:_NEAR])):
        if str(source).startswith(f"{folder}/"):
            return str(source).replace(f"{folder}/", "../" * depth, 1)
    return str(source)
