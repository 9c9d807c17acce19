"""A session: the flow from what is said to what the model sees, and back."""

from refold.models.setup import Setup
from refold.models.spending import Usage
from refold.session.asked import Compacted
from refold.session.flow import Session
from refold.session.forecast import Forecast
from refold.session.measuring import Filled, Spent, spent

__all__ = ["Compacted", "Filled", "Forecast", "Session", "Setup", "Spent", "Usage", "spent"]
