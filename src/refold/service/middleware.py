"""The outermost layer of the service: limits on requests, the access log, and slow clients."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable, Collection, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, cast
from uuid import uuid4

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
from refold.gateway.outcome import Outcome
from refold.gateway.upstream import V1, BrokenOff
from refold.service.content_coding import BodyDecoder, decoder_for
from refold.service.keys import without_secrets
from refold.service.metrics import ServiceMetrics
from refold.service.problem import note_failure
from refold.service.uvicorn_compat import request_is_under_way
from refold.settings.serve import Serve, TimeSettings
from refold.wire.splice import JsonTooLarge, bounded_json

API: Final = "/api/"
ACCESS_LOG: Final = logging.getLogger("refold.access")
_LOGGER: Final = logging.getLogger("refold.service")
_HEADER_OVERHEAD: Final = len(b": \r\n")
_CHUNK: Final = 256 * 1024
"""Bytes of a packed body that are unpacked at once; then other requests get their turn."""
_CLIENT_CLOSED: Final = 499  # as nginx logs a client that did not wait
_SERVER_ERROR: Final = 500
_MAX_DRAIN_BYTES: Final = 64 << 20
_MAX_DRAIN_SECONDS: Final = 2.0
_MAX_LOGGED_PATH: Final = 200
_MAX_LOGGED_METHOD: Final = 20
_REQUEST_ID: Final = b"refold-request-id"
_CLIENT_REQUEST_ID: Final = b"x-request-id"
_VALID_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")

Refuse = Callable[[Scope, Exception], Response]
"""The answer to a request that ended with an error."""


class BodyReader:
    """Receives a request's body, within limits of size and time; `refused` says which it broke."""

    def __init__(
        self, receive: Receive, max_bytes: int, times: TimeSettings, max_headers: int
    ) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._max_headers = max_headers
        self._times = times
        self._read = 0
        self._complete = False
        self._deadline: float | None = None
        self._decoder: BodyDecoder | None = None
        self._decoded = 0
        self.refused: ServiceError | None = None

    def check(self, scope: Scope) -> None:
        """Refuse what the headers alone rule out, before any of the body is read.

        A packed body is passed on unpacked, so the headers about its packing are removed.
        """
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        for name, value in headers:
            if name == b"content-length" and value.isdigit() and int(value[:20]) > self._max_bytes:
                self.refused = self._too_large()
        try:
            check_header_size(scope, self._max_headers)
            check_framing(scope)
            self._decoder = decoder_for(headers)
        except ServiceError as error:
            self.refused = error
        if self._decoder is not None:
            packing = (b"content-encoding", b"content-length")
            scope["headers"] = [header for header in headers if header[0] not in packing]

    async def __call__(self) -> Message:
        """The next piece; after the body, whatever the server sends then."""
        if self._decoder is None:
            return await self._next()
        try:
            return await self._unpack(self._decoder)
        except ServiceError as error:
            self.refused = error
            raise

    async def _unpack(self, decoder: BodyDecoder) -> Message:
        while not (piece := decoder.read(_CHUNK)):
            if self._complete:
                decoder.finish()
                self._decoder = None
                return {"type": "http.request", "body": b"", "more_body": False}
            message = await self._next()
            if message["type"] != "http.request":
                self._decoder = None
                return message
            decoder.feed(message.get("body", b""))
        self._decoded += len(piece)
        if self._decoded > self._max_bytes:
            raise self._too_large()
        await asyncio.sleep(0)
        return {"type": "http.request", "body": piece, "more_body": True}

    async def _next(self) -> Message:
        if self._complete:
            return await self._receive()
        if self.refused is not None:
            raise self.refused
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._times.body
        try:
            async with asyncio.timeout(max(0.0, min(self._times.pause, self._deadline - now))):
                message = await self._receive()
        except TimeoutError:
            self.refused = RequestTooSlow("The body of the request did not come in time.")
            raise self.refused from None
        if message["type"] != "http.request":
            self._complete = True
            return message
        self._read += len(message.get("body", b""))
        if self._read > self._max_bytes:
            self.refused = self._too_large()
            raise self.refused
        self._complete = not message.get("more_body", False)
        return message

    async def drain(self, max_bytes: int, seconds: float) -> None:
        """Discard the rest of the body: a client that is still sending may not read the answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while max_bytes > 0 and not self._complete:
                    message = await self._receive()
                    max_bytes -= len(message.get("body", b""))
                    self._complete = not message.get("more_body", False)

    def _too_large(self) -> RequestTooLarge:
        return RequestTooLarge(f"The body of the request has more than {self._max_bytes:,} bytes.")


def check_header_size(scope: Scope, max_bytes: int) -> None:
    """Refuse headers that arrived whole before the server counted them.

    It counts what it has read so far, and reads a quarter of a megabyte at once.

    Raises:
        HeadersTooLarge: The request line and the headers are larger than `max_bytes`.
    """
    line = len(scope["method"]) + len(scope.get("raw_path", b"")) + len(scope["query_string"])
    size = line + sum(len(name) + len(value) + _HEADER_OVERHEAD for name, value in scope["headers"])
    if size > max_bytes:
        raise HeadersTooLarge(f"The headers of the request have more than {max_bytes:,} bytes.")


def check_framing(scope: Scope) -> None:
    """Refuse a body whose end is ambiguous, and protocols other than HTTP.

    Raises:
        InvalidFraming: A proxy before us may see another end of the body.
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


