"""Readers of sessions that other programs recorded."""

from refold.transcripts.claude_code import parse_claude_code
from refold.transcripts.codex import parse_codex
from refold.transcripts.copilot_cli import parse_copilot_cli
from refold.transcripts.exported import parse_exported
from refold.transcripts.gemini_cli import parse_gemini, parse_gemini_chat
from refold.transcripts.openai_chat import parse_openai_chat, read_openai_chat
from refold.transcripts.pi import parse_pi, read_pi
from refold.transcripts.qwen_code import parse_qwen_code

__all__ = [
    "parse_claude_code",
    "parse_codex",
    "parse_copilot_cli",
    "parse_exported",
    "parse_gemini",
    "parse_gemini_chat",
    "parse_openai_chat",
    "parse_pi",
    "parse_qwen_code",
    "read_openai_chat",
    "read_pi",
]
