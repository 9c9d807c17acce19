"""How folds are made: by this process for a store in a file, by workers for one on a server."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Final

from refold.engine import Engine, LocalEngine
from refold.fold.compactor import from_the_log
from refold.fold.job import Make
from refold.gateway.upstream import Upstreams
from refold.log import Log, Store
from refold.models.making import makes
from refold.service.quotas import FREE, Spending
from refold.settings import Settings

NewEngine = Callable[[Log], Engine]
MakeFor = Callable[[Log], Make]
"""What makes a log's folds."""
_SERVERS: Final = ("postgresql://", "postgres://")


def on_server(address: str) -> bool:
    """Whether the store is on a server, and so needs workers."""
    return address.startswith(_SERVERS)


def is_shared(address: str) -> bool:
    """Whether other processes can open the same store."""
    return on_server(address) or address.startswith("sqlite:///")


def engine_of(
    address: str, store: Store, settings: Settings, upstreams: Upstreams, spending: Spending = FREE
) -> NewEngine:
    """Makes the engine of a tenant's log.

    That log may have deadlines for requests. A fold made here reads from the store itself, for as
    long as it takes.
    """
    if not on_server(address):
        make = fold_maker(settings, upstreams, spending)
        return lambda log: LocalEngine(own := store.log(log.tenant), make(own))
    from refold.engine.dbos import DbosEngine  # noqa: PLC0415 - optional

    return lambda log: DbosEngine(log, address, extract=makes(store.log(log.tenant), from_the_log))


def fold_maker(settings: Settings, upstreams: Upstreams, spending: Spending = FREE) -> MakeFor:
    """Makes folds with the upstreams' models, or extractive ones without Pydantic AI."""
    if find_spec("pydantic_ai") is None:
        return lambda log: makes(log, from_the_log)
    from refold.service.summarizers import upstream_summarizers  # noqa: PLC0415 - optional

    write_for = upstream_summarizers(upstreams, settings, spending)
    return lambda log: makes(log, write_for(log.tenant))


@asynccontextmanager
async def local_worker(
    address: str, store: Store, settings: Settings, upstreams: Upstreams, spending: Spending = FREE
) -> AsyncGenerator[None]:
    """A worker in this process, if the store needs workers."""
    if not on_server(address):
        yield
        return
    from refold.engine.dbos import Worker  # noqa: PLC0415 - optional

    make, patience = fold_maker(settings, upstreams, spending), settings.serve.times.drain
    async with Worker(address, store.log, make, patience=patience):
        yield
