"""Reading what a client sends, no more of it and no longer than it may take."""

import asyncio
import time

from starlette.types import Message, Receive, Scope

from refold.errors import (
    HeadersTooLarge,
    InvalidFraming,
    NoWebSockets,
    RequestTooDeep,
    RequestTooLarge,
    RequestTooSlow,
    ServiceError,
)
from refold.gateway.dialects.bounded_json import TooMuch, value_of
from refold.service.content_coding import BodyDecoder, decoder_for
from refold.settings.serve import TimeSettings

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
        value_of(body)
    except TooMuch:
        return True
    except ValueError:
        return False
    return False
