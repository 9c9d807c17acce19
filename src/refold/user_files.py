"""The user's own folders, and files that are written whole or not at all."""

import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

__all__ = [
    "atomic_file",
    "config_folder",
    "data_folder",
    "state_folder",
    "write_whole",
]


def config_folder() -> Path:
    """The folder of the user's settings: the platform's own place, or ~/.config."""
    if configured := _folder_in("XDG_CONFIG_HOME"):
        return configured / "refold"
    library = Path.home() / "Library" / "Application Support" / "refold"
    if sys.platform == "darwin" and library.is_dir():
        return library
    return Path.home() / ".config" / "refold"


def state_folder() -> Path:
    """The folder for what Refold remembers about this user on this machine."""
    return (_folder_in("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "refold"


def data_folder() -> Path:
    """The folder of the user's own store."""
    return (_folder_in("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "refold"


def _folder_in(variable: str) -> Path | None:
    # A relative path would be inside whichever folder a command runs in, even a cloned repository.
    # The XDG specification says to ignore it.
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else None


def write_whole(path: Path, content: bytes) -> None:
    """Write the file, or leave it as it was; a link stays, and its target is written."""
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path) -> Generator[BinaryIO, None, None]:
    """A file to write that replaces the path when the block ends without an error.

    A new file is readable by its owner only; an existing one keeps its mode.
    """
    path = Path(os.path.realpath(path))
    # The name is unique, so it is safe to remove whether or not the file exists: an interrupt can
    # come after the file is created and before `open` returns.
    part = path.with_name(f".refold-{uuid4().hex}.part")
    try:
        with open(part, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    except OSError as error:
        if error.filename == str(part):
            error.filename = str(path)  # the name the caller knows
        raise
    finally:
        part.unlink(missing_ok=True)
