"""Search and reread everything that a log has, including what folds stand for."""

from refold.recall.search import HitState, SearchHit, SessionHit, search, search_sessions, terms_of
from refold.recall.text import EntryText, Reader
from refold.recall.tools import Tool, memory_tool, recall_tools
from refold.recall.unfold import (
    Cursor,
    Page,
    Piece,
    Text,
    part_ref,
    read_artifact,
    read_part,
    spans_of_fold,
    unfold,
)

__all__ = [
    "Cursor",
    "EntryText",
    "HitState",
    "Page",
    "Piece",
    "Reader",
    "SearchHit",
    "SessionHit",
    "Text",
    "Tool",
    "memory_tool",
    "part_ref",
    "read_artifact",
    "read_part",
    "recall_tools",
    "search",
    "search_sessions",
    "spans_of_fold",
    "terms_of",
    "unfold",
]
