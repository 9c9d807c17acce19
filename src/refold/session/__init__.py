"""A session: the flow from what is said to what the model sees, and back."""

from refold.models.catalog import Usage
from refold.models.experience import Setup
from refold.session.compaction import Compacted
from refold.session.explain import Filled, Forecast, SessionCost, session_cost
from refold.session.session import Session

__all__ = [
    "Compacted",
    "Filled",
    "Forecast",
    "Session",
    "SessionCost",
    "Setup",
    "Usage",
    "session_cost",
]
