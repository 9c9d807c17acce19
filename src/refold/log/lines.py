"""One line of an exported session, written and read.

The first line names the file's format and the session, each further line is one entry or one
artifact, the last line counts the entries. A body stands in its line as the raw JSON it is, so that
the file can be read by people and by `jq`; a body that spans lines is written as a string instead.
"""

import base64
import json
import re
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from refold.log.artifact import Artifact
from refold.log.entry import MAIN_SCOPE, Entry, check_json

BLANK = " \t\r\n"
_GAP = re.compile(f"[{BLANK}]*")


def _encodable(text: str) -> str:
    text.encode()
    return text


_Number = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
_Text = Annotated[str, AfterValidator(_encodable)]
"""A string without lone surrogates, which JSON can spell and no store can keep."""


class EntryLine(BaseModel):
    """The fields of an entry's line, beside its body."""

    model_config = ConfigDict(frozen=True)

    seq: int
    id: UUID
    at: _Number
    kind: str
    version: _Number
    scope: _Text = MAIN_SCOPE
    rests_on: tuple[tuple[int, int], ...] = ()
    artifacts: tuple[str, ...] = ()
    forgotten: bool = False


class ArtifactLine(BaseModel):
    """The fields of an artifact's line."""

    model_config = ConfigDict(frozen=True)

    artifact: str
    media_type: _Text
    data: str


def entry_line(entry: Entry) -> str:
    """The line of an entry."""
    header: dict[str, Any] = {
        "seq": entry.seq,
        "id": str(entry.id),
        "at": entry.at,
        "kind": entry.kind,
        "version": entry.version,
    }
    if entry.scope != MAIN_SCOPE:
        header["scope"] = entry.scope
    if entry.rests_on:
        header["rests_on"] = [[span.first, span.last] for span in entry.rests_on]
    if entry.attached:
        header["artifacts"] = entry.attached
    if entry.forgotten:
        header["forgotten"] = True
    body = entry.body.decode()
    if "\n" in body or "\r" in body or body.strip(BLANK) != body:
        return plain_line({**header, "text": body})
    return f'{plain_line(header)[:-2]},"body":{body}}}\n'


def artifact_line(artifact: Artifact) -> str:
    """The line of an artifact."""
    return plain_line(
        {
            "artifact": artifact.hash,
            "media_type": artifact.media_type,
            "data": base64.b64encode(artifact.data).decode(),
        }
    )


def plain_line(fields: dict[str, Any]) -> str:
    """A line of these fields, with its line end."""
    return json.dumps(fields, separators=(",", ":")) + "\n"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


_VALUES = json.JSONDecoder(parse_constant=_no_constant)
# A body is kept as it is written, so its numbers may be of any size and need no reading.
_BODIES = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_constant)


def fields_of(text: str) -> tuple[dict[str, Any], str | None]:
    """The fields of a text, wherever its spaces are, and the body as it is written there."""
    fields: dict[str, Any] = {}
    body: str | None = None
    at = _after(text, 0, "{")
    while True:
        key, end = _VALUES.raw_decode(text, at)
        at = _after(text, end, ":")
        if not isinstance(key, str):
            raise ValueError("a field without a name")  # noqa: TRY004 - as of any other text
        if key == "body":
            _, end = _BODIES.raw_decode(text, at)
            body = text[at:end]
        else:
            fields[key], end = _VALUES.raw_decode(text, at)
        if _next(text, end) != ",":
            break
        at = _after(text, end, ",")
    if _after(text, end, "}") != len(text):
        raise ValueError("more than one value")
    return fields, body


def _after(text: str, at: int, mark: str) -> int:
    """Where the text goes on after a mark and the blanks around it."""
    if _next(text, at) != mark:
        raise ValueError(f"no {mark!r}")
    return _skip(text, _skip(text, at) + 1)


def _next(text: str, at: int) -> str:
    at = _skip(text, at)
    return text[at : at + 1]


def _skip(text: str, at: int) -> int:
    blank = _GAP.match(text, at)
    return blank.end() if blank else at


def body_of(fields: dict[str, Any], body: str | None) -> bytes:
    """The body of an entry: as it stands in its line, or as a string of its own."""
    if body is not None:
        return body.encode()
    if "text" not in fields:
        raise ValueError("no body")
    text = str(fields["text"]).encode()
    check_json(text)
    return text