class WholeBodyReader:
    """Receives a body in one piece, unless it is nested too deep."""

    def __init__(self, reader: BodyReader) -> None:
        self._reader = reader
        self._received = False

    async def __call__(self) -> Message:
        if self._received:
            return await self._reader()
        pieces: list[bytes] = []
        more = True
        while more:
            message = await self._reader()
            if message["type"] != "http.request":
                return message
            pieces.append(message.get("body", b""))
            more = message.get("more_body", False)
        self._received = True
        body = b"".join(pieces)
        if is_too_deep(body):
            self._reader.refused = RequestTooDeep("The body of the request is nested too deep.")
            raise self._reader.refused
        return {"type": "http.request", "body": body, "more_body": False}


def is_too_deep(body: bytes) -> bool:
    """Whether it is JSON that is too deep to parse."""
    try:
        bounded_json(body)
    except JsonTooLarge:
        return True
    except ValueError:
        pass
    return False


class ServiceMiddleware:
    """Bounds requests, makes sure that each is answered, and writes the access log."""

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        app: ASGIApp,
        *,
        settings: Serve,
        refuse: Refuse,
        metrics: ServiceMetrics,
        traffic: "Traffic",
        prefixes: Collection[str] = (V1,),
    ) -> None:
        self._app = app
        self._prefixes = prefixes
        self._settings = settings
        self._refuse = refuse
        self._metrics = metrics
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: MutableMapping[str, Any] = scope.setdefault("state", {})
        path: str = scope["path"]
        sizes = self._settings.sizes
        kind = kind_of(path, self._prefixes)
        max_body = sizes.gateway if kind == "gateway" else sizes.api
        reader = BodyReader(receive, max_body, self._settings.times, sizes.headers)
        request_id = state["request_id"] = request_id_of(scope)
        answer = _Answer(send, reader, request_id)
        began = time.perf_counter()
        self._traffic.begin()
        try:
            await self._answer(scope, reader, answer)
        finally:
            slot = state.pop("slot", None)
            if slot is not None:
                slot.release()
            self._traffic.end()
            seconds = time.perf_counter() - began
            self._metrics.answered(kind, answer.status, seconds)
            if self._settings.access_log != "off" and ACCESS_LOG.isEnabledFor(logging.INFO):
                if answer.started and not answer.ended:
                    reason = "The client closed the connection before the answer ended."
                    Outcome.of(scope).fail("client-closed", reason)
                line = _json_line if self._settings.access_log == "json" else _text_line
                ACCESS_LOG.info("%s", line(scope, answer.status, seconds))

    async def _answer(self, scope: Scope, reader: BodyReader, answer: "_Answer") -> None:
        reader.check(scope)
        whole = scope["path"].startswith(API)
        try:
            if reader.refused is None:
                await self._app(scope, WholeBodyReader(reader) if whole else reader, answer)
        except ClientDisconnect:
            answer.status = _CLIENT_CLOSED
            Outcome.of(scope).fail("client-closed", "The client left before its request was read.")
            return
        except asyncio.CancelledError:
            if answer.started:
                Outcome.of(scope).fail("draining", "The service stopped before the answer ended.")
                raise
            # The server cancels its tasks when the time to drain is over: this one still answers.
            error = Draining("The service stopped before it had answered.")
            await self._refuse_with(scope, error, answer)
            return
        except BrokenOff as error:
            # The connection closes, so the client notices that the answer is incomplete.
            _LOGGER.warning("An upstream broke its answer off: %s", without_secrets(str(error)))
            Outcome.of(scope).fail_upstream(error.__cause__)
        except Exception as error:
            if reader.refused is None:
                note_failure(Outcome.of(scope), error)
                if answer.started:
                    raise  # the connection closes, so the client notices that it is incomplete
                await self._refuse_with(scope, error, answer)
                return
        if reader.refused is not None and not answer.started:
            await self._refuse_with(scope, reader.refused, answer, reader)

    async def _refuse_with(
        self, scope: Scope, error: Exception, answer: "_Answer", reader: BodyReader | None = None
    ) -> None:
        response = self._refuse(scope, error)
        # RFC 9110: a sender of `Upgrade` must list it in `Connection`.
        closing = b"close, upgrade" if "upgrade" in response.headers else b"close"
        headers = [*response.raw_headers, (b"connection", closing)]
        start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
        await answer.send(start)
        body = {"type": "http.response.body", "body": bytes(response.body), "more_body": True}
        await answer.send(body)
        if reader is not None:
            await reader.drain(_MAX_DRAIN_BYTES, _MAX_DRAIN_SECONDS)
        await answer.send({"type": "http.response.body", "body": b"", "more_body": False})


