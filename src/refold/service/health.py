"""Whether the process lives, whether it may be asked, and what it measures."""

import asyncio
import time
from typing import Final, Protocol, cast

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from refold.errors import RefoldError, SessionForgotten, SessionNotFound
from refold.log import Log
from refold.service import metrics as prometheus
from refold.service.keys import Keyring
from refold.service.problem import SAFE
from refold.service.store_guard import StoreGuard
from refold.settings import Settings

_FRESH: Final = 1.0
_SESSION: Final = "keys"


class Reaching:
    """Whether the store answers; asked once a second at most, however many want to know.

    The log has a deadline of its own: see `store_guard`.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._asking = asyncio.Lock()
        self._at = float("-inf")
        self._answers = False

    async def answers(self) -> bool:
        """Whether it does."""
        async with self._asking:
            if time.monotonic() - self._at >= _FRESH:
                self._answers = await self._asked()
                self._at = time.monotonic()
            return self._answers

    async def _asked(self) -> bool:
        try:
            await self._log.head(_SESSION)
        except (SessionNotFound, SessionForgotten):
            return True
        except (RefoldError, OSError):
            return False
        return True


class ServiceState(Protocol):
    """What is asked how it is: the service, at `app.state.service`."""

    keyring: Keyring
    local: bool
    settings: Settings
    draining: asyncio.Event
    guard: StoreGuard
    reaching: Reaching


async def healthz(request: Request) -> Response:
    """The process lives; what is known of its store, which is not asked."""
    service = cast("ServiceState", request.app.state.service)
    store = "available" if service.guard.available else "unavailable"
    return JSONResponse({"status": "ok", "store": store}, headers=dict(SAFE))


async def readyz(request: Request) -> Response:
    """The process may be asked: its store answers, and it is not about to stop.

    With `fail_open` it may be asked without its store, too: it passes requests on.
    """
    service = cast("ServiceState", request.app.state.service)
    if service.draining.is_set():
        return _unready("draining")
    if await service.reaching.answers():
        return JSONResponse({"status": "ready", "store": "available"}, headers=dict(SAFE))
    if not service.settings.serve.fail_open:
        return _unready("the store does not answer")
    return JSONResponse({"status": "ready", "store": "unavailable"}, headers=dict(SAFE))


async def metrics(request: Request) -> Response:
    """What the process measures, where everybody may read that."""
    service = cast("ServiceState", request.app.state.service)
    open_to_all = service.settings.serve.metrics or (service.local and not service.keyring.any)
    if not open_to_all or not prometheus.always_measured():
        raise HTTPException(404)
    text, kind = prometheus.told()
    return Response(text, headers=dict(SAFE), media_type=kind)


def routes() -> list[Route]:
    """Their addresses."""
    return [
        Route("/healthz", healthz, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
    ]


def _unready(why: str) -> Response:
    return JSONResponse({"status": why}, 503, headers={**SAFE, "Retry-After": "1"})
