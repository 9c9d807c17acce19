"""What happened: the append-only record of a session, and the protocol of what keeps it.

This package is pure: it decides, and leaves reading and writing to `refold.stores`.
"""

from refold.log.artifact import Artifact, Hole
from refold.log.author import Author, Clock, wall_clock
from refold.log.codec import CODEC, Codec
from refold.log.entry import MAIN_SCOPE, Draft, Entry
from refold.log.kinds import (
    Cleared,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldStepped,
    FoldUndone,
    Forgot,
    Forgotten,
    Message,
    Note,
    Opened,
    Pinned,
    Requested,
    Rewound,
    Saved,
    Titled,
    Unknown,
    Unpinned,
    Used,
    Value,
)
from refold.log.outline import Folded, Outline, Running
from refold.log.protocol import (
    DEFAULT_TENANT,
    Appended,
    Erased,
    Hit,
    Log,
    Match,
    Matches,
    SessionInfo,
    SessionPage,
    Store,
    Visible,
)
from refold.log.span import PartRef, Span
from refold.log.transfer import export_session, import_session

__all__ = [
    "CODEC",
    "DEFAULT_TENANT",
    "MAIN_SCOPE",
    "Appended",
    "Artifact",
    "Author",
    "Cleared",
    "Clock",
    "Codec",
    "Draft",
    "Entry",
    "Erased",
    "FoldCompleted",
    "FoldFailed",
    "FoldStarted",
    "FoldStepped",
    "FoldUndone",
    "Folded",
    "Forgot",
    "Forgotten",
    "Hit",
    "Hole",
    "Log",
    "Match",
    "Matches",
    "Message",
    "Note",
    "Opened",
    "Outline",
    "PartRef",
    "Pinned",
    "Requested",
    "Rewound",
    "Running",
    "Saved",
    "SessionInfo",
    "SessionPage",
    "Span",
    "Store",
    "Titled",
    "Unknown",
    "Unpinned",
    "Used",
    "Value",
    "Visible",
    "export_session",
    "import_session",
    "wall_clock",
]
