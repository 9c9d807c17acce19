"""`refold worker`."""

import asyncio
import logging
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from refold.cli.choosing import ProfileChoice
from refold.cli.left_out import say_left_out
from refold.cli.metrics import metrics_at
from refold.cli.options import STORE, StoreOption, where_is
from refold.cli.outcome import explained, needing
from refold.errors import InvalidInput

if TYPE_CHECKING:
    from refold.engine.dbos import Limits

_POSTGRES = ("postgresql://", "postgres://")


def worker(  # noqa: PLR0913 - an option each
    *,
    store: StoreOption = STORE,
    at_once: Annotated[
        int,
        typer.Option(
            "--at-once",
            metavar="N",
            min=1,
            help="How many folds each model makes at once while nobody waits, over all workers.",
        ),
    ] = 8,
    waiting: Annotated[
        int,
        typer.Option(
            "--waiting",
            metavar="N",
            min=1,
            help="How many more that somebody waits for.",
        ),
    ] = 8,
    per_tenant: Annotated[
        int,
        typer.Option(
            "--per-tenant", metavar="N", min=1, help="How many of either may be one tenant's."
        ),
    ] = 4,
    per_minute: Annotated[
        int | None,
        typer.Option(
            "--per-minute",
            metavar="N",
            min=2,
            help="How many folds each model begins in a minute, over all workers.",
            show_default="no limit",
        ),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(
            "--patience",
            metavar="SECONDS",
            min=0,
            help="How long it waits for what it makes when it is told to stop.",
        ),
    ] = 30.0,
    pool: Annotated[
        str, typer.Option("--pool", metavar="NAME", help="Which engines' folds it makes.")
    ] = "default",
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", metavar="HOST:PORT", help="Serve metrics for Prometheus there."),
    ] = None,
    profile: ProfileChoice = None,
) -> None:
    """Make the folds of all tenants that programs with a DbosEngine ask for.

    Start as many as you like, on any machine that reaches the database directly: whatever a worker
    was making when it died, another one finishes. The models that summarise need their keys here.
    On SIGTERM or Ctrl+C it takes nothing new, waits for what it makes, and gives the rest to
    others. The limits are those of all workers together: give each the same.

    Example: refold worker --store postgresql://app@db/refold --per-minute 300
    """
    with explained(), needing("dbos"):
        address = where_is(store)
        if not address.startswith(_POSTGRES):
            raise InvalidInput(
                "Workers share a store in PostgreSQL; one in a file is folded where it is used.",
                "Name it: --store postgresql://user@host/database, or REFOLD_STORE.",
            )
        limits = _limits(at_once, waiting, per_tenant, per_minute)
        with metrics_at(metrics):
            asyncio.run(_work(address, limits, patience, pool, profile))


def _limits(at_once: int, waiting: int, per_tenant: int, per_minute: int | None) -> "Limits":
    from refold.engine.dbos import Bound, Bounds, Limits, Rate  # noqa: PLC0415 - optional

    def bound(folds: int) -> Bound:
        share = per_minute and max(1, round(per_minute * folds / (at_once + waiting)))
        return Bound(folds, min(per_tenant, folds), Rate(share, 60.0) if share else None)

    return Limits(Bounds(bound(waiting), bound(at_once)))


async def _work(
    address: str, limits: "Limits", patience: float, pool: str, profile: str | None
) -> None:
    from refold.engine.dbos import Worker  # noqa: PLC0415 - optional
    from refold.service.for_workers import making_beside  # noqa: PLC0415 - slow
    from refold.settings import load_settings  # noqa: PLC0415 - slow
    from refold.stores.postgres import PostgresStore  # noqa: PLC0415 - optional

    settings = load_settings(profile)
    say_left_out(settings)
    # While the database is away, the pool would log several lines a second; the sweeper logs one.
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, stop.set)
    async with (
        PostgresStore(address) as store,
        making_beside(store, settings) as make,
        Worker(address, store.log, make, limits=limits, pool=pool, patience=patience) as at_work,
    ):
        typer.echo(f"{at_work.executor} takes folds.", err=True)
        await stop.wait()
        typer.echo("It takes no more, and waits for what it makes.", err=True)