class _Answer:
    """Sends and records the answer. Once a body was refused, only the refusal is sent."""

    __slots__ = ("_reader", "_request_id", "_send", "ended", "started", "status")

    def __init__(self, send: Send, reader: BodyReader, request_id: str) -> None:
        self._send = send
        self._reader = reader
        self._request_id = request_id.encode()
        self.started = False
        self.ended = False
        self.status = _SERVER_ERROR

    async def __call__(self, message: Message) -> None:
        if self.started or self._reader.refused is None:
            await self.send(message)

    async def send(self, message: Message) -> None:
        """Send even after a refusal."""
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
            headers = [*message.get("headers", ()), (_REQUEST_ID, self._request_id)]
            message = {**message, "headers": headers}
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.ended = True


class Traffic:
    def __init__(self) -> None:
        self.under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self) -> None:
        self.under_way += 1
        self._idle.clear()

    def end(self) -> None:
        self.under_way -= 1
        if not self.under_way:
            self._idle.set()

    async def wait_until_idle(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()


def kind_of(path: str, prefixes: Collection[str]) -> str:
    if any(path.startswith(f"{prefix}/") for prefix in prefixes):
        return "gateway"
    return "api" if path.startswith(API) else "other"


def request_id_of(scope: Scope) -> str:
    """The id that a load balancer gave the request in `X-Request-Id`, else a new one."""
    for name, value in scope["headers"]:
        if name == _CLIENT_REQUEST_ID and _VALID_REQUEST_ID.fullmatch(value):
            given = value.decode()
            if without_secrets(given) == given:
                return given
    return uuid4().hex


def _text_line(scope: Scope, status: int, seconds: float) -> str:
    """One line without possible secrets: no query, no header, no body."""
    caller = scope["state"].get("caller")
    who = f"{caller.tenant} {caller.key or '-'}" if caller else "- -"
    client = (scope.get("client") or ("-",))[0]
    method = _clip(scope["method"], _MAX_LOGGED_METHOD)
    failure = Outcome.of(scope).failure
    why = f" {failure.code}" if failure else ""
    return f"{client} {method} {_logged_path(scope)} {status} {seconds * 1e3:.0f}ms {who}{why}"


def _json_line(scope: Scope, status: int, seconds: float) -> str:
    """The same as a JSON object, and what is known of the answer; unknown fields are left out."""
    outcome, caller = Outcome.of(scope), scope["state"].get("caller")
    usage, failure = outcome.usage, outcome.failure
    tokens: dict[str, object] | None = None
    if usage is not None:
        tokens = {"input": usage.input, "output": usage.output, "cached": usage.cache_read}
        if outcome.estimated:
            tokens = {"input": usage.input, "output": usage.output, "estimated": True}
    fields: dict[str, object] = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "request": scope["state"]["request_id"],
        "client": (scope.get("client") or ("",))[0],
        "method": _clip(scope["method"], _MAX_LOGGED_METHOD),
        "path": _logged_path(scope),
        "status": status,
        "duration_ms": round(seconds * 1e3, 1),
        "tenant": caller.tenant if caller else "",
        "key": caller.key if caller else "",
        "session": outcome.session or scope.get("path_params", {}).get("session", ""),
        "model": outcome.model,
        "upstream": outcome.upstream,
        "tokens": tokens,
        "error": failure and {key: word for key, word in failure._asdict().items() if word},
    }
    for name in ("session", "model"):  # the client's own words
        fields[name] = without_secrets(_clip(str(fields[name]), _MAX_LOGGED_PATH))
    return json.dumps({name: value for name, value in fields.items() if value not in ("", None)})


