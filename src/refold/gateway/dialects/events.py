"""Event streams as servers send them, cut into events without losing a byte.

The framing is the standard's for `text/event-stream`: lines end with CR, LF or both, a blank line
ends an event, a byte order mark may come first. What is passed on are the bytes as they came, so
blocks that are no events, such as comments that keep a connection alive, are events without data
here.
"""

import re
from typing import NamedTuple

_MARK = b"\xef\xbb\xbf"
_LIMIT = 16 * 1024 * 1024
# A blank line after the end of another. Where a lone CR comes last, only the next byte tells
# whether it is half of an ending; after another lone CR it is taken for whole.
_BLANK = re.compile(rb"\n(?:\n|\r\n|\r(?=[^\n]))|\r\r")
_LEADING = re.compile(rb"\n|\r\n|\r(?=[^\n])")
_LONGEST_BLANK = 3


class Event(NamedTuple):
    """One event of a stream."""

    raw: bytes
    """Its exact bytes, with the blank line."""
    name: str
    """Empty if the stream names none."""
    data: bytes
    """Empty if it is no event: a comment, a blank line."""


class EventTooLarge(Exception):
    """An event does not end within the limit."""


class Events:
    """Cuts a stream into events, however its bytes arrive."""

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._searched = 0
        self._first = True
        self._returns = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that end with these bytes.

        Raises:
            EventTooLarge: An event is larger than the limit. `rest` has what was not returned.
        """
        pending = self._pending
        self._returns = self._returns or b"\r" in chunk
        if pending:
            pending += chunk
            if self._end(pending, 0) is None:
                self._wait(pending)
                return []
            chunk = bytes(pending)
        events: list[Event] = []
        start = 0
        while (end := self._end(chunk, start)) is not None:
            if end - start > self._limit:
                break
            events.append(self._event(chunk[start:end]))
            start = end
            self._searched = 0
        if len(chunk) - start > self._limit:
            self._wait(bytearray(chunk))
        if start < len(chunk) or pending:
            self._wait(bytearray(chunk[start:]))
        return events

    def rest(self) -> bytes:
        """What came and belongs to no event yet."""
        return bytes(self._pending)

    def _wait(self, pending: bytearray) -> None:
        self._pending = pending
        self._searched = max(0, len(pending) - _LONGEST_BLANK)
        if len(pending) > self._limit:
            raise EventTooLarge

    def _end(self, chunk: bytes | bytearray, start: int) -> int | None:
        if not self._returns:  # then a search for bytes does, which is much faster
            if chunk.startswith(b"\n", start):
                return start + 1
            end = chunk.find(b"\n\n", max(start, self._searched))
            return end + 2 if end >= 0 else None
        blank = _LEADING.match(chunk, start)
        if blank is None and not chunk.startswith(b"\r", start):
            blank = _BLANK.search(chunk, max(start, self._searched))
        return None if blank is None else blank.end()

    def _event(self, raw: bytes) -> Event:
        lines = raw.splitlines()
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(_MARK)
        name = b""
        data: list[bytes] = []
        for line in lines:
            if line.startswith(b"data: "):  # the quickest way for almost all
                data.append(line[6:])
                continue
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif field == b"event":
                name = value.removeprefix(b" ")
        joined = data[0] if len(data) == 1 else b"\n".join(data)
        return Event(raw, name.decode(errors="replace") if name else "", joined)
