"""A file beside a store, and outside its backups, that lists what was forgotten.

A store restored from a backup lacks the erasures that are newer than the backup, and its own list
of them. So each `forget` and `expire` appends to this file, before it commits, which sessions and
entries it erases: ids and numbers, and no words. `refold store forget-again` repeats them. An
erasure that fails after that stays listed; it was wanted, and repeating it is harmless.

The form is that of `refold.log.erasure_list`. Any number of processes may append.
"""

import fcntl
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from refold.errors import StoreFailed
from refold.log.entry import Entry
from refold.log.erasure_list import (
    Forgotten,
    ForgottenEntries,
    ForgottenSession,
    dump,
    dump_header,
)

JournalPath: TypeAlias = Path | str | Callable[[], str] | None
"""Where the journal is, or how to find out when something is forgotten; empty if nowhere."""
_PIECE: Final = 1 << 16


def beside(path: Path) -> Path:
    """Where the journal of an SQLite file is if no other place is set."""
    return Path(f"{path.absolute()}-forgotten.jsonl")


class ForgetJournal:
    def __init__(self, path: JournalPath, default: Path | None = None) -> None:
        self._path = path
        self._default = default

    @property
    def path(self) -> Path | None:
        named = self._path() if callable(self._path) else self._path
        return Path(named).expanduser() if named else self._default

    def record(
        self,
        tenant: str,
        session: str,
        entries: Sequence[Entry] = (),
        *,
        removed_at: int | None = None,
    ) -> None:
        """List an erasure, on disk when this returns.

        Args:
            tenant: Whose session it is.
            session: Its name.
            entries: Those that are erased; tombstones are left out.
            removed_at: When the session itself was removed, if it was.

        Raises:
            StoreFailed: The journal cannot be written, so nothing may be erased.
        """
        ids = tuple((entry.seq, entry.id) for entry in entries if not entry.forgotten)
        items: list[Forgotten] = [ForgottenEntries(tenant, session, ids)] if ids else []
        if removed_at is not None:
            items.append(ForgottenSession(tenant, session, removed_at))
        path = self.path
        if path is None or not items:
            return
        try:
            _append(path, [line for item in items for line in dump(item)])
        except OSError as error:
            raise StoreFailed(
                f"Nothing was forgotten, because the journal {path} cannot be written: "
                f"{error.strerror}.",
                "Make its folder writable, or name another file in store.forget_journal.",
            ) from error


def _append(path: Path, lines: Sequence[str]) -> None:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = _end_of_last_line(file)
        os.ftruncate(file, end)  # a writer that was killed left half a line, and erased nothing
        text = "".join(f"{line}\n" for line in (lines if end else (dump_header(), *lines)))
        try:
            _write(file, text.encode())
            os.fsync(file)
        except OSError:
            with suppress(OSError):
                os.ftruncate(file, end)
            raise
        if not end:
            _sync_folder(path.parent)
    finally:
        os.close(file)  # and with it the lock


def _end_of_last_line(file: int) -> int:
    end = os.fstat(file).st_size
    while end:
        start = max(0, end - _PIECE)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _sync_folder(folder: Path) -> None:
    """So that a new file is still there after a power cut."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
