"""The application: gateway, API and health on one port."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from refold import __version__
from refold.errors import InvalidInput, RefoldError
from refold.gateway import gateway
from refold.log import Store
from refold.service import metrics
from refold.service.api.router import router
from refold.service.middleware import ServiceMiddleware
from refold.service.problem import SAFE, refused_at
from refold.service.service import Service
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
        settings: The settings that apply.
        store: The store; by default the one at `address`.
        address: The store's address.
        local: Whether only this machine reaches it: then it needs no keys until one is made.
        worker: Whether it makes folds itself if the store is on a server.
    """
    if store is None:
        journal = settings.profile.store.forget_journal
        store = open_store(address, forget_journal=journal)
    service = Service(settings, store, address, local=local, worker=worker)
    return application(service)


def application(service: Service, extra_routes: Iterable[BaseRoute] = ()) -> FastAPI:
    """The application of a service; its lifespan is the service's."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with service:
            yield

    app = FastAPI(
        title="Refold",
        version=__version__,
        summary="Sessions of agents: kept whole, seen as models see them, folded and explained.",
        openapi_url=_OPENAPI,
        docs_url=None,  # those pages would load scripts from other sites
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service = service
    prefixes = service.gateway.prefixes
    health = (("/healthz", _healthz), ("/readyz", _readyz), ("/metrics", _metrics))
    health_routes = [Route(path, endpoint, methods=["GET"]) for path, endpoint in health]
    # The gateway's routes come first: agents call them all the time, and the API has many.
    app.router.routes.extend([*gateway.routes(service.gateway), *health_routes, *extra_routes])
    app.include_router(router)
    refuse = partial(refused_at, prefixes=prefixes)

    async def answer(request: Request, error: Any) -> Response:  # noqa: ANN401 - as Starlette has it
        if isinstance(error, RequestValidationError):
            error = InvalidInput("The request is not valid.", f"{_OPENAPI} says how.")
        return refuse(request.scope, error)

    for kind in (RefoldError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, answer)
    app.add_middleware(
        ServiceMiddleware,
        settings=service.settings.serve,
        refuse=refuse,
        metrics=service.metrics,
        traffic=service.traffic,
        prefixes=prefixes,
    )
    return app


async def _healthz(request: Request) -> Response:
    """The process runs; reports what is known about its store, without asking it."""
    service: Service = request.app.state.service
    store = "available" if service.guard.available else "unavailable"
    return JSONResponse({"status": "ok", "store": store, **_folds(service)}, headers=dict(SAFE))


async def _readyz(request: Request) -> Response:
    """The process takes requests: its store answers, and it is not about to stop.

    With `fail_open` it takes requests without its store, too: it passes them on unmanaged.
    """
    service: Service = request.app.state.service
    if service.draining.is_set():
        return _unready("draining")
    if await service.readiness.answers():
        ready = {"status": "ready", "store": "available", **_folds(service)}
        return JSONResponse(ready, headers=dict(SAFE))
    if not service.settings.serve.fail_open:
        return _unready("the store does not answer")
    return JSONResponse({"status": "ready", "store": "unavailable"}, headers=dict(SAFE))


def _folds(service: Service) -> dict[str, str]:
    """What is wrong with folds, if something is: requests are answered meanwhile."""
    problem = service.workers.problem
    return {"folds": problem} if problem else {}


def _unready(why: str) -> Response:
    return JSONResponse({"status": why}, 503, headers={**SAFE, "Retry-After": "1"})


async def _metrics(request: Request) -> Response:
    service: Service = request.app.state.service
    public = service.settings.serve.metrics or (service.local and not service.keyring.any)
    if not public or not metrics.has_prometheus():
        raise HTTPException(404)
    text, kind = metrics.render()
    return Response(text, headers=dict(SAFE), media_type=kind)
