"""The workflow that DBOS runs: it is known by its name, and finds the process's worker."""

import asyncio
from typing import Protocol
from uuid import UUID

from dbos import DBOS

from refold.engine.dbos.names import WORKFLOW
from refold.engine.local import MOST_ATTEMPTS
from refold.errors import InvalidInput


class Working(Protocol):
    """Makes folds."""

    async def work(self, workflow: str, tenant: str, session: str, fold: UUID) -> None:
        """Bring a fold to its end."""
        ...


_at_work: list[Working] = []


def begin(worker: Working) -> None:
    """From now on, this process's folds are made by this worker. DBOS is one for each process."""
    if _at_work:
        raise InvalidInput(
            "A worker runs in this process.", "Run each worker in a process of its own."
        )
    _at_work.append(worker)


def end(worker: Working) -> None:
    """It makes no more."""
    if worker in _at_work:
        _at_work.remove(worker)


# DBOS gives it up after so many; whoever sweeps closes it then.
@DBOS.workflow(name=WORKFLOW, max_recovery_attempts=MOST_ATTEMPTS - 1)
async def fold(tenant: str, session: str, fold: str) -> None:
    """Bring a fold to its end. What came of it is in the log, and nowhere else."""
    workflow = DBOS.workflow_id
    if workflow is None or not _at_work:
        raise asyncio.CancelledError  # nobody makes it here, and DBOS is to write no outcome
    await _at_work[0].work(workflow, tenant, session, UUID(fold))
