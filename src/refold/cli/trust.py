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
from refold.settings.files import File, project_files, values_in
from refold.settings.names import printable, short_repr
from refold.settings.trust import right_of
from refold.stores.sqlite.ownership import claim, disown, is_own_store
from refold.view.profiles import ProjectRight

_MAX_VALUE = 1 << 24  # characters: a value that is cut off could not be judged
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
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Trust them without asking.")] = False,
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
        project = _Project.at(Path())
        if not project.files and not project.store:
            raise InvalidInput(
                f"{printable(project.folder)} has no project files, and no {HERE}.",
                "Run this in the folder of the project.",
            )
        for line in _lines(project):
            typer.echo(line)
        verdicts = {project.trust.verdict(file) for file in project.files}
        if not project.store and verdicts <= {"trusted"}:
            typer.echo("You trust this already.")
            return
        if not yes and not sys.stdin.isatty():
            raise InvalidInput(
                "Can't ask for confirmation: not a terminal.",
                "Read the list, then add --yes.",
            )
        if not yes and not typer.confirm("Trust this?", default=False):
            typer.echo("Nothing was trusted.")
            raise typer.Exit(1)
        # The bytes that were short_repr are the ones that are trusted: nothing is read again.
        Trust.load().grant(project.files)
        if project.store:
            claim(project.store)
        typer.echo("Trusted. When a file changes, its settings are left out until you run this.")


@trust.command("show")
def show(folder: FolderArgument = Path(), *, as_json: JsonOption = False) -> None:
    """Show what a folder's project files set, and which settings need your trust.

    Example: refold trust show
    """
    with exit_on_error():
        project = _Project.at(folder)
        if as_json:
            typer.echo(json.dumps(_as_json(project), ensure_ascii=False, indent=2))
            return
        for line in _lines(project):
            typer.echo(line)
        if not project.files and not project.store:
            typer.echo(f"{printable(project.folder)} has no project files.")


@trust.command("list")
def list_(*, as_json: JsonOption = False) -> None:
    """List the files that you trust.

    Example: refold trust list
    """
    with exit_on_error():
        files = sorted(Trust.load().files.values())
        if as_json:
            rows = [{"path": str(f.path), "sha256": f.sha256, "at": f.at} for f in files]
            typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        elif files:
            rows = [(printable(f.path), f.at, f.sha256[:12]) for f in files]
            typer.echo("\n".join(aligned(rows)))
        else:
            typer.echo("You trust no project files.")


@trust.command("remove")
def remove(folder: FolderArgument = Path()) -> None:
    """Stop trusting a folder's project files.

    Example: refold trust remove ~/src/old-project
    """
    with exit_on_error():
        place = folder.resolve()
        folders = {place, *(file.path.parent for file in project_files(place))}
        revoked = [file.path for file in Trust.load().revoke(folders)]
        store = place / HERE
        if is_own_store(store):
            disown(store)
            revoked.append(store)
        if not revoked:
            raise InvalidInput(
                f"You trust no file in {printable(place)}.", "`refold trust list` shows all."
            )
        for path in revoked:
            typer.echo(f"{printable(path)} is not trusted any more.")


class _Project(NamedTuple):
    folder: Path
    files: list[File]
    store: Path | None
    """A store that somebody else made."""
    trust: Trust

    @classmethod
    def at(cls, folder: Path) -> "_Project":
        place = folder.resolve()
        if not place.is_dir():
            raise InvalidInput(f"There is no folder {printable(place)}.", "Check the path.")
        store = place / HERE
        foreign = store if store.is_file() and not is_own_store(store) else None
        return cls(place, project_files(place), foreign, Trust.load())


def _lines(project: _Project) -> Iterator[str]:
    for file in project.files:
        yield f"{printable(file.path)}: {_VERDICTS[project.trust.verdict(file)]}"
        rows = [
            (
                f"  {printable(setting.key)}",
                "needs trust" if _needs_trust(setting.key) else "applies always",
                short_repr(setting.value, max_chars=_MAX_VALUE),
            )
            for setting in values_in(file)
        ]
        yield from aligned(rows) if rows else ()
    if project.store:
        yield f"{printable(project.store)}: a store that you did not make on this machine"


def _needs_trust(key: str) -> bool:
    return right_of(key) is not ProjectRight.VALUE


def _as_json(project: _Project) -> dict[str, object]:
    return {
        "folder": str(project.folder),
        "files": [
            {
                "path": str(file.path),
                "sha256": file.sha256,
                "verdict": project.trust.verdict(file),
                "needs_trust": [
                    setting.key for setting in values_in(file) if _needs_trust(setting.key)
                ],
            }
            for file in project.files
        ],
        "store": str(project.store) if project.store else None,
    }
