"""`refold store`: making a store on a server ready, and looking after it."""

import asyncio
import json
from dataclasses import asdict
from importlib.util import find_spec
from typing import Annotated

import typer

from refold.cli.options import STORE, StoreOption, where_is
from refold.cli.outcome import explained, needing
from refold.errors import InvalidInput
from refold.exports.moments import counted

store = typer.Typer(
    name="store",
    help="Make a store on a PostgreSQL server ready, and look after it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
_PARTITIONS = 16
_POSTGRES = ("postgresql://", "postgres://")


@store.command("migrate")
def migrate_(
    *,
    address: StoreOption = STORE,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions",
            metavar="N",
            min=1,
            max=1024,
            help="How many parts the large tables of a new store have.",
        ),
    ] = _PARTITIONS,
    role: Annotated[
        list[str] | None,
        typer.Option("--role", metavar="NAME", help="Give this role what a store needs."),
    ] = None,
    bind: Annotated[
        str | None,
        typer.Option(
            "--bind", metavar="TENANT", help="Bind the roles to one tenant, whatever they say."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make the tables of a store, or bring them to the newest schema.

    Run it as the owner of the database, before the programs of a new version are started. Those
    that run may go on meanwhile. Running it again changes nothing.

    Example: refold store migrate --store postgresql://owner@db/refold --role app
    """
    if bind is not None and not role:
        raise typer.BadParameter("--bind needs a --role to bind.")
    with explained(), needing("postgres"):
        from refold.stores.postgres import migrate  # noqa: PLC0415 - optional

        server, roles = _server(address), role or []
        done = asyncio.run(migrate(server, partitions, roles=roles, tenant=bind))
        if find_spec("dbos") is not None:
            from refold.engine.dbos import prepare  # noqa: PLC0415 - optional

            asyncio.run(prepare(server, () if bind else roles))
        if as_json:
            typer.echo(json.dumps({"applied": [one.number for one in done]}))
        elif done:
            typer.echo(f"{counted(len(done), 'migration')} applied; schema {done[-1].number}.")
        else:
            typer.echo("The schema is the newest.")


@store.command("check")
def check(*, address: StoreOption = STORE, as_json: JsonOption = False) -> None:
    """Look whether a store can be used from here, with this version.

    It also says when the role that connects may do everything: then the server does not keep
    tenants apart for it.

    Example: refold store check --store postgresql://app@db/refold
    """
    with explained(), needing("postgres"):
        from refold.stores.postgres.owning import condition  # noqa: PLC0415 - optional

        found = asyncio.run(condition(_server(address)))
        if as_json:
            typer.echo(json.dumps(asdict(found)))
            return
        parts = counted(found.partitions, "partition")
        bound = f", bound to the tenant {found.tenant!r}" if found.tenant else ""
        role = f"as {found.role!r}{bound}"
        typer.echo(f"The store can be used: schema {found.schema}, {parts}, {role}.")
        if not found.isolated:
            typer.echo(
                f"warning: {found.role!r} may do everything, so the server keeps no tenants apart "
                "for it.\nLet programs connect as another role: refold store migrate --role NAME",
                err=True,
            )


@store.command("scrub")
def scrub_(*, address: StoreOption = STORE, as_json: JsonOption = False) -> None:
    """Take the bytes of what was forgotten off the server's disk.

    Run it as the owner of the database, in quiet hours: tables that hold something forgotten are
    rewritten, and nobody can use such a table meanwhile.

    Example: refold store scrub --store postgresql://owner@db/refold
    """
    with explained(), needing("postgres"):
        from refold.stores.postgres.owning import scrubbed  # noqa: PLC0415 - optional

        done = asyncio.run(scrubbed(_server(address)))
        typer.echo(
            json.dumps(asdict(done))
            if as_json
            else f"{counted(len(done.rewritten), 'table')} rewritten."
        )


def _server(address: str) -> str:
    """The address, if it is a server's."""
    found = where_is(address)
    if not found.startswith(_POSTGRES):
        raise InvalidInput(
            "Only a store in PostgreSQL is looked after so; one in a file looks after itself.",
            "Name it: --store postgresql://user@host/database, or REFOLD_STORE.",
        )
    return found
