"""Authors make drafts: they give each its id and its time.

The clock and the source of randomness are the only two impure things in `refold.log`; both can be
given from outside.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from random import Random, SystemRandom
from uuid import UUID

from refold.errors import InvalidInput
from refold.log.artifact import Artifact
from refold.log.codec import CODEC, Codec
from refold.log.entry import MAIN_SCOPE, Draft
from refold.log.kinds import Value

Clock = Callable[[], datetime]
"""Tells the time, with its time zone."""

_TAIL_BITS = 74  # what RFC 9562 leaves of a uuid7 beside its time, version and variant
_TAIL_STEP = 1 << 32


def wall_clock() -> datetime:
    """The machine's own clock."""
    return datetime.now(UTC)


class Author:
    """Makes drafts. Its ids grow, also within one millisecond and when the clock steps back."""

    def __init__(
        self, clock: Clock = wall_clock, random: Random | None = None, codec: Codec = CODEC
    ) -> None:
        self._clock = clock
        self._random = random or SystemRandom()
        self._codec = codec
        self._last = (0, 0)

    def draft(
        self,
        value: Value,
        *,
        scope: str = MAIN_SCOPE,
        artifacts: Iterable[Artifact] = (),
    ) -> Draft:
        """A draft of the value, ready to be appended."""
        at = self._now()
        return Draft(
            id=self._next_id(at),
            at=at,
            kind=value.KIND,
            version=value.VERSION,
            body=self._codec.encode(value),
            scope=scope,
            rests_on=value.rests_on(),
            attached=tuple(artifacts),
        )

    def _now(self) -> int:
        now = self._clock()
        if now.tzinfo is None:
            raise InvalidInput("The clock tells no time zone.", "Return an aware datetime.")
        return int(now.timestamp() * 1000)

    def _next_id(self, at: int) -> UUID:
        time, tail = self._last
        if at > time:
            time, tail = at, self._random.getrandbits(_TAIL_BITS - 1)
        else:
            tail += self._random.randrange(1, _TAIL_STEP)
            if tail >> _TAIL_BITS:
                time, tail = time + 1, 0
        self._last = (time, tail)
        high, low = tail >> 62, tail & ((1 << 62) - 1)
        return UUID(int=time << 80 | 7 << 76 | high << 64 | 2 << 62 | low)
