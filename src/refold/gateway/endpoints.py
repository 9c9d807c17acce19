"""The gateway's addresses."""

from typing import Final

from starlette.routing import Route

from refold.gateway.dialects import DIALECTS
from refold.gateway.gateway import Gateway

_OTHERS: Final = ["GET", "POST", "DELETE", "PUT", "PATCH"]


def routes(gateway: Gateway) -> list[Route]:
    """The formats' own addresses, and all others beneath `/v1`, which are passed on as they are."""
    governed = [Route(path, gateway.ask, methods=["POST"]) for path in DIALECTS]
    return [*governed, Route("/v1/{path:path}", gateway.pass_on, methods=_OTHERS)]
