"""Readers of sessions that other programs recorded."""

from refold.lab.importers.openai_chat import parse_openai_chat, read_openai_chat
from refold.lab.importers.pi import parse_pi, read_pi

__all__ = ["parse_openai_chat", "parse_pi", "read_openai_chat", "read_pi"]
