"""Sessions of opencode: its database `~/.local/share/opencode/opencode.db`, and its older files.

A session has messages and a message has parts. Since 1.2 they are rows of SQLite; before that, each
was a file of JSON below `storage`. Decisions:

- A step of the model is a message here, with its results after it. Older versions wrote several
  steps as one message.
- A compaction, its prompt and its summary, is left out: what it stands for is there. The full
  result of a call stays, also where opencode cleared it later.
- What the user took back (`revert`) is left out, and so is text that no model was shown (`ignored`)
  and an answer that failed.
- A file that was attached as text is among the texts already; a picture is a dot.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from pydantic import JsonValue

from refold.models import Usage
from refold.transcripts import messages as make
from refold.transcripts.builder import (
    DraftMessage,
    TranscriptBuilder,
    child,
    content,
    moment,
    name_of,
    picture,
    string,
    tokens,
)
from refold.transcripts.messages import Json
from refold.transcripts.recording import Recording, value_of, whole

NAME = "opencode"
PROGRAM = "opencode"
MAGIC = b"SQLite format 3\0"

_MAX_ROW = 256 << 20
_MAX_STEPS = 200_000_000  # of SQLite's machine, in one session: a database may be made to hang
_STEPS_AT_ONCE = 1_000_000
_TEXT_FILES = frozenset({"text/plain", "application/x-directory"})

Messages = Iterable[tuple[Json, list[Json]]]
"""Each message with its parts."""


def is_database(path: Path) -> bool:
    """Whether a file is of SQLite."""
    with suppress(OSError, ValueError):
        if path.is_file():  # to open a pipe would wait for its writer
            with path.open("rb") as file:
                return file.read(len(MAGIC)) == MAGIC
    return False


def is_session_file(path: Path) -> bool:
    """Whether a file is a session of an older version, by its place."""
    return path.parent.parent.name == "session" and path.stem.startswith("ses_")


def read_database(path: Path, session: str = "") -> Iterator[tuple[Recording, int]]:
    """The sessions of a database, or the named one, and when each was used last.

    Raises ValueError for another database.

    The database is only read, also while opencode writes to it.
    """
    # Without a write-ahead log nobody writes; then SQLite must not make files beside it either.
    alone = not path.with_name(f"{path.name}-wal").exists()
    address = f"{path.resolve().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=10)) as db:
            yield from _sessions(_limited(db), session)
    except sqlite3.Error as error:
        raise ValueError(f"it is no database of opencode: {error}") from error


def _limited(db: sqlite3.Connection) -> sqlite3.Connection:
    db.row_factory = sqlite3.Row
    db.text_factory = _text
    db.execute("PRAGMA trusted_schema = OFF")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_ROW)
    return db


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _sessions(db: sqlite3.Connection, only: str) -> Iterator[tuple[Recording, int]]:
    kinds = dict(db.execute("SELECT name, type FROM sqlite_schema").fetchall())
    if any(kinds.get(name) != "table" for name in ("session", "message", "part")):
        raise ValueError("it is no database of opencode")
    rows = "SELECT * FROM session WHERE ?1 IN ('', id) ORDER BY time_updated, id"
    for row in db.execute(rows, (only,)).fetchall():
        session: Json = {name: row[name] for name in row.keys()}  # noqa: SIM118 - of a row
        id_ = string(session, "id")
        db.set_progress_handler(_budget(), _STEPS_AT_ONCE)
        parts: dict[str, list[Json]] = {}
        for part in db.execute(
            "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id", (id_,)
        ):
            parts.setdefault(str(part[1]), []).append(_object(part[2]) | {"id": str(part[0])})
        messages = [
            (_object(message[1]) | {"id": str(message[0])}, parts.get(str(message[0]), []))
            for message in db.execute(
                "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id",
                (id_,),
            )
        ]
        session["revert"] = _object(session.get("revert"))
        folder, parent = string(session, "directory"), string(session, "parent_id")
        used = moment(session.get("time_updated")) or 0
        yield _recording(session, messages, folder, parent), used


def _budget() -> Callable[[], int]:
    left = iter(range(_MAX_STEPS // _STEPS_AT_ONCE))
    return lambda: next(left, None) is None


def read_session_file(path: Path) -> tuple[Recording, int]:
    """The session of an older version, and when it was used last."""
    session = _object(whole(path, max_size=_MAX_ROW))
    storage = path.parent.parent.parent
    messages: list[tuple[Json, list[Json]]] = []
    for file in sorted((storage / "message" / path.stem).glob("*.json")):
        parts = sorted((storage / "part" / file.stem).glob("*.json"))
        messages.append((_file(file), [_file(part) for part in parts]))
    messages.sort(key=lambda pair: (_time(pair[0], "created") or 0, string(pair[0], "id")))
    folder, parent = string(session, "directory"), string(session, "parentID")
    used = moment(child(session, "time").get("updated")) or 0
    return _recording(session, messages, folder, parent), used


def _file(path: Path) -> Json:
    return _object(whole(path, max_size=_MAX_ROW)) | {"id": path.stem}


def _object(data: JsonValue | bytes) -> Json:
    if isinstance(data, str):
        data = data.encode()
    with suppress(ValueError):
        value = value_of(data) if isinstance(data, bytes) else None
        return value if isinstance(value, dict) else {}
    return {}


def _time(message: Json, name: str) -> int | None:
    return moment(child(message, "time").get(name))


def _recording(session: Json, messages: Messages, folder: str, parent: str) -> Recording:
    builder = TranscriptBuilder(PROGRAM)
    builder.note_origin(id=string(session, "id"), folder=folder, parent=parent)
    builder.title = string(session, "title")
    revert = child(session, "revert")
    first_reverted = string(revert, "messageID")
    for message, parts in messages:
        if first_reverted and string(message, "id") >= first_reverted:
            builder.skipped["taken back"] += 1
        elif string(message, "role") == "user":
            _prompt(message, parts, builder)
        elif message.get("summary") is True:
            builder.skipped["summary"] += 1
        elif string(message, "role") == "assistant" and not _has_failed(message, parts):
            _answer(message, parts, builder)
        else:
            builder.skipped["failed answer"] += 1
    return builder.recording(string(session, "id"))


def _has_failed(message: Json, parts: Sequence[Json]) -> bool:
    """Whether an answer never counted; one that the user stopped does, as far as it came."""
    error = child(message, "error")
    said = any(part.get("type") not in ("step-start", "reasoning") for part in parts)
    return bool(error) and not (string(error, "name") == "MessageAbortedError" and said)


def _prompt(message: Json, parts: Sequence[Json], builder: TranscriptBuilder) -> None:
    if any(part.get("type") == "compaction" for part in parts):
        builder.skipped["compaction"] += 1
        return
    builder.prompt(content(_contents(parts)), _time(message, "created"))


def _contents(parts: Iterable[Json]) -> Iterator[JsonValue]:
    for part in parts:
        match part:
            case {"text": str(text), "metadata": {"compaction_continue": True}}:
                yield f"<system-reminder>\n{text}\n</system-reminder>"  # opencode's own words
            case {"type": "text", "text": str(text)} if part.get("ignored") is not True:
                yield text
            case {"type": "file", "mime": str(kind)} if kind.startswith("image/"):
                yield picture()
            case {"type": "file", "mime": str(kind)} if kind not in _TEXT_FILES:
                yield f"[Attached {kind}: {string(part, 'filename') or 'file'}]"
            case {"type": "subtask", "prompt": str(text)}:
                yield text
            case _:
                pass


def _answer(message: Json, parts: Sequence[Json], builder: TranscriptBuilder) -> None:
    steps: list[list[Json]] = [[]]
    for part in parts:
        if part.get("type") == "step-start" and steps[-1]:
            steps.append([])
        elif part.get("type") in ("text", "reasoning", "tool"):
            steps[-1].append(part)
    answer: DraftMessage | None = None
    for step in steps:
        said = [*map(_answer_part, step)]
        answer = builder.answer(said, _time(message, "created"), name_of(message, "modelID"))
        for part in step:
            if part.get("type") == "tool":
                _result(part, builder, _time(message, "created"))
    if answer is not None:
        answer.usage = _usage(child(message, "tokens"))


def _answer_part(part: Json) -> Json:
    match string(part, "type"):
        case "tool":
            arguments = child(child(part, "state"), "input")
            return make.tool_call(name_of(part, "tool"), string(part, "callID"), arguments)
        case "reasoning":
            return make.thinking(string(part, "text"))
        case _:
            return make.text(string(part, "text"))


def _result(part: Json, builder: TranscriptBuilder, at: int | None) -> None:
    state = child(part, "state")
    at = _time(state, "end") or at
    match string(state, "status"):
        case "completed":
            builder.tool_return(string(part, "callID"), string(state, "output"), at)
        case "error":
            stopped = string(child(state, "metadata"), "output")
            text = stopped or string(state, "error")
            builder.tool_return(string(part, "callID"), text, at, failed=True)
        case _:
            pass  # it is running


def _usage(counts: Json) -> Usage | None:
    read, write = (tokens(child(counts, "cache"), name) for name in ("read", "write"))
    sent = tokens(counts, "input") + read + write
    output = tokens(counts, "output") + tokens(counts, "reasoning")
    return Usage(sent, output, read, write) if sent else None
