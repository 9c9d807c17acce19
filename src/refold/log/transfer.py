"""A session as JSON lines, and back, byte for byte.

The first line names the file's format and the session, each further line is one entry or one
artifact, and the last line counts the entries. A body stands in its line as the raw JSON it is, so
that people and `jq` can read the file; a body that spans lines is written as a string instead.
"""

import base64
import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from refold.errors import (
    Conflict,
    IdReused,
    InvalidInput,
    SessionExists,
    SessionForgotten,
    SessionNotFound,
    TransferError,
    WrittenByNewer,
)
from refold.log.admit import Facts, admit_new, needs_controls
from refold.log.artifact import Artifact
from refold.log.codec import CODEC
from refold.log.entry import (
    MAIN_SCOPE,
    Draft,
    Entry,
    Span,
    check_draft,
    check_json,
    check_name,
    reject_constant,
)
from refold.log.kinds import Requested
from refold.log.outline import CONTROL_KINDS, Outline, Replay
from refold.log.protocol import Log, SessionInfo, State

FORMAT = 1
_PAGE = 100
_IMPORT_PAGE = 1_000
"""Entries that are appended at once. A page with a rewind makes a store read all control entries
before it, so there are few pages."""
_MAX_BYTES = 8 << 20
_MAX_RUNNING = 1_000
_MAX_PINS = 5_000
_MAX_FOLDS = 256
_MAX_NESTED_FOLDS = 1_000
"""Limits on what each entry is compared or copied with. Refold itself writes a few of each."""
_BLANK = " \t\r\n"
_OPEN, _CLOSE, _COLON, _COMMA = (
    re.compile(rf"[{_BLANK}]*{mark}[{_BLANK}]*") for mark in (r"\{", r"\}", ":", ",")
)
_HASH = re.compile("[0-9a-f]{64}")
_VALUES = json.JSONDecoder(parse_constant=reject_constant)
# A body is kept as it is written, so its numbers may be of any size and are not parsed.
_BODIES = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=reject_constant)
_ANOTHER_NAME = "Import it under another name."


@dataclass(frozen=True, slots=True)
class Contents:
    session: str
    entries: int
    messages: int


async def export_session(log: Log, session: str) -> AsyncIterator[str]:
    """The session's lines, each with its line end. Marks are not among them: they are the log's."""
    head = await log.head(session)
    yield _dump_line({"refold": FORMAT, "session": session})
    exported: set[str] = set()
    for first in range(1, head + 1, _PAGE):
        for entry in await log.read(session, Span(first, min(first + _PAGE - 1, head))):
            for hash_ in entry.attached:
                if hash_ not in exported:
                    exported.add(hash_)
                    yield _artifact_line(await log.artifact(hash_))
            yield entry_line(entry)
    yield _dump_line({"entries": head})


async def check_lines(lines: AsyncIterable[str], *, name: str | None = None) -> Contents:
    """What the file holds; an error if importing it would fail halfway."""
    reader = _Reader(name)
    async for line in lines:
        reader.take(line)
    return reader.finish()


async def import_session(
    log: Log, lines: AsyncIterable[str], *, name: str | None = None
) -> SessionInfo:
    """Append the session of an exported file; importing it twice, or again after a crash, is safe.

    `name` gives the session another name than it had. What the log holds of the session already is
    left as it is; only the entries after that are appended. A line ends at a line feed only.
    """
    reader = _Reader(name)
    appender = None
    async for line in lines:
        draft = reader.take(line)
        if draft is not None:
            if appender is None:
                head = 0
                with suppress(SessionNotFound, SessionForgotten):
                    head = await log.head(reader.session)
                appender = _Appender(log, reader.session, head)
            await appender.add(reader.number, draft)
    reader.finish()
    if appender:
        await appender.flush()
    return await log.info(reader.session)


def _encodable(text: str) -> str:
    text.encode()
    return text


_Number = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
_Text = Annotated[str, AfterValidator(_encodable)]
"""A string without lone surrogates, which JSON can spell and no store can keep."""


class _EntryLine(BaseModel):
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


class _ArtifactLine(BaseModel):
    model_config = ConfigDict(frozen=True)

    artifact: str
    media_type: _Text
    data: str


def entry_line(entry: Entry) -> str:
    """An entry as a line of an exported session, with its line end."""
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
    if "\n" in body or "\r" in body or body.strip(_BLANK) != body:
        return _dump_line({**header, "text": body})
    return f'{_dump_line(header)[:-2]},"body":{body}}}\n'


