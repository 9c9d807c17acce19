"""Recordings into a log, as often as you like: what the log holds already is not added again.

The id of each entry is made of the session's own id and of what was said up to there, so the ids in
the log tell how much of a recording it holds, whatever was forgotten of it. What a later version of
a reader may write differently (times, usage, the text of a result) is not in the ids.

Where the recording went on, its new messages are appended. Where its user went back and said
something else, the log is rewound to there first, so it still holds both. Where the session was
continued in Refold, new messages of the recording go to a fork of it.
"""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, NamedTuple
from uuid import UUID

from pydantic import JsonValue

from refold.errors import Conflict, SessionExists, SessionNotFound
from refold.log import (
    Author,
    Cleared,
    Draft,
    Entry,
    Log,
    Message,
    Opened,
    Origin,
    Rewound,
    Span,
    Titled,
    Value,
)
from refold.terminal_text import whole_words
from refold.transcripts import messages as make
from refold.transcripts.recording import FORMAT, RecordedMessage, Recording

_BATCH: Final = 500
_MAX_BYTES: Final = 8 << 20
"""Of the messages that are appended at once."""
_RECENT: Final = 50
"""Entries at the end in which a recording's last message is looked for first."""
_MAX_TRIES: Final = 5
_MAX_TITLE: Final = 80
_VERSION: Final = 8
"""Of the ids that are made here; all others in a log are of version 7."""
_OTHER = re.compile(r"[^A-Za-z0-9]+")
_MAX_ID: Final = 40
_START = re.compile(r"([0-9a-f]{8}-([0-9a-f]{4}-){3}|ses_[0-9a-f]{12})(?=[0-9A-Za-z]{12})")
"""Of an id; what follows is random enough for a name."""


class Outcome(NamedTuple):
    """What an import of one recording did."""

    session: str
    """Its name in the log."""
    messages: int
    """How many messages are new."""
    new: bool = False
    """Whether the session was not there before."""


async def import_recording(
    log: Log, recording: Recording, *, profile: str = "balanced", modified: int = 0
) -> Outcome:
    """Add to the log what it does not hold of the recording.

    `modified` is the time of messages before the first that has one. Raises SessionForgotten where
    the session was forgotten: it does not come back.
    """
    for _ in range(_MAX_TRIES - 1):
        try:
            return await _Import(log, recording, profile, modified).run()
        except Conflict:  # somebody else has appended to it meanwhile
            continue
    return await _Import(log, recording, profile, modified).run()


def without_last_answer(recording: Recording) -> Recording:
    """The recording up to its last answer, which its program may not have written whole yet."""
    kinds = [make.parse(message.payload).get("kind") for message in recording.messages]
    if "response" not in kinds:
        return recording
    last = len(kinds) - 1 - kinds[::-1].index("response")
    return replace(recording, messages=recording.messages[:last])


