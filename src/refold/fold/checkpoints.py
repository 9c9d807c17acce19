"""Checkpoints: the folds of a session for people, numbered and titled, and as files in a folder.

A session's folder is its workspace. People and their tools describe the work under way in it, and
folds show that to the model.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final
from uuid import UUID

from pydantic import JsonValue

from refold.errors import InvalidInput, SessionForgotten, SessionNotFound
from refold.fold.summary import HEADING, TRUNCATED, Summary, clipped, parse, report_markdown
from refold.log import CODEC, Entry, FoldCompleted, Log, Span
from refold.user_files import data_folder, write_whole
from refold.view.profiles import Workspaces

EMPTY = "No checkpoints yet. Checkpoints are created when context is compacted."
INDEX_MARK = "<!-- refold checkpoints{owner} -->"
"""The first line of the index; it shows that Refold wrote the file."""

_MARK = "<!-- refold checkpoint {fold} -->"
_MARKED = re.compile(r"<!-- refold checkpoint [0-9a-f-]{36} -->")
_NAME = re.compile(r"[0-9]{3,}-[a-z0-9-]+\.md")
_SLUG = 40  # characters
_COUNT = re.compile(rb"""^(["']?)summary_count\1[ \t]*:[ \t]*(?P<count>[^\s#]*)""", re.MULTILINE)
_SPECIAL = re.compile(r"([\\`*_\[\]<>|])")
_PREFIX = 200  # characters of a file, enough to recognize it by
_WORK: Final = {"plan": "plan.md", "todo": "todo.md", "agent": "agent.md"}
"""The workspace files that describe the current work, by the names that hosts use."""
_MAX_WORK = 20_000  # characters of such a file
_MAX_SKILLS = 20


@dataclass(frozen=True, slots=True)
class Checkpoint:
    number: int
    """Its position among the session's current checkpoints, from 1."""
    title: str
    fold: UUID
    seq: int
    """The entry that holds its summary."""
    at: int
    """When it was made, in milliseconds since 1970."""
    text: str
    """Its summary as Markdown."""
    messages: int = 0
    """How many messages it stands for."""
    tokens: int = 0
    """What these would cost in a request."""

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.number:03d}-{slug(self.title)}.md"

    @property
    def day(self) -> str:
        """The day it was made, in UTC."""
        return datetime.fromtimestamp(self.at / 1000, UTC).date().isoformat()

    def markdown(self) -> str:
        messages = "1 message" if self.messages == 1 else f"{self.messages:,} messages"
        facts = f"{self.day} · {messages} · {self.tokens:,} tokens in full"
        mark = _MARK.format(fold=self.fold)
        return f"{mark}\n# {self.number}. {_plain(self.title)}\n\n{facts}\n\n{self.text}\n"


async def checkpoints(log: Log, session: str) -> list[Checkpoint]:
    """The current folds of the session, oldest first, including those beneath others.

    A fold that was partly opened stays the checkpoint that it was.
    """
    outline = (await log.visible(session, last=0)).outline
    waiting = [fold.seq for fold in outline.folds]
    found: dict[int, Checkpoint] = {}
    while waiting:
        entry = await _entry(log, session, waiting.pop())
        match CODEC.decode(entry) if entry else None:
            case FoldCompleted(fold, summary=value) if entry:
                summary = parse(value)
                waiting += summary.over
                first = await _entry(log, session, summary.continues) or entry
                found[first.seq] = _checkpoint(entry, fold, summary, first.at)
            case _:  # forgotten, or written by another version
                pass
    ordered = (found[seq] for seq in sorted(found))
    return [
        replace(one, number=number, title=one.title or f"Checkpoint {number}")
        for number, one in enumerate(ordered, start=1)
    ]


def listing(found: Sequence[Checkpoint], *, linked: bool = False) -> str:
    """The checkpoints as a Markdown table, optionally with links to their files."""
    if not found:
        return EMPTY
    rows: list[str] = []
    for one in found:
        title = f"[{_plain(one.title)}]({one.name})" if linked else _plain(one.title)
        rows.append(f"| {one.number} | {title} | {one.day} | {one.messages:,} | {one.tokens:,} |")
    head = "| Number | Title | Day | Messages | Tokens |", "| ---: | --- | --- | ---: | ---: |"
    return "\n".join((*head, *rows))


def index(found: Sequence[Checkpoint], session: str | None = None) -> str:
    """The content of the index file."""
    mark = INDEX_MARK.format(owner=owner_mark(session))
    return f"{mark}\n# Checkpoints\n\n{listing(found, linked=True)}\n"


def owner_mark(session: str | None) -> str:
    """How an index identifies its session without naming it."""
    return "" if session is None else f" of {sha256(session.encode()).hexdigest()[:16]}"


def workspace(before: bytes, count: int) -> bytes:
    """A workspace file with this count of checkpoints, and everything else as it was."""
    number = str(count).encode()
    found = _COUNT.search(before)
    if found:
        first, last = found.span("count")
        space = b"" if before[first - 1 : first] in (b" ", b"\t") else b" "
        return before[:first] + space + number + before[last:]
    line = b"\r\n" if b"\r\n" in before else b"\n"
    between = b"" if not before or before.endswith(b"\n") else line
    return before + between + b"summary_count: " + number + line


def is_ours(name: str, text: str) -> bool:
    """Whether a file of this name that starts with this text is a checkpoint."""
    return bool(_NAME.fullmatch(name) and _MARKED.match(text))


