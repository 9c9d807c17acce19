"""The store: what is held for each tenant, until it is closed."""

from refold.errors import StoreClosed
from refold.log.author import Clock, wall_clock
from refold.log.names import check_name
from refold.log.protocol import DEFAULT_TENANT, Store
from refold.stores.memory.held import Tenant
from refold.stores.memory.log import MemoryLog


class MemoryStore(Store):
    """Keeps logs in memory, for tests and for conversations that need not be kept."""

    def __init__(self, *, clock: Clock = wall_clock) -> None:
        self._clock = clock
        self._tenants: dict[str, Tenant] = {}
        self._closed = False

    def log(self, tenant: str = DEFAULT_TENANT) -> MemoryLog:
        """The log of one tenant."""
        check_name(tenant, "tenant")
        return MemoryLog(tenant, self.held, self._clock)

    def held(self, tenant: str) -> Tenant:
        """What is kept for a tenant."""
        if self._closed:
            raise StoreClosed("The store in memory is closed, and what it held is gone.")
        if tenant not in self._tenants:
            self._tenants[tenant] = Tenant()
        return self._tenants[tenant]

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Let go of everything."""
        self._tenants.clear()
        self._closed = True
