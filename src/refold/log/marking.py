"""Marks: keys by which entries are found again, and whether one may be put."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from refold.errors import InvalidInput, MarkConflict
from refold.log.entry import Draft

KEY_BYTES: Final = 16


class Mark(NamedTuple):
    """A key put on an entry when it is appended, by which the entry is found again."""

    key: bytes
    """16 bytes."""
    nth: int
    """On which of the drafts it is put; 0 is the first."""
    after: int | None
    """On which entry the session's newest mark must be; 0 where it has none. Else nothing is
    appended: MarkConflict. None: wherever it is."""


class Marked(NamedTuple):
    """An entry with a mark, and how the marks of its session stand."""

    key: bytes
    session: str
    seq: int
    tip: int
    """The session's newest marked entry."""
    before: int
    """The newest marked entry before that one; 0 if there is none."""


def check_mark(mark: Mark, drafts: Sequence[Draft]) -> None:
    """Refuse a mark that no store could keep, or that is on none of the drafts."""
    if len(mark.key) != KEY_BYTES:
        raise InvalidInput(
            f"The key of a mark has {len(mark.key)} bytes.", f"Give one of {KEY_BYTES} bytes."
        )
    if not 0 <= mark.nth < len(drafts):
        raise InvalidInput(
            f"There is no draft {mark.nth} to put the mark on.",
            f"Count from 0: there are {len(drafts)} drafts.",
        )
    if mark.after is not None and mark.after < 0:
        raise InvalidInput(f"No entry is {mark.after}.", "Say 0 where no entry has a mark yet.")


def check_newest(session: str, mark: Mark, newest: int) -> None:
    """Refuse to put the mark where the newest is on another entry than it says (0: on none)."""
    if mark.after is not None and mark.after != newest:
        raise MarkConflict(session, expected=mark.after, found=newest)


def askable(keys: Sequence[bytes]) -> list[bytes]:
    """Each key once, without those that no mark can have."""
    return [key for key in dict.fromkeys(keys) if len(key) == KEY_BYTES]
