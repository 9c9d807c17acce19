"""What a session is measured by: the prices and the window of its model, and when rules act."""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Final

from refold.lab.comparisons import Settings
from refold.lab.metrics import Prices
from refold.lab.recording import Recording
from refold.lab.report import Measure
from refold.models import ModelFacts, ModelSettings, budget_for, facts_of
from refold.view.budget import ASSUMED_WINDOW, Budget
from refold.view.profiles import Profile

THRESHOLD: Final = 100_000
_FULL = 0.8  # of the window, where that is less than the threshold
_TAIL = 5  # the fraction of the threshold that a fold leaves, and that makes a name an old one


@dataclass(frozen=True, slots=True)
class Given:
    """What the user wants to be taken, whatever is known of the models."""

    window: int | None = None
    threshold: int | None = None
    prices: Prices | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A session, and what it is measured by."""

    recording: Recording
    model: str
    """The one that said most of it; empty where nobody knows."""
    prices: Prices
    window: int
    threshold: int
    priced: bool = True
    """Whether the prices are the model's, or were given."""
    windowed: bool = True
    """Whether the window is."""
    set_by_user: bool = False
    """Whether the threshold was given."""

    @property
    def settings(self) -> Settings:
        """What the rules of others are set to."""
        usual = Settings()
        return Settings(
            threshold=self.threshold,
            tail=min(usual.tail, self.threshold // _TAIL),
            summary=min(usual.summary, max(1, self.threshold // 20)),
        )

    @property
    def measure(self) -> Measure:
        """How its replays are measured."""
        gap = min(Measure().gap, self.threshold // _TAIL)
        return Measure(prices=self.prices, limit=self.window, gap=gap)

    def of(self, profile: Profile) -> Profile:
        """The profile; where it acts at a count of tokens and one was given, at that one.

        With little room, it keeps less and shows less.
        """
        trigger, fold, keep = profile.trigger, profile.fold, profile.fold.keep
        at = self.threshold
        if not (self.set_by_user and trigger.tokens):
            return profile
        kept = {"head_tokens": min(keep.head_tokens, at // 10)}
        if keep.unit == "tokens":
            kept["amount"] = min(int(keep.amount), at // 6)
        shown = {
            "keep": keep.model_copy(update=kept),
            "max_tokens": min(fold.max_tokens, at // 4),
            "ledger_tokens": min(fold.ledger_tokens, at // 6),
            "user_chars": min(fold.user_chars, at // 2),
        }
        begins = {"tokens": at, "at_least": min(trigger.at_least, at)}
        return profile.model_copy(
            update={
                "trigger": trigger.model_copy(update=begins),
                "fold": fold.model_copy(update=shown),
            }
        )

    def budget(self, profile: Profile) -> Budget:
        """What limits its requests."""
        known = {self.model: ModelSettings(window=self.window)}
        return budget_for(self.model, profile, models=known)


def case_of(recording: Recording, given: Given) -> Case:
    """The session, with what is known of its model; what is given goes before that."""
    model = model_of(recording)
    facts = _facts(model)
    prices = given.prices or _prices(facts)
    window = given.window or facts.window or ASSUMED_WINDOW
    return Case(
        recording,
        model,
        prices or Prices(),
        window,
        given.threshold or min(THRESHOLD, int(window * _FULL)),
        priced=prices is not None,
        windowed=bool(given.window or facts.window),
        set_by_user=given.threshold is not None,
    )


def model_of(recording: Recording) -> str:
    """The model that said most of it."""
    models = Counter(one.model for one in recording.messages if one.model)
    return models.most_common(1)[0][0] if models else ""


def prices_of(model: str) -> Prices | None:
    """The published prices of a model; None where nobody knows them."""
    return _prices(_facts(model))


@cache
def _facts(model: str) -> ModelFacts:
    return facts_of(model) if model else ModelFacts("")


def _prices(facts: ModelFacts) -> Prices | None:
    """Where no price for the cache is published, that of the input."""
    sent, output, read, write = facts.prices
    if sent is None or output is None:
        return None
    return Prices(sent, output, sent if read is None else read, sent if write is None else write)
