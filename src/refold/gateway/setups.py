"""For which model, with which tools and instructions, requests are planned."""

from collections import OrderedDict
from typing import Final

from refold.gateway.dialects.asked import Asked
from refold.models.catalogue import ModelSettings, Overrides
from refold.models.experience import Experiences
from refold.models.setup import Setup
from refold.view import Profile

_MOST: Final = 256
_MOST_WEIGHT: Final = 32 * 1024 * 1024
"""Characters of the tools and instructions of all setups that are kept."""
_OUTPUT: Final = ("max_completion_tokens", "max_output_tokens", "max_tokens")

_Seen = tuple[str, str, tuple[str, ...], str, int | None, float, int | None, float, int | None]
"""What a setup was made of."""


class Setups:
    """Makes them, and keeps those that were asked for last: tools are seldom others."""

    def __init__(self, profile: Profile, models: Overrides) -> None:
        self._profile = profile
        self._models = models
        self._kept: OrderedDict[_Seen, Setup] = OrderedDict()
        self._weight = 0

    def of(self, asked: Asked, tenant: str, experiences: Experiences) -> Setup:
        """The setup of a tenant's request, with what the tenant's answers have taught."""
        known, output = experiences.of(asked.model), _output(asked)
        facts = (tenant, asked.model, asked.tools, asked.instructions, output)
        seen = (*facts, known.factor, known.window, known.undercount, known.refused)
        setup = self._kept.pop(seen, None)
        if setup is None:
            own = self._models.get(asked.model, ModelSettings())
            own = own.model_copy(update={"output": output or own.output})
            setup = experiences.setup(
                asked.model, self._profile, own, asked.tools, asked.instructions
            )
            self._weight += _weight(asked.tools, asked.instructions)
        self._kept[seen] = setup
        self._let_go()
        return setup

    def _let_go(self) -> None:
        while len(self._kept) > 1 and (len(self._kept) > _MOST or self._weight > _MOST_WEIGHT):
            (_, _, tools, instructions, *_), _ = self._kept.popitem(last=False)
            self._weight -= _weight(tools, instructions)


def _output(asked: Asked) -> int | None:
    """How long the answer may be, where the client says so."""
    given = next((asked.body[name] for name in _OUTPUT if asked.body.get(name)), None)
    return given if isinstance(given, int) and given > 0 else None


def _weight(tools: tuple[str, ...], instructions: str) -> int:
    return sum(map(len, tools)) + len(instructions)
