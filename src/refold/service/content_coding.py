"""Content codings of request bodies: `Content-Encoding: zstd`, `gzip` or `deflate`.

A body is unpacked in pieces of a bounded size, so that its reader can stop at its limit. A packed
body of a few kilobytes may be gigabytes unpacked, and must never be held whole.
"""

import sys
import zlib
from collections.abc import Callable, Iterable
from typing import Final

from refold.errors import InvalidEncoding, UnsupportedEncoding

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_FRAMES: Final = 1_000
"""Frames of one body. Each costs some work, however small it is."""
_WINDOW_LOG: Final = 23
"""8 MB: the most memory that RFC 9659 lets a zstd frame ask for."""
_GZIP: Final = 16 + zlib.MAX_WBITS


class _ZlibFrame:
    def __init__(self, bits: int) -> None:
        self.inner = zlib.decompressobj(bits)

    def unpack(self, packed: bytes, max_bytes: int) -> tuple[bytes, bytes]:
        """The output, and the rest of the input."""
        return self.inner.decompress(packed, max_bytes), self.inner.unconsumed_tail


class _ZstdFrame:
    def __init__(self) -> None:
        limits: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
        self.inner = zstd.ZstdDecompressor(options=limits)

    def unpack(self, packed: bytes, max_bytes: int) -> tuple[bytes, bytes]:
        """The output; the decompressor keeps unused input itself."""
        if not self.inner.needs_input:
            return self.inner.decompress(b"", max_bytes), packed
        return self.inner.decompress(packed, max_bytes), b""


_FRAMES: Final[dict[str, Callable[[], _ZlibFrame | _ZstdFrame]]] = {
    "zstd": _ZstdFrame,
    "gzip": lambda: _ZlibFrame(_GZIP),
    "x-gzip": lambda: _ZlibFrame(_GZIP),
    "deflate": lambda: _ZlibFrame(zlib.MAX_WBITS),
}
ACCEPTED: Final = "zstd, gzip, deflate, identity"
"""The value of `Accept-Encoding`."""


class BodyDecoder:
    """Unpacks a body: `feed` it each chunk, then `read` until that returns nothing."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._frame: _ZlibFrame | _ZstdFrame | None = None
        self._frames = 0
        self._packed = b""

    def feed(self, packed: bytes) -> None:
        """Add input; everything fed before must have been read."""
        self._packed += packed

    def read(self, max_bytes: int) -> bytes:
        """The next piece, at most `max_bytes`; empty when more must be fed.

        Raises:
            InvalidEncoding: It is not packed as declared, or in too many frames.
        """
        while True:
            if self._frame is None:
                if not self._packed:
                    return b""
                self._frames += 1
                if self._frames > MAX_FRAMES:
                    raise self._invalid(f"it has more than {MAX_FRAMES:,} frames")
                self._frame = _FRAMES[self._coding]()
            try:
                piece, self._packed = self._frame.unpack(self._packed, max_bytes)
            except (zlib.error, zstd.ZstdError, EOFError) as error:
                raise self._invalid("it is broken, or needs a window of more than 8 MB") from error
            if self._frame.inner.eof:
                # Another frame follows, or garbage, which then fails.
                self._packed = self._frame.inner.unused_data
                self._frame = None
                if piece:
                    return piece
            elif piece or not self._packed:
                return piece

    def finish(self) -> None:
        """The body has ended. Raises InvalidEncoding where it was cut short."""
        if self._frame is not None:
            raise self._invalid("it ends too soon")

    def _invalid(self, why: str) -> InvalidEncoding:
        return InvalidEncoding(f"The body cannot be unpacked as {self._coding}: {why}.")


def decoder_for(headers: Iterable[tuple[bytes, bytes]]) -> BodyDecoder | None:
    """The decoder of a body with these headers; None if it is not packed.

    Raises:
        UnsupportedEncoding: It is packed in another way, or more than once.
    """
    values = [value.decode("latin-1") for name, value in headers if name == b"content-encoding"]
    codings = [name.strip().lower() for value in values for name in value.split(",")]
    codings = [name for name in codings if name not in ("", "identity")]
    if not codings:
        return None
    if len(codings) > 1 or codings[0] not in _FRAMES:
        shown = ascii(", ".join(codings)[:40])
        raise UnsupportedEncoding(f"The body has the content coding {shown}, which is not read.")
    return BodyDecoder(codings[0])
