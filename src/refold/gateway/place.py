"""A request's place in a session: what is said there, and by which marks it is found again."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from refold.gateway.asker import Asker
from refold.gateway.dialects.asked import Asked
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.finding import Chain, chained, key_of
from refold.gateway.keeping import Kept
from refold.log import Mark
from refold.models.setup import Setup
from refold.wire import wire_for

_TITLE: Final = 60
"""How many characters of what was said first are a session's title."""
_OPENING: Final = 16
"""How many texts are looked at for one that a person said."""
_PIECE: Final = 500
"""Messages that are said at once where it may be done piece by piece."""
_PIECE_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request, and whose it is."""

    tenant: str
    dialect: Dialect
    asked: Asked
    chain: Chain
    """Of its messages."""
    setup: Setup
    session: str | None = None
    """The session's name, where the client says it."""

    @property
    def asker(self) -> Asker:
        """Who asks."""
        return Asker.of(self.asked.instructions, self.setup.hashes["tools"])

    @property
    def title(self) -> str | None:
        """What it is about: the first words that a person said, as far as that can be told."""
        told = [one for one in islice(self._prompts(), _OPENING) if _plain(one[:1_000])]
        if not told:
            return None
        words = _plain(next((one for one in told if not _tagged(one)), told[0])[:1_000])
        return words if len(words) <= _TITLE else f"{words[:_TITLE]}…"

    def _prompts(self) -> Iterator[str]:
        wire = wire_for(self.dialect.name)
        for message in self.asked.messages:
            yield from (one.text for one in wire.describe(message).shapes if one.kind == "prompt")


@dataclass
class Place:
    """Where a request has its place, until it is answered."""

    wanted: Wanted
    kept: Kept
    holding: AsyncExitStack = field(repr=False)
    tip: int | None = 0
    """The session's newest mark: the answer comes right after it."""
    said: bool = False
    """Something was said just now."""

    async def say(self, new: int, first: Callable[[], Awaitable[object]] | None = None) -> None:
        """Say what is new, from this message on; something else may have to be done first."""
        messages = self._new(new)
        if messages:
            async with self.kept.turn:
                if first is not None:
                    await first()
                await self._say(messages)

    async def begin(self) -> None:
        """Say all of it in a session that nobody else can know, and so may find unfinished.

        A long past comes piece by piece: others are answered between the pieces. The last has the
        mark by which the session is found.
        """
        *before, last = _pieces(self._new(0))
        async with self.kept.turn:
            for piece in before:
                await self.kept.session.say(*piece)
                await asyncio.sleep(0)
            await self._say(last)

    async def ask_again(self, seq: int) -> None:
        """Ask what was asked there; what came of it stays in the log, and leaves the view."""
        if self.tip != seq:
            mark = Mark(key_of("asked", self.wanted.chain.end), 0, self.tip)
            async with self.kept.turn:
                self.tip = await self.kept.session.rewind(seq, mark=mark)

    def answered(self, payloads: Sequence[bytes]) -> Mark:
        """The mark of an answer, on its last message."""
        chain = chained(self.wanted.dialect, self.wanted.chain.end, payloads)
        return Mark(key_of("answered", chain.end), len(payloads) - 1, self.tip)

    def failed(self) -> Mark:
        """The mark of what was not answered."""
        return Mark(key_of("failed", self.wanted.chain.end), 0, self.tip)

    async def leave(self) -> None:
        """It is answered, or given up."""
        await self.holding.aclose()

    def _new(self, new: int) -> list[bytes]:
        dialect, messages = self.wanted.dialect, list(self.wanted.asked.messages[new:])
        # Thoughts that came with the answer before are in the log already.
        while new and messages and not dialect.likeness(messages[0]):
            del messages[0]
        return messages

    async def _say(self, messages: Sequence[bytes]) -> None:
        mark = Mark(key_of("asked", self.wanted.chain.end), len(messages) - 1, self.tip)
        self.tip = (await self.kept.session.say(*messages, mark=mark)).last
        self.said = True


def _pieces(messages: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The messages, as many together as are said in a moment; a large one is a piece by itself."""
    begun = size = 0
    for at, message in enumerate(messages):
        size += len(message)
        if at > begun and (at - begun >= _PIECE or size > _PIECE_BYTES):
            yield messages[begun:at]
            begun, size = at, len(message)
    yield messages[begun:]


def _tagged(text: str) -> bool:
    """Whether all of it is within one tag: agents put so what they tell the model themselves."""
    tag = re.match(r"\s*<([\w-]+)", text)
    return tag is not None and text.rstrip().endswith(f"</{tag[1]}>")


def _plain(text: str) -> str:
    """On one line, with nothing in it that a terminal obeys, or that is half a character."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())
