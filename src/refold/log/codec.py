"""Values to entry bodies and back, across versions; `Author` makes drafts of them.

Bodies are written in the newest version of their kind. Upcasters lift older ones to it step by step
when they are read; the log keeps them as they are. A body that is newer than this code, or of an
unknown kind, comes back untouched as `Unknown`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from random import Random, SystemRandom
from typing import Any, cast
from uuid import UUID

from pydantic import JsonValue, TypeAdapter, ValidationError

from refold.errors import InvalidEntry, InvalidInput
from refold.log.artifact import Artifact
from refold.log.entry import MAIN_SCOPE, Draft, Entry, check_json
from refold.log.kinds import KINDS, Forgotten, Message, Unknown, Value

_MAX_PROBLEMS = 3  # that one error lists

Body = dict[str, JsonValue]
Upcaster = Callable[[Body], Body]
"""Makes a body of the next version out of one of the version before."""


class Codec:
    """Knows a set of kinds, and how bodies of their older versions are lifted to today's."""

    def __init__(
        self,
        kinds: Iterable[type[Value]] = KINDS,
        upcasters: Mapping[tuple[str, int], Upcaster] | None = None,
    ) -> None:
        self._kinds = {kind.KIND: kind for kind in kinds}
        self._adapters: dict[str, TypeAdapter[Any]] = {
            name: TypeAdapter(kind) for name, kind in self._kinds.items()
        }
        self._upcasters = dict(upcasters or {})
        for name, kind in self._kinds.items():
            for version in range(1, kind.VERSION):
                if (name, version) not in self._upcasters:
                    raise InvalidEntry(
                        f"Version {version} of {name!r} could not be read.",
                        f"Add the upcaster of ({name!r}, {version}).",
                    )

    def encode(self, value: Value) -> bytes:
        """The body of a value, as raw JSON."""
        if isinstance(value, Message):
            check_json(value.payload)
            return value.payload
        return self._adapters[value.KIND].dump_json(value, exclude_defaults=True)

    def decode(self, entry: Entry | Draft) -> Value | Unknown | Forgotten:
        """The value of an entry; what this version does not know comes back untouched."""
        if entry.forgotten:
            return Forgotten(entry.kind, json.loads(entry.body))
        kind = self._kinds.get(entry.kind)
        if kind is None or entry.version > kind.VERSION:
            return Unknown(entry.kind, entry.version, entry.body)
        if kind is Message:
            return Message(entry.body)
        try:
            return self._validated(kind, entry)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[:_MAX_PROBLEMS]
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in first
            )
            raise InvalidEntry(f"Not a body of kind {entry.kind!r}: {problems}.") from None

    def kind(self, name: str) -> type[Value] | None:
        """The kind stored under a name, if this version knows it."""
        return self._kinds.get(name)

    def _validated(self, kind: type[Value], entry: Entry | Draft) -> Value:
        adapter = self._adapters[entry.kind]
        if entry.version == kind.VERSION:
            return cast("Value", adapter.validate_json(entry.body))
        body: Body = json.loads(entry.body)
        for version in range(entry.version, kind.VERSION):
            body = self._upcasters[entry.kind, version](body)
        return cast("Value", adapter.validate_python(body, strict=False))


CODEC = Codec()
"""The codec of this version of Refold."""


# The clock and the source of randomness are the only impure things in `refold.log`; both can be
# injected.

Clock = Callable[[], datetime]
"""Returns the current time, with a time zone."""

_TAIL_BITS = 74  # what RFC 9562 leaves of a uuid7 besides its time, version and variant
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

    def now(self) -> int:
        """The time, in milliseconds since 1970."""
        now = self._clock()
        if now.tzinfo is None:
            raise InvalidInput("The clock tells no time zone.", "Return an aware datetime.")
        return int(now.timestamp() * 1000)

    def draft(
        self, value: Value, *, scope: str = MAIN_SCOPE, artifacts: Iterable[Artifact] = ()
    ) -> Draft:
        """A draft of the value, ready to be appended."""
        at = self.now()
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
