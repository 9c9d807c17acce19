"""Files that are written whole or not at all."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

__all__ = ["appearing_whole", "write_whole"]


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
