"""Random sessions, with their requests, for the tests of the view."""

from dataclasses import dataclass, field
from functools import lru_cache
from uuid import UUID

from hypothesis import strategies as st

from refold.log import (
    CODEC,
    Cleared,
    Entry,
    FoldCompleted,
    FoldStarted,
    Message,
    Opened,
    PartRef,
    Pinned,
    Rewound,
    SessionInfo,
    Visible,
)
from refold.log.entry import Span, intersect, subtract
from refold.log.outline import CONTROL_KINDS, replay
from refold.testing.wire import conversations


class Remembering:
    """A wire that describes each payload once: these tests look at the same ones often."""

    def __init__(self, wire):
        self._wire = wire
        self.describe = lru_cache(None)(wire.describe)

    def __getattr__(self, name):
        return getattr(self._wire, name)


class Quarter:
    """A counter that is quick, deterministic and rough."""

    name = "quarter"

    def __init__(self, spread=0.0):
        self.spread = spread

    def text(self, text, kind="text"):  # noqa: ARG002 - a counter takes it
        return len(text) // 4 + 1

    def part(self, shape):
        return self.text(shape.text) + len(shape.tool or "") // 4 + 100 * len(shape.media)


@dataclass
class Session:
    """A log in memory, as simple as can be."""

    format: str
    entries: list[Entry] = field(default_factory=list)

    def __post_init__(self):
        self.add(Opened(self.format, "balanced"))

    @property
    def head(self):
        return len(self.entries)

    def add(self, value, scope="/"):
        seq = self.head + 1
        entry = Entry(seq, UUID(int=seq), 0, value.KIND, value.VERSION, CODEC.encode(value), scope)
        self.entries.append(entry._replace(rests_on=value.rests_on()))
        return entry

    def outline(self):
        return replay(entry for entry in self.entries if entry.kind in CONTROL_KINDS)

    def visible(self, last=None):
        outline = self.outline()
        needed = outline.needed(self.head, last)
        info = SessionInfo("s", None, self.format, "balanced", 0, 0, self.head, 0)
        found = (one for one in self.entries if any(one.seq in span for span in needed))
        return Visible(info, outline, tuple(found))

    def messages(self):
        return [entry for entry in self.entries if entry.kind == Message.KIND]

    def apply(self, op):
        """Do what a drawn operation says, if it has a meaning now. Did the outline move?"""
        name, a, b = op
        outline = self.outline()
        line = outline.on_line(self.head)
        match name:
            case "rewind":
                self.add(Rewound(1 + a % self.head))
            case "clear":
                self.add(Cleared())
            case "pin":
                messages = self.messages()
                if not messages:
                    return False
                self.add(Pinned((PartRef(messages[a % len(messages)].seq, b % 2),)))
            case "fold":
                first = 2 + a % self.head
                last = min(self.head, first + b)
                if first > last:
                    return False
                folded = (s for fold in outline.folds for s in fold.spans)
                spans = subtract(intersect((Span(first, last),), line), folded)
                if not spans:
                    return False
                fold = UUID(int=self.head + 1000)
                self.add(FoldStarted(fold, spans, "test"))
                self.add(FoldCompleted(fold, spans, f"They talked of {b} things."))
        return True


_SCOPES = ["/", "/", "/", "/a", "/b", "/a/deep"]
operations = st.tuples(
    st.sampled_from(["rewind", "clear", "pin", "pin", "fold", "fold", "fold"]),
    st.integers(0, 60),
    st.integers(0, 20),
)


@st.composite
def scripts(draw, format, *, steered=True):  # noqa: A002 - the glossary's word
    """What happens in a session: messages, requests between them, and sometimes steering.

    A list of ("message", payload, scope), ("request",) and ("steer", operation).
    """
    messages = draw(conversations(format, legal=draw(st.booleans()), max_moves=10))
    if draw(st.integers(0, 3)) == 0:
        messages = messages * 2
    delegated = draw(st.integers(0, 3)) == 0
    # One number says all that happens around a message: drawing is what takes the time.
    fates = draw(st.lists(st.integers(0, 2**16), min_size=len(messages), max_size=len(messages)))
    script = []
    for payload, fate in zip(messages, fates, strict=True):
        scope = _SCOPES[fate % len(_SCOPES)] if delegated and script else "/"
        script.append(("message", payload, scope))
        if fate // 8 % 6 == 0:
            script.append(("request",))
        if steered and fate // 64 % 24 == 0:
            script.append(("steer", draw(operations)))
    return [*script, ("request",)]
