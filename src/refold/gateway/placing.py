"""Puts a request into its session: what is new is said there, and marked."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

from refold.errors import Conflict, SessionBusy, SessionForgotten, SessionNotFound
from refold.gateway.dialects.asked import Asked
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.finding import (
    Branch,
    Chain,
    Continue,
    Found,
    New,
    Retry,
    chained,
    found,
    key_of,
    seed,
)
from refold.gateway.keeping import Keeping, Kept
from refold.gateway.newest import Newest
from refold.log import Mark, Marked
from refold.models.setup import Setup
from refold.session import Session
from refold.wire import wire_for

_TRIES: Final = 8
_TITLE: Final = 60
"""How many characters of what was said first are a session's title."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request, and whose it is."""

    tenant: str
    dialect: Dialect
    asked: Asked
    setup: Setup
    key: str = ""
    """The id of the caller's key."""
    session: str | None = None
    """The session's name, where the client says it."""

    @property
    def chain(self) -> Chain:
        """The chain of its messages."""
        start = seed(self.dialect.name, self.key, self.asked.user)
        return chained(self.dialect, start, self.asked.messages)

    @property
    def title(self) -> str | None:
        """What it is about: the first words that were said."""
        wire = wire_for(self.dialect.name)
        for message in self.asked.messages:
            for shape in wire.describe(message).shapes:
                if shape.kind == "prompt" and (words := _plain(shape.text[:1_000])):
                    return words if len(words) <= _TITLE else f"{words[:_TITLE]}…"
        return None


@dataclass
class Place:
    """Where a request has its place, until it is answered."""

    wanted: Wanted
    chain: Chain
    kept: Kept
    holding: AsyncExitStack = field(repr=False)
    tip: int | None = 0
    """The session's newest mark: the answer comes right after it."""
    said: bool = False
    """Something was said just now."""

    async def say(self, new: int, first: Callable[[], Awaitable[object]] | None = None) -> None:
        """Say what is new, from this message on; something else may have to be done first."""
        dialect, messages = self.wanted.dialect, list(self.wanted.asked.messages[new:])
        # Thoughts that came with the answer before are in the log already.
        while new and messages and not dialect.likeness(messages[0]):
            del messages[0]
        if messages:
            mark = Mark(key_of("asked", self.chain.end), len(messages) - 1, self.tip)
            async with self.kept.turn:
                if first is not None:
                    await first()
                self.tip = (await self.kept.session.say(*messages, mark=mark)).last
            self.said = True

    async def ask_again(self, seq: int) -> None:
        """Ask what was asked there; what came of it stays in the log, and leaves the view."""
        if self.tip != seq:
            mark = Mark(key_of("asked", self.chain.end), 0, self.tip)
            async with self.kept.turn:
                self.tip = await self.kept.session.rewind(seq, mark=mark)

    def answered(self, payloads: Sequence[bytes]) -> Mark:
        """The mark of an answer, on its last message."""
        chain = chained(self.wanted.dialect, self.chain.end, payloads)
        return Mark(key_of("answered", chain.end), len(payloads) - 1, self.tip)

    def failed(self) -> Mark:
        """The mark of what was not answered."""
        return Mark(key_of("failed", self.chain.end), 0, self.tip)

    async def leave(self) -> None:
        """It is answered, or given up."""
        await self.holding.aclose()


async def _cleared(session: Session) -> None:
    if session.said:
        await session.clear()


def _plain(text: str) -> str:
    """On one line, with nothing in it that a terminal obeys, or that is half a character."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


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
                    return await self._found(wanted, chain, at, holding)
                return await self._named(wanted, wanted.session, chain, rows, holding)
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
        new = await self._opened(wanted, place.chain, name, holding)
        await place.leave()
        return new

    async def apart(self, place: Place) -> Place:
        """The same place in a session that holds what the client sent, and nothing else."""
        new = await self._begun(place.wanted, place.chain, AsyncExitStack())
        await place.leave()
        return new

    async def _found(
        self, wanted: Wanted, chain: Chain, at: Found, holding: AsyncExitStack
    ) -> Place:
        match at:
            case New():
                place = await self._begun(wanted, chain, holding)
            case Continue(name, seq, new):
                place = await self._opened(wanted, chain, name, holding, seq)
                await place.say(new)
            case Retry(name, seq, tip):
                place = await self._opened(wanted, chain, name, holding, tip)
                await place.ask_again(seq)
            case Branch(session, seq, new):
                name = self._new_name()
                await self._keeping.log(wanted.tenant).fork(session, name, at=seq)
                place = await self._opened(wanted, chain, name, holding)
                await place.say(new)
        return place

    async def _begun(self, wanted: Wanted, chain: Chain, holding: AsyncExitStack) -> Place:
        name = self._new_name()
        place = await self._opened(wanted, chain, name, holding, new=True)
        try:
            await place.say(0)
        except BaseException:
            await self._keeping.drop(wanted.tenant, name)
            raise
        return place

    async def _named(
        self,
        wanted: Wanted,
        name: str,
        chain: Chain,
        rows: Sequence[Marked],
        holding: AsyncExitStack,
    ) -> Place:
        """In the session that the client names: what it sees then is what the client sent."""
        own = [row for row in rows if row.session == name]
        await self._keeping.look(wanted.tenant, name)
        place = await self._opened(wanted, chain, name, holding)
        if place.kept.first is None:
            await self._keeping.look(wanted.tenant, name)
        session = place.kept.session
        await session.catch_up()
        match found(chain, own):
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

    async def _opened(  # noqa: PLR0913 - two are choices
        self,
        wanted: Wanted,
        chain: Chain,
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
        return Place(wanted, chain, kept, holding, tip)
