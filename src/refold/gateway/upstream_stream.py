"""Connections to upstreams, and the event streams that come over them.

The connections are straight on asyncio. What the HTTP library brings along for this serves any
event loop, and pays for that with each piece that comes: a cancel scope, and two system calls to
stop and continue reading. Streams are little else but such pieces.
"""

import asyncio
import select
import ssl
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final, cast
from urllib.request import getproxies

import httpcore2
import httpx2

from refold.gateway.dialects.dialect import AnswerAssembler, Dialect, read_object
from refold.gateway.dialects.events import Event, Events, EventTooLarge
from refold.gateway.dialects.hidden_streams import StreamRewriter

_MAX_BUFFERED: Final = 1 << 18
"""Bytes that may wait to be read; then the sender has to."""
_GRACE_TURNS: Final = 16
"""Turns of the event loop in which what has come by a deadline is still seen."""
_NEXT_ADDRESS_DELAY: Final = 0.25  # seconds until another of a host's addresses is tried too
_COMPACT: Final = b"compact"
_COMPACTION_SIGNALS: Final = {
    "agent.thread_context_compacted",
    "thread_context_compacted",
    "compaction_delta",
}
_PRELIMINARY_EVENTS: Final = frozenset(
    {"response.created", "response.in_progress", "response.queued"}
)
"""Events that come before the model was asked: it may still be refused."""
_MAX_REFUSAL: Final = 1_000_000
_REFUSAL_SECONDS: Final = 5

ERRORS: Final[Mapping[type[BaseException], type[httpx2.TransportError]]] = {
    httpcore2.TimeoutException: httpx2.TimeoutException,
    httpcore2.ConnectTimeout: httpx2.ConnectTimeout,
    httpcore2.ReadTimeout: httpx2.ReadTimeout,
    httpcore2.WriteTimeout: httpx2.WriteTimeout,
    httpcore2.PoolTimeout: httpx2.PoolTimeout,
    httpcore2.NetworkError: httpx2.NetworkError,
    httpcore2.ConnectError: httpx2.ConnectError,
    httpcore2.ReadError: httpx2.ReadError,
    httpcore2.WriteError: httpx2.WriteError,
    httpcore2.ProxyError: httpx2.ProxyError,
    httpcore2.UnsupportedProtocol: httpx2.UnsupportedProtocol,
    httpcore2.ProtocolError: httpx2.ProtocolError,
    httpcore2.LocalProtocolError: httpx2.LocalProtocolError,
    httpcore2.RemoteProtocolError: httpx2.RemoteProtocolError,
}
"""Errors of the connection pool, and what the client's callers expect."""

SocketOption = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)


