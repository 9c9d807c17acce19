"""What the model sees: from the log, for each request, a plan and the messages it makes.

This package is pure: it reads no file, calls no model and looks at no clock.
"""

from refold.view.budget import ASSUMED_WINDOW, Account, Budget
from refold.view.calibration import Calibration, calibrated
from refold.view.estimate import Estimate
from refold.view.events import Event, Truncation, UsageInfo, events
from refold.view.explain import Explanation, explain
from refold.view.plan import Layout, LeftOut, Plan
from refold.view.policy_values import (
    Archive,
    Arguments,
    Emergency,
    Fit,
    Fold,
    Keep,
    Rewrite,
    Trigger,
    Trim,
    Window,
)
from refold.view.profiles import PROFILES, Profile, profile
from refold.view.project import project
from refold.view.reasons import Gone, Reason
from refold.view.record import Previous, Record, hashes_of, planned, rebuild, record
from refold.view.rendering import render_tool_result
from refold.view.row import Row
from refold.view.sheet import Sheet
from refold.view.thresholds import Thresholds, thresholds
from refold.view.tokens import Counter
from refold.view.view import Messages, Request, View

__all__ = [
    "ASSUMED_WINDOW",
    "PROFILES",
    "Account",
    "Archive",
    "Arguments",
    "Budget",
    "Calibration",
    "Counter",
    "Emergency",
    "Estimate",
    "Event",
    "Explanation",
    "Fit",
    "Fold",
    "Gone",
    "Keep",
    "Layout",
    "LeftOut",
    "Messages",
    "Plan",
    "Previous",
    "Profile",
    "Reason",
    "Record",
    "Request",
    "Rewrite",
    "Row",
    "Sheet",
    "Thresholds",
    "Trigger",
    "Trim",
    "Truncation",
    "UsageInfo",
    "View",
    "Window",
    "calibrated",
    "events",
    "explain",
    "hashes_of",
    "planned",
    "profile",
    "project",
    "rebuild",
    "record",
    "render_tool_result",
    "thresholds",
]
