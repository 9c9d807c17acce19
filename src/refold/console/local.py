"""The console of one person's store: on this machine, for reading, without a gateway or a model."""

import asyncio
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, cast

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from refold.console.access import Access
from refold.console.app import add_console
from refold.console.pages import error_page
from refold.errors import InvalidInput, RefoldError
from refold.log import DEFAULT_TENANT, Locks, Log, Store
from refold.service.callers import Limits
from refold.service.metrics import ServiceMetrics
from refold.service.middleware import ServiceMiddleware, Traffic
from refold.service.problem import refused_at
from refold.settings import Settings
from refold.stores import MemoryStore

_WRITES: Final = frozenset({"append", "fork", "forget", "expire"})
_LAST_SECONDS: Final = 2.0


class ReadOnlyLog:
    """A log that nothing is written to."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.tenant = log.tenant

    def locks(self, purpose: str = "fold") -> Locks:
        """Locks of this process: whatever writes nothing need not keep others out."""
        return MemoryStore().log(self.tenant).locks(purpose)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the log has
        if name in _WRITES:
            raise InvalidInput("This console only reads.", "Use `refold serve` to change sessions.")
        return getattr(self._log, name)


class ReadOnlyStore:
    """A store that nothing is written to."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def log(self, tenant: str = DEFAULT_TENANT) -> Log:
        return cast("Log", ReadOnlyLog(self._store.log(tenant)))

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class LocalConsole:
    """What the pages need, at `app.state.service`; the store is open while it is entered."""

    keyring: None = None
    """Who has the store's file needs no key."""
    local = True
    read_only = True

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings = settings
        self.store: Store = ReadOnlyStore(store)
        self.limits = Limits(settings.serve.limits)
        self.draining = asyncio.Event()
        self.traffic = Traffic()
        self.metrics = ServiceMetrics(lambda: self.traffic.under_way)

    async def __aenter__(self) -> Self:
        await self.store.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.draining.set()
        await self.traffic.wait_until_idle(_LAST_SECONDS)
        await self.store.close()


def application(state: LocalConsole, access: Access) -> FastAPI:
    """The console alone: no gateway, no API."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.service = state
    add_console(app, access)

    async def answer(request: Request, error: Any) -> Response:  # noqa: ANN401 - as Starlette has it
        return error_page(request, error)

    for kind in (RefoldError, HTTPException):
        app.add_exception_handler(kind, answer)
    app.add_middleware(
        ServiceMiddleware,
        settings=state.settings.serve,
        refuse=partial(refused_at, prefixes=()),
        metrics=state.metrics,
        traffic=state.traffic,
        prefixes=(),
    )
    return app
