"""The demo's conversation as data: what the user types, and how the model answers."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Final

from pydantic import BaseModel, ConfigDict

WINDOW: Final = 8_000
"""Tokens that the demo's model sees: so few that the first fold comes soon."""
PACE: Final = 0.025
"""Seconds for each word of an answer."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Call(_Data):
    tool: str
    arguments: dict[str, str | int] = {}


class Step(_Data):
    """The model's answer to one request."""

    say: str = ""
    calls: tuple[Call, ...] = ()
    place: str = ""
    """What `{place}` is in their arguments: the group of this pattern, in what was returned."""
    find: str = ""
    """What `{found}` is: the group of this pattern, in what the model is shown."""
    otherwise: str = ""
    """What is said where it is not found."""


class Turn(_Data):
    """What the user types, and the steps of the answer."""

    prompt: str
    steps: tuple[Step, ...]
    detail: bool = False
    """Whether it asks for something that was folded away."""


class Script(_Data):
    instructions: str
    turns: tuple[Turn, ...]
    outside: str
    """What is answered to anything else."""

    def turn_of(self, prompt: str) -> int | None:
        """Which turn begins with the prompt, however it is spaced and punctuated."""
        words = _words(prompt)
        turns = (index for index, turn in enumerate(self.turns) if _words(turn.prompt) == words)
        return next(turns, None)


@cache
def script() -> Script:
    text = (files("refold.cli.demo") / "script.toml").read_text("utf-8")
    return Script.model_validate(tomllib.loads(text))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


PROMPTS: Final = tuple(turn.prompt for turn in script().turns)
"""What the user types, in order."""
DETAIL: Final = next(index for index, turn in enumerate(script().turns) if turn.detail)
"""Which turn asks for something that was folded away."""
INSTRUCTIONS: Final = script().instructions
