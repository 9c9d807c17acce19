"""Names of new sessions: a few words that tell them apart."""

import re
from secrets import token_hex

_MOST = 40
"""Characters of the words."""
_NOT_IN_NAMES = re.compile(r"[^\w]+")


def name_for(prompt: str) -> str:
    """A name that no other session has: the first words of what was said, and some letters."""
    words = _NOT_IN_NAMES.sub("-", prompt[: 4 * _MOST].casefold()).strip("-_")
    if len(words) > _MOST:
        words = words[: _MOST + 1].rpartition("-")[0] or words[:_MOST]
    return f"{words or 'session'}-{token_hex(2)}"
