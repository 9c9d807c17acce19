"""What the parts of the suite share."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from refold.testing.wire.script import Fault, Spelling, faulty, payloads, scripts
from refold.wire import Drop, Insert, InsertKind, Replace, Shape, Wire

_Test = TypeVar("_Test", bound=Callable[..., Any])

GONE = Drop("suite")
ODD_TEXTS = (
    "x",
    "two\nlines",
    'a "quote" and a \\ backslash',
    "日本語のテキスト",
    "\u2028 🙂 \x7f",
    "{}",
    "word " * 300,
)


def property_test(test: _Test) -> _Test:
    checks = [HealthCheck.differing_executors, HealthCheck.too_slow, HealthCheck.filter_too_much]
    return settings(deadline=None, suppress_health_check=checks)(test)


class Conformance:
    wire: ClassVar[Wire]
    spelling: ClassVar[Spelling]
    """How scripts are written in the format."""
    samples: ClassVar[Sequence[bytes]] = ()
    """Legal messages with all that the format has."""
    refused: ClassVar[Sequence[bytes]] = ()
    """JSON objects that are no messages of the format."""
    faults: ClassVar[Mapping[str, Sequence[bytes]]] = {}
    """Conversations that the provider refuses, by what is wrong with them."""
    forgiven: ClassVar[frozenset[Fault]] = frozenset()
    """Faults that the format does not mind."""

    def conversations(self, *, legal: bool = True) -> st.SearchStrategy[list[bytes]]:
        said = scripts(max_moves=8)
        return payloads(said if legal else faulty(said), self.spelling)

    def messages(self) -> st.SearchStrategy[bytes]:
        made = payloads(scripts(max_moves=3), self.spelling).flatmap(st.sampled_from)
        return made | st.sampled_from(self.samples) if self.samples else made

    def shapes(self, payload: bytes | None) -> tuple[Shape, ...]:
        return () if payload is None else self.wire.describe(payload).shapes

    def without(self, payload: bytes, nth: int) -> bytes:
        """What goes when a part is dropped, without the comma and spaces around it."""
        left = self.wire.edit(payload, {nth: GONE})
        return b"" if left is None else _lost(payload, left)


def _lost(old: bytes, new: bytes) -> bytes:
    """The bytes that are missing; where they could be read in several ways, whole values."""
    start, end = around(old, new)
    for at in range(start + 1):
        piece = old[start - at : end - at].strip(b", \n\r\t")
        if _is_json(piece) or _is_json(b"{" + piece + b"}"):
            return piece
    return old[start:end]


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except ValueError:
        return False
    return True


def around(old: bytes, new: bytes) -> tuple[int, int]:
    """Where the old bytes differ from the new ones: what is before and after is the same."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    after = shorter - start
    same = next((at for at in range(after) if old[-1 - at] != new[-1 - at]), after)
    return start, len(old) - same


def editable(shapes: Sequence[Shape]) -> list[int]:
    return [nth for nth, shape in enumerate(shapes) if not shape.sealed]


def said_as(shape: Shape, text: str) -> Replace:
    """A change after which the part says this and no more; a call needs arguments."""
    new = json.dumps({"said": text}) if shape.kind == "call" else text
    return Replace(0, new, 0, "suite")


def returns(calls: Sequence[Shape], text: str = "Interrupted.") -> list[Insert]:
    return [Insert(1, "return", text, "suite", shape.tool, shape.call) for shape in calls]


def insert(kind: InsertKind, text: str) -> Insert:
    return Insert(1, kind, text, "suite", "search", "call_x")
