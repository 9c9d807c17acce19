"""A stream of an upstream's, taken event by event."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import Final

import httpx2

from refold.gateway.dialects.answered import Assembling
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.dialects.events import Event, Events, EventTooLarge

_BEFORE: Final = frozenset({"response.created", "response.in_progress", "response.queued"})
"""Events that come before the model was asked: it may still be refused."""
_REFUSAL: Final = 1_000_000
"""As many bytes of a refusal are read."""
_SECONDS: Final = 5
"""As long is waited for the end of a refusal."""


class Listening:
    """Passes on what comes, byte for byte, but for the end: that waits."""

    def __init__(self, dialect: Dialect, response: httpx2.Response) -> None:
        self.assembling: Assembling = dialect.assembling()
        self.error: bytes | None = None
        """What the first event says, if it is an error."""
        self.silent = False
        """The stream ended, and nothing had come."""
        self._response = response
        self._chunks: AsyncIterator[bytes] = response.aiter_raw()
        self._events = Events()
        self._unread = False
        """An event is too large to be read: it passes as it is, and so does all after it."""
        self._ready: list[bytes] = []
        self._held: list[bytes] = []

    @property
    def taken(self) -> bytes:
        """What came so far."""
        return b"".join([*self._ready, *self._held, self._events.rest()])

    @property
    def held(self) -> bytes:
        """The end, once the stream has come to it."""
        return b"".join(self._held)

    async def begin(self) -> None:
        """Wait for the first event that says something."""
        async for chunk in self._chunks:
            if self._take(chunk):
                return
        self.silent = not self._held

    async def passed(self) -> AsyncGenerator[bytes]:
        """What may be passed on, as it comes."""
        if self._ready:
            yield self._next()
        while not self._unread and (chunk := await anext(self._chunks, None)) is not None:
            self._take(chunk)
            if self._ready:
                yield self._next()
        if not self._unread or self._held:
            self._end()
            return
        yield self._events.rest()
        async for chunk in self._chunks:
            yield chunk

    async def refused(self) -> bytes:
        """All of a stream that is a refusal; where it does not end, as much as came."""
        with suppress(httpx2.HTTPError, TimeoutError):
            async with asyncio.timeout(_SECONDS):
                async for chunk in self._chunks:
                    self._take(chunk)
                    if self._unread or len(self.taken) > _REFUSAL:
                        break
        return self.taken

    async def close(self) -> None:
        """Let go of the connection."""
        with suppress(httpx2.HTTPError, RuntimeError):
            await self._response.aclose()

    def _next(self) -> bytes:
        ready, self._ready = self._ready, []
        return b"".join(ready) if len(ready) > 1 else ready[0]

    def _take(self, chunk: bytes) -> bool:
        """Take what came; whether something was said."""
        try:
            events = self._events.feed(chunk)
        except EventTooLarge:
            self._unread = True
            return True
        said = False
        for event in events:
            hold = self._hear(event)
            (self._held if hold or self._held else self._ready).append(event.raw)
            said = said or (bool(event.data) and event.name not in _BEFORE)
        return said

    def _hear(self, event: Event) -> bool:
        before = self.assembling.failed
        hold = self.assembling.take(event)
        if self.assembling.failed and not before:
            self.error = event.data
        return hold

    def _end(self) -> None:
        """Take an event whose blank line never came for one: to some clients it is."""
        if rest := self._events.rest():
            self._held.append(rest)
            with suppress(EventTooLarge):
                for event in self._events.feed(b"\n\n"):
                    self._hear(event)
