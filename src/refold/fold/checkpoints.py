"""Checkpoints: the folds of a session as people read them, numbered, with a title.

This says what their files hold; `refold.fold.checkpoints` writes them.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from uuid import UUID

from refold.errors import InvalidInput
from refold.fold.summary import HEADING, TRUNCATED, Summary, parse, report_markdown
from refold.log import CODEC, Entry, FoldCompleted, Log, Span
from refold.user_files import write_whole

EMPTY = "No checkpoints yet. Checkpoints are created when context is compacted."
"""What a list of none says."""
INDEX_MARK = "<!-- refold checkpoints{owner} -->"
"""The first line of the index, by which it is known again."""

_MARK = "<!-- refold checkpoint {fold} -->"
_MARKED = re.compile(r"<!-- refold checkpoint [0-9a-f-]{36} -->")
_NAME = re.compile(r"[0-9]{3,}-[a-z0-9-]+\.md")
_SLUG = 40  # characters
_COUNT = re.compile(rb"""^(["']?)summary_count\1[ \t]*:[ \t]*(?P<count>[^\s#]*)""", re.MULTILINE)
_SPECIAL = re.compile(r"([\\`*_\[\]<>|])")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One fold, for people."""

    number: int
    """Its place among those that the session has now, from 1."""
    title: str
    fold: UUID
    seq: int
    """The entry that holds its summary."""
    at: int
    """When it was made, in milliseconds since 1970."""
    text: str
    """What it tells, as Markdown."""
    messages: int = 0
    """How many messages it stands for."""
    tokens: int = 0
    """What they would cost in a request."""

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.number:03d}-{slug(self.title)}.md"

    @property
    def day(self) -> str:
        """The day it was made, in UTC."""
        return datetime.fromtimestamp(self.at / 1000, UTC).date().isoformat()

    def markdown(self) -> str:
        """What its file holds."""
        facts = f"{self.day} · {self.messages:,} messages · {self.tokens:,} tokens"
        mark = _MARK.format(fold=self.fold)
        return f"{mark}\n# {self.number}. {_plain(self.title)}\n\n{facts}\n\n{self.text}\n"


async def checkpoints(log: Log, session: str) -> list[Checkpoint]:
    """The folds that are on the session's line now, oldest first, also those beneath others.

    A fold that was opened in part goes on as the checkpoint it was.
    """
    outline = (await log.visible(session, last=0)).outline
    waiting = [fold.seq for fold in outline.folds]
    found: dict[int, Checkpoint] = {}
    while waiting:
        entry = await _entry(log, session, waiting.pop())
        match CODEC.decode(entry) if entry else None:
            case FoldCompleted(fold, summary=report_markdown) if entry:
                summary = parse(report_markdown)
                waiting += summary.over
                first = await _entry(log, session, summary.continues) or entry
                found[first.seq] = _checkpoint(entry, fold, summary, first.at)
            case _:  # forgotten, or of a version that is not known here
                pass
    return [_numbered(found[seq], nth) for nth, seq in enumerate(sorted(found), start=1)]


def listing(found: Sequence[Checkpoint], *, linked: bool = False) -> str:
    """The checkpoints as a table in Markdown; linked, with their files."""
    if not found:
        return EMPTY
    rows = (
        f"| {one.number} | {_cell(one, linked=linked)} | {one.day} "
        f"| {one.messages:,} | {one.tokens:,} |"
        for one in found
    )
    head = "| Number | Title | Day | Messages | Tokens |", "| ---: | --- | --- | ---: | ---: |"
    return "\n".join((*head, *rows))


def index(found: Sequence[Checkpoint], session: str | None = None) -> str:
    """What the index file holds."""
    mark = INDEX_MARK.format(owner=owner_mark(session))
    return f"{mark}\n# Checkpoints\n\n{listing(found, linked=True)}\n"


def owner_mark(session: str | None) -> str:
    """How an index names its session, without saying its name."""
    return "" if session is None else f" of {sha256(session.encode()).hexdigest()[:16]}"


def workspace(before: bytes, count: int) -> bytes:
    """A workspace file that counts so many checkpoints; everything else in it stays as it is."""
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
    """Whether a file of this name that begins with this text is a checkpoint's."""
    return bool(_NAME.fullmatch(name) and _MARKED.match(text))


def slug(title: str) -> str:
    """The title as a part of a file name, in characters that every file system takes."""
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


def _numbered(one: Checkpoint, number: int) -> Checkpoint:
    return replace(one, number=number, title=one.title or f"Checkpoint {number}")


def _cell(one: Checkpoint, *, linked: bool) -> str:
    title = _plain(one.title)
    return f"[{title}]({one.name})" if linked else title


def _plain(title: str) -> str:
    """A title as Markdown shows it: as it was written."""
    return _SPECIAL.sub(r"\\\1", title)


# A folder of checkpoints that people read: files that say what the log says now.

_BEGINNING = 200  # characters of a file, enough to know it by


class Workspace:
    """Keeps `checkpoints/NNN-title.md`, `checkpoints/index.md` and `workspace.yaml` in a folder.

    The log is the truth: files are made from it, and those of folds that are gone are removed. No
    file of anyone else's is overwritten or removed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path_of(self, checkpoint: Checkpoint) -> Path:
        """Where the checkpoint is written."""
        return self._checkpoints / checkpoint.name

    def align(self, checkpoints: Sequence[Checkpoint], session: str | None = None) -> None:
        """Write what the files do not say yet, and remove what is no longer so.

        First the checkpoints, then their index, then the count of them: whoever reads in between
        finds what an index names. Raises InvalidInput when a file of someone else is in the way, or
        the folder is another session's.
        """
        wanted = {self.path_of(one): one.markdown() for one in checkpoints}
        self._check(wanted, session)
        self._checkpoints.mkdir(parents=True, exist_ok=True)
        for path, text in wanted.items():
            _write(path, text.encode())
        _write(self._index, index(checkpoints, session).encode())
        for path in self._ours():
            if path not in wanted:
                path.unlink(missing_ok=True)
        settings = self._folder / "workspace.yaml"
        _write(settings, workspace(_read(settings) or b"", len(checkpoints)))

    @property
    def _checkpoints(self) -> Path:
        return self._folder / "checkpoints"

    @property
    def _index(self) -> Path:
        return self._checkpoints / "index.md"

    def _ours(self) -> list[Path]:
        return [one for one in self._checkpoints.glob("*.md") if is_ours(one.name, _begins(one))]

    def _check(self, wanted: Iterable[Path], session: str | None) -> None:
        others = [one for one in wanted if one.exists() and not is_ours(one.name, _begins(one))]
        begins = _begins(self._index)
        if self._index.exists() and not begins.startswith(INDEX_MARK.partition("{")[0]):
            others.append(self._index)
        elif begins and not begins.startswith(INDEX_MARK.format(owner=owner_mark(session))):
            raise InvalidInput(
                f"{self._folder} has the checkpoints of another session.",
                "Give each session a folder of its own.",
            )
        if others:
            raise InvalidInput(
                f"{others[0]} was not written by Refold.",
                "Move it away, or choose another folder for checkpoints.",
            )


def _begins(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_BEGINNING)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, content: bytes) -> None:
    """Write the file, unless it says so already."""
    if _read(path) != content:
        write_whole(path, content)
