"""Files that are written whole or not at all."""

import os
import shutil
from pathlib import Path
from uuid import uuid4

__all__ = ["write_whole"]


def write_whole(path: Path, content: bytes) -> None:
    """Write the file, or leave it as it was; a link stays, and what it leads to is written."""
    path = Path(os.path.realpath(path))
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
