"""The outermost layer of the service: every request comes and goes through here."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, MutableMapping
from typing import Any, ClassVar, Final, cast

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from refold.errors import (
    Draining,
    HeadersTooLarge,
    InvalidFraming,
    NoWebSockets,
    RequestTooDeep,
    RequestTooLarge,
    RequestTooSlow,
    ServiceError,
)
from refold.gateway.upstream import V1, BrokenOff
from refold.service.content_coding import BodyDecoder, decoder_for
from refold.service.keys import without_secrets
from refold.service.metrics import Measuring
from refold.service.uvicorn_compat import request_is_under_way
from refold.settings.serve import Serve, TimeSettings
from refold.wire.splice import JsonTooLarge, bounded_json

# Reading what a client sends, no more of it and no longer than it may take.

_BETWEEN = len(b": \r\n")
_PIECE = 256 * 1024
"""Bytes of a packed body that are unpacked at once; then others have their turn."""


class Intake:
    """Receives a request's body; once it has refused one, it keeps saying why."""

    def __init__(self, receive: Receive, most: int, times: TimeSettings, max_headers: int) -> None:
        self._receive = receive
        self._most = most
        self._max_headers = max_headers
        self._times = times
        self._read = 0
        self._whole = False
        self._until: float | None = None
        self._decoder: BodyDecoder | None = None
        self._decoded = 0
        self.refused: ServiceError | None = None

    def check(self, scope: Scope) -> None:
        """Refuse what the headers alone give reason to, before any of the body is read.

        A packed body is given unpacked: then the headers that speak of its packing are gone.
        """
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        for name, value in headers:
            if name == b"content-length" and value.isdigit() and int(value[:20]) > self._most:
                self.refused = self._too_large()
        try:
            check_header_size(scope, self._max_headers)
            check_framing(scope)
            self._decoder = decoder_for(headers)
        except ServiceError as error:
            self.refused = error
        if self._decoder is not None:
            packing = (b"content-encoding", b"content-length")
            scope["headers"] = [one for one in headers if one[0] not in packing]

    async def __call__(self) -> Message:
        """The next piece; when the body is whole, whatever comes from the server then."""
        if self._decoder is None:
            return await self._next()
        try:
            return await self._unpacked(self._decoder)
        except ServiceError as error:
            self.refused = error
            raise

    async def _unpacked(self, decoder: BodyDecoder) -> Message:
        """The next piece of a packed body. The limit is of what comes out, as it comes out."""
        while not (piece := decoder.read(_PIECE)):
            if self._whole:
                decoder.finish()
                self._decoder = None
                return {"type": "http.request", "body": b"", "more_body": False}
            message = await self._next()
            if message["type"] != "http.request":
                self._decoder = None
                return message
            decoder.feed(message.get("body", b""))
        self._decoded += len(piece)
        if self._decoded > self._most:
            raise self._too_large()
        await asyncio.sleep(0)
        return {"type": "http.request", "body": piece, "more_body": True}

    async def _next(self) -> Message:
        if self._whole:
            return await self._receive()
        if self.refused is not None:
            raise self.refused
        message = await self._in_time()
        if message["type"] != "http.request":
            self._whole = True
            return message
        self._read += len(message.get("body", b""))
        if self._read > self._most:
            self.refused = self._too_large()
            raise self.refused
        self._whole = not message.get("more_body", False)
        return message

    async def drop(self, most: int, seconds: float) -> None:
        """Let what still comes go nowhere: who is still sending would not hear the answer."""
        try:
            async with asyncio.timeout(seconds):
                while most > 0 and not self._whole:
                    message = await self._receive()
                    most -= len(message.get("body", b""))
                    self._whole = not message.get("more_body", False)
        except TimeoutError:
            return

    async def _in_time(self) -> Message:
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._times.body
        try:
            async with asyncio.timeout(max(0.0, min(self._times.pause, self._until - now))):
                return await self._receive()
        except TimeoutError:
            self.refused = RequestTooSlow("The body of the request did not come in time.")
            raise self.refused from None

    def _too_large(self) -> RequestTooLarge:
        return RequestTooLarge(f"The body of the request has more than {self._most:,} bytes.")


