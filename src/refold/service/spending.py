"""What summaries cost a tenant: as much as if it had asked for them itself."""

from collections.abc import Callable
from typing import Final, NamedTuple

from refold.models.spending import Usage


class Spending(NamedTuple):
    """Who is asked before a model writes a summary, and who is told what it used."""

    check: Callable[[str], None]
    """Refuses a tenant that has used up what it may; then the log writes its own summary."""
    add: Callable[[str, Usage, float | None], None]
    """Counts what a tenant's summary used, and cost where that is known."""


def _unchecked(_tenant: str) -> None:
    """Nobody is refused."""


def _uncounted(_tenant: str, _used: Usage, _cost: float | None) -> None:
    """Nothing is counted."""


FREE: Final = Spending(_unchecked, _uncounted)
"""Nobody counts."""
