"""Reading beneath folds: finding again what was said, and reading it.

The log keeps everything, so a summary is never the last word.
"""

from refold.recall.query import terms_of
from refold.recall.reader import Reader
from refold.recall.references import Text, part_ref, read_artifact, read_part
from refold.recall.search import Found, FoundSession, Standing, search, search_sessions
from refold.recall.telling import Told
from refold.recall.tools import Tool, recall_tools
from refold.recall.unfold import Cursor, Page, Piece, beneath, unfold

__all__ = [
    "Cursor",
    "Found",
    "FoundSession",
    "Page",
    "Piece",
    "Reader",
    "Standing",
    "Text",
    "Told",
    "Tool",
    "beneath",
    "part_ref",
    "read_artifact",
    "read_part",
    "recall_tools",
    "search",
    "search_sessions",
    "terms_of",
    "unfold",
]
