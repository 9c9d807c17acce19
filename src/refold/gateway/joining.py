"""An answer in as few pieces as it comes in.

A busy gateway gets to a stream when several of its pieces have come. To hand them on one by one
costs as much for each as for all of them at once. Nothing waits for more to come.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import httpx2

_MOST: Final = 1 << 18
"""Bytes that are taken ahead of who reads them."""


class Joined(httpx2.AsyncByteStream):
    """A body whose pieces are read as they come, and handed on together."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body
        self._came: list[bytes] = []
        self._size = 0
        self._news: asyncio.Future[None] | None = None
        """Who reads waits for it."""
        self._room: asyncio.Future[None] | None = None
        """Who takes waits for it."""
        self._taking: asyncio.Task[None] | None = None

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        """The pieces."""
        taking = self._taking = asyncio.create_task(self._take())
        taking.add_done_callback(lambda _: _wake(self._news))
        try:
            while self._came or not taking.done():
                if self._came:
                    yield self._next()
                else:
                    self._news = asyncio.get_running_loop().create_future()
                    await self._news
            await taking  # it may have failed
        finally:
            taking.cancel()

    async def aclose(self) -> None:
        """Let go of the connection."""
        if self._taking is not None and not self._taking.done():
            self._taking.cancel()
            await asyncio.wait({self._taking})
        await self._body.aclose()

    async def _take(self) -> None:
        async for piece in self._body:
            self._came.append(piece)
            self._size += len(piece)
            _wake(self._news)
            while self._size > _MOST:
                self._room = asyncio.get_running_loop().create_future()
                await self._room

    def _next(self) -> bytes:
        came, self._came, self._size = self._came, [], 0
        _wake(self._room)
        return b"".join(came) if len(came) > 1 else came[0]


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
