"""What an upstream sends, unpacked, and no more of it than may be kept."""

import zlib
from collections.abc import AsyncGenerator, Iterator
from typing import Final

import httpx2

MOST: Final = 64 * 1024 * 1024
"""Bytes of an answer that is read to be kept; no model says as much."""
_MOST_OF_AN_ERROR: Final = 1024 * 1024
_PIECE: Final = 256 * 1024
_ERROR: Final = 400
_HIDDEN: Final = b"..."
_ENDS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": 0}
"""How each packing begins, as zlib says it."""


_STATUSES: Final = range(200, 600)


class InvalidAnswer(httpx2.RemoteProtocolError):
    """An upstream's answer that cannot be passed on; its words are for clients."""


class BoundedAnswer(httpx2.AsyncByteStream):
    """An answer's bytes, unpacked as they come: a small one cannot become a huge one."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        packing: str,
        most: int | None,
        hidden: bytes = b"",
    ) -> None:
        """Wrap a stream.

        Args:
            inner: What comes.
            packing: Its `content-encoding`; empty if it has none.
            most: How many bytes there may be, unpacked.
            hidden: What must not be in it: then it is read whole, and given without.
        """
        self._inner = inner
        self._unpacking = zlib.decompressobj(_ENDS[packing]) if packing else None
        self._most = most
        self._hidden = hidden

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        """The bytes."""
        if not self._hidden:
            async for piece in self._pieces():
                yield piece
            return
        whole = b"".join([piece async for piece in self._pieces()])
        yield whole.replace(self._hidden, _HIDDEN)

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._inner.aclose()

    async def _pieces(self) -> AsyncGenerator[bytes]:
        came = 0
        async for packed in self._inner:
            for piece in self._unpacked(packed) if self._unpacking else (packed,):
                came += len(piece)
                if self._most is not None and came > self._most:
                    raise httpx2.RemoteProtocolError("The answer has no end.")
                yield piece

    def _unpacked(self, packed: bytes) -> Iterator[bytes]:
        assert self._unpacking is not None  # noqa: S101 - there is something to unpack
        rest = packed
        try:
            while rest:
                if piece := self._unpacking.decompress(rest, _PIECE):
                    yield piece
                rest = self._unpacking.unconsumed_tail
        except zlib.error as error:
            raise httpx2.RemoteProtocolError("The answer cannot be unpacked.") from error


def bounded(response: httpx2.Response, most: int | None, key: str | None = None) -> httpx2.Response:
    """The answer, to be read as it comes.

    Args:
        response: It was not read yet.
        most: How many bytes it may have; None where they are passed on and not kept.
        key: A key that is not the client's own: providers repeat those that they refuse.
    """
    if response.status_code not in _STATUSES:
        raise InvalidAnswer("answered with a status that HTTP does not have")
    if response.has_redirect_location:  # clients would send their keys along, wherever it leads
        raise httpx2.RemoteProtocolError("The upstream says to ask elsewhere.")
    if key:
        _hide(response.headers, key)
    packing = response.headers.get("content-encoding", "").strip().lower()
    packing = "" if packing == "identity" else packing
    if packing and packing not in _ENDS:
        raise httpx2.RemoteProtocolError("The answer is packed in a way that nobody asked for.")
    hidden = key.encode() if key and response.status_code >= _ERROR else b""
    stream = response.stream
    if not packing and most is None and not hidden:
        return response
    assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - the client is one of these
    most = _MOST_OF_AN_ERROR if hidden else most
    response.stream = BoundedAnswer(stream, packing, most, hidden)
    if packing:
        del response.headers["content-encoding"]
        response.headers.pop("content-length", None)
    return response


def _hide(headers: httpx2.Headers, key: str) -> None:
    for name, value in headers.multi_items():
        if key in value and name in headers:
            del headers[name]
