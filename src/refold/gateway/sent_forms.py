"""The clients' own forms of messages, kept so that a request's body can be made again.

Most clients send an answer back in another form than it came in: without a status, with other ids.
The log has it as it came. A record keeps which entry each message of its request is of, and the
client's form where that differs, each as a difference to the record before it: so a request adds
what is new in it. Cache marks move with each request and are kept by themselves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from refold.gateway.dialects.cache_marks import marks_of, without_marks
from refold.wire.splice import array, compact_json

MAX_DEPTH: Final = 64
"""Records that are a difference to one another; then one is whole."""
_MAX_WHOLE: Final = 64 * 1024
"""Bytes of forms that a whole record may have, if the process does not know the record before."""
_MAX_INLINE: Final = 1_000
AS_LOGGED: Final = -1
NOT_LOGGED: Final = 0
"""In the place of an entry: the log does not have the message."""


class RenderedMessage(NamedTuple):
    """A message that is sent."""

    payload: bytes
    seq: int | None = None
    """The entry that it is of; None if the log has none."""
    client: bytes = b""
    """The client's form of it, before it was edited."""


@dataclass(slots=True)
class SentForms:
    """What the last request of a session was made of, as this process sent it."""

    _record: int = 0
    """Its record."""
    _keys: list[int] = field(default_factory=list[int])
    """A hash of each of its messages, without cache marks."""
    _depth: int = 0
    _skipped: int = 0
    _next: tuple[list[int], int] | None = None
    """The keys and the depth of the request that is about to be recorded."""

    def forms_of(
        self,
        before: int,
        messages: Sequence[RenderedMessage],
        logged: Callable[[int], bytes],
        *,
        edited: bool,
    ) -> dict[str, str | bytes]:
        """What the record of a request keeps of the form of its messages, as JSON by name.

        A short text is for the record itself, bytes are kept beside it.

        Args:
            before: The record before it; 0 if there is none.
            messages: What is sent.
            logged: The message of an entry, as the log has it.
            edited: Whether the plan's edits were made.
        """
        keys = [hash(without_marks(message.payload)) for message in messages]
        known = before == self._record and before > 0 and self._depth < MAX_DEPTH
        same = _common(self._keys, keys) if known else 0
        order, forms = _difference(messages[same:], logged)
        kept: dict[str, str | bytes] = {"marks": _marks(messages)}
        size = sum(map(len, forms))
        self._next = None
        if not known and size > _MAX_WHOLE and self._skipped % MAX_DEPTH:
            self._skipped += 1  # others send requests of this session, too: not all of them whole
            return kept
        self._skipped += not known
        self._next = keys, self._depth + 1 if known else 1
        about: dict[str, JsonValue] = {
            "base": before if known else 0,
            "same": same,
            "edited": edited,
            "then": order,
        }
        dumped = compact_json(about)
        inline = len(dumped) <= _MAX_INLINE
        return {**kept, "order": dumped.decode() if inline else dumped, "forms": array(forms)}

    def recorded(self, record: int) -> None:
        """Note that the request has this record now."""
        if self._next is not None:
            self._keys, self._depth = self._next
            self._record, self._next = record, None


def _common(before: Sequence[int], after: Sequence[int]) -> int:
    same = 0
    for first, second in zip(before, after, strict=False):
        if first != second:
            break
        same += 1
    return same


def _difference(
    messages: Sequence[RenderedMessage], logged: Callable[[int], bytes]
) -> tuple[list[JsonValue], list[bytes]]:
    """For each message its entry and which of the forms it has."""
    order: list[JsonValue] = []
    forms: list[bytes] = []
    for message in messages:
        seq = message.seq or NOT_LOGGED
        if seq and without_marks(message.client) == without_marks(logged(seq)):
            order.append([seq, AS_LOGGED])
            continue
        order.append([seq, len(forms)])
        forms.append(without_marks(message.payload))
    return order, forms


def _marks(messages: Sequence[RenderedMessage]) -> bytes:
    """Where the messages have cache marks, and which, as JSON."""
    marks: list[JsonValue] = [
        [nth, [*mark.spot], from_json(mark.mark)]
        for nth, message in enumerate(messages)
        for mark in marks_of(message.payload)
    ]
    return compact_json(marks)
