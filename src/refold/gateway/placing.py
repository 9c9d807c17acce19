"""Puts a request into its session: what is new is said there, and marked."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final
from uuid import uuid4

from refold.errors import Conflict, SessionBusy, SessionForgotten, SessionNotFound
from refold.gateway.finding import Branch, Continue, Found, New, Retry, found
from refold.gateway.keeping import Keeping
from refold.gateway.newest import Newest
from refold.gateway.place import Place, Wanted
from refold.log import Marked
from refold.session import Session

_TRIES: Final = 8


async def _cleared(session: Session) -> None:
    if session.said:
        await session.clear()


def _new_name() -> str:
    return f"g-{uuid4().hex[:20]}"


class Placing:
    """Finds the sessions of requests."""

    def __init__(self, keeping: Keeping, new_name: Callable[[], str] = _new_name) -> None:
        self._keeping = keeping
        self._new_name = new_name
        self._newest = Newest()

    async def place(self, wanted: Wanted) -> Place:
        """The place of a request. Where others go on at the same moment, they go on elsewhere."""
        chain = wanted.chain
        log = self._keeping.log(wanted.tenant)
        known = self._newest.take(wanted.tenant, chain) if wanted.session is None else None
        at: Found = New()
        for _ in range(_TRIES):
            rows = [] if known else await log.marked(chain.keys)
            holding = AsyncExitStack()
            try:
                if wanted.session is None:
                    at, known = known or found(chain, rows), None
                    return await self._found(wanted, at, holding)
                return await self._named(wanted, wanted.session, rows, holding)
            except Conflict:
                await holding.aclose()
            except (SessionForgotten, SessionNotFound):  # in this moment, or elsewhere
                await holding.aclose()
                name = wanted.session or ("" if isinstance(at, New) else at.session)
                await self._keeping.drop(wanted.tenant, name)
            except BaseException:
                await holding.aclose()
                raise
        raise SessionBusy("Others ask in the same conversation all the time.")

    def answered(self, place: Place, key: bytes, seq: int) -> None:
        """A request was answered; the entry with the answer's mark."""
        if place.wanted.session is None:  # names that people give are given again
            self._newest.put(place.wanted.tenant, key, place.kept.session.name, seq)

    async def branched(self, place: Place) -> Place:
        """The same place in a session of its own: others went on first."""
        assert place.tip is not None  # noqa: S101 - something was said
        wanted, name, holding = place.wanted, self._new_name(), AsyncExitStack()
        at = place.tip or place.kept.session.head  # 0: it is a branch already
        await self._keeping.log(wanted.tenant).fork(place.kept.session.name, name, at=at)
        new = await self._opened(wanted, name, holding)
        await place.leave()
        return new

    async def apart(self, place: Place) -> Place:
        """The same place in a session that holds what the client sent, and nothing else."""
        new = await self._begun(place.wanted, AsyncExitStack())
        await place.leave()
        return new

    async def _found(self, wanted: Wanted, at: Found, holding: AsyncExitStack) -> Place:
        match at:
            case New():
                place = await self._begun(wanted, holding)
            case Continue(name, seq, new):
                place = await self._opened(wanted, name, holding, seq)
                known = place.kept.asker
                if known is not None and not known.is_like(wanted.asker):
                    place = await self._forked(wanted, name, seq, holding)
                await place.say(new)
            case Retry(name, seq, tip):
                place = await self._opened(wanted, name, holding, tip)
                await place.ask_again(seq)
            case Branch(session, seq, new):
                place = await self._forked(wanted, session, seq, holding)
                await place.say(new)
        place.kept.asker = wanted.asker
        return place

    async def _forked(self, wanted: Wanted, of: str, seq: int, holding: AsyncExitStack) -> Place:
        """In a session of its own that goes on from there."""
        name = self._new_name()
        await self._keeping.log(wanted.tenant).fork(of, name, at=seq)
        return await self._opened(wanted, name, holding)

    async def _begun(self, wanted: Wanted, holding: AsyncExitStack) -> Place:
        name = self._new_name()
        place = await self._opened(wanted, name, holding, new=True)
        try:
            await place.begin()
        except BaseException:
            await self._keeping.drop(wanted.tenant, name)
            raise
        return place

    async def _named(
        self,
        wanted: Wanted,
        name: str,
        rows: Sequence[Marked],
        holding: AsyncExitStack,
    ) -> Place:
        """In the session that the client names: what it sees then is what the client sent."""
        own = [row for row in rows if row.session == name]
        await self._keeping.look(wanted.tenant, name)
        place = await self._opened(wanted, name, holding)
        if place.kept.first is None:
            await self._keeping.look(wanted.tenant, name)
        session = place.kept.session
        await session.catch_up()
        match found(wanted.chain, own):
            case Continue(_, seq, new):
                place.tip = seq
                await place.say(new)
            case Retry(_, seq, tip):
                place.tip = tip
                await place.ask_again(seq)
            case Branch(_, seq, new):
                place.tip = next(row.tip for row in own if row.seq == seq)
                await place.say(new, lambda: session.rewind(seq))
            case New():
                place.tip = None
                await place.say(0, lambda: _cleared(session))
        return place

    async def _opened(
        self,
        wanted: Wanted,
        name: str,
        holding: AsyncExitStack,
        tip: int = 0,
        *,
        new: bool = False,
    ) -> Place:
        # One that was found is there: it is not begun anew where it was forgotten.
        begins = wanted.dialect.name if new or wanted.session is not None else None
        kept = await holding.enter_async_context(
            self._keeping.kept(
                *(wanted.tenant, name, begins, wanted.setup),
                title=lambda: wanted.title,
                new=new,
            )
        )
        return Place(wanted, kept, holding, tip)
