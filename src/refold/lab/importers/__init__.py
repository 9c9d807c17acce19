"""Readers of sessions that other programs recorded."""

from refold.lab.importers.claude_code import parse_claude_code
from refold.lab.importers.codex import parse_codex
from refold.lab.importers.copilot_cli import parse_copilot_cli
from refold.lab.importers.exported import parse_exported
from refold.lab.importers.gemini_cli import parse_gemini, parse_gemini_chat
from refold.lab.importers.openai_chat import parse_openai_chat, read_openai_chat
from refold.lab.importers.pi import parse_pi, read_pi

__all__ = [
    "parse_claude_code",
    "parse_codex",
    "parse_copilot_cli",
    "parse_exported",
    "parse_gemini",
    "parse_gemini_chat",
    "parse_openai_chat",
    "parse_pi",
    "read_openai_chat",
    "read_pi",
]
