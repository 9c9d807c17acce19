"""Memory between sessions: what leaves a view is written where people, and later agents, find it.

The log keeps every word of a session; memory keeps the little that is worth telling elsewhere.
"""

from refold.memory.board import Board, BoardState, Branch, ContextBoard, Fact, branch_of
from refold.memory.consolidation import Consolidated, Rem, consolidate
from refold.memory.daily import DailyFiles
from refold.memory.memory import OVERFLOW, Leaving, MemorySink, Note, Reason, remembering

__all__ = [
    "OVERFLOW",
    "Board",
    "BoardState",
    "Branch",
    "Consolidated",
    "ContextBoard",
    "DailyFiles",
    "Fact",
    "Leaving",
    "MemorySink",
    "Note",
    "Reason",
    "Rem",
    "branch_of",
    "consolidate",
    "remembering",
]
