"""What the gateway must know of each API that it speaks."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from refold.gateway.dialects.answered import Answer, Assembling
from refold.gateway.dialects.asked import Asked


class Dialect(Protocol):
    """One API: how its requests are read and changed, and its answers understood."""

    name: ClassVar[str]
    """The name of its wire."""
    path: ClassVar[str]
    """Where clients send their requests."""

    def read(self, raw: bytes) -> Asked:
        """The request. Raises Unreadable when the body is no JSON object."""
        ...

    def likeness(self, payload: bytes) -> bytes:
        """What identifies the message, however a client writes it; empty if nothing does."""
        ...

    def answers(self, payload: bytes) -> bool:
        """Whether the model said it."""
        ...

    def body(self, asked: Asked, messages: Sequence[bytes]) -> bytes:
        """The request with these messages, and all else as it was."""
        ...

    def answer(self, body: bytes) -> Answer | None:
        """The answer in a whole response; None if there is none."""
        ...

    def assembling(self) -> Assembling:
        """What makes the answer of a stream's events."""
        ...

    def refusal(self, status: int, code: str, words: str) -> bytes:
        """An error of the gateway's, as clients of this API read errors."""
        ...
