"""What is known of messages that were seen before.

Clients send their whole history each time, so nearly every message was seen a moment ago.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Final, NamedTuple

from refold.errors import InvalidMessage
from refold.wire import Wire
from refold.wire.fingerprint import Fingerprint, fingerprint
from refold.wire.splice import Object, parsed

_MOST: Final = 50_000
"""How many messages are known at least, if there were as many; twice as many at most."""


class Facts(NamedTuple):
    """What is known of one message."""

    likeness: bytes
    """What it says, to the letter; empty if it says nothing that clients always send back."""
    answers: bool
    """Whether the model said it."""
    fault: str
    """Why its wire does not take it; empty if it does."""
    known_by: Fingerprint = Fingerprint()

    @property
    def blank(self) -> bool:
        """Whether clients may leave it out: a thought, or an answer of blank text."""
        return not self.likeness or (self.answers and not self.known_by.spine)


class Seen:
    """Looks at each message once, as long as it is seen now and then.

    Threads may ask at once: at worst a message is looked at twice, or forgotten early.
    """

    def __init__(
        self, wire: Wire, look: Callable[[Object], tuple[bytes, bool]], most: int = _MOST
    ) -> None:
        self._wire = wire
        self._look = look
        self._most = most
        self._now: dict[bytes, Facts] = {}
        self._before: dict[bytes, Facts] = {}

    def __call__(self, payload: bytes) -> Facts:
        """What is known of the message, which is a JSON object."""
        key = blake2b(payload, digest_size=16).digest()
        facts = self._now.get(key)
        if facts is None:
            facts = self._before.get(key) or self._seen(payload)
            if len(self._now) >= self._most:
                self._now, self._before = {}, self._now
            self._now[key] = facts
        return facts

    def _seen(self, payload: bytes) -> Facts:
        try:
            message = parsed(payload)
            likeness, answers = self._look(message)
        except InvalidMessage as error:
            return Facts(b"", answers=False, fault=error.what)
        try:
            described = self._wire.describe(payload)
        except InvalidMessage as error:
            return Facts(likeness, answers, error.what)
        return Facts(likeness, answers, "", fingerprint(described, message))
