"""How a session is managed for a model, and what answers and refusals teach about the model."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final

from refold.models.catalog import (
    NO_OVERRIDES,
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
from refold.view.tokens import ABSURD, Correction, tools_tokens

MAX_ASKED_RESERVE: Final = 2
"""A requested length of the answer is reserved up to this fraction of the window."""
MAX_USUAL_RESERVE: Final = 4
"""The same for the profile's reserve, if no length is requested."""

_MARGIN: Final = 0.98
"""The share of a limit that is used, once named: two requests seldom count alike."""
_STEP: Final = 0.05
"""By how much the correction of a counter must move before everything is counted again."""
_LESS: Final = 0.9
"""The share of a request that is tried next, if it was refused without an explaining limit."""
_MAX_MODELS: Final = 256  # their names come from clients


_ADDED: Final = re.compile(r'\["(?:[\w.:/-]*[^A-Za-z0-9"])?recall_[a-z_]+"')
"""How such a definition begins where it is the list that Pydantic AI's tools are counted as."""
_RECALL: Final = re.compile(r'"name"\s*:\s*"((?:[\w.:/-]*[^A-Za-z0-9"])?recall_[a-z_]+)"')


def recall_names(definitions: str) -> list[str]:
    """The names of recall's tools among the definitions of tools, as the model is shown them."""
    return _RECALL.findall(definitions)


def budget_for(  # noqa: PLR0913 - all that a budget depends on
    model: str,
    profile: Profile,
    *,
    instructions: str = "",
    tools: Iterable[str] = (),
    counter: Counter | None = None,
    learned: int | None = None,
    models: Overrides = NO_OVERRIDES,
) -> Budget:
    """The budget of a request to a model.

    Args:
        model: Its name, with or without the provider.
        profile: The profile with the reserve and the limit.
        instructions: The instructions that are sent with the messages.
        tools: The definitions of the tools, each as JSON.
        counter: Counts their tokens; by default, the best for the model.
        learned: A limit that the provider named when it refused a request.
        models: Settings for models, which override published figures.
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


@dataclass(frozen=True, slots=True)
class Setup:
    """The model, budget and profile that a session is managed for."""

    model: str
    counter: Counter
    budget: Budget
    profile: Profile = PROFILES["balanced"]
    prices: Prices = field(default_factory=Prices)
    hashes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of instructions, tools and settings, for the request records."""
    instructions: str = ""
    """The model's instructions, as text."""
    recall: tuple[str, ...] = ()
    """The names of recall's tools, as the model is shown them."""
    added: int = 0
    """Tokens of the definitions of recall's tools, which the agent has because of Refold."""

    @classmethod
    def of(
        cls,
        model: str,
        profile: Profile = PROFILES["balanced"],
        *,
        instructions: str = "",
        tools: Iterable[str] = (),
        models: Overrides = NO_OVERRIDES,
    ) -> "Setup":
        """The setup for a model, from published figures and the settings for it."""
        counter = counter_for(model)
        definitions = tuple(tools)
        budget = budget_for(
            model,
            profile,
            instructions=instructions,
            tools=definitions,
            counter=counter,
            models=models,
        )
        hashes = {
            "instructions": _hash(instructions),
            "tools": _hash("\0".join(definitions)),
            "settings": _hash(profile.model_dump_json()),
        }
        prices = facts_of(model, models).prices
        recall = tuple(name for text in definitions for name in recall_names(text))
        own = [text for text in definitions if _RECALL.search(text) or _ADDED.match(text)]
        marks = family_of(model).marks
        added = tools_tokens(counter, own, marks) - (marks.tools if own else 0)
        return cls(model, counter, budget, profile, prices, hashes, instructions, recall, added)

    def within(self, learned: int) -> "Setup":
        return replace(self, budget=self.budget._replace(learned=learned))


