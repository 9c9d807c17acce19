"""Lets each fold in once: what was put back into its queue is another's to make."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from dbos._context import current_owner_xid  # a claim is known by it, and by nothing public

from refold.engine.dbos.tables import Tables
from refold.errors import RefoldError


class Door:
    """Between DBOS, which takes folds from the queues, and the worker that makes them.

    On a busy machine seconds pass from one to the other. What was put back meanwhile must not be
    made here as well. So nobody enters while folds are put back, and once any was, or may have been
    taken from us, each that enters is looked at: whether it is still ours by the claim that it
    came with.
    """

    def __init__(self, tables: Tables, executor: str) -> None:
        self._tables = tables
        self._executor = executor
        self._one = asyncio.Lock()
        self._wary = False

    def beware(self) -> None:
        """Others may have taken what is ours."""
        self._wary = True

    def entering(self) -> AbstractAsyncContextManager[None]:
        """While it is held, nothing is put back."""
        return self._one

    async def lets_in(self, workflow: str) -> bool:
        """Whether the workflow that DBOS runs here is still ours. Asked by who is entering."""
        if not self._wary:
            return True
        try:
            return await self._tables.owns(workflow, current_owner_xid(workflow) or "")
        except RefoldError:
            return False  # it is put back when nobody has made it for a while

    async def put_back(self, but: Callable[[], Sequence[str]], since: float = 0.0) -> None:
        """Put our folds back into their queues, but for some: see `Tables.let_go`."""
        async with self._one:
            if await self._tables.let_go(self._executor, but=but(), since=since):
                self._wary = True
