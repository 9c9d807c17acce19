"""A breaker: who failed again and again is left alone for a while, and then tried once.

A summariser that is down fails every fold, and each failure is waited and paid for. After a few in
a row it is not asked any more; the log writes the summaries until a probe works. After any failure
one fold at a time finds out for all: who hangs is not asked by many at once.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

TOO_OFTEN: Final = "the summariser failed too often"
"""Why a summariser was not asked."""
FAILURES: Final = 2
"""How many failures in a row open it."""
_FIRST_PAUSE, _LONGEST_PAUSE = 8, 64  # folds


@dataclass
class Breaker:
    """Counts the failures of one summariser, in one process."""

    failures: int = 0
    """In a row."""
    last: str = ""
    """Why it failed last."""
    _pause: int = 0
    _left: int = 0
    _asking: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it failed too often."""
        return self.failures >= FAILURES

    def allows(self) -> bool:
        """Whether to ask now; while it is open, once in a while."""
        if self.failures and self._asking:
            return False
        if not self.is_open:
            return True
        self._left -= 1
        return self._left < 0

    @contextmanager
    def asking(self) -> Generator[None]:
        """While it is asked; whoever is in doubt meanwhile does not ask too."""
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1

    def worked(self) -> None:
        """It was asked, and what it wrote is used."""
        self.failures, self._pause, self.last = 0, 0, ""

    def failed(self, why: str) -> None:
        """It was asked in vain."""
        self.failures += 1
        self.last = why
        if self.is_open:
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause or _FIRST_PAUSE)
            self._left = self._pause