class CoalescedStream(httpx2.AsyncByteStream):
    """A body whose pieces are read as they come, and returned together.

    A busy gateway gets to a stream when several of its pieces have come. To pass them on one by one
    costs as much for each as for all of them at once. Nothing waits for more to come.
    """

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body
        self._pieces: list[bytes] = []
        self._size = 0
        self._arrival: asyncio.Future[bool] | None = None
        """The consumer waits for it."""
        self._room: asyncio.Future[bool] | None = None
        """The reader waits for it."""
        self._reader: asyncio.Task[None] | None = None

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        reader = self._reader = asyncio.create_task(self._read())
        reader.add_done_callback(lambda _: _wake(self._arrival))
        try:
            while self._pieces or not reader.done():
                if self._pieces:
                    yield self._take()
                else:
                    self._arrival = asyncio.get_running_loop().create_future()
                    await self._arrival
            await reader  # it may have failed
        finally:
            reader.cancel()

    async def aclose(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.cancel()
            await asyncio.wait({self._reader})
        await self._body.aclose()

    async def _read(self) -> None:
        async for piece in self._body:
            self._pieces.append(piece)
            self._size += len(piece)
            _wake(self._arrival)
            while self._size > _MAX_BUFFERED:
                self._room = asyncio.get_running_loop().create_future()
                await self._room

    def _take(self) -> bytes:
        pieces, self._pieces, self._size = self._pieces, [], 0
        _wake(self._room)
        return b"".join(pieces) if len(pieces) > 1 else pieces[0]


def client(timeout: httpx2.Timeout, limits: httpx2.Limits) -> httpx2.AsyncClient:
    """A client for upstreams. It uses the proxy that the environment names, if it does."""
    if getproxies():
        return httpx2.AsyncClient(timeout=timeout, limits=limits)
    return httpx2.AsyncClient(timeout=timeout, transport=_Transport(limits=limits))


class _Transport(httpx2.AsyncBaseTransport):
    def __init__(self, limits: httpx2.Limits) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=Network(),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Ask; what comes is handed on as many pieces at once as are there."""
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        with _as_httpx2():
            response: Any = await self._pool.handle_async_request(
                httpcore2.Request(
                    request.method,
                    url,
                    headers=request.headers.raw,
                    content=cast("httpx2.AsyncByteStream", request.stream),
                    extensions=request.extensions,
                )
            )
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=CoalescedStream(_Body(response.stream)),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        with _as_httpx2():
            async for piece in self._body:
                yield piece

    async def aclose(self) -> None:
        with _as_httpx2():
            await self._body.aclose()


@contextmanager
def _as_httpx2() -> Generator[None]:
    """Raise errors of httpcore2 as those of httpx2, which has one of the same name for each."""
    try:
        yield
    except tuple(ERRORS) as error:
        kind = next(ERRORS[base] for base in type(error).__mro__ if base in ERRORS)
        raise kind(str(error)) from error


class Network(httpcore2.AsyncNetworkBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - part of the protocol
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        local = (local_address, 0) if local_address else None
        async with _connect_timeout(timeout):
            transport, stream = await loop.create_connection(
                Stream, host, port, local_addr=local, happy_eyeballs_delay=_NEXT_ADDRESS_DELAY
            )
        try:
            for option in socket_options or ():
                transport.get_extra_info("socket").setsockopt(*option)
        except OSError as error:  # the server has reset it already
            transport.abort()
            raise httpcore2.ConnectError(str(error)) from error
        return stream

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def _connect_timeout(seconds: float | None) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(None) as limit:
            deadline = _GracefulDeadline(limit, seconds)
            try:
                yield
            finally:
                deadline.cancel()
    except TimeoutError as error:
        raise httpcore2.ConnectTimeout("The server did not answer in time.") from error
    except OSError as error:  # what TLS objects to is one too
        raise httpcore2.ConnectError(str(error)) from error


class _GracefulDeadline:
    """Ends a timeout some turns of the event loop after its time.

    Connecting takes several turns. When many requests come at once, a turn may take longer than a
    connection may: the server has answered, and only the loop did not get to it.
    """

    def __init__(self, limit: asyncio.Timeout, seconds: float | None) -> None:
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._turns = _GRACE_TURNS
        self._next: asyncio.Handle | None = None
        if seconds is not None:
            self._next = self._loop.call_later(seconds, self._turn)

    def cancel(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _turn(self) -> None:
        self._turns -= 1
        if self._turns:
            self._next = self._loop.call_soon(self._turn)
        else:
            self._limit.reschedule(self._loop.time())


class Stream(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._received: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._lost: Exception | None = None
        self._paused = False
        self._data_ready: asyncio.Future[bool] | None = None
        """Done when something came, or did not in time."""
        self._writable: asyncio.Future[bool] | None = None
        """Set while the transport takes no more."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - it is TCP
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received.append(data)
        self._size += len(data)
        if self._size > _MAX_BUFFERED and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        _wake(self._data_ready)

    def eof_received(self) -> bool:
        self._ended = True
        _wake(self._data_ready)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._lost = exc
        _wake(self._data_ready)
        _wake(self._writable)

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        _wake(writable)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - part of the protocol
        """What came, at least something; nothing at the end."""
        while not self._received:
            if self._lost is not None:
                raise httpcore2.ReadError(str(self._lost)) from self._lost
            if self._ended:
                return b""
            if not await self._wait_for_data(timeout):
                raise httpcore2.ReadTimeout("Nothing came in time.")
        data = self._received.popleft()
        if len(data) > max_bytes:
            self._received.appendleft(data[max_bytes:])
            data = data[:max_bytes]
        self._size -= len(data)
        if self._paused and self._size <= _MAX_BUFFERED // 2:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def _wait_for_data(self, seconds: float | None) -> bool:
        ready = self._data_ready = self._loop.create_future()
        if seconds is None:
            return await ready
        late = self._loop.call_later(seconds, lambda: _wake(ready, value=False))
        try:
            return await ready
        finally:
            late.cancel()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - part of the protocol
        if not buffer:
            return
        if self._transport.is_closing():
            raise httpcore2.WriteError(str(self._lost or "The connection is closed."))
        self._transport.write(buffer)
        if self._writable is None:
            return
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(self._writable)
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
        if self._received or self._unread():  # whoever sent it has not shown who they are
            self._transport.abort()
            raise httpcore2.ConnectError("Something came before the connection was private.")
        try:
            async with _connect_timeout(timeout):
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

    def _unread(self) -> bool:
        """Whether something came, or the other end closed, that a busy loop has not seen yet."""
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return bool(poll.poll(0))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - part of the protocol
        """What is known of the connection."""
        match info:
            case "is_readable":  # an idle connection with something to read is of no use
                return self._ended or bool(self._received) or self._unread()
            case "client_addr":
                return self._transport.get_extra_info("sockname")
            case "server_addr":
                return self._transport.get_extra_info("peername")
            case "ssl_object" | "socket":
                return self._transport.get_extra_info(info)
            case _:
                return None


def _wake(waiting: asyncio.Future[bool] | None, *, value: bool = True) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(value)


def compaction_signal(event: Event) -> str:
    """The name of a provider's own compaction event; empty for all others.

    Such an event is passed on. It describes the provider's context and does not change ours.
    """
    data = read_object(event.data) or {}
    delta = data.get("delta")
    kinds = (event.name, data.get("type"), delta.get("type") if isinstance(delta, dict) else None)
    return next((str(kind) for kind in kinds if kind in _COMPACTION_SIGNALS), "")


class UpstreamStream:
    """An event stream that is passed on byte for byte, but for its end: that waits."""

    def __init__(
        self, dialect: Dialect, response: httpx2.Response, rewriter: StreamRewriter | None = None
    ) -> None:
        """`rewriter` makes what the client is sent, where that is not what came."""
        self._rewriter = rewriter
        self.assembler: AnswerAssembler = dialect.assembler()
        self.error: bytes | None = None
        """The data of the first error event."""
        self.silent = False
        """The stream ended, and nothing had come."""
        self.compaction_signal = ""
        """The event by which the provider said that it compacted its own context."""
        self._response = response
        self._raw: AsyncIterator[bytes] = response.aiter_raw()
        self._events = Events()
        self._unparsed = False
        """An event is too large to be parsed: it passes as it is, and so does all after it."""
        self._ready: list[bytes] = []
        self._ending: list[bytes] = []

    @property
    def ending(self) -> bytes:
        """The end, once the stream has come to it."""
        return b"".join(self._ending)

    async def begin(self) -> None:
        """Wait for the first event that says something."""
        async for chunk in self._raw:
            if self._take(chunk):
                return
        self.silent = not self._ending

    async def chunks(self) -> AsyncGenerator[bytes]:
        """What may be passed on, as it comes."""
        if self._ready:
            yield self._take_ready()
        while not self._unparsed and (chunk := await anext(self._raw, None)) is not None:
            self._take(chunk)
            if self._ready:
                yield self._take_ready()
        if self._unparsed and not self._ending:
            yield self._events.rest()
            async for chunk in self._raw:
                yield chunk
        elif rest := self._events.rest():
            # To some clients, an event whose blank line never came is one.
            events: list[Event] = []
            with suppress(EventTooLarge):
                events = self._events.feed(b"\n\n")
            for event in events:
                self._assemble(event)
            if self._rewriter is not None and events:
                self._ending += map(self._rewriter.show, events)
            else:
                self._ending.append(rest)

    async def read_refusal(self) -> bytes:
        """All of a stream that is a refusal; where it does not end, as much as came."""
        with suppress(httpx2.HTTPError, TimeoutError):
            async with asyncio.timeout(_REFUSAL_SECONDS):
                async for chunk in self._raw:
                    self._take(chunk)
                    if self._unparsed or len(self._so_far()) > _MAX_REFUSAL:
                        break
        return self._so_far()

    async def close(self) -> None:
        with suppress(httpx2.HTTPError, RuntimeError):
            await self._response.aclose()

    def _so_far(self) -> bytes:
        return b"".join([*self._ready, *self._ending, self._events.rest()])

    def _take_ready(self) -> bytes:
        ready, self._ready = self._ready, []
        return b"".join(ready) if len(ready) > 1 else ready[0]

    def _take(self, chunk: bytes) -> bool:
        """Take a chunk in; whether an event in it says something."""
        try:
            events = self._events.feed(chunk)
        except EventTooLarge:
            self._unparsed = True
            return True
        has_content = False
        for event in events:
            hold = self._assemble(event)
            raw = self._rewriter.show(event) if self._rewriter else event.raw
            if raw or hold:
                (self._ending if hold or self._ending else self._ready).append(raw)
            if event.data and event.name not in _PRELIMINARY_EVENTS:
                has_content = True
        return has_content

    def _assemble(self, event: Event) -> bool:
        if _COMPACT in event.raw:  # few events are worth reading twice
            self.compaction_signal = compaction_signal(event) or self.compaction_signal
        before = self.assembler.failed
        hold = self.assembler.take(event)
        if self.assembler.failed and not before:
            self.error = event.data
        return hold
