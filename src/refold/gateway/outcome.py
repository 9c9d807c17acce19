"""What an access log says of a request: where it went, what it used, and why it failed.

Nothing of its content, and no secret, is in here.
"""

import errno
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import httpx2

from refold.models.catalog import Usage

_STATE: Final = "outcome"
_SERVER_ERRORS: Final = range(500, 600)
_REFUSED: Final = f"[Errno {errno.ECONNREFUSED}]"


class InvalidAnswer(httpx2.RemoteProtocolError):
    """An upstream's answer that cannot be passed on; its words are for clients."""


class Failure(NamedTuple):
    """An error of a request: a code that stays the same, and words."""

    code: str
    reason: str


class UpstreamFailure(NamedTuple):
    """Why an upstream gave no answer, or no whole one."""

    code: str
    what: str
    """A predicate: what the upstream did."""


@dataclass(slots=True)
class Outcome:
    """Filled in while a request is answered; empty where nothing is known."""

    session: str = ""
    model: str = ""
    upstream: str = ""
    usage: Usage | None = None
    estimated: bool = False
    """Whether the provider did not report the usage."""
    failure: Failure | None = None

    @classmethod
    def of(cls, scope: MutableMapping[str, Any]) -> "Outcome":
        """The outcome of the request with this ASGI scope."""
        return scope.setdefault("state", {}).setdefault(_STATE, cls())

    def fail(self, code: str, reason: str) -> None:
        """Note why it failed; the first reason counts."""
        self.failure = self.failure or Failure(code, reason)

    def fail_upstream(self, error: BaseException | None) -> None:
        code, what = upstream_failure(error)
        self.fail(code, f"The upstream {what}.")

    def fail_in_stream(self) -> None:
        self.fail("upstream-error", "The upstream sent an error in its stream.")

    def answered(self, upstream: str, status: int) -> None:
        """Note which upstream answered, and whether that is itself the failure."""
        self.upstream = upstream
        self.failure = None
        if status in _SERVER_ERRORS:
            self.fail("upstream-error", f"The upstream answered {status}.")

    def update(self, values: Mapping[str, Any]) -> None:
        """Take the values of the same request's outcome in another process."""
        usage, failure = values["usage"], values["failure"]
        self.session, self.model = values["session"], values["model"]
        self.upstream, self.estimated = values["upstream"], values["estimated"]
        self.usage = Usage(*usage) if usage else None
        self.failure = Failure(*failure) if failure else None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def upstream_failure(error: BaseException | None) -> UpstreamFailure:
    if isinstance(error, InvalidAnswer):
        return UpstreamFailure("upstream-invalid-answer", str(error))
    if isinstance(error, httpx2.ConnectError):
        causes = [*_causes(error)]
        for is_cause, failure in _CONNECT_FAILURES:
            if any(map(is_cause, causes)):
                return failure
        return UpstreamFailure("upstream-unreachable", "cannot be reached")
    kinds = (failure for kind, failure in _FAILURES.items() if isinstance(error, kind))
    return next(kinds, UpstreamFailure("upstream-broke-off", "broke the connection off"))


def _is_refusal(error: BaseException) -> bool:
    # If a host has several addresses, asyncio joins their errors in a text.
    return isinstance(error, ConnectionRefusedError) or _REFUSED in str(error)


_FAILURES: Final[Mapping[type[httpx2.TransportError], UpstreamFailure]] = {
    httpx2.ConnectTimeout: UpstreamFailure(
        "upstream-connect-timeout", "did not accept a connection in time"
    ),
    httpx2.TimeoutException: UpstreamFailure("upstream-timeout", "sent nothing for too long"),
}
_CONNECT_FAILURES: Final[Sequence[tuple[Callable[[BaseException], bool], UpstreamFailure]]] = (
    (_is_refusal, UpstreamFailure("upstream-refused", "refused the connection")),
    (
        lambda error: isinstance(error, socket.gaierror),
        UpstreamFailure("upstream-unknown-host", "has a host name that cannot be resolved"),
    ),
    (
        lambda error: isinstance(error, ssl.SSLError),
        UpstreamFailure("upstream-tls", "failed the TLS handshake"),
    ),
)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
