"""How folds are made: by this process for a store in a file, by workers for one on a server."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from time import monotonic
from typing import Final

from refold.engine import Engine, LocalEngine
from refold.errors import RefoldError
from refold.fold.compactor import AUTO, Write, from_the_log, is_extractive, read_context
from refold.fold.job import Job, Make, Steps
from refold.fold.material import Material
from refold.fold.summary import Summary
from refold.gateway.client_keys import can_summarize
from refold.gateway.managed_request import Summaries
from refold.gateway.upstream import Upstreams
from refold.log import Log, Store
from refold.memory import daily_notes
from refold.models.experience import Setup
from refold.models.making import makes
from refold.service.quotas import FREE, Spending
from refold.settings import Settings

_LOOK_EVERY: Final = 10.0
"""Seconds between two looks at the queue of folds."""
_UNSEEN: Final = 20.0
"""Seconds without a worker that are normal: one that starts with the service takes a while."""
_SUMMARIZERS: Final = "refold.service.summarizers"
_LOGGER: Final = logging.getLogger("refold.service")
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


def makes_folds(address: str, settings: Settings) -> bool:
    """Whether the process that is asked for a fold makes it, as a task of its own.

    A client's key cannot be given to a worker: it would be stored on the way.
    """
    return not on_server(address) or settings.serve.summarize_with_client_key


def engine_of(
    address: str, store: Store, settings: Settings, upstreams: Upstreams, spending: Spending = FREE
) -> NewEngine:
    """Makes the engine of a tenant's log.

    That log may have deadlines for requests. A fold made here reads from the store itself, for as
    long as it takes.
    """
    if makes_folds(address, settings):
        make = fold_maker(settings, upstreams, spending)
        return lambda log: LocalEngine(own := store.log(log.tenant), make(own), leave=True)
    from refold.engine.dbos import DbosEngine  # noqa: PLC0415 - optional

    def new_engine(log: Log) -> Engine:
        own = store.log(log.tenant)
        remember = daily_notes(settings.profile, log.tenant)
        return DbosEngine(log, address, extract=makes(own, from_the_log, remember))

    return new_engine


class WorkerWatch:
    """Notices that folds wait in the queue and no worker is there to make them.

    Requests go on without those folds, so this is for people: it fails no check of readiness.
    """

    def __init__(
        self, address: str, *, every: float = _LOOK_EVERY, unseen: float = _UNSEEN
    ) -> None:
        """Watch a store's queue; looks `every` so many seconds, and tolerates `unseen` of them."""
        self._address = address
        self._every = every
        self._unseen = unseen
        self._task: asyncio.Task[None] | None = None
        self._unseen_since: float | None = None
        self._waiting = 0
        self._warned = False

    @property
    def problem(self) -> str:
        """What an operator should know; empty if there is nothing."""
        if self._unseen_since is None or not self._waiting:
            return ""
        seconds = monotonic() - self._unseen_since
        if seconds < self._unseen:
            return ""
        folds = "1 fold waits" if self._waiting == 1 else f"{self._waiting} folds wait"
        return f"{folds}, and no worker has been seen for {seconds:.0f} seconds"

    def open(self) -> None:
        if on_server(self._address) and find_spec("dbos") is not None:
            self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        from refold.engine.dbos import waiting_folds  # noqa: PLC0415 - optional

        async with waiting_folds(self._address) as look:
            since = monotonic()
            while True:
                with suppress(RefoldError):  # an outage of the store is reported by its guard
                    self._waiting, has_worker = await look()
                    self._unseen_since = None if has_worker else self._unseen_since or since
                    self._report()
                await asyncio.sleep(self._every)
                since = monotonic()

    def _report(self) -> None:
        if self.problem and not self._warned:
            _LOGGER.warning("%s. Start one: refold worker --store ADDRESS", self.problem)
        elif self._warned and not self.problem:
            _LOGGER.info("A worker makes the folds that waited.")
        self._warned = bool(self.problem)


def fold_maker(settings: Settings, upstreams: Upstreams, spending: Spending = FREE) -> MakeFor:
    """Makes folds with the upstreams' models, or extractive ones without Pydantic AI."""
    if find_spec("pydantic_ai") is None:
        return lambda log: makes(log, from_the_log, daily_notes(settings.profile, log.tenant))

    @cache
    def by_models() -> Callable[[str], Write]:
        from refold.service.summarizers import upstream_summarizers  # noqa: PLC0415 - optional

        return upstream_summarizers(upstreams, settings, spending)

    def write_for(tenant: str) -> Write:
        async def write(material: Material, job: Job, steps: Steps) -> Summary:
            if is_extractive(job) and read_context(job.context).values.breadcrumb:
                return await from_the_log(material, job, steps)
            # Pydantic AI takes most of a second to import, which is for models alone.
            await asyncio.to_thread(import_module, _SUMMARIZERS)
            return await by_models()(tenant)(material, job, steps)

        return write

    return lambda log: makes(log, write_for(log.tenant), daily_notes(settings.profile, log.tenant))


def summaries(
    upstreams: Upstreams, settings: Settings, *, in_process: bool, others_fold: bool
) -> Summaries:
    """Who writes summaries.

    Args:
        upstreams: Where the models are.
        settings: The settings that apply.
        in_process: Whether this process makes the folds of its requests.
        others_fold: Whether only workers elsewhere do, with keys of their own.
    """

    def possible(tenant: str, setup: Setup) -> bool:
        # A summarizer that is named may be known to the workers alone.
        named = setup.profile.summarizer != AUTO
        return (others_fold and named) or can_summarize(upstreams, tenant, setup)

    if not others_fold and find_spec("pydantic_ai") is None:
        return Summaries()
    return Summaries(possible, settings.serve.summarize_with_client_key, in_process)


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