def check_header_size(scope: Scope, max_bytes: int) -> None:
    """Refuse headers that came whole before the server counted them.

    It counts what it has read so far, and reads a quarter of a megabyte at once.

    Raises:
        HeadersTooLarge: The request line and the headers are larger than `max_bytes`.
    """
    line = len(scope["method"]) + len(scope.get("raw_path", b"")) + len(scope["query_string"])
    size = line + sum(len(name) + len(value) + _BETWEEN for name, value in scope["headers"])
    if size > max_bytes:
        raise HeadersTooLarge(f"The headers of the request have more than {max_bytes:,} bytes.")


def check_framing(scope: Scope) -> None:
    """Refuse a body whose end is not certain, and another protocol than HTTP.

    Raises:
        InvalidFraming: A server before us may have taken the body to end elsewhere.
        NoWebSockets: The client asks for one.
    """
    names = {name for name, _ in scope["headers"]}
    if b"transfer-encoding" in names:
        if b"content-length" in names:
            raise InvalidFraming("The request has both Content-Length and Transfer-Encoding.")
        if scope.get("http_version") == "1.0":
            raise InvalidFraming("The request has Transfer-Encoding, which HTTP/1.0 has not.")
    upgrades = (value for name, value in scope["headers"] if name == b"upgrade")
    if any(b"websocket" in value.lower() for value in upgrades):
        raise NoWebSockets("The service does not speak WebSocket.")


class WholeIntake:
    """Gives the body in one piece, once it is known that it is not nested beyond measure."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._given = False

    async def __call__(self) -> Message:
        """The whole body; after it, whatever comes from the server then."""
        if self._given:
            return await self._intake()
        pieces: list[bytes] = []
        more = True
        while more:
            message = await self._intake()
            if message["type"] != "http.request":
                return message
            pieces.append(message.get("body", b""))
            more = message.get("more_body", False)
        self._given = True
        body = b"".join(pieces)
        if is_too_deep(body):
            self._intake.refused = RequestTooDeep("The body of the request is nested too deep.")
            raise self._intake.refused
        return {"type": "http.request", "body": body, "more_body": False}


def is_too_deep(body: bytes) -> bool:
    """Whether it is JSON that no reader should follow to its end."""
    try:
        bounded_json(body)
    except JsonTooLarge:
        return True
    except ValueError:
        return False
    return False


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


# Connections that are too slow: whoever sends no headers, or takes nothing of what is sent.


class _Patience(asyncio.Protocol):
    """Closes a connection whose client keeps it waiting; it stands before the server's own."""

    for_headers: ClassVar[float]
    for_reader: ClassVar[float]
    most: ClassVar[int]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Headers are waited for from now on."""
        self._transport = cast("asyncio.Transport", transport)
        self._headers: asyncio.TimerHandle | None = None
        self._reader: asyncio.TimerHandle | None = None
        self._came = 0
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """Either a request is under way now, or its headers are not whole yet."""
        super().data_received(data)
        if request_is_under_way(self):
            self._came = 0
            self._headers = _stopped(self._headers)
            return
        self._came += len(data)
        if self._came > self.most:
            self._transport.close()
        elif self._headers is None:
            self._wait_for_headers()

    def pause_writing(self) -> None:
        """The client does not take what it was sent."""
        super().pause_writing()
        _stopped(self._reader)
        loop = asyncio.get_running_loop()
        self._reader = loop.call_later(self.for_reader, self._transport.abort)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        self._reader = _stopped(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._headers = _stopped(self._headers)
        self._reader = _stopped(self._reader)
        super().connection_lost(exc)

    def _wait_for_headers(self) -> None:
        loop = asyncio.get_running_loop()
        self._headers = loop.call_later(self.for_headers, self._transport.close)


def patient(settings: Serve) -> type[asyncio.Protocol]:
    """The server's protocol, with an end to its patience."""
    values = {
        "for_headers": settings.times.headers,
        "for_reader": settings.times.reader,
        "most": settings.sizes.headers,
    }
    return type("PatientProtocol", (_Patience, AutoHTTPProtocol), values)


def _stopped(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