def _logged_path(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    path = without_secrets(raw.partition(b"?")[0].decode("ascii", "backslashreplace"))
    return _clip(path, _MAX_LOGGED_PATH)


def _clip(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[:max_chars]}…"


class _SlowClientGuard(asyncio.Protocol):
    """Closes a connection whose client sends no headers, or does not read what it is sent.

    A mixin for the server's own protocol.
    """

    header_timeout: ClassVar[float]
    read_timeout: ClassVar[float]
    max_headers: ClassVar[int]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._header_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if request_is_under_way(self):
            self._header_bytes = 0
            self._header_timer = _cancel(self._header_timer)
            return
        self._header_bytes += len(data)
        if self._header_bytes > self.max_headers:
            self._transport.close()
        elif self._header_timer is None:
            self._wait_for_headers()

    def pause_writing(self) -> None:
        super().pause_writing()
        _cancel(self._read_timer)
        loop = asyncio.get_running_loop()
        self._read_timer = loop.call_later(self.read_timeout, self._transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._read_timer = _cancel(self._read_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._header_timer = _cancel(self._header_timer)
        self._read_timer = _cancel(self._read_timer)
        super().connection_lost(exc)

    def _wait_for_headers(self) -> None:
        loop = asyncio.get_running_loop()
        self._header_timer = loop.call_later(self.header_timeout, self._transport.close)


def slow_client_protocol(settings: Serve) -> type[asyncio.Protocol]:
    """The server's HTTP protocol, with timeouts for slow clients."""
    values = {
        "header_timeout": settings.times.headers,
        "read_timeout": settings.times.reader,
        "max_headers": settings.sizes.headers,
    }
    return type("PatientProtocol", (_SlowClientGuard, AutoHTTPProtocol), values)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
