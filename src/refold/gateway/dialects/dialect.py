"""What the gateway must know of each API that it speaks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refold.gateway.dialects.answered import Answer, Assembling
from refold.gateway.dialects.asked import Asked
from refold.gateway.dialects.reading import BOUNDS, Bounds, Form, asked_of, body_of
from refold.wire.fingerprint import Fingerprint


@dataclass(frozen=True, eq=False)
class Dialect:
    """One API: how its requests are read and changed, and its answers understood."""

    name: str
    """The name of its wire."""
    path: str
    """Where clients send their requests."""
    form: Form
    """Where its requests have what."""
    answer: Callable[[bytes], Answer | None]
    """The answer in a whole response; None if there is none."""
    assembling: Callable[[], Assembling]
    """Makes what makes the answer of a stream's events."""
    refusal: Callable[[int, str, str], bytes]
    """An error of the gateway's, as clients of this API read errors: status, code, words."""

    def read(self, raw: bytes, bounds: Bounds = BOUNDS) -> Asked:
        """The request. Raises Unreadable when the body is no JSON object."""
        return asked_of(raw, self.form, bounds)

    def likeness(self, payload: bytes) -> bytes:
        """What identifies the message, however a client writes it; empty if nothing does."""
        return self.form.seen(payload).likeness

    def known_by(self, payload: bytes) -> Fingerprint:
        """By what the message is known when a client has rewritten it."""
        return self.form.seen(payload).known_by

    def blank(self, payload: bytes) -> bool:
        """Whether clients may leave the message out when they send it back."""
        return self.form.seen(payload).blank

    def answers(self, payload: bytes) -> bool:
        """Whether the model said it."""
        return self.form.seen(payload).answers

    def body(self, asked: Asked, messages: Sequence[bytes]) -> bytes:
        """The request with these messages, and all else as it was."""
        return body_of(asked, self.form, messages)
