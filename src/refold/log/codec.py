"""Values to entry bodies and back, across versions.

Bodies are written in the newest version of their kind. Older ones are lifted to it step by step by
upcasters when they are read, and stay as they are in the log. What is newer than this code, or of
an unknown kind, is handed back untouched as `Unknown`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from pydantic import JsonValue, TypeAdapter, ValidationError

from refold.errors import InvalidEntry
from refold.log.entry import Draft, Entry, check_json
from refold.log.kinds import KINDS, Forgotten, Message, Unknown, Value

_MAX_PROBLEMS = 3
"""That an error names of a body that is none."""

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
        self._check_upcasters()

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

    def _check_upcasters(self) -> None:
        for name, kind in self._kinds.items():
            for version in range(1, kind.VERSION):
                if (name, version) not in self._upcasters:
                    raise InvalidEntry(
                        f"Version {version} of {name!r} could not be read.",
                        f"Add the upcaster of ({name!r}, {version}).",
                    )


CODEC = Codec()
"""The codec of this version of Refold."""
