"""Which branch of which repository a folder is on, as git says."""

import os
import subprocess
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

_PATIENCE = 5.0  # seconds that git may take
_DIGITS = 12
_LOCAL_ONLY = {
    # A repository's own configuration may name a command to fetch missing objects with.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
"""Git reads what is there, and reaches for nothing else."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of a repository, or a folder that is in none."""

    key: str
    """The same for the same branch, wherever it is checked out."""
    title: str
    """As people call it."""


def branch_of(folder: Path) -> Branch:
    """The branch that is checked out there; the folder itself where git knows of none.

    A repository is known by its first commit, so that its clones are one.
    """
    top = _git(folder, "rev-parse", "--show-toplevel")
    if not top:
        return Branch(_digest(str(folder.resolve())), folder.resolve().name or "this folder")
    branch = _git(folder, "symbolic-ref", "--short", "HEAD") or "no branch"
    first = _git(folder, "rev-list", "--max-parents=0", "HEAD").split()
    known_by = min(first)[:_DIGITS] if first else _digest(top)
    return Branch(f"{known_by} {branch}", f"{Path(top).name}, {branch}")


def _git(folder: Path, *asked: str) -> str:
    """What git answers; nothing where it cannot."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command, no shell
            # The user's own git; a file system monitor would be a command of the repository's.
            ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *asked],  # noqa: S607
            env=os.environ | _LOCAL_ONLY,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()[:_DIGITS]
