"""The outermost layer of the service: every request comes and goes through here."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, MutableMapping
from typing import Any, Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from refold.errors import Draining
from refold.gateway.passed_paths import V1
from refold.gateway.streamed import BrokenOff
from refold.service.intake import Intake, WholeIntake
from refold.service.measuring import Measuring
from refold.service.secrets import without_secrets
from refold.settings.serve import Serve

ACCESS: Final = logging.getLogger("refold.access")
_LOGGER: Final = logging.getLogger("refold.service")
API: Final = "/api/"
_LEFT: Final = 499  # as others write it of a client that did not wait
_FAULT: Final = 500
_DROPPED: Final = 64 << 20
_SECONDS: Final = 2.0
_LONGEST: Final = 200
_LONGEST_METHOD: Final = 20

Refuse = Callable[[str, Exception], Response]
"""The answer to a request to a path that ended with an error."""


class Front:
    """Bounds what comes in, sees that an answer goes out, and writes the access log."""

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        app: ASGIApp,
        *,
        settings: Serve,
        refuse: Refuse,
        measuring: Measuring,
        traffic: "Traffic",
        prefixes: Collection[str] = (V1,),
    ) -> None:
        self._app = app
        self._prefixes = prefixes
        self._settings = settings
        self._refuse = refuse
        self._measuring = measuring
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: MutableMapping[str, Any] = scope.setdefault("state", {})
        path: str = scope["path"]
        sizes = self._settings.sizes
        kind = kind_of(path, self._prefixes)
        most = sizes.gateway if kind == "gateway" else sizes.api
        intake = Intake(receive, most, self._settings.times, sizes.headers)
        answer = _Answer(send, intake)
        began = time.perf_counter()
        self._traffic.begin()
        try:
            await self._answered(scope, intake, answer)
        finally:
            slot = state.pop("slot", None)
            if slot is not None:
                slot.release()
            self._traffic.end()
            seconds = time.perf_counter() - began
            self._measuring.answered(kind, answer.status, seconds)
            if ACCESS.isEnabledFor(logging.INFO):
                _log(scope, answer.status, seconds)

    async def _answered(self, scope: Scope, intake: Intake, answer: "_Answer") -> None:
        intake.check(scope)
        whole = scope["path"].startswith(API)
        try:
            if intake.refused is None:
                await self._app(scope, WholeIntake(intake) if whole else intake, answer)
        except ClientDisconnect:
            answer.status = _LEFT
            return
        except asyncio.CancelledError:
            if answer.started:
                raise
            # The server ends its tasks when it has waited long enough: this is the last of one.
            await self._told(scope, Draining("The service stopped before it had answered."), answer)
            return
        except BrokenOff as error:
            # The connection is closed: nobody takes it for a whole answer.
            _LOGGER.warning("An upstream broke its answer off: %s", without_secrets(str(error)))
        except Exception as error:
            if intake.refused is None:
                if answer.started:
                    raise  # the connection is closed, so that nobody takes it for a whole answer
                await self._told(scope, error, answer)
                return
        if intake.refused is not None and not answer.started:
            await self._told(scope, intake.refused, answer, intake)

    async def _told(
        self, scope: Scope, error: Exception, answer: "_Answer", intake: Intake | None = None
    ) -> None:
        response = self._refuse(scope["path"], error)
        # Whoever sends `Upgrade` must name it in `Connection`.
        closing = b"close, upgrade" if "upgrade" in response.headers else b"close"
        headers = [*response.raw_headers, (b"connection", closing)]
        start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
        await answer.surely(start)
        body = {"type": "http.response.body", "body": bytes(response.body), "more_body": True}
        await answer.surely(body)
        if intake is not None:
            await intake.drop(_DROPPED, _SECONDS)
        await answer.surely({"type": "http.response.body", "body": b"", "more_body": False})


class _Answer:
    """Sends, and knows what was sent. Once a body was refused, only the refusal is."""

    __slots__ = ("_intake", "_send", "started", "status")

    def __init__(self, send: Send, intake: Intake) -> None:
        self._send = send
        self._intake = intake
        self.started = False
        self.status = _FAULT

    async def __call__(self, message: Message) -> None:
        if not self.started:
            if self._intake.refused is not None:
                return
            self.started = True
            self.status = message["status"]
        await self._send(message)

    async def surely(self, message: Message) -> None:
        """Send this, whatever was refused."""
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
        await self._send(message)


class Traffic:
    """How many requests are under way."""

    def __init__(self) -> None:
        self.under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self) -> None:
        """One more."""
        self.under_way += 1
        self._idle.clear()

    def end(self) -> None:
        """One less."""
        self.under_way -= 1
        if not self.under_way:
            self._idle.set()

    async def ended(self, seconds: float) -> bool:
        """Wait until none is; whether that was so in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True


def kind_of(path: str, prefixes: Collection[str]) -> str:
    """What a path is for, in few words: a label."""
    if any(path.startswith(f"{prefix}/") for prefix in prefixes):
        return "gateway"
    return "api" if path.startswith(API) else "other"


def _log(scope: Scope, status: int, seconds: float) -> None:
    """One line, without what may be secret: no query, no header, no body."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    path = without_secrets(raw.partition(b"?")[0].decode("ascii", "backslashreplace"))
    caller = scope["state"].get("caller")
    who = f"{caller.tenant} {caller.key or '-'}" if caller else "- -"
    client = (scope.get("client") or ("-",))[0]
    method, path = _clipped(scope["method"], _LONGEST_METHOD), _clipped(path, _LONGEST)
    ACCESS.info("%s %s %s %d %.0fms %s", client, method, path, status, seconds * 1e3, who)


def _clipped(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[:max_chars]}…"
