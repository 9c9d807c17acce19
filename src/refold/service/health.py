"""Whether the process lives, whether it may be asked, and what it measures."""

import asyncio
import time
from typing import TYPE_CHECKING, Final, cast

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from refold.errors import RefoldError, SessionForgotten, SessionNotFound
from refold.log import Log
from refold.service import prometheus
from refold.service.problem import SAFE

if TYPE_CHECKING:
    from refold.service.serving import Service

_FRESH: Final = 1.0
_SECONDS: Final = 2.0
_SESSION: Final = "keys"


class Reaching:
    """Whether the store answers; asked once a second at most, however many want to know."""

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
            async with asyncio.timeout(_SECONDS):
                await self._log.head(_SESSION)
        except (SessionNotFound, SessionForgotten):
            return True
        except (RefoldError, OSError, TimeoutError):
            return False
        return True


async def healthz(_: Request) -> Response:
    """The process lives."""
    return JSONResponse({"status": "ok"}, headers=dict(SAFE))


async def readyz(request: Request) -> Response:
    """The process may be asked: its store answers, and it is not about to stop."""
    service = cast("Service", request.app.state.service)
    if service.draining.is_set():
        return _unready("draining")
    if not await service.reaching.answers():
        return _unready("the store does not answer")
    return JSONResponse({"status": "ready"}, headers=dict(SAFE))


async def metrics(request: Request) -> Response:
    """What the process measures, where everybody may read that."""
    service = cast("Service", request.app.state.service)
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
