"""Memory between sessions: notes of what leaves a view, and facts for later sessions.

The log keeps every word of a session; memory keeps what is worth knowing elsewhere.
"""

from refold.memory.board import (
    Board,
    BoardState,
    Branch,
    ContextBoard,
    Fact,
    branch_of,
    checked_out,
    is_internal,
)
from refold.memory.consolidation import Consolidated, Rem, consolidate
from refold.memory.daily import DailyFiles, Remembered, daily_files, daily_notes, search_memory
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
    "Remembered",
    "branch_of",
    "checked_out",
    "consolidate",
    "daily_files",
    "daily_notes",
    "is_internal",
    "remembering",
    "search_memory",
]
