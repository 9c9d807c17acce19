"""Streams that are passed on, whoever ends them first."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from starlette.responses import StreamingResponse


class BrokenOff(Exception):
    """An upstream ended an answer before it was whole: that is no fault of ours."""


class Streamed(StreamingResponse):
    """A stream that is told when nobody listens any more."""

    unheard: Callable[[], None] | None = None
    """Is called at the end: a generator that was never begun does not hear of its end."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI's
        """Send it.

        Raises:
            BrokenOff: There is no more of it to send.
        """
        try:
            await super().__call__(scope, receive, send)
        except httpx2.TransportError as error:
            raise BrokenOff(f"{type(error).__name__}: {error}") from error
        finally:
            close: Callable[[], Awaitable[None]] | None = getattr(
                self.body_iterator, "aclose", None
            )
            if close is not None:
                await close()
            if self.unheard is not None:
                self.unheard()
