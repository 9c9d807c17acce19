import json
from collections.abc import Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from refold.cli.left_out import left_out_json, left_out_lines, left_out_notice
from refold.cli.options import ProfileChoice, setting_names, setting_values
from refold.cli.outcome import exit_on_error, wrong_usage
from refold.cli.output import aligned, terminal_width
from refold.errors import InvalidInput
from refold.exports.moments import clip
from refold.settings import (
    SCHEMA_LINE,
    Settings,
    Source,
    check_setting,
    load_settings,
    set_setting,
    settings_schema,
    unset_setting,
)

_MIN_VALUE = 12
"""Columns: no value is clipped to less."""
_MAX_PARENTS = 3
"""Folders further up are shown with their full path."""
_USE_OF_SCHEMA = (
    "Save this as refold.schema.json beside refold.toml, and make this the first line of "
    f"refold.toml: {SCHEMA_LINE}"
)


def config(  # noqa: PLR0913 - an option each
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY]",
            help="Print only this setting's value.",
            show_default=False,
            autocompletion=setting_names,
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Argument(
            metavar="[VALUE]",
            help="Set it to this value, and save it.",
            show_default=False,
            autocompletion=setting_values,
        ),
    ] = None,
    *,
    project: Annotated[
        bool, typer.Option("--project", help="Save it for this project instead.")
    ] = False,
    unset: Annotated[bool, typer.Option("--unset", help="Remove the value.")] = False,
    profile: ProfileChoice = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print values and sources as JSON.")
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of refold.toml, for editors.")
    ] = False,
) -> None:
    """Show every setting and where its value comes from, or change one permanently.

    Environment variables override the project's files, which override your own file, which
    overrides the profile. From project files that you don't trust, only policy values apply: the
    rest is listed with the reason, until you trust the files with `refold trust`. A new value is
    checked, then written to your own file, or with --project to the project's; comments in the file
    stay.

    Example: refold config trigger.tokens 80000
    """
    with exit_on_error():
        if schema:
            typer.echo(settings_schema(), nl=False)
            typer.echo(_USE_OF_SCHEMA, err=True)
            return
        if value is not None or unset:
            with wrong_usage():
                checked = _checked(key, value, unset=unset)
            _change(checked, value, project=project, as_json=as_json)
            return
        settings = load_settings(profile)
        if key is not None:
            with wrong_usage():
                current = settings.value(key)
            typer.echo(_json(current) if as_json else _plain(current))
            left_out = [setting for setting in settings.left_out if setting.key == key]
            if left_out:
                typer.echo(left_out_notice(left_out), err=True)
        elif as_json:
            typer.echo(json.dumps(_as_json(settings), ensure_ascii=False, indent=2))
        else:
            typer.echo("\n".join(_lines(settings)))


def _checked(key: str | None, value: str | None, *, unset: bool) -> str:
    """The setting to change, if there is one and it can have the value."""
    if key is None or (value is not None) == unset:
        raise InvalidInput(
            "A setting is either set or removed.",
            "Write `refold config KEY VALUE`, or `refold config KEY --unset`.",
        )
    check_setting(key, value)
    return key


def _change(key: str, value: str | None, *, project: bool, as_json: bool) -> None:
    change = (
        unset_setting(key, project=project)
        if value is None
        else set_setting(key, value, project=project)
    )
    if as_json:
        typer.echo(json.dumps(asdict(change) | {"path": str(change.path)}, ensure_ascii=False))
        return
    was = f" (before: {_plain(change.before)})" if change.before is not None else ""
    where = _from_home(str(change.path))
    typer.echo(f"{change.key} is {_plain(change.value)} now{was}. Written to {where}.")
    if change.instead:
        typer.echo(f"It does not apply here: {change.instead}.", err=True)


def _from_home(path: str) -> str:
    return path.replace(f"{Path.home()}/", "~/", 1)


def _as_json(settings: Settings) -> dict[str, object]:
    values: dict[str, object] = {
        key: {"value": value, "source": str(source), "level": source.level}
        for key, value in settings.values().items()
        for source in (settings.sources[key],)
    }
    left_out = left_out_json(settings.left_out)
    return {**values, "left_out": left_out} if left_out else values


def _lines(settings: Settings) -> list[str]:
    values = sorted(settings.values().items(), key=lambda item: "." in item[0])
    lines: list[str] = []
    for table, members in groupby(values, key=lambda item: item[0].rpartition(".")[0]):
        lines += [f"\n[{table}]"] if table else []
        lines += _table(settings, dict(members))
    return [*lines, *left_out_lines(settings.left_out)] if settings.left_out else lines


def _table(settings: Settings, values: Mapping[str, object]) -> list[str]:
    names = [key.rpartition(".")[2] for key in values]
    sources = [_shorter(settings.sources[key]) for key in values]
    room = terminal_width() - max(map(len, sources)) - max(map(len, names)) - 4
    shown = [clip(_plain(value), max(_MIN_VALUE, room)) for value in values.values()]
    return aligned(list(zip(names, shown, sources, strict=True)))


def _plain(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() and value else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shorter(source: Source) -> str:
    if source.level == "user":
        return _from_home(str(source))
    here = Path.cwd()
    for depth, folder in enumerate((here, *here.parents[:_MAX_PARENTS])):
        if str(source).startswith(f"{folder}/"):
            return str(source).replace(f"{folder}/", "../" * depth, 1)
    return str(source)
