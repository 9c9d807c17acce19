"""Which project files the user trusts, and which settings count without that.

A project's files come with a clone: anybody may have written them. From an untrusted file, only
settings that declare it (`ProjectRight`) apply. All others need the user's own file, the
environment, or `refold trust`, which stores the hash of the bytes it read in the user's state
folder. A changed file has another hash, so it is no longer trusted.
"""

import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self

from refold.errors import InvalidSetting
from refold.models import ModelSettings
from refold.settings.files import File
from refold.settings.names import KEYS, MODELS, PROFILE, SERVE_KEYS, SettingValue, Source
from refold.user_files import state_folder, write_whole
from refold.view.profiles import ProjectRight, project_right

Verdict = Literal["trusted", "changed", "unknown"]
"""Of a project's file: trusted as it is, trusted in another version, or never trusted."""

_PRIVATE: Final = 0o600


class LeftOut(NamedTuple):
    """A setting of a project's file that does not apply."""

    key: str
    value: object
    source: Source
    verdict: Verdict
    """Why: the file changed since it was trusted, or never was."""
    file: Path | None
    """The file; None if the value comes from a profile that the file names."""


class TrustedFile(NamedTuple):
    """A file that the user trusts, in one version."""

    path: Path
    sha256: str
    at: str
    """When the user trusted it, in ISO 8601."""


def right_of(key: str) -> ProjectRight:
    """What a project's files may do about a setting, by its dotted name."""
    if key == PROFILE:
        return ProjectRight.VALUE
    if key.startswith(f"{MODELS}."):
        field = ModelSettings.model_fields.get(key.rpartition(".")[2])
        if field is None:
            return ProjectRight.VALUE  # an unknown setting: the error must name its place
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
            match json.loads(_record_path().read_bytes()):
                case {"files": [*rows]}:
                    files = [file for row in rows if (file := _trusted_file(row))]
                case _:
                    files = []
        except (OSError, ValueError):
            files = []
        return cls({file.path: file for file in files})

    def verdict(self, file: File) -> Verdict:
        """Whether the user trusts the bytes that were read of this file."""
        trusted = self.files.get(file.path)
        if trusted is None:
            return "unknown"
        return "trusted" if trusted.sha256 == file.sha256 else "changed"

    def admits(self, file: File, setting: SettingValue) -> bool:
        if file.level != "project" or right_of(setting.key) is ProjectRight.VALUE:
            return True
        return self.verdict(file) == "trusted"

    def grant(self, files: list[File]) -> Self:
        """Trust these files with the content that was read."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        granted = {file.path: TrustedFile(file.path, file.sha256, at) for file in files}
        return self._save({**self.files, **granted})

    def revoke(self, folders: Collection[Path]) -> list[TrustedFile]:
        """Stop trusting the files of these folders; returns those that were trusted."""
        revoked = [file for file in self.files.values() if file.path.parent in folders]
        if revoked:
            self._save({path: file for path, file in self.files.items() if file not in revoked})
        return revoked

    def _save(self, files: Mapping[Path, TrustedFile]) -> Self:
        rows = [
            {"path": str(file.path), "sha256": file.sha256, "at": file.at}
            for file in sorted(files.values())
        ]
        path = _record_path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # The replacement inherits the mode of the file it replaces, so set that first.
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE))
            path.chmod(_PRIVATE)
            write_whole(path, json.dumps({"files": rows}, indent=2).encode())
        except OSError as error:
            raise InvalidSetting(
                f"What you trust cannot be written to {path}: {error.strerror}.",
                "Make that folder writable, or name another one in XDG_STATE_HOME.",
            ) from error
        return type(self)(files)


def _record_path() -> Path:
    return state_folder() / "trust.json"


def _trusted_file(row: object) -> TrustedFile | None:
    match row:
        case {"path": str(path), "sha256": str(sha256), "at": str(at)}:
            return TrustedFile(Path(path), sha256, at)
        case _:
            return None
