"""What is known of models: how they count tokens, how much they take, what they cost.

Tokenizers and prices come with the extra `refold[models]`; without it, tokens are estimated and
windows are what your settings say. Nothing here uses the network.
"""

from refold.models.catalog import (
    WELL_KNOWN,
    Family,
    ModelFacts,
    ModelSettings,
    Overrides,
    Prices,
    Usage,
    cost_of,
    counter_for,
    facts_of,
    family_of,
    model_names,
)
from refold.models.experience import budget_for

__all__ = [
    "WELL_KNOWN",
    "Family",
    "ModelFacts",
    "ModelSettings",
    "Overrides",
    "Prices",
    "Usage",
    "budget_for",
    "cost_of",
    "counter_for",
    "facts_of",
    "family_of",
    "model_names",
]
