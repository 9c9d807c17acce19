"""The user's own folders, files that are written whole or not at all, and what to do if not."""

import errno
import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

__all__ = [
    "atomic_file",
    "check_writable",
    "config_folder",
    "data_folder",
    "file_fix",
    "state_folder",
    "write_whole",
]

_PERMISSION: Final = "Choose a path that this user may read or write, or change its permissions."
_DISK: Final = "Free some disk space and try again."
_FIXES: Final = {
    errno.EACCES: _PERMISSION,
    errno.EBADF: "Redirect it to a file or a pipe, and try again.",
    errno.EDQUOT: _DISK,
    errno.EINVAL: "Check that the file is complete and not damaged.",
    errno.EISDIR: "Name a file in this folder.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.ENOENT: "Check the path for a typing error.",
    errno.ENOSPC: _DISK,
    errno.ENOTDIR: "Part of this path is a file, not a folder: choose another path.",
    errno.EPERM: _PERMISSION,
    errno.EROFS: "Choose a path on a file system that is not read-only.",
}


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


def check_writable(path: Path) -> None:
    """Raise what writing the file would raise, before work is spent on its content."""
    folder = path.resolve().parent
    if path.is_dir():
        refusal = errno.EISDIR
    elif not folder.is_dir():
        refusal = errno.ENOTDIR if folder.exists() else errno.ENOENT
    elif not os.access(folder, os.W_OK | os.X_OK):
        refusal = errno.EACCES
    else:
        return
    raise OSError(refusal, os.strerror(refusal), str(path))


def file_fix(error: OSError) -> str:
    """What to do about a file that the system refuses to read or write."""
    name = error.filename
    if error.errno == errno.ENOENT and isinstance(name, str) and not Path(name).parent.is_dir():
        return f"Create the folder {str(Path(name).parent)!r} first, or choose another path."
    return _FIXES.get(error.errno or 0, "Choose another path and try again.")


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
        if error.errno and error.filename in {None, str(part)}:  # a full disk comes without a name
            error.filename = str(path)  # the name the caller knows
        raise
    finally:
        part.unlink(missing_ok=True)
