"""The marks of one tenant's entries, in memory."""

from collections.abc import Collection, Iterable
from itertools import count

from refold.log.marking import Marked


class MemoryMarks:
    """Keys, and the entries they are on."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[int, bytes]] = {}
        self._places: dict[bytes, dict[tuple[str, int], int]] = {}
        self._put = count(1)

    def newest(self, session: str) -> int:
        """The session's newest marked entry; 0 if there is none."""
        return next(reversed(self._keys.get(session, {})), 0)

    def put(self, session: str, seq: int, key: bytes) -> None:
        """Mark an entry, which is newer than those marked before."""
        self._keys.setdefault(session, {})[seq] = key
        self._places.setdefault(key, {})[session, seq] = next(self._put)

    def of(self, session: str) -> Collection[int]:
        """The session's marked entries."""
        return list(self._keys.get(session, ()))

    def drop(self, session: str, seqs: Iterable[int]) -> None:
        """Take the marks off these entries; those that have one."""
        keys = self._keys.get(session, {})
        for seq in seqs:
            key = keys.pop(seq, None)
            if key is not None:
                del self._places[key][session, seq]
                if not self._places[key]:
                    del self._places[key]
        if not keys:
            self._keys.pop(session, None)

    def found(self, keys: Iterable[bytes]) -> list[Marked]:
        """The entries with any of these keys, those marked last first."""
        rows = [
            (put, Marked(key, session, seq, *self._newest_two(session)))
            for key in keys
            for (session, seq), put in self._places.get(key, {}).items()
        ]
        return [row for _, row in sorted(rows, reverse=True)]

    def _newest_two(self, session: str) -> tuple[int, int]:
        seqs = reversed(self._keys[session])
        return next(seqs), next(seqs, 0)
