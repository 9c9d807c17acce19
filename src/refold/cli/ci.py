"""`refold ci`: recorded sessions as a test of prompt, tools and policy."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from refold.cli.outcome import exit_on_error
from refold.errors import InvalidInput
from refold.lab.regression import (
    FILE,
    Expectations,
    Lifetime,
    Part,
    Prompt,
    Result,
    check,
    prompt_in,
    read_expectations,
    why_unreadable,
    write_expectations,
)
from refold.terminal_text import counted
from refold.user_files import check_writable

_FIX = "Give a text file that can be read."


def ci(  # noqa: PLR0913 - an option each
    sessions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SESSIONS]...",
            help="Session files, or folders of them; default: those in the file.",
            show_default=False,
        ),
    ] = None,
    *,
    expected: Annotated[
        Path, typer.Option(metavar="FILE", help="The file of expected values.")
    ] = Path(FILE),
    update: Annotated[
        bool, typer.Option("--update", help="Accept the current results: write the file.")
    ] = False,
    instructions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The instructions that begin every request."),
    ] = None,
    tools: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The definitions of its tools, as sent.")
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(min=1_000, metavar="N", help="With --update: tokens that a request may have."),
    ] = None,
    lifetime: Annotated[
        Lifetime | None,
        typer.Option(
            metavar="none|5m|1h",
            help="With --update: how long the provider's cache lasts.  [default: 5m]",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Fail if a change of prompt, tools or policy makes recorded sessions worse.

    Replays the sessions with the settings that apply here, and compares the results with the
    expected values: cost, names and edits kept, the user's rules, requests that a provider would
    refuse, and how often the cached prefix changes. Nothing is sent anywhere, and no model is
    called. Start with --update, and commit the file.

    Example: refold ci sessions/ --instructions prompt.md --update
    """
    with exit_on_error():
        file = expected.resolve()
        if update:
            check_writable(file)
        before = _expectations(file, sessions, update=update)
        if update:
            changes = {"window": window, "lifetime": lifetime}
            before = before.model_copy(
                update={name: value for name, value in changes.items() if value is not None}
            )
        result = check(
            file,
            before,
            instructions=_prompt(file, instructions, before.instructions),
            tools=_prompt(file, tools, before.tools),
        )
        if update and result.now is not None:
            write_expectations(file, result.now)
        if as_json:
            typer.echo(json.dumps(_as_json(result, updated=update), indent=2, ensure_ascii=False))
        elif update and result.now is not None:
            count = counted(len(result.now.expected), "session")
            typer.echo("\n".join([*result.notes, f"Wrote {expected}: {count}. Commit it."]))
        else:
            typer.echo("\n".join(result.lines()))
            count = counted(len(before.expected), "session")
            typer.echo(f"Passed: {count} as expected." if result.passed else "Failed.")
    if not update and not result.passed:
        raise typer.Exit(1)


def _expectations(file: Path, sessions: list[str] | None, *, update: bool) -> Expectations:
    """What is in the file; with --update, it may be new, or have other sessions."""
    given = tuple(_from(file.parent, Path(path)) for path in sessions or ())
    if not update:
        before = read_expectations(file)
        return before.model_copy(update={"sessions": given}) if given else before
    if given and not file.exists():
        return Expectations(sessions=given)
    before = read_expectations(file)
    return before.model_copy(update={"sessions": given}) if given else before


def _prompt(file: Path, path: Path | None, before: Part | None) -> Prompt | None:
    if path is None:
        return prompt_in(file.parent, before)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {why_unreadable(error)}.", _FIX) from error
    return Prompt(text, _from(file.parent, path))


def _from(folder: Path, path: Path) -> str:
    """The path as the file names it: from its own folder, so that it is right on any machine."""
    return Path(os.path.relpath(path.resolve(), folder)).as_posix()


def _as_json(result: Result, *, updated: bool) -> dict[str, JsonValue]:
    return {
        "passed": result.passed or updated,
        "updated": updated,
        "problems": [
            {"kind": one.kind, "session": one.session, "text": one.text} for one in result.problems
        ],
        "differences": {name: [*lines] for name, lines in result.differences.items()},
        "notes": [*result.notes],
    }
