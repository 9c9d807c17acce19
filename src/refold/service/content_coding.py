"""Content codings of request bodies: `Content-Encoding: zstd`, `gzip` or `deflate`.

A body is unpacked piece by piece, each of a bounded size, so that whoever reads it can stop at its
limit. A packed body of a few kilobytes may be gigabytes unpacked, and must never be held whole.
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
"""Frames of one body. Each costs some work, however little is in it."""
_WINDOW_LOG: Final = 23
"""8 MB: as much memory as RFC 9659 lets a frame of zstd ask for."""
_GZIP: Final = 16 + zlib.MAX_WBITS


class _ZlibFrame:
    def __init__(self, bits: int) -> None:
        self._inner = zlib.decompressobj(bits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def unpack(self, packed: bytes, max_bytes: int) -> tuple[bytes, bytes]:
        """What comes out, and what of the input was not looked at."""
        return self._inner.decompress(packed, max_bytes), self._inner.unconsumed_tail


class _ZstdFrame:
    def __init__(self) -> None:
        limits: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
        self._inner = zstd.ZstdDecompressor(options=limits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def unpack(self, packed: bytes, max_bytes: int) -> tuple[bytes, bytes]:
        """What comes out; the input is kept inside until it is used up."""
        if not self._inner.needs_input:
            return self._inner.decompress(b"", max_bytes), packed
        return self._inner.decompress(packed, max_bytes), b""


_FRAMES: Final[dict[str, Callable[[], _ZlibFrame | _ZstdFrame]]] = {
    "zstd": _ZstdFrame,
    "gzip": lambda: _ZlibFrame(_GZIP),
    "x-gzip": lambda: _ZlibFrame(_GZIP),
    "deflate": lambda: _ZlibFrame(zlib.MAX_WBITS),
}
ACCEPTED: Final = "zstd, gzip, deflate, identity"
"""The value of `Accept-Encoding` that tells clients so."""


class BodyDecoder:
    """Unpacks a body. Give it what came with `feed`, then `read` until that is empty."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._new_frame = _FRAMES[coding]
        self._frame: _ZlibFrame | _ZstdFrame | None = None
        self._frames = 0
        self._packed = b""

    def feed(self, packed: bytes) -> None:
        """Take what came; all that was given before has been read."""
        self._packed += packed

    def read(self, max_bytes: int) -> bytes:
        """The next piece, at most `max_bytes`; empty when more must be fed.

        Raises:
            InvalidEncoding: It is not packed as it says, or in too many frames.
        """
        while True:
            if self._frame is None:
                if not self._packed:
                    return b""
                self._frame = self._begin()
            try:
                piece, self._packed = self._frame.unpack(self._packed, max_bytes)
            except (zlib.error, zstd.ZstdError, EOFError) as error:
                raise self._invalid("it is broken, or needs a window of more than 8 MB") from error
            if self._frame.eof:
                # What follows a frame is another one, or no frame at all: then that fails.
                self._packed = self._frame.unused_data
                self._frame = None
                if piece:
                    return piece
            elif piece or not self._packed:
                return piece

    def finish(self) -> None:
        """The body has ended. Raises InvalidEncoding where it was cut short."""
        if self._frame is not None:
            raise self._invalid("it ends too soon")

    def _begin(self) -> "_ZlibFrame | _ZstdFrame":
        self._frames += 1
        if self._frames > MAX_FRAMES:
            raise self._invalid(f"it has more than {MAX_FRAMES:,} frames")
        return self._new_frame()

    def _invalid(self, why: str) -> InvalidEncoding:
        return InvalidEncoding(f"The body cannot be unpacked as {self._coding}: {why}.")


def decoder_for(headers: Iterable[tuple[bytes, bytes]]) -> BodyDecoder | None:
    """What unpacks a body with these headers; None where it is not packed.

    Raises:
        UnsupportedEncoding: It is packed in another way, or more than once.
    """
    values = [value.decode("latin-1") for name, value in headers if name == b"content-encoding"]
    codings = [one.strip().lower() for value in values for one in value.split(",")]
    codings = [one for one in codings if one not in ("", "identity")]
    if not codings:
        return None
    if len(codings) > 1 or codings[0] not in _FRAMES:
        shown = ascii(", ".join(codings)[:40])
        raise UnsupportedEncoding(f"The body has the content coding {shown}, which is not read.")
    return BodyDecoder(codings[0])
