"""The user's own folders: settings, state and data, as the XDG specification names them."""

import os
import sys
from pathlib import Path

__all__ = ["config_folder", "data_folder", "state_folder"]


def config_folder() -> Path:
    """Where the user's own settings lie: where the platform wants them, or in ~/.config."""
    if configured := _named_by("XDG_CONFIG_HOME"):
        return configured / "refold"
    library = Path.home() / "Library" / "Application Support" / "refold"
    if sys.platform == "darwin" and library.is_dir():
        return library
    return Path.home() / ".config" / "refold"


def state_folder() -> Path:
    """Where Refold remembers what holds for this user on this machine."""
    return (_named_by("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "refold"


def data_folder() -> Path:
    """Where the user's own store lies."""
    return (_named_by("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "refold"


def _named_by(variable: str) -> Path | None:
    """The folder that a variable names.

    A relative one would lie in whichever folder a command is started in, a cloned one too. The XDG
    specification says to ignore it.
    """
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else None
