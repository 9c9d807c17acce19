"""The log protocol over the store's connections."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Protocol, TypeVar

from refold.engine.locks import FileLocks
from refold.errors import InvalidEntry, RefoldError
from refold.log.admit import check_drafts, lift_large
from refold.log.artifact import Artifact
from refold.log.entry import Draft, Entry, Mark, Marked, Span, askable, check_mark
from refold.log.protocol import (
    Appended,
    Erased,
    Hit,
    Locks,
    Matches,
    Outlined,
    SessionInfo,
    SessionPage,
    Visible,
)
from refold.log.text import Term
from refold.stores.sqlite import read as reading
from refold.stores.sqlite.append import append, append_alone, fork, marked
from refold.stores.sqlite.forget import expire, forget, maybe_unused
from refold.stores.sqlite.read import (
    MAX_INLINE,
    MAX_PAUSE,
    Reading,
    Writing,
    abandoned,
    add_piece,
    begin,
    drop_some,
    is_stored,
    pieces_of,
)
from refold.stores.sqlite.search import index_some, matches, search, sessions, unindexed

T = TypeVar("T")


class File(Protocol):
    """What the log needs of the store it belongs to."""

    path: Path

    async def read(self, tenant: str, work: Callable[[Reading], T]) -> T:
        """Do work that only reads."""
        ...

    def at_once(self, tenant: str, work: Callable[[Writing], T | None]) -> T | None:
        """Do work that is a single statement, if nobody else writes; None when it was not done."""
        ...

    async def append(self, tenant: str, work: Callable[[Writing], T]) -> T:
        """Do quick work that writes, in a transaction that others may share."""
        ...

    async def write(self, tenant: str, work: Callable[[Writing], T]) -> T:
        """Do other work that writes, in a transaction of its own."""
        ...

    async def scrub(self) -> None:
        """Scrub the files of what was forgotten."""
        ...


class SqliteLog:
    """The sessions of one tenant in a SQLite file."""

    def __init__(self, file: File, tenant: str) -> None:
        self.tenant = tenant
        self._file = file

    def locks(self, purpose: str = "fold") -> Locks:
        """See `refold.log.Log.locks`."""
        return FileLocks(Path(f"{self._file.path.absolute()}-locks"), self.tenant, purpose)

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        expected: int | None,
        revision: int | None = None,
        mark: Mark | None = None,
    ) -> Appended:
        """See `refold.log.Log.append`."""
        if revision is not None:
            raise InvalidEntry("This store counts no revisions.", "Append without one.")
        check_drafts(drafts)
        if mark is not None:
            check_mark(mark, drafts)
            return await self._append(session, drafts, expected, mark)
        done = self._file.at_once(
            self.tenant, lambda tx: append_alone(tx, session, drafts, expected)
        )
        if done is not None:
            return done
        return await self._append(session, drafts, expected, None)

    async def _append(
        self, session: str, drafts: Sequence[Draft], expected: int | None, mark: Mark | None
    ) -> Appended:
        """Append in a transaction that others may share, after uploading what is large."""
        lifted = lift_large(drafts)
        artifacts = [one for _, _, found in lifted.values() for one in found]
        artifacts += [one for draft in drafts for one in draft.attached]
        large = {one.hash: one for one in artifacts if len(one.data) > MAX_INLINE}
        uploads: dict[str, int] = {}

        def work(tx: Writing) -> Appended:
            tx.uploads = uploads
            return append(tx, session, drafts, expected, mark, lifted)

        if not large:
            return await self._file.append(self.tenant, work)
        try:
            for artifact in large.values():
                await self._upload(artifact, uploads)
            return await self._file.append(self.tenant, work)
        finally:
            with suppress(RefoldError):  # whoever uploads next does it
                await self._drop_unclaimed(uploads.values())

    async def _drop_unclaimed(self, uploads: Iterable[int]) -> None:
        """Drop those that no append claimed: it failed, or another one was quicker."""
        for upload in {*uploads, *await self._read(abandoned)}:
            while await self._file.append(self.tenant, _dropping(upload)):
                pass

    async def _upload(self, artifact: Artifact, uploads: dict[str, int]) -> None:
        """Write the data of a large artifact, with moments in which others write."""
        if await self._read(lambda tx: is_stored(tx, artifact)):
            return
        upload = uploads[artifact.hash] = await self._file.append(self.tenant, begin)
        for number, piece in pieces_of(artifact):
            start = perf_counter()
            if not await self._file.append(self.tenant, _adding(upload, number, piece)):
                del uploads[artifact.hash]
                return
            # Who waits for the lock polls for it, and without a pause would never find it free.
            await asyncio.sleep(min(MAX_PAUSE, perf_counter() - start))

    async def marked(self, keys: Sequence[bytes]) -> list[Marked]:
        """See `refold.log.Log.marked`."""
        asked = askable(keys)
        return await self._read(lambda tx: marked(tx, asked))

    async def head(self, session: str) -> int:
        """See `refold.log.Log.head`."""
        return (await self.info(session)).entries

    async def info(self, session: str) -> SessionInfo:
        """See `refold.log.Log.info`."""
        return await self._read(lambda tx: reading.info(reading.the_session(tx, session), session))

    async def read(
        self, session: str, span: Span | None = None, *, whole: bool = True
    ) -> list[Entry]:
        """See `refold.log.Log.read`."""
        return await self._read(
            lambda tx: reading.read(tx, reading.the_session(tx, session), span, is_whole=whole)
        )

    async def visible(self, session: str, *, last: int | None = None) -> Visible:
        """See `refold.log.Log.visible`."""
        return await self._read(lambda tx: reading.visible(tx, session, last))

    async def outlined(self, session: str) -> Outlined:
        """See `refold.log.Log.outlined`."""
        return await self._read(lambda tx: reading.outlined(tx, session))

    async def sessions(
        self, *, search: str | None = None, limit: int = 50, page: str | None = None
    ) -> SessionPage:
        """See `refold.log.Log.sessions`."""
        if search is not None:
            await self._index()
        return await self._read(lambda tx: sessions(tx, search, limit, page))

    async def fork(self, session: str, new: str, *, at: int | None = None) -> SessionInfo:
        """See `refold.log.Log.fork`."""
        return await self._write(lambda tx: fork(tx, session, new, at))

    async def forget(self, session: str, span: Span | None = None) -> Erased:
        """See `refold.log.Log.forget`."""
        erased = await self._write(lambda tx: forget(tx, session, span))
        await self._file.scrub()
        return erased

    async def expire(self, before: int, *, only: Collection[str] | None = None) -> list[str]:
        """See `refold.log.Log.expire`."""
        names = await self._read(lambda tx: maybe_unused(tx, before))
        names = [name for name in names if only is None or name in only]
        gone = [name for name in names if await self._write(_expiry(name, before))]
        if gone:
            await self._file.scrub()
        return gone

    async def artifact(self, hash: str) -> Artifact:  # noqa: A002 - the glossary's word
        """See `refold.log.Log.artifact`."""
        return await self._read(lambda tx: reading.artifact(tx, hash))

    async def search(self, query: str, *, session: str | None = None, limit: int = 20) -> list[Hit]:
        """See `refold.log.Log.search`."""
        await self._index()
        return await self._read(lambda tx: search(tx, query, session, limit))

    async def matches(
        self, terms: Sequence[Term], *, session: str | None = None, most: int = 2_000
    ) -> Matches:
        """See `refold.log.Log.matches`."""
        await self._index()
        return await self._read(lambda tx: matches(tx, terms, session, most))

    async def _index(self) -> None:
        """Index what was appended up to now, a little at a time, so that appends go on."""
        for key, head in await self._read(lambda tx: unindexed(tx.db)):
            while await self._write(_indexing(key, head)):
                pass

    async def _read(self, work: Callable[[Reading], T]) -> T:
        return await self._file.read(self.tenant, work)

    async def _write(self, work: Callable[[Writing], T]) -> T:
        return await self._file.write(self.tenant, work)


def _adding(upload: int, number: int, piece: bytes) -> Callable[[Writing], bool]:
    return lambda tx: add_piece(tx, upload, number, piece)


def _dropping(upload: int) -> Callable[[Writing], bool]:
    return lambda tx: drop_some(tx, upload)


def _expiry(session: str, before: int) -> Callable[[Writing], bool]:
    return lambda tx: expire(tx, session, before)


def _indexing(key: int, head: int) -> Callable[[Writing], bool]:
    return lambda tx: index_some(tx, key, head)
