"""Memory between sessions: what leaves a view is written where people, and later agents, find it.

The log keeps every word of a session; memory keeps the little that is worth telling elsewhere.
"""

from refold.memory.board import Board, Fact, Stand
from refold.memory.consolidating import Consolidated, Rem, consolidate
from refold.memory.context_board import ContextBoard
from refold.memory.daily import DailyFiles
from refold.memory.leaving import Leaving
from refold.memory.protocol import MemorySink, Note, Reason
from refold.memory.remembering import OVERFLOW, remembering
from refold.memory.repository import Branch, branch_of

__all__ = [
    "OVERFLOW",
    "Board",
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
    "Stand",
    "branch_of",
    "consolidate",
    "remembering",
]
