"""A session as JSON lines, and back, byte for byte."""

import base64
import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Sequence
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
from refold.log.entry import MAIN_SCOPE, Draft, Entry, Span, check_draft, check_json, check_name
from refold.log.kinds import Requested
from refold.log.outline import CONTROL_KINDS, Outline, Replay
from refold.log.protocol import Log, SessionInfo, State

# One line of an exported session, written and read.
#
# The first line names the file's format and the session, each further line is one entry or one
# artifact, the last line counts the entries. A body stands in its line as the raw JSON it is, so
# that
# the file can be read by people and by `jq`; a body that spans lines is written as a string
# instead.

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


FORMAT = 1
_PAGE = 100
_IMPORT_PAGE = 1_000
"""Entries that are appended at once. A page with a rewind makes a store read all control entries
before it, so there are few pages."""
_MOST_BYTES = 8 << 20
_ANOTHER_NAME = "Import it under another name."
_MAX_RUNNING = 1_000
_MAX_PINS = 5_000
_MAX_FOLDS = 256
_MAX_NESTED_FOLDS = 1_000
"""What each entry is compared with, or copied with, in a session. Refold itself leaves a few."""

_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Contents:
    """What an exported file holds."""

    session: str
    entries: int
    messages: int


async def export_session(log: Log, session: str) -> AsyncIterator[str]:
    """The session's lines, each with its line end. Marks are not among them: they are the log's."""
    head = await log.head(session)
    yield plain_line({"refold": FORMAT, "session": session})
    known: set[str] = set()
    for first in range(1, head + 1, _PAGE):
        for entry in await log.read(session, Span(first, min(first + _PAGE - 1, head))):
            for hash_ in entry.attached:
                if hash_ not in known:
                    known.add(hash_)
                    yield artifact_line(await log.artifact(hash_))
            yield entry_line(entry)
    yield plain_line({"entries": head})


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
            appender = appender or _Appender(log, reader.session, await _head(log, reader.session))
            await appender.add(reader.number, draft)
    reader.finish()
    if appender:
        await appender.flush()
    return await log.info(reader.session)


async def _head(log: Log, session: str) -> int:
    try:
        return await log.head(session)
    except (SessionNotFound, SessionForgotten):
        return 0


class _Appender:
    """Appends drafts some at a time: either such that the log holds already, or new ones."""

    def __init__(self, log: Log, session: str, head: int) -> None:
        self._log = log
        self._session = session
        self._head = head
        self._done = 0
        self._pending: list[tuple[int, Draft]] = []
        self._size = 0

    async def add(self, number: int, draft: Draft) -> None:
        self._pending.append((number, draft))
        self._size += len(draft.body) + sum(len(one.data) for one in draft.attached)
        full = len(self._pending) >= _IMPORT_PAGE or self._size >= _MOST_BYTES
        if full or self._done + len(self._pending) == self._head:
            await self.flush()

    async def flush(self) -> None:
        if not self._pending:
            return
        drafts = [draft for _, draft in self._pending]
        try:
            await self._log.append(self._session, drafts, expected=self._done)
        except (Conflict, IdReused) as error:
            raise SessionExists(
                f"There is another session {self._session!r} already: "
                f"line {await self._first_other()} of the file is not in it.",
                _ANOTHER_NAME,
            ) from error
        except SessionForgotten as error:
            raise SessionForgotten(error.what, _ANOTHER_NAME) from error
        except InvalidInput as error:
            first, last = self._pending[0][0], self._pending[-1][0]
            what = f"Lines {first} to {last} of the file cannot be appended: {error.what}"
            raise TransferError(what, error.fix) from error
        self._done += len(drafts)
        self._pending, self._size = [], 0

    async def _first_other(self) -> int:
        """The first pending line that is not in the log."""
        # Looking for it writes nothing, because nothing can be appended before the head.
        for at, (number, draft) in enumerate(self._pending):
            expected = self._done + at
            if expected >= self._head:
                return number
            try:
                await self._log.append(self._session, [draft], expected=expected)
            except (Conflict, IdReused):
                return number
        return self._pending[0][0]


class _Reader:
    """Makes drafts of the lines of a file, and says where a file is not right.

    It follows the session's state as a log would, so that an entry that no log could take is known
    by its line before anything is written.
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
        self._begun = self._ended = False

    def take(self, line: str) -> Draft | None:
        """The draft of the line, if it holds an entry."""
        self.number += 1
        if not line.strip(BLANK):
            return None
        try:
            return self._take(*fields_of(line.removeprefix("\ufeff")))
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
        if not self._begun:
            self._begin(fields)
        elif self._ended:
            raise self._wrong("comes after the end of the session.")
        elif "artifact" in fields:
            self._keep(ArtifactLine.model_validate(fields))
        elif "entries" in fields:
            self._end(fields["entries"])
        else:
            return self._draft(EntryLine.model_validate(fields), body_of(fields, body))
        return None

    def _begin(self, fields: dict[str, Any]) -> None:
        version = fields.get("refold")
        if type(version) is not int or version < 1:
            raise self._wrong(
                "does not begin an exported session.",
                "Check that it is a file that `refold export` wrote.",
            )
        if version > FORMAT:
            raise WrittenByNewer(
                f"Line {self.number} of the file names format {version}; "
                f"this Refold reads formats up to {FORMAT}.",
                "Upgrade Refold.",
            )
        self._begun = True
        if not self._named:
            self.session = str(fields.get("session", ""))
        check_name(self.session)

    def _keep(self, line: ArtifactLine) -> None:
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

    def _draft(self, line: EntryLine, body: bytes) -> Draft:
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
        CODEC.decode(draft)  # who reads it later takes it for what its kind says
        self._follow(draft)
        return draft

    def _follow(self, draft: Draft) -> None:
        controls: Sequence[Entry] = ()
        if needs_controls([draft]):
            controls = self._controls
            self._replay = self._replay or Replay(controls)
        facts = Facts(self._state, {}, controls, replay=self._replay)
        outcome = admit_new(self.session, [draft], self._head, facts)
        self._state = outcome.state
        if draft.kind in CONTROL_KINDS:
            self._controls.append(_control(outcome.entries[0], draft))
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


def _control(entry: Entry, draft: Draft) -> Entry:
    """The entry as a replay needs it: whole, but a request record without its body."""
    body = b"" if draft.kind == Requested.KIND else draft.body
    return Entry(
        entry.seq, entry.id, entry.at, entry.kind, entry.version, body, forgotten=entry.forgotten
    )
