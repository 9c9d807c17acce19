"""Standing rules: what the user said once, and means for good.

"Read part 3" is done when it is read. "Never push to main" is not: where there is no room for all
that the user said, it is the last to go.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

_STANDING: Final = re.compile(
    r"\b(?:never|always|do not|don't|dont|must(?:n't)?|only|avoid|prefer|make sure|remember to"
    r"|from now on|without asking|ask (?:me )?(?:first|before)|not allowed|you may|you can|keep"
    r"|niemals|nie|immer|nicht|kein\w*|nur|bitte keine|ab jetzt|muss|musst|darfst"
    r"|jamais|toujours|ne \w+ pas|seulement|il faut|évite\w*"
    r"|nunca|siempre|sempre|solo|só|jamás|debes?|deve|evita\w*|não"
    r"|mai|nooit|altijd|alleen|niet|никогда|всегда|нельзя|только|не)\b"
    r"|不要|不得|禁止|必须|总是|一定|只能|永远|しないで|必ず|常に|禁止|항상|절대",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")  # noqa: RUF001 - signs of other scripts
_READ = 4_000  # characters of a message
_LONGEST = 300  # characters of a sentence; what is longer is a pasted text


def rules_in(text: str) -> list[str]:
    """The sentences of a message that sound as if they were meant for good."""
    if not _STANDING.search(text[:_READ]):
        return []
    sentences = (one.strip() for one in _SENTENCE.split(text[:_READ]))
    return [one for one in sentences if 0 < len(one) <= _LONGEST and _STANDING.search(one)]


Rules = Callable[[str], list[str]]
"""The rules in a text."""


def least_missed(texts: Sequence[str], rules: Rules = rules_in) -> list[int]:
    """The messages by how little they would be missed: the oldest first, those with rules last."""
    order = [(bool(rules(text)), at) for at, text in enumerate(texts)]
    newest = len(texts) - 1  # what was said last is what is being done
    return [at for _, at in sorted((ruled or at == newest, at) for ruled, at in order)]
