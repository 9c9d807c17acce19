"""Which project files the user trusts, and which settings count without that.

A project's files come with a clone: anybody may have written them. Of a file that nobody trusts,
only settings count that declare it (`ProjectRight`). All others need the user's own file, the
environment, or `refold trust`, which remembers the hash of the bytes that were read, in the user's
own state folder. A changed file has another hash, so it is not trusted any more.
"""

import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self, cast

from refold.errors import InvalidSetting
from refold.models import ModelSettings
from refold.settings.files import File
from refold.settings.names import KEYS, MODELS, PROFILE, SERVE_KEYS, Given, Source
from refold.user_files import state_folder, write_whole
from refold.view.profiles import ProjectRight, project_right

Verdict = Literal["trusted", "changed", "unknown"]
"""Of a project's file: trusted as it is, trusted in another version, or never trusted."""

_FOR_THE_USER: Final = 0o600


class LeftOut(NamedTuple):
    """A setting of a project's file that does not apply."""

    key: str
    value: object
    source: Source
    verdict: Verdict
    """Why: the file changed since it was trusted, or never was."""
    file: Path | None
    """The file; None: a profile that the file names would have brought the value."""


class TrustedFile(NamedTuple):
    """A file that the user trusts, in one version."""

    path: Path
    sha256: str
    at: str
    """When the user said so, in ISO 8601."""


def right_of(key: str) -> ProjectRight:
    """What the files of a project may do about a setting, by its dotted name."""
    if key == PROFILE:
        return ProjectRight.VALUE
    if key.startswith(f"{MODELS}."):
        field = ModelSettings.model_fields.get(key.rpartition(".")[2])
        if field is None:
            return ProjectRight.VALUE  # no setting at all: it is refused, and its place named
    else:
        field = KEYS.get(key) or SERVE_KEYS.get(key)
    return project_right(field) if field is not None else ProjectRight.NONE


@dataclass(frozen=True, slots=True)
class Trust:
    """The files that the user trusts."""

    files: Mapping[Path, TrustedFile]

    @classmethod
    def load(cls) -> Self:
        """Read what the user trusts. A record that cannot be read trusts nothing."""
        try:
            stored: object = json.loads(_record().read_bytes())
        except (OSError, ValueError):
            return cls({})
        rows = cast("dict[str, object]", stored).get("files") if isinstance(stored, dict) else None
        listed = cast("list[object]", rows) if isinstance(rows, list) else []
        files = [_trusted(row) for row in listed]
        return cls({file.path: file for file in files if file is not None})

    def verdict(self, file: File) -> Verdict:
        """Whether the user trusts the bytes that were read of this file."""
        known = self.files.get(file.path)
        if known is None:
            return "unknown"
        return "trusted" if known.sha256 == file.sha256 else "changed"

    def admits(self, file: File, given: Given) -> bool:
        """Whether a setting of this file counts."""
        if file.level != "project" or right_of(given.key) is ProjectRight.VALUE:
            return True
        return self.verdict(file) == "trusted"

    def grant(self, files: list[File]) -> Self:
        """Trust the bytes that were read of these files, from now on."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        granted = {file.path: TrustedFile(file.path, file.sha256, at) for file in files}
        return self._saved({**self.files, **granted})

    def revoke(self, folders: Collection[Path]) -> list[TrustedFile]:
        """Trust the files of these folders no more; those that were trusted."""
        gone = [file for file in self.files.values() if file.path.parent in folders]
        if gone:
            self._saved({path: file for path, file in self.files.items() if file not in gone})
        return gone

    def _saved(self, files: Mapping[Path, TrustedFile]) -> Self:
        rows = [
            {"path": str(file.path), "sha256": file.sha256, "at": file.at}
            for file in sorted(files.values())
        ]
        path = _record()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # The file that takes the record's place has its mode, so that it is set beforehand.
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FOR_THE_USER))
            path.chmod(_FOR_THE_USER)
            write_whole(path, json.dumps({"files": rows}, indent=2).encode())
        except OSError as error:
            raise InvalidSetting(
                f"What you trust cannot be written to {path}: {error.strerror}.",
                "Make that folder writable, or name another one in XDG_STATE_HOME.",
            ) from error
        return type(self)(files)


def _record() -> Path:
    return state_folder() / "trust.json"


def _trusted(row: object) -> TrustedFile | None:
    if not isinstance(row, dict):
        return None
    table = cast("dict[str, object]", row)
    path, sha256, at = table.get("path"), table.get("sha256"), table.get("at")
    if not (isinstance(path, str) and isinstance(sha256, str) and isinstance(at, str)):
        return None
    return TrustedFile(Path(path), sha256, at)
