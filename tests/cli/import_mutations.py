"""A small exported session with every kind of entry, and mutations of its file."""

import asyncio
import json
from uuid import UUID

from hypothesis import strategies as st

from refold.log import (
    Artifact,
    Author,
    Cleared,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldUndone,
    Message,
    Note,
    Opened,
    PartRef,
    Pinned,
    Requested,
    Rewound,
    Saved,
    Span,
    Titled,
    Unpinned,
    Used,
    export_session,
)
from refold.stores import MemoryStore
from refold.testing.strategies import author

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202e\u2028\x85\x00"
HOSTILE = [
    None,
    True,
    -1,
    0,
    1,
    1 << 31,
    1 << 63,
    1 << 64,
    10**300,
    1e308,
    0.5,
    "",
    "x" * 5_000,
    ESCAPES,
    "\ud800",
    "\x00",
    "../../../etc/passwd",
    "file:///etc/passwd",
    "http://127.0.0.1:9/",
    "9" * 400,
    {},
    [],
    [[]],
    {"first": 1, "last": 10**30},
    {ESCAPES: ESCAPES},
    {"$ref": "#"},
    json.loads("[" * 90 + "]" * 90),
]
PIECES = [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\x1b[31m",
    b"\r",
    b"\n",
    b'"',
    b"}",
    b",",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"9" * 5_000,
    b"[" * 5_000,
    b'{"a":' * 5_000,
    b"\\ud800",
    b"\\u0000",
]


def _fold(first, last, number):
    fold, spans = UUID(int=number), (Span(first, last),)
    return FoldStarted(fold, spans, "tokens", context={"model": "m"}), FoldCompleted(
        fold, spans, {"text": "They spoke of parcels.", "format": 1}
    )


def _values():
    def message(role, content, **more):
        return Message(json.dumps({"role": role, "content": content, **more}).encode())

    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    picture = {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}
    yield Opened("openai-chat", "balanced", "Parcels", owner="key-1")
    yield message("system", "Be brief.")
    yield message("user", [{"type": "text", "text": "Where is alpha?"}, picture])
    yield message("assistant", None, tool_calls=[call])
    yield message("tool", "alpha " * 4_000, tool_call_id="c1")
    yield message("assistant", "In Zürich.")
    yield Requested((Span(2, 4),), {"edits": []}, "m", "0" * 64, limit=9)
    yield Used(7, {"input": 5, "output": 2}, 0.5)
    yield Note("a remark", {"x": [1]})
    yield Saved("pydantic-ai", {"run": "1"}, {"words": "alpha"}, (Span(3, 3),))
    yield from _fold(3, 5, 1)
    yield Pinned((PartRef(3, 0),))
    yield Unpinned((PartRef(3, 0),))
    yield FoldUndone(UUID(int=1))
    started, _ = _fold(3, 6, 2)
    yield started
    yield FoldFailed(UUID(int=2), "canceled")
    yield message("user", "And beta?")
    yield Rewound(15)
    yield message("user", "And gamma?")
    yield Titled("Parcels again")
    yield Cleared()
    yield message("user", "Once more.")


def exported_lines():
    """The lines of the file, as bytes."""

    async def lines():
        log, writer = MemoryStore().log(), author(1)
        drafts = [_draft(writer, value) for value in _values()]
        drafts[8] = drafts[8]._replace(attached=(Artifact.of(b"\x89PNG", "image/png"),))
        await log.append("s", drafts, expected=0)
        return [line.encode() async for line in export_session(log, "s")]

    return asyncio.run(lines())


def _draft(writer: Author, value):
    return writer.draft(value)


LINES = exported_lines()
KINDS = sorted({json.loads(line)["kind"] for line in LINES if b'"kind"' in line})


def _paths(value, path=()):
    yield path
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in inner:
            yield from _paths(one, (*path, key))


def _changed(value, path, new):
    """The value with a new one at the path; None of a key's path deletes it there."""
    if not path:
        return new
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = _changed(value[key], rest, new)
    return copy


def _without(value, path):
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        copy[key] = _without(value[key], rest)
    else:
        del copy[key]
    return copy


@st.composite
def _edited(draw, lines):
    """One value of one line is another, is missing, is there twice, or of another kind."""
    index = draw(st.integers(0, len(lines) - 1))
    try:
        value = json.loads(lines[index])
    except (ValueError, RecursionError):
        return lines
    paths = list(_paths(value))
    path = draw(st.sampled_from(paths))
    how = draw(st.sampled_from(["change", "change", "change", "delete", "double", "kind"]))
    if how == "kind" and isinstance(value, dict) and "kind" in value:
        value = {**value, "kind": draw(st.sampled_from(KINDS))}
    elif how == "delete" and path:
        value = _without(value, path)
    elif how == "double" and isinstance(value, dict) and value:
        key = draw(st.sampled_from(sorted(value)))
        twice = f"{json.dumps({key: draw(st.sampled_from(HOSTILE))})[:-1]},".encode()
        return [*lines[:index], lines[index].replace(b"{", twice, 1), *lines[index + 1 :]]
    else:
        value = _changed(value, path, draw(st.sampled_from(HOSTILE)))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    return [*lines[:index], text.encode(errors="surrogatepass") + b"\n", *lines[index + 1 :]]


@st.composite
def _damaged(draw, lines):
    """Bytes of one line are others."""
    index = draw(st.integers(0, len(lines) - 1))
    line = lines[index]
    start = draw(st.integers(0, len(line)))
    end = min(len(line), start + draw(st.sampled_from([0, 0, 1, 1, 5, len(line)])))
    line = line[:start] + draw(st.sampled_from(PIECES)) + line[end:]
    return [*lines[:index], line, *lines[index + 1 :]]


@st.composite
def _moved(draw, lines):
    """Whole lines are missing, are there twice, or are elsewhere."""
    first, second = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
    how = draw(st.sampled_from(["delete", "double", "swap", "cut"]))
    if how == "delete":
        return lines[:first] + lines[first + 1 :]
    if how == "double":
        return [*lines[:first], lines[second], *lines[first:]]
    if how == "cut":
        return lines[:first]
    copy = list(lines)
    copy[first], copy[second] = copy[second], copy[first]
    return copy


@st.composite
def mutated_files(draw):
    """The file after one to three mutations."""
    lines = LINES
    for _ in range(draw(st.integers(1, 3))):
        if not lines:
            break
        mutation = draw(st.sampled_from([_edited, _edited, _edited, _damaged, _moved]))
        lines = draw(mutation(lines))
    return b"".join(lines)
