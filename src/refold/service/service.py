"""The service: everything that its routes share, from start to stop."""

import asyncio
import logging
import os
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext, suppress
from types import TracebackType
from typing import Any, Final, Self

import httpx2

from refold.engine.protocol import reason_of
from refold.errors import InvalidInput, InvalidSetting, RefoldError
from refold.gateway import upstream_stream
from refold.gateway.client_keys import lending
from refold.gateway.dialects.dialect import Bounds
from refold.gateway.gateway import Gateway
from refold.gateway.sessions import GatewaySessions, SessionStart
from refold.gateway.unmanaged import OutagePolicy
from refold.gateway.upstream import CLIENT_KEY, NO_KEY, STORED_KEY, Headers, Upstream, Upstreams
from refold.log import DEFAULT_TENANT, Origin, Store, wall_clock
from refold.models.catalog import Usage
from refold.service.callers import Caller, Limits, gateway_caller
from refold.service.engines import (
    WorkerWatch,
    engine_of,
    is_shared,
    local_worker,
    makes_folds,
    on_server,
    summaries,
)
from refold.service.keys import TENANT, keyring_of
from refold.service.metrics import ServiceMetrics
from refold.service.middleware import Traffic
from refold.service.offload import MainProcess, Offload
from refold.service.problem import refused
from refold.service.quotas import Spending, quotas_of
from refold.service.store_guard import (
    GuardedEngine,
    GuardedStore,
    StoreGuard,
    StoreReadiness,
    write_probe,
)
from refold.service.vault import Sealing, Vault
from refold.session.retention import MAX_FORGOTTEN, retain
from refold.settings import Settings, UpstreamSettings

_LAST_SECONDS: Final = 5.0
"""For requests that were broken off to say so in the log."""
_RETENTION_PAUSE: Final = 3_600.0
_LOGGER: Final = logging.getLogger("refold.service")
_CONNECTIONS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=256)


def upstreams(settings: tuple[UpstreamSettings, ...]) -> list[Upstream]:
    """The servers that the settings name, each with its key if that is in a variable."""
    return [
        Upstream(
            each.name,
            each.base_url,
            each.models,
            each.dialects,
            _upstream_key(each),
            each.paths,
            each.append_v1,
        )
        for each in settings
    ]


def _upstream_key(upstream: UpstreamSettings) -> str:
    if upstream.key in (CLIENT_KEY, STORED_KEY, NO_KEY):
        return upstream.key
    key = os.environ.get(upstream.key, "").strip()
    if not key:
        raise InvalidSetting(
            f"The upstream {upstream.name!r} takes its key from {upstream.key}, which is not set.",
            f"Set the environment variable {upstream.key}, or another `key` in serve.upstreams.",
        )
    return key


