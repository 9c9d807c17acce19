"""The servers that the user's own chats have talked with, on this machine.

A session says which server answered in it, so that it can be resumed there. But a session may be
imported from somebody else's file, or be in a store that others write to. So an address out of a
session is used only if the user has named it before, or names it now.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from refold.user_folders import state_folder
from refold.whole_file import write_whole

_MAX_SERVERS: Final = 200
_FOR_THE_USER: Final = 0o600
_VARIABLES: Final = ("OPENAI_BASE_URL", "OLLAMA_BASE_URL")


def is_known(address: str, environ: Mapping[str, str]) -> bool:
    """Whether a chat of the user's has used this address, or the environment names it."""
    named = [environ.get(name, "").rstrip("/") for name in _VARIABLES]
    bare = address.rstrip("/")
    return bare in _load() or any(bare in (one, f"{one}/v1") for one in named if one)


def remember(address: str) -> None:
    """Note that the user's own chat uses this address."""
    known = _load()
    bare = address.rstrip("/")
    if known and known[-1] == bare:
        return
    servers = [*(one for one in known if one != bare), bare][-_MAX_SERVERS:]
    path = _record()
    # A chat works without it; then an address has to be named again when a session is resumed.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):  # the file that takes its place has its mode
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FOR_THE_USER))
        write_whole(path, json.dumps({"servers": servers}, indent=2).encode())


def _load() -> list[str]:
    try:
        stored: object = json.loads(_record().read_bytes())
    except (OSError, ValueError):
        return []
    rows = cast("dict[str, object]", stored).get("servers") if isinstance(stored, dict) else None
    listed = cast("list[object]", rows) if isinstance(rows, list) else []
    return [row for row in listed if isinstance(row, str)]


def _record() -> Path:
    return state_folder() / "servers.json"
