"""What the model sees: from the log, for each request, a plan and the messages it makes.

This package is pure: it reads no file, calls no model and looks at no clock.
"""

from refold.view.budget import ASSUMED_WINDOW, Account, Budget, Thresholds, thresholds
from refold.view.explain import Explanation, explain
from refold.view.plan import (
    Event,
    Layout,
    LeftOut,
    Omission,
    Pace,
    Plan,
    Reason,
    Truncation,
    UsageInfo,
    events,
)
from refold.view.profiles import (
    PROFILES,
    Archive,
    Arguments,
    Emergency,
    Fit,
    Fold,
    Keep,
    Profile,
    Rewrite,
    Trigger,
    Trim,
    Window,
    profile,
)
from refold.view.project import project
from refold.view.record import Previous, Record, hashes_of, planned, rebuild, record
from refold.view.tokens import Calibration, Counter, Estimate, calibrated
from refold.view.view import Messages, Request, View
from refold.view.view_input import Row, ViewInput, render_tool_result

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
    "Keep",
    "Layout",
    "LeftOut",
    "Messages",
    "Omission",
    "Pace",
    "Plan",
    "Previous",
    "Profile",
    "Reason",
    "Record",
    "Request",
    "Rewrite",
    "Row",
    "Thresholds",
    "Trigger",
    "Trim",
    "Truncation",
    "UsageInfo",
    "View",
    "ViewInput",
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
