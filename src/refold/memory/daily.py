"""Daily files: notes as Markdown, one file a day, which people read and write too.

Notes are only ever appended, under a lock that holds between threads and processes. A note ends
with a mark that names it; the mark is what says that all of it is there, and that it is there once.
What a process left half written when it died stays, closed off, and the note comes whole after it.
"""

import asyncio
import errno
import os
import re
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from refold.errors import NotRemembered
from refold.fold.secrets import redacted
from refold.memory.appending import PATIENCE, append, appendable, locked_folder, read, whole
from refold.memory.daily_text import HEADINGS, MARK, TITLE, closing, harmless
from refold.memory.protocol import Note

FOLDER = "memory"
_A_DAY = re.compile(r"\d{4}-\d\d-\d\d\.md")
_LOOKED_THROUGH = 40
"""How many of the newest files are looked through for a note that may be there already."""
_FIXES = {
    errno.ENOSPC: "Free some disk space.",
    errno.EDQUOT: "Free some of this user's disk space.",
    errno.ELOOP: "Notes are not written through links: move it away.",
}


class DailyFiles:
    """Keeps notes in `memory/YYYY-MM-DD.md`, in a folder that is there already.

    Only their owner may read the files. Secrets are taken out of what is written, as far as they
    can be told. Days and times are those of `zone`, or of this machine's clock.
    """

    def __init__(
        self, folder: Path | str, *, zone: tzinfo | None = None, patience: float = PATIENCE
    ) -> None:
        self._folder = Path(folder)
        self._zone = zone
        self._patience = patience

    def path_of(self, note: Note) -> Path:
        """The file that a note is written to."""
        return self._folder / FOLDER / self._name(note)

    async def write(self, note: Note) -> None:
        """See `MemorySink.write`. Raises NotRemembered."""
        await asyncio.to_thread(self._write, note)

    def _write(self, note: Note) -> None:
        try:
            with locked_folder(self._folder, FOLDER, self._patience) as folder:
                name = self._name(note)
                if not _is_there(folder, note, name):
                    self._append(folder, note, name)
                os.fsync(folder)
        except OSError as error:
            said = error.strerror or str(error)
            raise NotRemembered(
                f"{self.path_of(note)} cannot be written: {said}.",
                _FIXES.get(error.errno or 0),
            ) from error

    def _append(self, folder: int, note: Note, name: str) -> None:
        with appendable(folder, name) as file:
            before = whole(file)
            begins = closing(before.decode(errors="replace"))
            if not before:
                begins = TITLE.format(date=self._when(note).date())
            there = _mark(note) in before + begins.encode()  # all but the end of its mark was
            append(file, f"{begins}{'' if there else self._section(note)}".encode())

    def _section(self, note: Note) -> str:
        heading = HEADINGS[note.reason].format(time=f"{self._when(note):%H:%M}")
        mark = MARK.format(digest=note.digest)
        return f"\n{heading}\n\n{harmless(redacted(note.text))}\n\n{mark}\n"

    def _name(self, note: Note) -> str:
        return f"{self._when(note).date()}.md"

    def _when(self, note: Note) -> datetime:
        return datetime.fromtimestamp(note.at / 1000, UTC).astimezone(self._zone)


def _is_there(folder: int, note: Note, name: str) -> bool:
    """Whether an earlier attempt wrote it, perhaps on another day."""
    days = sorted(filter(_A_DAY.fullmatch, os.listdir(folder)), reverse=True)
    for day in {*days[:_LOOKED_THROUGH], name}:
        if _mark(note) in read(folder, day):
            with appendable(folder, day) as file:
                os.fsync(file)  # who wrote it may have died before
            return True
    return False


def _mark(note: Note) -> bytes:
    return f"\n{MARK.format(digest=note.digest)}".encode()
