"""Files that are written whole or not at all."""

import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

__all__ = [
    "appearing_whole",
    "config_folder",
    "data_folder",
    "state_folder",
    "write_whole",
]


# The user's own folders: settings, state and data, as the XDG specification names them.


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


def write_whole(path: Path, content: bytes) -> None:
    """Write the file, or leave it as it was; a link stays, and what it leads to is written."""
    with appearing_whole(path) as file:
        file.write(content)


@contextmanager
def appearing_whole(path: Path) -> Generator[BinaryIO, None, None]:
    """A file to write, which takes the path's place when the block ends without an error.

    A new file is its owner's alone; one that was there keeps its mode.
    """
    path = Path(os.path.realpath(path))
    # Nobody else has such a name, so it may be removed whether or not it came to be: an interrupt
    # can come when the file is there and `open` has not returned yet.
    part = path.with_name(f".refold-{uuid4().hex}.part")
    try:
        with open(part, "xb", opener=_private) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    except OSError as error:
        if error.filename == str(part):
            error.filename = str(path)  # the name that its reader knows
        raise
    finally:
        part.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
