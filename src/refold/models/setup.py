"""What a session is managed for: a model, within a budget, by a profile."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from refold.models.budgeting import budget_for
from refold.models.catalogue import NONE, Overrides, Prices, facts_of
from refold.models.tokenizers import counter_for
from refold.view import PROFILES, Budget, Counter, Profile


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
