"""The log stands, but not as the caller thought."""

from typing import ClassVar

from refold.errors.root import RefoldError


class LogError(RefoldError):
    """The log stands, but not as the caller thought."""

    code = "log"


class SessionNotFound(LogError):
    """No session of that name."""

    code = "session-not-found"
    usual_fix = "List the sessions, or start one by appending an Opened entry at expected=0."


class SessionExists(LogError):
    """A session of that name is there already."""

    code = "session-exists"
    usual_fix = "Choose another session name."


class SessionForgotten(LogError):
    """The session was forgotten: its entries are gone for good."""

    code = "session-forgotten"
    usual_fix = "Start anew with a new Opened entry at expected=0, or use another session name."


class SessionBusy(LogError):
    """Another run of the session is under way, and took longer than we wait."""

    code = "session-busy"
    usual_fix = (
        "Start it again when that run has ended, or fork the session if both are to go on at once."
    )


class HistoryDiffers(LogError):
    """A message history was given that does not continue what the session holds."""

    code = "history-differs"
    usual_fix = (
        "Leave `message_history` out, and the session is read from the store; "
        "or give another `conversation_id`, and a new session begins with that history."
    )


class Conflict(LogError):
    """Another writer was first: the head is not where the caller expected it."""

    code = "conflict"
    usual_fix = "Read what was appended since, then append again at the new head."
    _of: ClassVar = "head"

    def __init__(self, session: str, *, expected: int, found: int) -> None:
        self.session = session
        self.expected = expected
        self.found = found
        super().__init__(f"Session {session!r} has its {self._of} at {found}, not at {expected}.")


class MarkConflict(Conflict):
    """Another writer was first: the newest mark is not on the entry that the caller expected."""

    code = "mark-conflict"
    usual_fix = "Find the session's marks again, then append after the newest of them."
    _of = "newest mark"


class IdReused(LogError):
    """The same entry id came with other content, or in another order."""

    code = "id-reused"
    usual_fix = "Give every new entry an id of its own; repeat an append only unchanged."


class ArtifactNotFound(LogError):
    """No artifact under that hash: never stored here, or forgotten since."""

    code = "artifact-not-found"
    usual_fix = (
        "Check the hash; an artifact goes when the last entry that refers to it is forgotten."
    )


class WrittenByNewer(LogError):
    """A newer Refold wrote what this one cannot read."""

    code = "written-by-newer"
    usual_fix = "Upgrade Refold in this process."
