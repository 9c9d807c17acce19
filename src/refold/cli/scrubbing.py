"""Runs a scrub of a PostgreSQL store, for `refold store scrub` and `refold forget --scrub`."""

import asyncio
from typing import TYPE_CHECKING

import typer

from refold.cli.outcome import needing
from refold.exports.moments import counted

if TYPE_CHECKING:
    from refold.stores.postgres.scrub import Scrubbed


def run_scrub(address: str, *, wait: float, wal: bool = True) -> "Scrubbed":
    """Scrub the store; raises ErasureUnfinished with what is left and why."""
    with needing("postgres"):
        from refold.stores.postgres.owning import scrubbed  # noqa: PLC0415 - optional

        return asyncio.run(scrubbed(address, wait=wait, wal=wal))


def say_scrubbed(done: "Scrubbed") -> None:
    """Say what a scrub did, and which settings it needed."""
    typer.echo(f"{counted(len(done.rewritten), 'table')} rewritten.")
    if done.segments:
        settings = "wal_recycle was off"
        if done.recycling != "off":
            settings = "wal_recycle was turned off meanwhile, and is on again"
        typer.echo(
            f"{counted(done.segments, 'write-ahead segment')} removed after a checkpoint; "
            f"{settings}."
        )
    elif done.rewritten:
        typer.echo("The write-ahead log is left for the next scrub.")