class _Import:
    def __init__(self, log: Log, recording: Recording, profile: str, modified: int) -> None:
        self._log = log
        origin = recording.origin or Origin("unknown")
        self._origin = origin if origin.id else replace(origin, id=recording.name)
        self._profile = profile
        self._messages = recording.messages
        self._opening, *self._ids = _ids(self._origin, recording.messages)
        self._prompt, self._first_words = _first_prompt(recording.messages)
        self._title = whole_words(recording.title, _MAX_TITLE)
        self._now = int(time.time() * 1000)
        self._time = min(modified, self._now)
        self._author = Author(clock=lambda: datetime.fromtimestamp(self._time / 1000, UTC))

    async def run(self) -> Outcome:
        session, begun = await self._name()
        if not begun:
            await self._append(session, 0, [self._opened(), *self._drafts(0)])
            return Outcome(session, len(self._ids), new=True)
        base, forks = session, 1
        while True:
            if await self._is_complete(session):
                return Outcome(session, 0)
            entries = {entry.id: entry for entry in await self._log.read(session, whole=False)}
            present = len(self._ids)
            while present and self._ids[present - 1] not in entries:
                present -= 1
            if present == len(self._ids):
                return Outcome(session, 0)
            end = entries[self._ids[present - 1]].seq if present else 1
            later = [entry for entry in entries.values() if entry.seq > end]
            if not any(map(_is_of_refold, later)):
                break
            forks += 1
            fork = f"{base}-{forks}"
            if not await self._exists(fork):
                await self._log.fork(session, fork, at=end)
            session = fork
        drafts = self._drafts(present)
        if any(entry.kind == Message.KIND for entry in later):
            drafts.insert(0, self._draft(self._ids[present], "rewind", Rewound(end)))
        if self._title and (await self._log.info(session)).title == self._first_words:
            titled = Titled(self._title, self._prompt)
            drafts.append(self._draft(self._ids[-1], self._title, titled))
        await self._append(session, max(entry.seq for entry in entries.values()), drafts)
        return Outcome(session, len(self._ids) - present)

    async def _name(self) -> tuple[str, bool]:
        """The session's name in the log, and whether it is there."""
        own = _START.sub("", self._origin.id)
        short = f"{self._origin.program}-{_OTHER.sub('-', own)[-_MAX_ID:].strip('-')}"
        digest = sha256(self._origin.id.encode()).hexdigest()[:8]
        for name in (short, f"{short}-{digest}"):
            try:
                [first] = await self._log.read(name, Span(1, 1), whole=False)
            except SessionNotFound:
                return name, False
            if first.id == self._opening:
                return name, True
        raise SessionExists(f"There is another session {short!r} already.", "Rename that one.")

    async def _exists(self, session: str) -> bool:
        try:
            await self._log.head(session)
        except SessionNotFound:
            return False
        return True

    async def _is_complete(self, session: str) -> bool:
        """A quick look whether the last message is near the end."""
        head = await self._log.head(session)
        recent = await self._log.read(session, Span(max(1, head - _RECENT), head), whole=False)
        return any(entry.id == [self._opening, *self._ids][-1] for entry in recent)

    def _opened(self) -> Draft:
        title = self._title or self._first_words or None
        source = self._prompt if title else 0
        opened = Opened(FORMAT, self._profile, title, source, origin=self._origin)
        self._move_clock(self._messages[:1])
        return self._draft(self._opening, "", opened)

    def _drafts(self, first: int) -> list[Draft]:
        self._move_clock(self._messages[:first])
        drafts: list[Draft] = []
        for id_, message in zip(self._ids[first:], self._messages[first:], strict=True):
            self._move_clock([message])
            drafts.append(self._draft(id_, "", Message(message.payload)))
        return drafts

    def _draft(self, id_: UUID, purpose: str, value: Value) -> Draft:
        """A draft that has this id, or one made of it for another purpose."""
        own = _id(sha256(id_.bytes + purpose.encode()).digest()) if purpose else id_
        return self._author.draft(value)._replace(id=own)

    def _move_clock(self, messages: Sequence[RecordedMessage]) -> None:
        """To the last of these messages that has a time; not beyond now."""
        times = [message.at for message in messages if message.at is not None]
        if times:
            self._time = min(times[-1], self._now)

    async def _append(self, session: str, head: int, drafts: Sequence[Draft]) -> None:
        batch: list[Draft] = []
        size = 0
        for draft in drafts:
            if batch and (len(batch) == _BATCH or size + len(draft.body) > _MAX_BYTES):
                head = (await self._log.append(session, batch, expected=head)).last
                batch, size = [], 0
            batch.append(draft)
            size += len(draft.body)
        await self._log.append(session, batch, expected=head)


def _is_of_refold(entry: Entry) -> bool:
    """Whether somebody continued the session here."""
    kinds = (Message.KIND, Rewound.KIND, Cleared.KIND)
    return entry.kind in kinds and entry.id.version != _VERSION


def _ids(origin: Origin, messages: Sequence[RecordedMessage]) -> Iterator[UUID]:
    """The id of the opening, and of each message."""
    digest = sha256(f"{origin.program}\0{origin.id}".encode()).digest()
    yield _id(digest)
    for message in messages:
        digest = sha256(digest + _identity(message.payload)).digest()
        yield _id(digest)


def _id(digest: bytes) -> UUID:
    number = int.from_bytes(digest[:16])
    number &= ~(0xF << 76 | 0x3 << 62)
    return UUID(int=number | _VERSION << 76 | 0x2 << 62)


def _identity(payload: bytes) -> bytes:
    """What makes the message another one: who says what, and which calls it makes or answers."""
    message = make.parse(payload)
    parts: list[JsonValue] = [message.get("kind")]
    for part in make.parts_of(message):
        content = part.get("content")
        texts = content if isinstance(content, list) else [content]
        said: list[JsonValue] = [text for text in texts if isinstance(text, str)]
        parts += [part.get("part_kind"), part.get("tool_call_id") or said]
    return make.dump(parts)


def _first_prompt(messages: Sequence[RecordedMessage]) -> tuple[int, str]:
    """The entry of the first prompt that a person wrote, and how it begins; 0 where there is none.

    Programs add prompts of their own, which begin with a tag or a heading.
    """
    for seq, recorded in enumerate(messages, 2):
        for part in make.parts_of(make.parse(recorded.payload)):
            content = part.get("content")
            text = content if isinstance(content, str) else ""
            if part.get("part_kind") == "user-prompt" and text.strip() and text[0] not in "<#[":
                return seq, whole_words(" ".join(text[: 4 * _MAX_TITLE].split()), _MAX_TITLE)
    return 0, ""