async def _stop(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait({task})


class Service:
    """The shared state of all routes, at `app.state.service`; it is open while entered."""

    def __init__(  # noqa: PLR0913 - two are needed, the others are choices
        self,
        settings: Settings,
        store: Store,
        address: str = "memory:",
        *,
        local: bool = True,
        worker: bool = True,
        client: httpx2.AsyncClient | None = None,
        offloaded: MainProcess | None = None,
        origin: Origin | None = None,
    ) -> None:
        """Put it together; nothing is opened yet.

        Args:
            settings: The settings that apply.
            store: The store, opened and closed by the service.
            address: The store's address.
            local: Whether only this machine reaches it: then it needs no keys until one is made.
            worker: Whether it makes folds itself if the store is on a server.
            client: Calls the upstreams; for tests.
            offloaded: Set in an offload process: the main process checks and charges callers.
            origin: Kept with new sessions, if one program begins them all.
        """
        self.settings = settings
        self.store = store
        self.local = local
        self.draining = asyncio.Event()
        """Set when the service is about to stop: endless answers must end."""
        self.traffic = Traffic()
        self.tasks: set[asyncio.Task[Any]] = set()
        """Requested folds, which may outlive their request."""
        times = settings.serve.times
        self.guard = StoreGuard(write_probe(store.log(TENANT)), times.store)
        guarded = GuardedStore(store, self.guard)
        self.metrics = ServiceMetrics(
            lambda: self.traffic.under_way,
            lambda: self.sessions.pool.counts,
            store_available=lambda: self.guard.available,
        )
        self.keyring = keyring_of(guarded)
        self.vault = Vault(self.keyring, Sealing.from_environment())
        self.limits = Limits(settings.serve.limits)
        self.quotas = quotas_of(guarded, self.keyring, settings.serve.limits)
        self.workers = WorkerWatch(address)
        self.readiness = StoreReadiness(guarded.log(TENANT))
        self._address = address
        self._worker = worker
        timeout = httpx2.Timeout(times.upstream, connect=times.connect, pool=times.connect)
        self._client = client or upstream_stream.client(timeout, _CONNECTIONS)
        self._upstreams = Upstreams(
            upstreams(settings.serve.upstreams), self._client, self.vault.key_of
        )
        self.offload: Offload | None = None
        processes = settings.serve.offload_processes
        if offloaded is None and client is None and processes and is_shared(address):
            self.offload = Offload(
                settings,
                address,
                self._report,
                worker=worker,
                max_body=settings.serve.sizes.gateway,
            )
            self._worker = False  # the first offload process makes folds: they read long sessions
        self._spending = Spending(self.quotas.check, self._spent, self.keyring.refresh_if_stale)
        others_fold = on_server(address) and not worker
        self.summaries = summaries(
            self._upstreams,
            settings,
            in_process=makes_folds(address, settings),
            others_fold=others_fold,
        )
        engine = engine_of(address, store, settings, self._upstreams, self._spending)
        self.sessions = GatewaySessions(
            guarded,
            settings.profile,
            lambda log: GuardedEngine(engine(log), self.guard),
            max_idle=settings.serve.open_sessions,
            origin=origin,
        )
        self.gateway = Gateway(
            self.sessions,
            self._upstreams,
            caller_of=offloaded.caller_of if offloaded else gateway_caller,
            refuse=refused,
            charge=offloaded.charge if offloaded else self.charge,
            models=settings.models,
            outages=OutagePolicy(
                settings.serve.fail_open,
                times.unmanaged,
                offloaded or self.metrics,
                lambda: self.guard.available,
                lambda: self.guard.available_since,
                self.guard.recovered,
            ),
            large=self.offload,
            may_use=self._may_use,
            share=offloaded.answer_given if offloaded else None,
            bounds=Bounds(settings.serve.sizes.items, settings.serve.sizes.objects),
            summaries=self.summaries,
            recall=settings.serve.recall_tools,
            receipts=settings.serve.receipt_header,
        )
        # Once for all processes of a service.
        self._watches_workers = offloaded is None and not makes_folds(address, settings)
        self._forgets = offloaded is None and settings.profile.retention.days > 0
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._client.aclose)
            await stack.enter_async_context(self.store)
            stack.push_async_callback(self.guard.close)
            await self.keyring.refresh()
            stack.push_async_callback(self.quotas.close)
            await self.quotas.open()
            if self._worker:
                worker = local_worker(
                    self._address, self.store, self.settings, self._upstreams, self._spending
                )
                await stack.enter_async_context(worker)
            if self.offload is not None:
                stack.push_async_callback(self.offload.close)
                self.offload.open()
            if self._watches_workers:
                stack.push_async_callback(self.workers.close)
                self.workers.open()
            if self._forgets:
                stack.push_async_callback(_stop, asyncio.create_task(self._forget_unused()))
            # Closed before the offload processes: it waits for answers that they log for it.
            stack.push_async_callback(self.gateway.close)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.draining.set()
        await self.traffic.wait_until_idle(_LAST_SECONDS)
        await self._stack.aclose()

    def lending(self, model: str, headers: Headers) -> AbstractContextManager[None]:
        """Lend the provider's key of an API request to the folds that it starts, if allowed."""
        if self.summaries.lend_keys:
            for dialect in ("openai-chat", "anthropic-messages"):
                with suppress(InvalidInput):
                    return lending(self._upstreams.choose(model, dialect), headers)
        return nullcontext()

    def charge(self, caller: Caller, usage: Usage, cost: float | None = None) -> None:
        """Count what an answer used, and its cost if known."""
        self.limits.used(caller, usage.input + usage.output)
        self._spent(caller.tenant, usage, cost)

    async def _forget_unused(self) -> None:
        """Forget sessions that nobody used for as long as the profile says, now and every hour."""
        while True:
            for tenant in {DEFAULT_TENANT, *(key.tenant for key in self.keyring.keys())}:  # noqa: SIM118 - no dict
                try:
                    await self._forget_unused_of(tenant)
                except (RefoldError, OSError) as error:  # the next round may succeed
                    _LOGGER.warning("Unused sessions could not be forgotten: %s", reason_of(error))
            await asyncio.sleep(_RETENTION_PAUSE)

    async def _forget_unused_of(self, tenant: str) -> None:
        profile, count = self.settings.profile, 0
        while True:
            keep = self.sessions.pool.in_use(tenant)
            names = await retain(self.store.log(tenant), profile, now=wall_clock(), keep=keep)
            for name in names:
                await self.sessions.drop(tenant, name)
            count += len(names)
            if len(names) < MAX_FORGOTTEN:
                break
        if count:
            days = profile.retention.days
            _LOGGER.info("%d sessions were forgotten: unused for %d days.", count, days)

    async def _may_use(self, caller: Caller, origin: SessionStart) -> bool:
        """Whether a session is the caller's own, or was handed over to it."""
        if not caller.key or caller.may("admin"):
            return True
        if not caller.stale:
            await self.keyring.refresh_if_stale()
        handed_over = self.keyring.owner(caller.tenant, origin.first_entry)
        return caller.key == (handed_over or origin.owner)

    def _report(self, name: str, args: list[Any]) -> None:
        """Take a report of `MainProcess`, sent by an offload process."""
        if name == "charge":
            tenant, key, usage, cost = args
            self.charge(Caller(tenant, key, frozenset()), Usage(*usage), cost)
        elif name == "answer_given":
            self.gateway.take_answer(args[0])
        else:
            getattr(self.metrics, name)(*args)

    def _spent(self, tenant: str, usage: Usage, cost: float | None) -> None:
        self.quotas.spent(tenant, usage, cost)
        self.metrics.used(usage.input, usage.output)
