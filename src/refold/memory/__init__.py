"""Memory between sessions: what leaves a view is written where people, and later agents, find it.

The log keeps every word of a session; memory keeps the little that is worth telling elsewhere.
"""

from refold.memory.daily import DailyFiles
from refold.memory.leaving import Leaving
from refold.memory.protocol import MemorySink, Note, Reason
from refold.memory.remembering import OVERFLOW, remembering

__all__ = [
    "OVERFLOW",
    "DailyFiles",
    "Leaving",
    "MemorySink",
    "Note",
    "Reason",
    "remembering",
]
