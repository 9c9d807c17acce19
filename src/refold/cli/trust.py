"""`refold trust`: let the files of a folder set what otherwise only the user may."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from refold.cli.options import HERE
from refold.cli.outcome import exit_on_error
from refold.cli.output import aligned
from refold.errors import InvalidInput
from refold.settings import Trust
from refold.settings.files import File, given_in, project_files
from refold.settings.names import Given, printable, shown
from refold.settings.trust import right_of
from refold.stores.sqlite.ownership import claim, disown, is_own_store
from refold.view.profiles import ProjectRight

_WHOLE = 1 << 24
_VERDICTS = {
    "trusted": "trusted",
    "changed": "changed since you trusted it",
    "unknown": "not trusted",
}

trust = typer.Typer(
    name="trust",
    help="Let the project files of a folder set more than policy values.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
FolderArgument = Annotated[
    Path,
    typer.Argument(
        metavar="[FOLDER]", help="A folder of the project.", show_default="the current folder"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


@trust.callback()
def grant(
    context: typer.Context,
    *,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Trust them without a question.")
    ] = False,
) -> None:
    """Show what the project files here set, and trust them if you say so.

    Without trust, a project's files set policy values only: the profile, thresholds, windows.
    Upstreams, keys, addresses, summarizing models and retention need your own file, the environment
    or this command. Refold remembers a hash of each file's content, and asks again when it changes.

    Example: refold trust
    """
    if context.invoked_subcommand is not None:
        return
    with exit_on_error():
        found = _Found.at(Path())
        if not found.files and not found.store:
            raise InvalidInput(
                f"{printable(found.folder)} has no project files, and no {HERE}.",
                "Run this in the folder of the project.",
            )
        for line in _lines(found):
            typer.echo(line)
        if found.is_trusted:
            typer.echo("You trust this already.")
            return
        if not yes and not _agreed():
            typer.echo("Nothing was trusted.")
            raise typer.Exit(1)
        # The bytes that were shown are the ones that are trusted: nothing is read again.
        Trust.load().grant(found.files)
        if found.store:
            claim(found.store)
        typer.echo("Trusted. When a file changes, its settings are left out until you run this.")


@trust.command("show")
def show(folder: FolderArgument = Path(), *, as_json: JsonOption = False) -> None:
    """Show what the project files of a folder set, and which of it needs trust.

    Example: refold trust show
    """
    with exit_on_error():
        found = _Found.at(folder)
        if as_json:
            typer.echo(json.dumps(_as_json(found), ensure_ascii=False, indent=2))
            return
        for line in _lines(found):
            typer.echo(line)
        if not found.files and not found.store:
            typer.echo(f"{printable(found.folder)} has no project files.")


@trust.command("list")
def list_(*, as_json: JsonOption = False) -> None:
    """List the files that you trust.

    Example: refold trust list
    """
    with exit_on_error():
        files = sorted(Trust.load().files.values())
        if as_json:
            rows = [{"path": str(one.path), "sha256": one.sha256, "at": one.at} for one in files]
            typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        elif files:
            rows = [(printable(one.path), one.at, one.sha256[:12]) for one in files]
            typer.echo("\n".join(aligned(rows)))
        else:
            typer.echo("You trust no project files.")


@trust.command("remove")
def remove(folder: FolderArgument = Path()) -> None:
    """Trust the project files of a folder no more.

    Example: refold trust remove ~/src/old-project
    """
    with exit_on_error():
        place = folder.resolve()
        folders = {place, *(file.path.parent for file in project_files(place))}
        gone = [one.path for one in Trust.load().revoke(folders)]
        store = place / HERE
        if is_own_store(store):
            disown(store)
            gone.append(store)
        if not gone:
            raise InvalidInput(
                f"You trust no file in {printable(place)}.", "`refold trust list` shows all."
            )
        for path in gone:
            typer.echo(f"{printable(path)} is not trusted any more.")


class _Found(NamedTuple):
    folder: Path
    files: list[File]
    store: Path | None
    """A store that somebody else made."""
    trust: Trust

    @classmethod
    def at(cls, folder: Path) -> "_Found":
        place = folder.resolve()
        if not place.is_dir():
            raise InvalidInput(f"There is no folder {printable(place)}.", "Check the path.")
        store = place / HERE
        foreign = store if store.is_file() and not is_own_store(store) else None
        return cls(place, project_files(place), foreign, Trust.load())

    @property
    def is_trusted(self) -> bool:
        return not self.store and all(self.trust.verdict(file) == "trusted" for file in self.files)


def _lines(found: _Found) -> Iterator[str]:
    for file in found.files:
        yield f"{printable(file.path)}: {_VERDICTS[found.trust.verdict(file)]}"
        # Values are shown whole: what is cut off could not be judged.
        rows = [
            (f"  {printable(one.key)}", needs, shown(one.value, max_chars=_WHOLE))
            for one, needs in _settings_in(file)
        ]
        yield from aligned(rows) if rows else ()
    if found.store:
        yield f"{printable(found.store)}: a store that you did not make on this machine"


def _settings_in(file: File) -> Iterator[tuple[Given, str]]:
    for one in given_in(file):
        free = right_of(one.key) is ProjectRight.VALUE
        yield one, "applies always" if free else "needs trust"


def _as_json(found: _Found) -> dict[str, object]:
    return {
        "folder": str(found.folder),
        "files": [
            {
                "path": str(file.path),
                "sha256": file.sha256,
                "verdict": found.trust.verdict(file),
                "needs_trust": [
                    one.key for one in given_in(file) if right_of(one.key) is not ProjectRight.VALUE
                ],
            }
            for file in found.files
        ],
        "store": str(found.store) if found.store else None,
    }


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("There is no terminal to ask on.", "Read what is shown, then add --yes.")
    return typer.confirm("Trust this?", default=False)
