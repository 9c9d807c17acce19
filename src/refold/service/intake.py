"""Reading what a client sends, no more of it and no longer than it may take."""

import asyncio
import time

from pydantic_core import from_json
from starlette.types import Message, Receive, Scope

from refold.errors import RequestTooDeep, RequestTooLarge, RequestTooSlow, ServiceError
from refold.settings.serve import TimeSettings

_TOO_DEEP = "recursion limit"


class Intake:
    """Receives a request's body; once it has refused one, it keeps saying why."""

    def __init__(self, receive: Receive, most: int, times: TimeSettings) -> None:
        self._receive = receive
        self._most = most
        self._times = times
        self._read = 0
        self._whole = False
        self._until: float | None = None
        self.refused: ServiceError | None = None

    def check(self, scope: Scope) -> None:
        """Refuse a body that says to be too large, before any of it is read."""
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value[:20]) > self._most:
                self.refused = self._too_large()

    async def __call__(self) -> Message:
        """The next piece; when the body is whole, whatever comes from the server then."""
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
        from_json(body)
    except ValueError as error:
        return _TOO_DEEP in str(error)
    return False
