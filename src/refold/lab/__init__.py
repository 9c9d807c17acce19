"""The lab: recorded sessions in, replays under policies, figures out."""

from refold.lab.messages import Count, Reader, o200k
from refold.lab.metrics import Planted, Retention, Share, needles_kept, plant
from refold.lab.policies import Factory, Projected, Settings, baselines, frontier, profiled
from refold.lab.replay import Mark, ModelCaller, Policy, Replay, Request, play
from refold.lab.report import Measure, Report, Row, compare
from refold.lab.session_files import SessionFile, recordings
from refold.models import Prices, Usage
from refold.transcripts import (
    parse_claude_code,
    parse_codex,
    parse_copilot_cli,
    parse_gemini,
    parse_openai_chat,
    parse_pi,
    read_openai_chat,
    read_pi,
)
from refold.transcripts.recording import RecordedMessage, Recording, write

__all__ = [
    "Count",
    "Factory",
    "Mark",
    "Measure",
    "ModelCaller",
    "Planted",
    "Policy",
    "Prices",
    "Projected",
    "Reader",
    "RecordedMessage",
    "Recording",
    "Replay",
    "Report",
    "Request",
    "Retention",
    "Row",
    "SessionFile",
    "Settings",
    "Share",
    "Usage",
    "baselines",
    "compare",
    "frontier",
    "needles_kept",
    "o200k",
    "parse_claude_code",
    "parse_codex",
    "parse_copilot_cli",
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
