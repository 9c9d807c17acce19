"""The lab: recorded sessions in, replays under policies, figures out."""

from refold.lab.finding import Found, recordings
from refold.lab.importers import (
    parse_claude_code,
    parse_codex,
    parse_gemini,
    parse_openai_chat,
    parse_pi,
    read_openai_chat,
    read_pi,
)
from refold.lab.messages import Count, Reader, o200k
from refold.lab.metrics import Planted, Prices, Retention, Share, needles_kept, plant
from refold.lab.policies import Factory, Projected, Settings, baselines, frontier, profiled
from refold.lab.recording import Recorded, Recording, Usage, write
from refold.lab.replay import Mark, Policy, Replay, Request, Spending, Spent, play
from refold.lab.report import Measure, Report, Row, compare

__all__ = [
    "Count",
    "Factory",
    "Found",
    "Mark",
    "Measure",
    "Planted",
    "Policy",
    "Prices",
    "Projected",
    "Reader",
    "Recorded",
    "Recording",
    "Replay",
    "Report",
    "Request",
    "Retention",
    "Row",
    "Settings",
    "Share",
    "Spending",
    "Spent",
    "Usage",
    "baselines",
    "compare",
    "frontier",
    "needles_kept",
    "o200k",
    "parse_claude_code",
    "parse_codex",
    "parse_gemini",
    "parse_openai_chat",
    "parse_pi",
    "plant",
    "play",
    "profiled",
    "read_openai_chat",
    "read_pi",
    "recordings",
    "write",
]
