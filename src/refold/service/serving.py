"""The service: everything that its routes share, from when it begins until it has ended."""

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Self

import httpx2

from refold.gateway import connecting
from refold.gateway.gateway import Gateway
from refold.gateway.keeping import Keeping
from refold.gateway.upstream import Upstreams
from refold.log import Store
from refold.models.spending import Usage
from refold.service.callers import Caller, gateway_caller
from refold.service.engines import engine_of, working
from refold.service.front import Traffic
from refold.service.health import Reaching
from refold.service.journal import TENANT
from refold.service.keyring import keyring_of
from refold.service.limits import Limits
from refold.service.measuring import Measuring
from refold.service.quotas import quotas_of
from refold.service.refusing import refused
from refold.service.sealing import Sealing
from refold.service.spending import Spending
from refold.service.upstreams import upstreams
from refold.service.vault import Vault
from refold.settings import Settings
from refold.settings.serve import TimeSettings

_LAST: Final = 5.0
"""Seconds for requests that were broken off to say so in the log."""
_CONNECTIONS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=256)


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
    ) -> None:
        """Put it together; nothing is opened yet.

        Args:
            settings: What applies.
            store: Where everything is kept; it is opened and closed here.
            address: The store's address.
            local: Whether only this machine reaches it: then it needs no keys until one is made.
            worker: Whether it makes folds itself where the store is on a server.
            client: Asks the upstreams; tests give one.
        """
        self.settings = settings
        self.store = store
        self.local = local
        self.draining = asyncio.Event()
        """Is set when the service is about to stop: what goes on without end must end."""
        self.traffic = Traffic()
        self.measuring = Measuring(lambda: self.traffic.under_way)
        self.keyring = keyring_of(store)
        self.vault = Vault(self.keyring, Sealing.from_environment())
        self.limits = Limits(settings.serve.limits)
        self.quotas = quotas_of(store, self.keyring, settings.serve.limits)
        self.reaching = Reaching(store.log(TENANT))
        self._address = address
        self._worker = worker
        self._client = client or _client(settings.serve.times)
        self._upstreams = Upstreams(
            upstreams(settings.serve.upstreams), self._client, self.vault.key_of
        )
        self._spending = Spending(self.quotas.check, self._spent, self.keyring.current)
        self.sessions = Keeping(
            store,
            settings.profile,
            engine_of(address, settings, self._upstreams, self._spending),
            most=settings.serve.open_sessions,
        )
        self.gateway = Gateway(
            self.sessions,
            self._upstreams,
            caller_of=gateway_caller,
            refuse=refused,
            charge=self.charge,
            models=settings.models,
        )
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._client.aclose)
            await stack.enter_async_context(self.store)
            await self.keyring.look()
            stack.push_async_callback(self.quotas.close)
            await self.quotas.open()
            if self._worker:
                here = (self._address, self.store, self.settings, self._upstreams)
                await stack.enter_async_context(working(*here, self._spending))
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

    def _spent(self, tenant: str, usage: Usage, cost: float | None) -> None:
        self.quotas.spent(tenant, usage, cost)
        self.measuring.used(usage.input, usage.output)


def _client(times: TimeSettings) -> httpx2.AsyncClient:
    timeout = httpx2.Timeout(times.upstream, connect=times.connect, pool=times.connect)
    return connecting.client(timeout, _CONNECTIONS)
