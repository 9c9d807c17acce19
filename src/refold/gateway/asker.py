"""Who asks: the agent whose conversation it is, or another that only reads along.

Some agents ask beside their conversation, with all of its past: another agent of theirs takes notes
after each turn. It has its own instructions and its own tools. Agents change their instructions
from turn to turn, a date or a list of files in them, and they change their tools; but not both at
once, and not the words that the instructions begin with.
"""

from itertools import takewhile
from operator import eq
from typing import Final, NamedTuple

_BEGINNING: Final = 80


class Asker(NamedTuple):
    """By what one who asks is known."""

    instructions: str
    """Their beginning."""
    tools: str
    """Their hash."""

    @classmethod
    def of(cls, instructions: str, tools: str) -> "Asker":
        """Who has these instructions, and tools with this hash."""
        return cls(instructions[:_BEGINNING], tools)

    def is_like(self, other: "Asker") -> bool:
        """Whether the two may be the same."""
        return self.tools == other.tools or _begin_alike(self.instructions, other.instructions)


def _begin_alike(one: str, other: str) -> bool:
    """Whether half of the shorter beginning is the same; nothing is like anything."""
    shared = sum(takewhile(bool, map(eq, one, other)))
    return 2 * shared >= min(len(one), len(other))
