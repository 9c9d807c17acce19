"""A folder of checkpoints that people read: files that say what the log says now."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from refold.errors import InvalidInput
from refold.fold.checkpoints import INDEX_MARK, Checkpoint, index, is_ours, owner_mark, workspace
from refold.whole_file import write_whole

_BEGINNING = 200  # characters of a file, enough to know it by


class Workspace:
    """Keeps `checkpoints/NNN-title.md`, `checkpoints/index.md` and `workspace.yaml` in a folder.

    The log is the truth: files are made from it, and those of folds that are gone are removed. No
    file of anyone else's is overwritten or removed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path_of(self, checkpoint: Checkpoint) -> Path:
        """Where the checkpoint is written."""
        return self._checkpoints / checkpoint.name

    def align(self, checkpoints: Sequence[Checkpoint], session: str | None = None) -> None:
        """Write what the files do not say yet, and remove what is no longer so.

        First the checkpoints, then their index, then the count of them: whoever reads in between
        finds what an index names. Raises InvalidInput when a file of someone else is in the way, or
        the folder is another session's.
        """
        wanted = {self.path_of(one): one.markdown() for one in checkpoints}
        self._check(wanted, session)
        self._checkpoints.mkdir(parents=True, exist_ok=True)
        for path, text in wanted.items():
            _write(path, text.encode())
        _write(self._index, index(checkpoints, session).encode())
        for path in self._ours():
            if path not in wanted:
                path.unlink(missing_ok=True)
        settings = self._folder / "workspace.yaml"
        _write(settings, workspace(_read(settings) or b"", len(checkpoints)))

    @property
    def _checkpoints(self) -> Path:
        return self._folder / "checkpoints"

    @property
    def _index(self) -> Path:
        return self._checkpoints / "index.md"

    def _ours(self) -> list[Path]:
        return [one for one in self._checkpoints.glob("*.md") if is_ours(one.name, _begins(one))]

    def _check(self, wanted: Iterable[Path], session: str | None) -> None:
        others = [one for one in wanted if one.exists() and not is_ours(one.name, _begins(one))]
        begins = _begins(self._index)
        if self._index.exists() and not begins.startswith(INDEX_MARK.partition("{")[0]):
            others.append(self._index)
        elif begins and not begins.startswith(INDEX_MARK.format(owner=owner_mark(session))):
            raise InvalidInput(
                f"{self._folder} has the checkpoints of another session.",
                "Give each session a folder of its own.",
            )
        if others:
            raise InvalidInput(
                f"{others[0]} was not written by Refold.",
                "Move it away, or choose another folder for checkpoints.",
            )


def _begins(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_BEGINNING)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, content: bytes) -> None:
    """Write the file, unless it says so already."""
    if _read(path) != content:
        write_whole(path, content)
