"""What summaries cost a tenant: as much as if it had asked for them itself."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from refold.fold.compactor import Write
from refold.fold.job import Job, Steps
from refold.fold.material import Material
from refold.fold.summary import Summary
from refold.models.catalog import Overrides, Usage, cost_of, facts_of


def _unchecked(_tenant: str) -> None:
    """Nobody is refused."""


def _uncounted(_tenant: str, _used: Usage, _cost: float | None) -> None:
    """Nothing is counted."""


async def _known() -> None:
    """Nobody else changes anything."""


class Spending(NamedTuple):
    """Who is asked before a model writes a summary, and who is told what it used."""

    check: Callable[[str], None]
    """Refuses a tenant that has used up what it may; then the log writes its own summary."""
    add: Callable[[str, Usage, float | None], None]
    """Counts what a tenant's summary used, and cost where that is known."""
    look: Callable[[], Awaitable[None]] = _known
    """Takes in the keys and quotas that others have changed."""


FREE: Final = Spending(_unchecked, _uncounted)
"""Nobody counts."""


def counted(write: Write, tenant: str, models: Overrides, spending: Spending) -> Write:
    """Writes a tenant's summaries, and tells what they used."""

    async def writing(material: Material, job: Job, steps: Steps) -> Summary:
        await spending.look()
        summary = await write(material, job, steps)
        if summary.usage:
            told = summary.usage
            used = Usage(told.get("input", 0), told.get("output", 0), told.get("cache_read", 0))
            spending.add(tenant, used, cost_of(used, facts_of(summary.by, models).prices))
        return summary

    return writing
