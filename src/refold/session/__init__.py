"""A session: the flow from what is said to what the model sees, and back."""

from refold.fold.events import (
    CompactionComplete,
    CompactionHeld,
    CompactionStart,
    CompactionWait,
)
from refold.fold.watchdog import ReadAgain
from refold.models.accounts import receipt_of
from refold.models.catalog import Usage
from refold.models.experience import Setup
from refold.models.receipt import Receipt
from refold.session.compaction import Compacted
from refold.session.events import AnyEvent, event_from_json
from refold.session.explain import Filled, Forecast
from refold.session.session import Session
from refold.view import Truncation, UsageInfo

__all__ = [
    "AnyEvent",
    "Compacted",
    "CompactionComplete",
    "CompactionHeld",
    "CompactionStart",
    "CompactionWait",
    "Filled",
    "Forecast",
    "ReadAgain",
    "Receipt",
    "Session",
    "Setup",
    "Truncation",
    "Usage",
    "UsageInfo",
    "event_from_json",
    "receipt_of",
]
