"""The application: gateway, API and health, on one port."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from refold import __version__
from refold.errors import InvalidInput, RefoldError
from refold.gateway import endpoints
from refold.log import Store
from refold.service import health
from refold.service.api.routes import router
from refold.service.front import Front
from refold.service.refusing import refused_at
from refold.service.serving import Service
from refold.settings import Settings
from refold.stores import open_store

_OPENAPI: Final = "/api/v1/openapi.json"


def app(
    settings: Settings,
    *,
    store: Store | None = None,
    address: str = "memory:",
    local: bool = True,
    worker: bool = True,
) -> FastAPI:
    """The application, for any ASGI server that runs its lifespan.

    Args:
        settings: What applies.
        store: Where everything is kept; else the store at `address`.
        address: The store's address.
        local: Whether only this machine reaches it: then it needs no keys until one is made.
        worker: Whether it makes folds itself where the store is on a server.
    """
    service = Service(settings, store or open_store(address), address, local=local, worker=worker)
    return application(service)


def application(service: Service, more: Iterable[BaseRoute] = ()) -> FastAPI:
    """The application of a service; its lifespan is the service's."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with service:
            yield

    made = FastAPI(
        title="Refold",
        version=__version__,
        summary="Sessions of agents: kept whole, seen as models see them, folded and explained.",
        openapi_url=_OPENAPI,
        docs_url=None,  # those pages would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    made.state.service = service
    prefixes = service.gateway.prefixes
    # The gateway's come first: agents ask it all the time, and the API has many routes to try.
    made.router.routes.extend([*endpoints.routes(service.gateway), *health.routes(), *more])
    made.include_router(router)
    refuse = partial(refused_at, prefixes=prefixes)

    async def refused(request: Request, error: Any) -> Response:  # noqa: ANN401 - as Starlette has it
        """The answer to a request that ended with an error."""
        if isinstance(error, RequestValidationError):
            error = InvalidInput("The request is not as it must be.", f"{_OPENAPI} says how.")
        # The request's URL would be parsed with whatever its Host header says.
        return refuse(request.scope["path"], error)

    for kind in (RefoldError, HTTPException, RequestValidationError):
        made.add_exception_handler(kind, refused)
    made.add_middleware(
        Front,
        settings=service.settings.serve,
        refuse=refuse,
        measuring=service.measuring,
        traffic=service.traffic,
        prefixes=prefixes,
    )
    return made
