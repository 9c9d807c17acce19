"""Families of models: which tokenizer counts for them, and what they add.

Where a figure is published or measured, its comment says so. All others are assumptions: rules of
thumb that reported usage corrects (`refold.view.calibration`).
"""

import re
from typing import Final, Literal, NamedTuple

from refold.view.tokens import PLAIN, Marks

Encoding = Literal["o200k", "cl100k"]
"""A published tokenizer."""


class Family(NamedTuple):
    """Models that count alike."""

    name: str
    pattern: re.Pattern[str]
    marks: Marks
    spread: float
    """How far the truth may lie above an estimate of a request, as a share of it."""
    encoding: Encoding | None = None
    """The tokenizer, where it is published."""


def family_of(model: str) -> Family:
    """The family of a model, with or without its provider's name in front."""
    name = model.lower()
    return next(family for family in FAMILIES if family.pattern.search(name))


def _named(pattern: str) -> re.Pattern[str]:
    """A model's own name begins the text, or follows the provider's."""
    return re.compile(rf"(?:^|[:/.@~])(?:{pattern})")


# Chat formats of OpenAI: 3 to 4 tokens a message (published). Images: 85 and 170 for each of up to
# 6 tiles (published), for gpt-4o-mini 33 times that (published).
_OPENAI: Final = PLAIN
_MINI: Final = Marks(image=36_835)

# Claude: measured on the usage of 829 recorded requests to Sonnet 4.5 and Opus 4.5, about 55 tokens
# for a call with its return. From 4.7 on another tokenizer, with about a third more tokens for text
# and code (published as "up to 35%", more was measured). 346 tokens are said about tools and images
# are width by height / 750, up to 1,600 (both published).
_CLAUDE: Final = Marks(1.15, 1.24, call=44, returned=12, tools=346, image=1_600)
_CLAUDE_4_7: Final = _CLAUDE._replace(factor=1.5, return_factor=1.5)

# Gemini: 258 tokens for each tile of 768 by 768 pixels (published); six of them are a screenshot.
_GEMINI: Final = Marks(1.1, image=1_548)

FAMILIES: Final = (
    Family("gpt-4o-mini", _named(r"(?:ft:)?gpt-4o-mini"), _MINI, 0.08, "o200k"),
    Family("gpt-4", _named(r"(?:ft:)?gpt-(?:4(?![.o\d])|3\.?5)"), _OPENAI, 0.08, "cl100k"),
    Family(
        "gpt",
        _named(r"(?:ft:|chat)?gpt-(?:4|[5-9]|oss|audio|realtime|chat)|o[1-9](?:-|$)|codex-"),
        _OPENAI,
        0.08,
        "o200k",
    ),
    Family(
        "claude",
        re.compile(
            r"claude-(?:v|instant|[1-3]\b|4-(?:opus|sonnet)|\D+(?:[1-3]|4)(?![-.](?:[7-9]|\d\d)\b))"
        ),
        _CLAUDE,
        0.15,
    ),
    Family("claude-4.7", re.compile(r"claude"), _CLAUDE_4_7, 0.25),
    Family("gemini", re.compile(r"gemini|gemma"), _GEMINI, 0.2),
    Family("llama", re.compile(r"(?<!o)llama|deepseek|qwen|glm|kimi|grok"), Marks(1.05), 0.2),
    Family("other", re.compile(""), Marks(1.15, image=1_600), 0.25),
)
"""The families, tried in this order."""
