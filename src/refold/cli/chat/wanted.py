"""What the command line asks of a chat."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to talk with, and where it is kept."""

    store: str
    tenant: str
    session: str | None = None
    resume: bool = False
    """Go on with the session; without one, pick it."""
    model: str | None = None
    base_url: str | None = None
    agent: str | None = None
    mcp: Path | None = None
    files: Path | None = None
    profile: str | None = None
    board: bool = True
    """Tell new sessions what the board of this branch says."""
