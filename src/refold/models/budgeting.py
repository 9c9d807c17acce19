"""The budget of a request to a model."""

from collections.abc import Iterable
from typing import Final

from refold.models.catalogue import NONE, Overrides, facts_of
from refold.models.families import family_of
from refold.models.tokenizers import counter_for
from refold.view.budget import ASSUMED_WINDOW, Budget
from refold.view.profiles import Profile
from refold.view.tokens import Counter, tools_tokens

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
