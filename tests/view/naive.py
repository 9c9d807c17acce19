"""How such tools are often made: one list, one mark, one call, and what came back is installed.

Each class is a small honest version. It is driven as `talks.Talk` is, so that one check can judge
both. None of them is wrong at first sight.
"""

from functools import lru_cache
from typing import NamedTuple

from folding import spelled
from talks import COUNTER, texts

from refold.testing.wire import Asked, Responded
from refold.wire import Wire, wire_for

ASK = "Summarize the conversation below, so that the work can go on.\n\n"
REMOVED = "[Earlier messages were removed.]"
WIRE = wire_for("pydantic-ai")


class Sent(NamedTuple):
    """A request."""

    messages: list[bytes]
    wire: Wire = WIRE


@lru_cache(None)
def _weight(payload):
    return sum(map(COUNTER.part, WIRE.describe(payload).shapes))


class Naive:
    """Whenever it is too long, a model's words take the place of all but the last messages."""

    def __init__(self, summarizer, window=2_000, *, instructions=0, share=0.8, keep=4):
        self.summarizer = summarizer
        self.window = window
        self.instructions = instructions
        self.mark = share * window
        self.keep = keep
        self.kept = []
        """All that it has: there is no log."""
        self.freed = []
        """By how many tokens, compaction by compaction."""

    def size(self):
        return self.instructions + sum(map(_weight, self.kept))

    async def say(self, *said):
        self.kept += spelled("pydantic-ai", *said)

    answer = say

    async def request(self):
        if self.size() > self.mark:
            await self.compact()
        return Sent([*self.kept])

    async def go(self, *said):
        request = None
        for one in said:
            if isinstance(one, Responded):
                request = await self.request()
            await self.say(one)
        return request

    async def compact(self):
        before, old = self.size(), self.kept[: -self.keep]
        if not old:
            return
        try:
            summary = await self.summarized(old)
        except Exception:  # noqa: BLE001 - it is tried again at the next turn
            self.freed.append(0)
            return
        self.kept = [*spelled("pydantic-ai", Asked(summary)), *self.kept[-self.keep :]]
        self.freed.append(before - self.size())

    async def summarized(self, old):
        return await self.ask(ASK + "\n".join(texts(Sent(old))))

    async def ask(self, prompt):
        return (await self.summarizer.ask("", prompt, None)).text


class Clipping(Naive):
    """Shows the summarizer as much of the end as it has room for."""

    async def ask(self, prompt):
        return await super().ask(prompt[-4 * self.summarizer.window + 40 :])


class PlaceholderOnly(Naive):
    """Where there is no summary, a line stands in its place, so that the work can go on."""

    async def ask(self, prompt):
        try:
            return await super().ask(prompt) or REMOVED
        except Exception:  # noqa: BLE001 - whatever it is
            return REMOVED


class Insisting(Naive):
    """Asks until there is a summary."""

    async def ask(self, prompt):
        text = ""
        while not text.strip():
            text = await super().ask(prompt)
        return text


class Retrying(Naive):
    """Takes no empty summary, and tries again at the next turn."""

    async def ask(self, prompt):
        text = await super().ask(prompt)
        if not text.strip():
            raise ValueError("The summary is empty.")
        return text


class Rolling(Naive):
    """The last messages, and before them a summary of everything older, made anew each turn."""

    async def request(self):
        if len(self.kept) <= self.keep:
            return Sent([*self.kept])
        summary = await self.summarized(self.kept[: -self.keep])
        return Sent([*spelled("pydantic-ai", Asked(summary)), *self.kept[-self.keep :]])


class Foreseen(NamedTuple):
    """What is said before a compaction."""

    messages: int
    lost: int = 0
    names: tuple[str, ...] = ()


class Undoing(Naive):
    """Takes its summary away again, and can say how many messages a compaction would remove."""

    async def take_back(self):
        del self.kept[0]

    async def preview(self):
        return Foreseen(len(self.kept) - self.keep)
