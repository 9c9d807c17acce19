"""Large artifacts, written piece by piece before the entry that uses them.

SQLite has one write lock for everybody. A message of 31 MB in one transaction holds it for as long
as the disk takes for 31 MB, and all tenants wait. So its data is uploaded first, a piece in each
transaction, with pauses in which others write. The append itself then only claims the upload.

An upload that no append claimed is given up: by the one that made it, or, if its process died, by
whoever uploads next. `forget` drops all of them at once, because a copy of forgotten words may lie
in one. That is safe at any time: an append whose upload is gone writes the data itself.
"""

import sqlite3
from collections.abc import Iterator
from time import time
from typing import Final

from refold.log.artifact import Artifact
from refold.stores.sql import statements
from refold.stores.sqlite.rows import LAST_SEQ, place
from refold.stores.sqlite.transaction import Reading, Writing

SQL: Final = statements("refold.stores.sqlite", "sql/uploads.sql")
MAX_INLINE: Final = 512 * 1024
"""Bytes of an artifact that an append writes itself."""
PIECE: Final = 512 * 1024
"""Bytes written in one transaction."""
MAX_PAUSE: Final = 0.01
"""Seconds between two of them: several times as long as the others wait between two looks."""
_ABANDONED: Final = 3_600_000
"""Milliseconds after which an upload belongs to a process that died."""


def is_stored(tx: Reading, artifact: Artifact) -> bool:
    """Whether the data is there already, by another entry."""
    return tx.db.execute(SQL["has_artifact"], (tx.tenant, artifact.hash)).fetchone() is not None


def begin(tx: Writing) -> int:
    """Begin an upload; its id."""
    return tx.db.execute(SQL["begin"], (_now(),)).lastrowid or 0


def pieces_of(artifact: Artifact) -> Iterator[tuple[int, bytes]]:
    """The data in pieces, with their numbers."""
    for number, start in enumerate(range(0, len(artifact.data), PIECE)):
        yield number, artifact.data[start : start + PIECE]


def add_piece(tx: Writing, upload: int, number: int, piece: bytes) -> bool:
    """Write a piece; False when the upload is gone."""
    tx.reach("upload.begun")
    return tx.db.execute(SQL["add_piece"], (place(upload, number), piece, upload)).rowcount > 0


def claim(tx: Writing, upload: int, key: int) -> bool:
    """Make an upload the data of an artifact; False when it is gone."""
    return tx.db.execute(SQL["claim"], (key, upload)).rowcount > 0


def data_of(tx: Reading, key: int) -> bytes:
    """The data of an artifact that was uploaded."""
    found = tx.db.execute(SQL["of_artifact"], (key,)).fetchone()
    pieces = tx.db.execute(SQL["pieces"], _ends(found[0])) if found else ()
    return b"".join(data for (data,) in pieces)


def drop_data(tx: Writing, key: int) -> None:
    """Drop the data of an artifact that nobody uses any more, if it was uploaded."""
    for (upload,) in tx.db.execute(SQL["of_artifact"], (key,)).fetchall():
        _drop(tx.db, upload)


def abandoned(tx: Reading) -> list[int]:
    """The uploads whose append did not come and will not."""
    before = _now() - _ABANDONED
    return [upload for (upload,) in tx.db.execute(SQL["unclaimed"], (before,)).fetchall()]


def drop_some(tx: Writing, upload: int) -> bool:
    """Drop a piece of an upload that nobody claimed; whether there are more."""
    if not tx.db.execute(SQL["give_up"], (upload,)).rowcount:
        return False
    if tx.db.execute(SQL["drop_piece"], _ends(upload)).rowcount:
        return True
    tx.db.execute(SQL["drop"], (upload,))
    return False


def drop_unclaimed(db: sqlite3.Connection) -> None:
    """Drop all uploads that no append has claimed, also those under way."""
    db.execute("BEGIN IMMEDIATE")
    try:
        for (upload,) in db.execute(SQL["unclaimed"], (_now() + _ABANDONED,)).fetchall():
            _drop(db, upload)
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _drop(db: sqlite3.Connection, upload: int) -> None:
    db.execute(SQL["drop_pieces"], _ends(upload))
    db.execute(SQL["drop"], (upload,))


def _ends(upload: int) -> tuple[int, int]:
    return place(upload, 0), place(upload, LAST_SEQ)


def _now() -> int:
    return int(time() * 1_000)
