"""What was typed before, kept in a file that only its owner can read."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import History

_MOST = 2_000
"""Things remembered; a file with twice as many is shortened."""


class TypedHistory(History):
    """One line of the file for each thing typed; what begins with a space is not kept.

    A file that cannot be read or written is no reason to stop: then nothing is kept.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """The newest first."""
        kept = self._read()
        if len(kept) > 2 * _MOST:
            kept = kept[-_MOST:]
            self._write(kept, os.O_TRUNC)
        return reversed(kept[-_MOST:])

    def store_string(self, string: str) -> None:
        """Keep one more."""
        self._write([string], os.O_APPEND)

    def keep(self, text: str) -> None:
        """Remember what was typed, unless it is not to be."""
        if text.startswith(" ") or text == (self.get_strings() or [""])[-1]:
            return
        self.append_string(text)

    def _read(self) -> list[str]:
        if self._path is None:
            return []
        try:
            lines = self._path.read_text("utf-8", "replace").splitlines()
        except OSError:
            return []
        return [text for line in lines if (text := _text(line))]

    def _write(self, texts: list[str], how: int) -> None:
        if self._path is None:
            return
        data = "".join(f"{json.dumps(text)}\n" for text in texts).encode()
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | how, 0o600)
            try:
                os.write(file, data)
            finally:
                os.close(file)
        except OSError:
            self._path = None


def _text(line: str) -> str:
    try:
        value: object = json.loads(line)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