def _hash(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Experience:
    """What was learned of one model."""

    calibration: Calibration
    counter: Counter
    """The counter in use; all counts so far are its own."""
    factor: float = 1.0
    """By how much it corrects the plain counter."""
    window: int | None = None
    """The smallest limit that the provider named."""
    undercount: float = 1.0
    """The provider's tokens for each token of the plain counter, in a refusal."""
    refused: int | None = None
    """The smallest request, in tokens of the plain counter, that was refused without `window`
    explaining it, and after which a smaller one was accepted."""
    suspected: int | None = None
    """The same, while nothing has been accepted since: its length may not be the reason."""


class Experiences:
    """What was learned of each model, by its name."""

    def __init__(self) -> None:
        self._learned: dict[str, Experience] = {}

    def of(self, name: str) -> Experience:
        if name not in self._learned:
            plain = counter_for(name)
            self._learned[name] = Experience(Calibration(prior=max(0.01, plain.spread)), plain)
            if len(self._learned) > _MAX_MODELS:
                del self._learned[next(iter(self._learned))]
        return self._learned[name]

    def resume(self, setup: Setup) -> None:
        """Start with how a session's requests were counted, if nothing is known of the model."""
        known, correction = self.of(setup.model), Correction.of(setup.counter)
        if correction and known.counter.name == correction.counter and not known.calibration.pairs:
            start = known.calibration.model_copy(update={"start": correction.factor})
            self._learned[setup.model] = replace(
                known, calibration=start, counter=setup.counter, factor=correction.factor
            )

    def answered(
        self, name: str, counted: int, reported: int, correction: Correction | None
    ) -> None:
        """Record an answered request with our count of its tokens and the provider's."""
        self.record_accepted(name, counted)
        known = self.of(name)
        plain = round(counted / (correction.factor if correction else 1.0))
        calibration = known.calibration.observed(plain, reported)
        known = replace(known, calibration=calibration)
        if abs(calibration.factor / known.factor - 1) > _STEP:
            counter = calibrated(counter_for(name), calibration)
            known = replace(known, counter=counter, factor=calibration.factor)
        self._learned[name] = known

    def record_accepted(self, name: str, counted: int) -> None:
        """Record that a request of so many tokens, by our count, was accepted."""
        known = self.of(name)
        plain = round(counted / known.factor)
        if known.suspected and plain < known.suspected:
            smallest = min(known.suspected, known.refused or known.suspected)
            known = replace(known, refused=smallest)
        if known.refused and plain >= known.refused:
            known = replace(known, refused=None)  # its length was not the reason
        self._learned[name] = replace(known, suspected=None)

    def refused(self, name: str, counted: int, overflow: Overflow, reserve: int = 0) -> None:
        """Record that a request was refused; `reserve` tokens were for its answer."""
        known = self.of(name)
        limit = overflow.limit
        # Does the limit, or the provider's count, say how much shorter the next request must be?
        explained = limit and (overflow.asked or counted + reserve > _MARGIN * limit)
        if counted and not explained:
            plain = round(counted / known.factor)
            known = replace(known, suspected=min(plain, known.suspected or plain))
        if limit:
            known = replace(known, window=min(limit, known.window or limit))
        if overflow.asked and counted:
            ratio = overflow.asked * known.factor / counted
            if ratio <= ABSURD:
                known = replace(known, undercount=max(ratio, known.undercount))
        self._learned[name] = known

    def answer_within(
        self, name: str, sent: int, settings: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        """The settings, with `max_tokens` lowered to what the named window has room for."""
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
        """The setup for a model, with what was learned of it."""
        known = self.of(name)
        if known.window:
            window = min(known.window, own.window or known.window)
            own = own.model_copy(update={"window": window})
        setup = Setup.of(name, profile, instructions=instructions, tools=tools, models={name: own})
        budget = setup.budget
        if known.window:
            room = known.window - budget.reserve
            scale = min(1.0, known.factor / known.undercount)
            budget = budget._replace(learned=int(_MARGIN * scale * room))
        if known.refused:
            budget = budget._replace(guessed=int(_LESS * known.refused * known.factor))
        return replace(setup, counter=known.counter, budget=budget)
