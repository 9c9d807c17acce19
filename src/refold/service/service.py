"""The service: everything that its routes share, from when it begins until it has ended."""

import asyncio
import os
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Protocol, Self

import httpx2
from starlette.requests import Request

from refold.errors import InvalidSetting
from refold.gateway import upstream_stream
from refold.gateway.dialects.dialect import Bounds
from refold.gateway.gateway import Gateway
from refold.gateway.sessions import GatewaySessions, Origin
from refold.gateway.unmanaged import Count, OutagePolicy
from refold.gateway.upstream import PASSED, STORED, Upstream, Upstreams
from refold.log import Store
from refold.models.catalog import Usage
from refold.service.callers import Caller, Limits, gateway_caller
from refold.service.engines import engine_of, is_shared, working
from refold.service.health import Reaching
from refold.service.keys import TENANT, keyring_of
from refold.service.metrics import Measuring
from refold.service.middleware import Traffic
from refold.service.offload import Offload
from refold.service.problem import refused
from refold.service.quotas import quotas_of
from refold.service.spending import Spending
from refold.service.store_guard import GuardedEngine, GuardedStore, StoreGuard, write_probe
from refold.service.vault import Sealing, Vault
from refold.settings import Settings, UpstreamSettings
from refold.settings.serve import TimeSettings

# The servers that the settings name, with their keys.


def upstreams(settings: tuple[UpstreamSettings, ...]) -> list[Upstream]:
    """The servers that the settings name, each with its key where that is in a variable."""
    return [
        Upstream(
            one.name, one.base_url, one.models, one.dialects, _key(one), one.paths, one.append_v1
        )
        for one in settings
    ]


def _key(upstream: UpstreamSettings) -> str:
    if upstream.key in (PASSED, STORED):
        return upstream.key
    found = os.environ.get(upstream.key, "").strip()
    if not found:
        raise InvalidSetting(
            f"The upstream {upstream.name!r} takes its key from {upstream.key}, which is not set.",
            f"Set the environment variable {upstream.key}, or another `key` in serve.upstreams.",
        )
    return found


_LAST: Final = 5.0
"""Seconds for requests that were broken off to say so in the log."""
_CONNECTIONS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=256)


class Reporter(Count, Protocol):
    """Knows whoever asks an offload process, and tells the main process what is counted there."""

    async def caller_of(self, request: Request) -> Caller:
        """Who asks."""
        ...

    def charge(self, caller: Caller, used: Usage, cost: float | None) -> None:
        """Tell what an answer used."""
        ...

    def answer_given(self, shared: list[Any]) -> None:
        """Tell what an answer is known by."""
        ...


class Service:
    """What routes work with, at `app.state.service`; it is open while it is entered."""

    def __init__(  # noqa: PLR0913 - two are needed, the others are choices
        self,
        settings: Settings,
        store: Store,
        address: str = "memory:",
        *,
        local: bool = True,
        worker: bool = True,
        client: httpx2.AsyncClient | None = None,
        offloaded: Reporter | None = None,
    ) -> None:
        """Put it together; nothing is opened yet.

        Args:
            settings: What applies.
            store: Where everything is kept; it is opened and closed here.
            address: The store's address.
            local: Whether only this machine reaches it: then it needs no keys until one is made.
            worker: Whether it makes folds itself where the store is on a server.
            client: Asks the upstreams; tests give one.
            offloaded: This is an offload process: whoever asks was checked, and is charged, there.
        """
        self.settings = settings
        self.store = store
        self.local = local
        self.draining = asyncio.Event()
        """Is set when the service is about to stop: what goes on without end must end."""
        self.traffic = Traffic()
        self.tasks: set[asyncio.Task[Any]] = set()
        """What goes on after its request was answered: folds that somebody asked for."""
        times = settings.serve.times
        self.guard = StoreGuard(write_probe(store.log(TENANT)), times.store)
        guarded = GuardedStore(store, self.guard)
        self.measuring = Measuring(
            lambda: self.traffic.under_way,
            lambda: self.sessions.pool.counts,
            store_available=lambda: self.guard.available,
        )
        self.keyring = keyring_of(guarded)
        self.vault = Vault(self.keyring, Sealing.from_environment())
        self.limits = Limits(settings.serve.limits)
        self.quotas = quotas_of(guarded, self.keyring, settings.serve.limits)
        self.reaching = Reaching(guarded.log(TENANT))
        self._address = address
        self._worker = worker
        self._client = client or _client(settings.serve.times)
        self._upstreams = Upstreams(
            upstreams(settings.serve.upstreams), self._client, self.vault.key_of
        )
        self.offload: Offload | None = None
        processes = settings.serve.offload_processes
        if offloaded is None and client is None and processes and is_shared(address):
            self.offload = Offload(
                settings,
                address,
                self._reported,
                worker=worker,
                max_body=settings.serve.sizes.gateway,
            )
            self._worker = False  # folds read long sessions: the first offload process makes them
        self._spending = Spending(self.quotas.check, self._spent, self.keyring.current)
        engine = engine_of(address, store, settings, self._upstreams, self._spending)
        self.sessions = GatewaySessions(
            guarded,
            settings.profile,
            lambda log: GuardedEngine(engine(log), self.guard),
            max_idle=settings.serve.open_sessions,
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
                offloaded or self.measuring,
                lambda: self.guard.available,
                lambda: self.guard.available_since,
                self.guard.recovered,
            ),
            large=self.offload,
            may_use=self._may_use,
            share=offloaded.answer_given if offloaded else None,
            bounds=Bounds(settings.serve.sizes.items, settings.serve.sizes.objects),
        )
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._client.aclose)
            await stack.enter_async_context(self.store)
            stack.push_async_callback(self.guard.close)
            await self.keyring.look()
            stack.push_async_callback(self.quotas.close)
            await self.quotas.open()
            if self._worker:
                here = (self._address, self.store, self.settings, self._upstreams)
                await stack.enter_async_context(working(*here, self._spending))
            if self.offload is not None:
                stack.push_async_callback(self.offload.close)
                self.offload.open()
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
        await self.traffic.ended(_LAST)
        await self._stack.aclose()

    def charge(self, caller: Caller, usage: Usage, cost: float | None = None) -> None:
        """Count what an answer used, and cost where that is known."""
        self.limits.used(caller, usage.input + usage.output)
        self._spent(caller.tenant, usage, cost)

    async def _may_use(self, caller: Caller, origin: Origin) -> bool:
        """Whether a caller may name a session: it is its own, or was handed over to it."""
        if not caller.key or caller.may("admin"):
            return True
        if not caller.stale:
            await self.keyring.current()
        handed_over = self.keyring.owner(caller.tenant, origin.first_entry)
        return caller.key == (handed_over or origin.owner)

    def _reported(self, name: str, given: list[Any]) -> None:
        """An offload process tells what is counted here."""
        if name == "charge":
            tenant, key, used, cost = given
            self.charge(Caller(tenant, key, frozenset()), Usage(*used), cost)
        elif name == "answer_given":
            self.gateway.take_answer(given[0])
        else:
            getattr(self.measuring, name)(*given)

    def _spent(self, tenant: str, usage: Usage, cost: float | None) -> None:
        self.quotas.spent(tenant, usage, cost)
        self.measuring.used(usage.input, usage.output)


def _client(times: TimeSettings) -> httpx2.AsyncClient:
    timeout = httpx2.Timeout(times.upstream, connect=times.connect, pool=times.connect)
    return upstream_stream.client(timeout, _CONNECTIONS)
