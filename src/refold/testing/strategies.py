"""Hypothesis strategies for what a log is made of."""

import json
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import strategies as st

from refold.log import Author, Clock, Message, Note, Value
from refold.log.artifact import INLINE_LIMIT

WORDS = ("alpha", "beta", "gamma", "Zürich", "src/app_main.py", "R2-D2", "日本語", "naïve")
"""Few enough that generated texts and generated queries meet."""

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
odd_texts = st.text(max_size=40)  # any character, lone surrogates excepted
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | odd_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_texts, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    message: dict[str, object] = {
        "role": draw(st.sampled_from(("user", "assistant", "tool"))),
        "content": draw(texts),
    }
    if draw(st.booleans()):
        message["extra"] = draw(json_values)
    return json.dumps(
        message,
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from((None, None, 2))),
    ).encode()


fillers = st.sampled_from(("line of output\n", "ünïcode ", "\\", '"quoted" '))


def large_message(filler: str, text: str) -> Message:
    body = filler * (INLINE_LIMIT // len(filler) + 1)
    return Message(json.dumps({"role": "tool", "content": body + text}).encode())


messages = payloads().map(Message)
notes = st.builds(Note, texts, json_values)
plain_values: st.SearchStrategy[Value] = st.one_of(messages, messages, messages, notes)
"""Values that any session can take at any time."""


class TickingClock:
    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


def author(seed: int = 0, clock: Clock | None = None) -> Author:
    return Author(clock or TickingClock(), Random(seed))  # noqa: S311 - the same every time
