"""What the answers and refusals of models have taught: how they count, and what fits them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final

from refold.models.catalog import (
    NONE,
    ModelSettings,
    Overrides,
    Prices,
    counter_for,
    facts_of,
    family_of,
)
from refold.models.overflow import Overflow
from refold.view import PROFILES, Budget, Calibration, Counter, Profile, calibrated
from refold.view.budget import ASSUMED_WINDOW
from refold.view.tokens import ABSURD, tools_tokens

# The budget of a request to a model.

MAX_ASKED_RESERVE: Final = 2
"""An answer whose length was asked for is kept room free, up to this fraction of the window."""
MAX_USUAL_RESERVE: Final = 4
"""The same for an answer of which nobody says how long it may be."""


def budget_for(  # noqa: PLR0913 - all that a budget depends on
    model: str,
    profile: Profile,
    *,
    instructions: str = "",
    tools: Iterable[str] = (),
    counter: Counter | None = None,
    learned: int | None = None,
    models: Overrides = NONE,
) -> Budget:
    """What limits a request to the model.

    Args:
        model: Its name, with or without the provider's in front.
        profile: Whose reserve and limit apply.
        instructions: What is sent beside the messages.
        tools: The definitions of the tools, each as JSON.
        counter: Counts them; without one, the best for the model.
        learned: A limit that the provider named when it refused a request.
        models: Settings for models that go before what is published.
    """
    counter = counter or counter_for(model)
    facts = facts_of(model, models)
    window = facts.window or ASSUMED_WINDOW
    usual = min(profile.reserve, window // MAX_USUAL_RESERVE)
    asked = facts.output and min(facts.output, window // MAX_ASKED_RESERVE)
    return Budget(
        window=facts.window,
        reserve=asked or usual,
        instructions=counter.text(instructions, "system"),
        tools=tools_tokens(counter, tools, family_of(model).marks),
        learned=learned,
        configured=profile.budget or None,
    )


# What a session is managed for: a model, within a budget, by a profile.


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything a session must know of its model, and how it is to be managed."""

    model: str
    counter: Counter
    budget: Budget
    profile: Profile = PROFILES["balanced"]
    prices: Prices = field(default_factory=Prices)
    hashes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of instructions, tools and settings, for the request records."""

    @classmethod
    def of(
        cls,
        model: str,
        profile: Profile = PROFILES["balanced"],
        *,
        instructions: str = "",
        tools: Iterable[str] = (),
        models: Overrides = NONE,
    ) -> "Setup":
        """The setup for a model, from what is published of it and the settings for it."""
        counter = counter_for(model)
        given = tuple(tools)
        budget = budget_for(
            model, profile, instructions=instructions, tools=given, counter=counter, models=models
        )
        hashes = {
            "instructions": _hash(instructions),
            "tools": _hash("\0".join(given)),
            "settings": _hash(profile.model_dump_json()),
        }
        return cls(model, counter, budget, profile, facts_of(model, models).prices, hashes)

    def within(self, learned: int) -> "Setup":
        """The same, after the provider named a limit."""
        return replace(self, budget=self.budget._replace(learned=learned))


def _hash(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


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
