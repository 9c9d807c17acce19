"""A summarizer that does all that one may do wrong, and sometimes what it should."""

import asyncio
from random import Random, SystemRandom
from typing import Any

from sessions import Quarter

from refold.fold.write.by_model import SummarizerAnswer
from refold.view import Counter

NAMES = ("chaos:one", "chaos:two", "chaos:three")
WAYS = {
    "true": 8,
    "slow": 3,
    "hangs": 1,
    "errs": 2,
    "invents": 2,
    "is silent": 1,
    "is huge": 1,
}
"""What it may do, and how often of all times."""
_LIE = "## Decisions\n- Grand Vizier Ozymandias ordered to delete `/srv/nowhere/{n}.sql` [2].\n"


class Chaotic:
    """One that does something else at each call."""

    structured = warm = False
    room = 1_200

    def __init__(self, name: str, random: Random | None = None):
        self.name = name
        self.counter: Counter = Quarter()
        self._random = random or SystemRandom()

    async def ask(self, guard: str, prompt: str, job: Any) -> SummarizerAnswer:  # noqa: ARG002 - as asked
        way = self._random.choices(list(WAYS), list(WAYS.values()))[0]
        await asyncio.sleep(self._random.random() / 20)
        match way:
            case "slow":
                await asyncio.sleep(self._random.uniform(0.2, 1.5))
            case "hangs":
                await asyncio.Event().wait()
            case "errs":
                raise RuntimeError("The model is overloaded.")
            case "invents":
                return SummarizerAnswer(_LIE.format(n=self._random.randrange(10**9)) * 3)
            case "is silent":
                return SummarizerAnswer("")
            case "is huge":
                return SummarizerAnswer("## State\n" + "- It went on and on. [2]\n" * 20_000)
            case _:
                pass
        return SummarizerAnswer("## State\n- The work goes on as before. [2]\n")
