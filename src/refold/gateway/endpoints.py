"""The gateway's addresses."""

from collections.abc import Callable, Collection, MutableMapping
from typing import Any, Final

from starlette.routing import Match, Route

from refold.gateway.dialects import DIALECTS
from refold.gateway.gateway import TARGET, Gateway
from refold.gateway.passed_paths import target_of

_OTHERS: Final = ["GET", "POST", "DELETE", "PUT", "PATCH"]


class RawRoute(Route):
    """A route that is matched by the path as it came, and never by what that decodes to."""

    def __init__(
        self,
        endpoint: Callable[..., Any],
        prefixes: Collection[str],
        methods: Collection[str],
        paths: Collection[str] | None = None,
    ) -> None:
        """Make a route for these paths beneath `/v1`, or for all of them, under each prefix."""
        super().__init__("/v1/{path:path}", endpoint, methods=[*methods])
        self._prefixes = prefixes
        self._paths = paths

    def matches(self, scope: MutableMapping[str, Any]) -> tuple[Match, MutableMapping[str, Any]]:
        """Whether the request is this route's; the target then goes with it."""
        target = target_of(scope, self._prefixes) if scope["type"] == "http" else None
        if target is None or (self._paths is not None and target.path not in self._paths):
            return Match.NONE, {}
        child: dict[str, Any] = {"endpoint": self.endpoint, "path_params": {}, TARGET: target}
        served = not self.methods or scope["method"] in self.methods
        return (Match.FULL if served else Match.PARTIAL), child


def routes(gateway: Gateway) -> list[Route]:
    """The formats' own addresses, and all others beneath `/v1`, which are passed on as they are."""
    prefixes = gateway.prefixes
    return [
        RawRoute(gateway.ask, prefixes, ["POST"], DIALECTS),
        RawRoute(gateway.pass_on, prefixes, _OTHERS),
    ]