def _artifact_line(artifact: Artifact) -> str:
    return _dump_line(
        {
            "artifact": artifact.hash,
            "media_type": artifact.media_type,
            "data": base64.b64encode(artifact.data).decode(),
        }
    )


def _dump_line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":")) + "\n"


def _parse_line(text: str) -> tuple[dict[str, Any], str | None]:
    """The fields of a line, and its body as it is written there."""
    fields: dict[str, Any] = {}
    body: str | None = None
    index = _skip(text, 0, _OPEN)
    while True:
        key, end = _VALUES.raw_decode(text, index)
        index = _skip(text, end, _COLON)
        if not isinstance(key, str):
            raise ValueError("a field without a name")  # noqa: TRY004 - as of any other text
        if key == "body":
            _, end = _BODIES.raw_decode(text, index)
            body = text[index:end]
        else:
            fields[key], end = _VALUES.raw_decode(text, index)
        comma = _COMMA.match(text, end)
        if comma is None:
            break
        index = comma.end()
    if _skip(text, end, _CLOSE) != len(text):
        raise ValueError("more than one value")
    return fields, body


def _skip(text: str, index: int, mark: re.Pattern[str]) -> int:
    match = mark.match(text, index)
    if match is None:
        raise ValueError(f"no {mark.pattern!r}")
    return match.end()


def _entry_body(fields: dict[str, Any], body: str | None) -> bytes:
    """The body of an entry: as it stands in its line, or as a string of its own."""
    if body is not None:
        return body.encode()
    if "text" not in fields:
        raise ValueError("no body")
    text = str(fields["text"]).encode()
    check_json(text)
    return text


class _Appender:
    """Appends drafts in batches: those that the log holds already, then new ones."""

    def __init__(self, log: Log, session: str, head: int) -> None:
        self._log = log
        self._session = session
        self._head = head
        self._appended = 0
        self._pending: list[tuple[int, Draft]] = []
        self._size = 0

    async def add(self, number: int, draft: Draft) -> None:
        self._pending.append((number, draft))
        self._size += len(draft.body) + sum(len(artifact.data) for artifact in draft.attached)
        full = len(self._pending) >= _IMPORT_PAGE or self._size >= _MAX_BYTES
        if full or self._appended + len(self._pending) == self._head:
            await self.flush()

    async def flush(self) -> None:
        if not self._pending:
            return
        drafts = [draft for _, draft in self._pending]
        try:
            await self._log.append(self._session, drafts, expected=self._appended)
        except (Conflict, IdReused) as error:
            raise SessionExists(
                f"There is another session {self._session!r} already: "
                f"line {await self._first_missing()} of the file is not in it.",
                _ANOTHER_NAME,
            ) from error
        except SessionForgotten as error:
            raise SessionForgotten(error.what, _ANOTHER_NAME) from error
        except InvalidInput as error:
            first, last = self._pending[0][0], self._pending[-1][0]
            what = f"Lines {first} to {last} of the file cannot be appended: {error.what}"
            raise TransferError(what, error.fix) from error
        self._appended += len(drafts)
        self._pending, self._size = [], 0

    async def _first_missing(self) -> int:
        # Looking for it writes nothing, because nothing can be appended before the head.
        for index, (number, draft) in enumerate(self._pending):
            expected = self._appended + index
            if expected >= self._head:
                return number
            try:
                await self._log.append(self._session, [draft], expected=expected)
            except (Conflict, IdReused):
                return number
        return self._pending[0][0]


