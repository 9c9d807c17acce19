"""Connections that are too slow: whoever sends no headers, or takes nothing of what is sent."""

import asyncio
from typing import ClassVar, cast

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from refold.service.uvicorn_compat import request_is_under_way
from refold.settings.serve import Serve


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
