"""Connections to upstreams, straight on asyncio.

What the client's library brings along for this serves any event loop, and pays for that with each
piece that comes: a cancel scope, and two calls to the system to stop and go on reading. Streams are
little else but such pieces.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.request import getproxies

import httpcore2
import httpx2

from refold.gateway.joining import Joined

_MOST: Final = 1 << 18
"""Bytes that may wait to be read; then the other end has to."""
_FIRST: Final = 0.25  # seconds until another of a host's addresses is tried too

SocketOption = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)


def client(timeout: httpx2.Timeout, limits: httpx2.Limits) -> httpx2.AsyncClient:
    """A client for upstreams. Where the environment names a proxy, that is gone through."""
    if getproxies():
        return httpx2.AsyncClient(timeout=timeout, limits=limits)
    return httpx2.AsyncClient(timeout=timeout, transport=_Transport(limits=limits))


class _Transport(httpx2.AsyncHTTPTransport):
    def __init__(self, limits: httpx2.Limits) -> None:
        super().__init__(limits=limits)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=Network(),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Ask; what comes is handed on as many pieces at once as are there."""
        response = await super().handle_async_request(request)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = Joined(response.stream)
        return response


class Network(httpcore2.AsyncNetworkBackend):
    """Makes connections."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - part of the protocol
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to a host."""
        loop = asyncio.get_running_loop()
        near = (local_address, 0) if local_address else None
        async with _connecting(timeout):
            transport, stream = await loop.create_connection(
                Stream, host, port, local_addr=near, happy_eyeballs_delay=_FIRST
            )
        for option in socket_options or ():
            transport.get_extra_info("socket").setsockopt(*option)
        return stream

    async def sleep(self, seconds: float) -> None:
        """Wait before another try."""
        await asyncio.sleep(seconds)


@asynccontextmanager
async def _connecting(seconds: float | None) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise httpcore2.ConnectTimeout("The server did not answer in time.") from error
    except OSError as error:  # what TLS objects to is one too
        raise httpcore2.ConnectError(str(error)) from error


class Stream(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    """One connection."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._came: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._lost: Exception | None = None
        self._paused = False
        self._reading: asyncio.Future[bool] | None = None
        """Is told that something came, or that it did not in time."""
        self._writing: asyncio.Future[bool] | None = None
        """Is there while the transport takes no more."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - it is TCP
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self._came.append(data)
        self._size += len(data)
        if self._size > _MOST and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        _wake(self._reading)

    def eof_received(self) -> bool:
        """See asyncio."""
        self._ended = True
        _wake(self._reading)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._ended = True
        self._lost = exc
        _wake(self._reading)
        _wake(self._writing)

    def pause_writing(self) -> None:
        """See asyncio."""
        self._writing = self._loop.create_future()

    def resume_writing(self) -> None:
        """See asyncio."""
        writing, self._writing = self._writing, None
        _wake(writing)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - part of the protocol
        """What came, at least something; nothing at the end."""
        while not self._came:
            if self._lost is not None:
                raise httpcore2.ReadError(str(self._lost)) from self._lost
            if self._ended:
                return b""
            if not await self._something(timeout):
                raise httpcore2.ReadTimeout("Nothing came in time.")
        data = self._came.popleft()
        if len(data) > max_bytes:
            self._came.appendleft(data[max_bytes:])
            data = data[:max_bytes]
        self._size -= len(data)
        if self._paused and self._size <= _MOST // 2:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def _something(self, seconds: float | None) -> bool:
        """Wait until something comes; whether it did in time."""
        reading = self._reading = self._loop.create_future()
        if seconds is None:
            return await reading
        late = self._loop.call_later(seconds, lambda: _wake(reading, came=False))
        try:
            return await reading
        finally:
            late.cancel()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - part of the protocol
        """Send this."""
        if not buffer:
            return
        if self._transport.is_closing():
            raise httpcore2.WriteError(str(self._lost or "The connection is closed."))
        self._transport.write(buffer)
        if self._writing is None:
            return
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(self._writing)
        except TimeoutError as error:
            raise httpcore2.WriteTimeout("The server did not take it in time.") from error
        if self._lost is not None:
            raise httpcore2.WriteError(str(self._lost)) from self._lost

    async def aclose(self) -> None:
        """Close it at once: nothing that matters is under way then."""
        self._transport.abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - part of the protocol
    ) -> httpcore2.AsyncNetworkStream:
        """Go on in private."""
        if self._came:  # whoever sent it has not shown who they are
            self._transport.abort()
            raise httpcore2.ConnectError("Something came before the connection was private.")
        try:
            async with _connecting(timeout):
                private = await self._loop.start_tls(
                    self._transport, self, ssl_context, server_hostname=server_hostname
                )
        except BaseException:
            self._transport.abort()
            raise
        if private is None:
            raise httpcore2.ConnectError("The server closed the connection.")
        self._transport = private
        return self

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - part of the protocol
        """What is known of the connection."""
        match info:
            case "is_readable":  # an idle connection with something to read is of no use
                return self._ended or bool(self._came)
            case "client_addr":
                return self._transport.get_extra_info("sockname")
            case "server_addr":
                return self._transport.get_extra_info("peername")
            case "ssl_object" | "socket":
                return self._transport.get_extra_info(info)
            case _:
                return None


def _wake(waiting: asyncio.Future[bool] | None, *, came: bool = True) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(came)