class _Reader:
    """Makes drafts of the lines of a file, and reports the line of each error.

    It tracks the session's state as a log would, so that an entry that no log could accept is found
    before anything is written.
    """

    def __init__(self, name: str | None) -> None:
        self.session = name or ""
        self.number = 0
        self._named = name is not None
        self._state: State | None = None
        self._controls: list[Entry] = []
        self._replay: Replay | None = None
        self._artifacts: dict[str, Artifact] = {}
        self._ids: set[UUID] = set()
        self._started = self._ended = False

    def take(self, line: str) -> Draft | None:
        self.number += 1
        if not line.strip(_BLANK):
            return None
        try:
            return self._take(*_parse_line(line.removeprefix("\ufeff")))
        except InvalidInput as error:
            raise self._wrong(f"cannot be imported: {error.what}", error.fix) from error
        except (ValueError, RecursionError) as error:
            raise self._wrong("is not a line of an exported session.") from error

    def finish(self) -> Contents:
        if not self._ended or self._state is None:
            after = f"ends after line {self.number} without its last line" if self.number else ""
            raise TransferError(f"The file {after or 'is empty'}: it was cut short.")
        return Contents(self.session, self._state.head, self._state.messages)

    def _take(self, fields: dict[str, Any], body: str | None) -> Draft | None:
        if not self._started:
            self._start(fields)
        elif self._ended:
            raise self._wrong("comes after the end of the session.")
        elif "artifact" in fields:
            self._keep(_ArtifactLine.model_validate(fields))
        elif "entries" in fields:
            self._end(fields["entries"])
        else:
            return self._draft(_EntryLine.model_validate(fields), _entry_body(fields, body))
        return None

    def _start(self, fields: dict[str, Any]) -> None:
        version = fields.get("refold")
        if type(version) is not int or version < 1:
            raise self._wrong(
                "is not the start of an exported session.",
                "Check that it is a file that `refold export` wrote.",
            )
        if version > FORMAT:
            raise WrittenByNewer(
                f"Line {self.number} of the file names format {version}; "
                f"this Refold reads formats up to {FORMAT}.",
                "Upgrade Refold.",
            )
        self._started = True
        if not self._named:
            self.session = str(fields.get("session", ""))
        check_name(self.session)

    def _keep(self, line: _ArtifactLine) -> None:
        artifact = Artifact.of(base64.b64decode(line.data, validate=True), line.media_type)
        if artifact.hash != line.artifact:
            raise self._wrong("holds an artifact that is not what its hash says.")
        self._artifacts[artifact.hash] = artifact

    def _end(self, entries: object) -> None:
        if type(entries) is not int:
            raise ValueError("no count")
        if entries != self._head or not entries:
            raise self._wrong(f"counts {entries} entries, but {self._head} came before it.")
        self._ended = True

    def _draft(self, line: _EntryLine, body: bytes) -> Draft:
        if line.seq != self._head + 1:
            raise self._wrong(f"holds entry {line.seq} where entry {self._head + 1} should be.")
        if line.id in self._ids:
            raise self._wrong(f"repeats the id {line.id} of an earlier line.")
        self._ids.add(line.id)
        for hash_ in line.artifacts:
            if hash_ not in self._artifacts:
                named = hash_ if _HASH.fullmatch(hash_) else repr(hash_[:64])
                raise self._wrong(f"refers to artifact {named}, which no line before it holds.")
        draft = Draft(
            id=line.id,
            at=line.at,
            kind=line.kind,
            version=line.version,
            body=body,
            scope=line.scope,
            rests_on=tuple(Span(first, last) for first, last in line.rests_on),
            attached=tuple(self._artifacts[hash_] for hash_ in line.artifacts),
            forgotten=line.forgotten,
        )
        check_draft(draft)
        CODEC.decode(draft)  # later readers rely on its body being what its kind says
        self._admit(draft)
        return draft

    def _admit(self, draft: Draft) -> None:
        controls: Sequence[Entry] = ()
        if needs_controls([draft]):
            controls = self._controls
            self._replay = self._replay or Replay(controls)
        facts = Facts(self._state, {}, controls, replay=self._replay)
        outcome = admit_new(self.session, [draft], self._head, facts)
        self._state = outcome.state
        if draft.kind in CONTROL_KINDS:
            # A replay needs control entries whole, but request records without their bodies.
            body = b"" if draft.kind == Requested.KIND else draft.body
            entry = outcome.entries[0]
            self._controls.append(
                entry._replace(body=body, scope=MAIN_SCOPE, rests_on=(), holes=(), attached=())
            )
            self._check_outline(self._state.outline)

    def _check_outline(self, outline: Outline) -> None:
        nested = self._replay.folds if self._replay else 0
        for what, count, max_count in (
            ("folds that have not ended", len(outline.running), _MAX_RUNNING),
            ("pinned parts", len(outline.pins), _MAX_PINS),
            ("folds side by side", len(outline.folds), _MAX_FOLDS),
            ("folds", nested, _MAX_NESTED_FOLDS),
        ):
            if count > max_count:
                raise self._wrong(
                    f"makes more than {max_count:,} {what} in one session.",
                    "Check where the file comes from: Refold does not write such sessions.",
                )

    @property
    def _head(self) -> int:
        return self._state.head if self._state else 0

    def _wrong(self, what: str, fix: str | None = None) -> TransferError:
        return TransferError(f"Line {self.number} of the file {what}", fix)
