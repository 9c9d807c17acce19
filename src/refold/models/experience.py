"""What the answers and refusals of models have taught: how they count, and what fits them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from refold.models.catalogue import ModelSettings
from refold.models.overflow import Overflow
from refold.models.setup import Setup
from refold.models.tokenizers import counter_for
from refold.view import Calibration, Counter, Profile, calibrated
from refold.view.calibration import ABSURD

_MARGIN: Final = 0.98
"""Of a limit that was named, the share that is used: two requests seldom count alike."""
_STEP: Final = 0.05
"""By how much the correction of a counter must move before everything is counted anew."""
_LESS: Final = 0.9
"""Of a request that was refused without a limit that explains it, the share that is tried next."""
_MOST: Final = 256
"""Models that are known: their names come from clients."""


@dataclass(frozen=True, slots=True)
class Experience:
    """What is known of one model by experience."""

    calibration: Calibration
    counter: Counter
    """The counter in use: everything that was counted, was counted by it."""
    factor: float = 1.0
    """By how much it corrects the plain one."""
    window: int | None = None
    """The smallest limit that it named."""
    undercount: float = 1.0
    """In a refusal: its count for each token of the plain counter's."""
    refused: int | None = None
    """The smallest request that was refused for a reason that `window` does not explain, and after
    which a smaller one was taken; in tokens of the plain counter."""
    suspected: int | None = None
    """The same, while nothing has been taken since: it may be refused whatever its length is."""


class Experiences:
    """What is known of each model, by its name."""

    def __init__(self) -> None:
        self._learned: dict[str, Experience] = {}

    def of(self, name: str) -> Experience:
        """What is known of this one."""
        if name not in self._learned:
            plain = counter_for(name)
            self._learned[name] = Experience(Calibration(prior=max(0.01, plain.spread)), plain)
            if len(self._learned) > _MOST:
                del self._learned[next(iter(self._learned))]
        return self._learned[name]

    def answered(self, name: str, counted: int, reported: int) -> None:
        """A request of so many tokens, by our count and by the model's."""
        self.took(name, counted)
        known = self.of(name)
        plain = round(counted / known.factor)
        calibration = known.calibration.observed(plain, reported)
        known = replace(known, calibration=calibration)
        if abs(calibration.factor / known.factor - 1) > _STEP:
            counter = calibrated(counter_for(name), calibration)
            known = replace(known, counter=counter, factor=calibration.factor)
        self._learned[name] = known

    def took(self, name: str, counted: int) -> None:
        """A request of so many tokens was answered, whatever the model says of its length."""
        known = self.of(name)
        plain = round(counted / known.factor)
        if known.suspected and plain < known.suspected:
            least = min(known.suspected, known.refused or known.suspected)
            known = replace(known, refused=least)
        if known.refused and plain >= known.refused:
            known = replace(known, refused=None)  # its length was not the reason
        self._learned[name] = replace(known, suspected=None)

    def refused(self, name: str, counted: int, said: Overflow, reserve: int = 0) -> None:
        """A request of so many tokens, by our count, was refused; so many were for its answer."""
        known = self.of(name)
        if counted and not _explains(said, counted, reserve):
            plain = round(counted / known.factor)
            known = replace(known, suspected=min(plain, known.suspected or plain))
        if said.limit:
            least = min(said.limit, known.window or said.limit)
            known = replace(known, window=least)
        if said.asked and counted:
            ratio = said.asked * known.factor / counted
            if ratio <= ABSURD:
                known = replace(known, undercount=max(ratio, known.undercount))
        self._learned[name] = known

    def answer_within(
        self, name: str, sent: int, settings: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        """The settings, asking for no longer answer than the window that was named has room for."""
        known = self.of(name)
        asked = (settings or {}).get("max_tokens")
        if not asked or not known.window:
            return settings
        room = known.window - int(sent * max(1.0, known.undercount / known.factor) / _MARGIN)
        return {**(settings or {}), "max_tokens": max(1, min(asked, room))}

    def setup(
        self,
        name: str,
        profile: Profile,
        own: ModelSettings,
        tools: tuple[str, ...] = (),
        instructions: str = "",
    ) -> Setup:
        """The setup for a model, with what it has taught."""
        known = self.of(name)
        if known.window:
            window = min(known.window, own.window or known.window)
            own = own.model_copy(update={"window": window})
        made = Setup.of(name, profile, instructions=instructions, tools=tools, models={name: own})
        budget = made.budget
        if known.window:
            room = known.window - budget.reserve
            scale = min(1.0, known.factor / known.undercount)
            budget = budget._replace(learned=int(_MARGIN * scale * room))
        if known.refused:
            budget = budget._replace(guessed=int(_LESS * known.refused * known.factor))
        return replace(made, counter=known.counter, budget=budget)


def _explains(said: Overflow, counted: int, reserve: int) -> bool:
    """Whether a limit that was named, or a count, tells how much less the next request must be."""
    if said.limit is None:
        return False
    return bool(said.asked) or counted + reserve > _MARGIN * said.limit
