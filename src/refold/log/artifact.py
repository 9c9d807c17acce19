"""Large bodies, stored once under their content hash.

An entry's body is raw JSON. Before it is stored, each string in it that is larger than
`INLINE_LIMIT` is lifted out and leaves an empty string and a `Hole`; putting the strings back
gives the same bytes again. A body that is still too large (a structure of many small values) is
lifted out whole. So no stored body exceeds the limit, a tool result read twice is stored once, and
a reader that needs only the shape of a message need not load a megabyte.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

INLINE_LIMIT = 16 * 1024
"""The largest body, in bytes, that is stored in its entry's own row."""

_STRING = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_NULL = b"null"

Form = Literal["utf-8", "ascii", "raw"]
"""How an artifact was written in the JSON it came from.

As a JSON string, with or without escapes for what is not ASCII (the artifact is then the text
itself), or byte for byte as the artifact is.
"""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A body and the hash it is stored under."""

    data: bytes
    media_type: str
    hash: str

    @classmethod
    def of(cls, data: bytes, media_type: str = "application/octet-stream") -> "Artifact":
        """The artifact of these bytes."""
        return cls(data, media_type, sha256(data).hexdigest())


@dataclass(frozen=True, slots=True)
class Hole:
    """Where an artifact was lifted out of a body: at `offset`, for `length` bytes left there."""

    offset: int
    length: int
    hash: str
    form: Form


Lifted = tuple[bytes, tuple[Hole, ...], tuple[Artifact, ...]]
"""A body with its large strings lifted out, the holes they left, and the artifacts."""


def lift(body: bytes) -> Lifted:
    """The body with its large strings lifted out, the holes they left, and the artifacts."""
    if len(body) <= INLINE_LIMIT:
        return body, (), ()
    pieces: list[bytes] = []
    holes: list[Hole] = []
    artifacts: list[Artifact] = []
    position = offset = 0
    for match in _STRING.finditer(body):
        start, end = match.span(1)
        if end - start > INLINE_LIMIT:
            form, artifact = _artifact_of(body[start:end])
            pieces.append(body[position:start])
            offset += start - position
            holes.append(Hole(offset, 0, artifact.hash, form))
            artifacts.append(artifact)
            position = end
    lean = b"".join([*pieces, body[position:]])
    if len(lean) <= INLINE_LIMIT:
        return lean, tuple(holes), tuple(artifacts)
    whole = Artifact.of(body, "application/json")
    return _NULL, (Hole(0, len(_NULL), whole.hash, "raw"),), (whole,)


def lower(body: bytes, holes: tuple[Hole, ...], fetch: Callable[[str], bytes]) -> bytes:
    """The body as it was before `lift`, byte for byte."""
    pieces: list[bytes] = []
    position = 0
    for hole in holes:
        pieces += [body[position : hole.offset], _encode(fetch(hole.hash), hole.form)]
        position = hole.offset + hole.length
    return b"".join([*pieces, body[position:]])


def _artifact_of(literal: bytes) -> tuple[Form, Artifact]:
    try:
        text = json.loads(b'"' + literal + b'"').encode()
    except UnicodeEncodeError:  # a lone surrogate is legal JSON and no text
        return "raw", Artifact.of(literal, "application/json")
    forms: tuple[Form, ...] = ("utf-8", "ascii")
    for form in forms:
        if _encode(text, form) == literal:
            return form, Artifact.of(text, "text/plain")
    return "raw", Artifact.of(literal, "application/json")


def _encode(data: bytes, form: Form) -> bytes:
    if form == "raw":
        return data
    return json.dumps(data.decode(), ensure_ascii=form == "ascii").encode()[1:-1]
