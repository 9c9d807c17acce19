"""Lines between who types them and who reads them: in order, and kept while nobody reads."""

from collections.abc import Callable
from concurrent.futures import Future

Reader = Future[str | None]


class TypedLines:
    """Gives each line to the reader that waits; without one, the line waits.

    Args:
        taken: Told each line when it is read.
    """

    def __init__(self, taken: Callable[[str], None]) -> None:
        self._taken = taken
        self._reader: Reader | None = None
        self.queued: list[str] = []
        self.over = False
        """Whether the person has left."""

    def want(self, reader: Reader) -> None:
        """Somebody waits for a line."""
        self._reader = reader
        self._give()

    def add(self, line: str) -> None:
        """A line was typed."""
        self.queued.append(line)
        self._give()

    def take_back(self) -> str:
        """The newest line that nobody has read, to be changed."""
        return self.queued.pop() if self.queued else ""

    def leave(self) -> None:
        """Nothing more is typed."""
        self.over = True
        self._give()

    def _give(self) -> None:
        reader = self._reader
        if reader is None or not (self.queued or self.over):
            return
        self._reader = None
        if not reader.set_running_or_notify_cancel():
            return
        line = None if self.over else self.queued.pop(0)
        if line is not None:
            self._taken(line)
        reader.set_result(line)