def slug(title: str) -> str:
    """The title as a part of a file name, in characters that every file system allows."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return words[:_SLUG].rstrip("-") or "checkpoint"


async def _entry(log: Log, session: str, seq: int) -> Entry | None:
    entries = await log.read(session, Span(seq, seq)) if seq else []
    return entries[0] if entries else None


def _checkpoint(entry: Entry, fold: UUID, summary: Summary, at: int) -> Checkpoint:
    title = " ".join(summary.title.replace(TRUNCATED, " … ").split())
    text = summary.text.strip() or summary.words
    if report := report_markdown(summary):
        text = f"{text}\n\n## {HEADING}\n\n{report}"
    return Checkpoint(0, title, fold, entry.seq, at, text, summary.messages, summary.tokens)


def _plain(title: str) -> str:
    return _SPECIAL.sub(r"\\\1", title)


def workspace_of(values: Workspaces, log: Log, session: str) -> "Workspace":
    """The workspace of a session, whether it exists or not.

    Its folder is named after the session, and after the store that holds it: sessions of the same
    name in two stores have two.
    """
    root = Path(values.folder).expanduser() if values.folder else data_folder() / "workspaces"
    identity = f"{log.locks('turn').place}\0{log.tenant}\0{session}"
    digest = sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return Workspace(root / f"{slug(session)}-{digest}")


async def forget_files(values: Workspaces, log: Log, session: str) -> None:
    """Remove forgotten entries from the files, after some or all of a session was forgotten."""
    kept = workspace_of(values, log, session)
    if not kept.folder.is_dir():
        return
    try:
        current = await checkpoints(log, session)
    except (SessionForgotten, SessionNotFound):
        kept.remove()
    else:
        kept.align(current, session)


class Workspace:
    """Writes `checkpoints/NNN-title.md`, `checkpoints/index.md` and `workspace.yaml` to a folder.

    The files are made from the log, and those of folds that are gone are removed. Files that Refold
    did not write are never overwritten or removed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._checkpoints = folder / "checkpoints"
        self._index = self._checkpoints / "index.md"

    def path_of(self, checkpoint: Checkpoint) -> Path:
        """Where the checkpoint is written."""
        return self._checkpoints / checkpoint.name

    def align(self, checkpoints: Sequence[Checkpoint], session: str | None = None) -> None:
        """Bring the files in line with the session's checkpoints.

        The checkpoints are written first, then their index, then their count: an index never names
        a missing file. Raises InvalidInput if a file that Refold did not write is in the way, or if
        the folder belongs to another session.
        """
        texts = {self.path_of(one): one.markdown() for one in checkpoints}
        self._check(texts, session)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._checkpoints.mkdir(exist_ok=True)
        for path, text in texts.items():
            _write(path, text.encode())
        _write(self._index, index(checkpoints, session).encode())
        for path in [*self._checkpoints.glob("*.md")]:
            if path not in texts and is_ours(path.name, _prefix(path)):
                path.unlink(missing_ok=True)
        settings = self.folder / "workspace.yaml"
        _write(settings, workspace(_read(settings) or b"", len(checkpoints)))

    def remove(self) -> None:
        """Remove what Refold wrote, and the folder if nothing else is in it."""
        for path in [*self._checkpoints.glob("*.md")]:
            if path == self._index or is_ours(path.name, _prefix(path)):
                path.unlink(missing_ok=True)
        (self.folder / "workspace.yaml").unlink(missing_ok=True)
        for folder in (self._checkpoints, self.folder):
            with suppress(OSError):  # it holds something else, or is gone
                folder.rmdir()

    def work(self) -> dict[str, JsonValue]:
        """What people and their tools wrote here about the work under way.

        The newest skill is included in full; the others are named with their files.
        """
        found: dict[str, JsonValue] = {}
        for name, file in _WORK.items():
            if text := _text(self.folder / file):
                found[name] = text
        skills = self.folder / "skills"
        files = [*skills.glob("*.md"), *skills.glob("*/SKILL.md")]
        newest_first = sorted((x for x in files if x.is_file()), key=_modified, reverse=True)
        if newest_first:
            newest, *others = newest_first[:_MAX_SKILLS]
            lines = [f"- {_skill(path)} ({path})" for path in reversed(others)]
            found["skills"] = [*lines, f"- {_skill(newest)}:\n{_text(newest)}"]
        return found

    def _check(self, paths: Iterable[Path], session: str | None) -> None:
        others = [one for one in paths if one.exists() and not is_ours(one.name, _prefix(one))]
        prefix = _prefix(self._index)
        if self._index.exists() and not prefix.startswith(INDEX_MARK.partition("{")[0]):
            others.append(self._index)
        elif prefix and not prefix.startswith(INDEX_MARK.format(owner=owner_mark(session))):
            raise InvalidInput(
                f"{self.folder} has the checkpoints of another session.",
                "Give each session a folder of its own.",
            )
        if others:
            raise InvalidInput(
                f"{others[0]} was not written by Refold.",
                "Move it away, or choose another folder for checkpoints.",
            )


def _prefix(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_PREFIX)


def _text(path: Path) -> str:
    if not path.is_file():  # a pipe would wait for its writer
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return clipped(file.read(4 * _MAX_WORK), _MAX_WORK)


def _modified(path: Path) -> float:
    return path.stat().st_mtime


def _skill(path: Path) -> str:
    return path.parent.name if path.name == "SKILL.md" else path.stem


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, content: bytes) -> None:
    if _read(path) != content:
        write_whole(path, content)
