"""How this process's DBOS looks at its queues: not at all while it may not, seldom in vain.

DBOS looks at each queue by itself, by several statements each time, whether there is anything in it
or not. There are two queues for each model, and most of them are empty at most times. So one look
tells for all queues which of them hold anything, and DBOS goes only to these.
"""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Any, Final

import sqlalchemy
from dbos._dbos import _get_dbos_instance  # pyright: ignore[reportPrivateUsage] - see `Polling`

from refold.engine.dbos.names import SCHEMA

_FILLED: Final = sqlalchemy.text(f"""
SELECT name FROM {SCHEMA}.queues WHERE EXISTS (
    SELECT FROM {SCHEMA}.workflow_status
    WHERE queue_name = queues.name AND status = 'ENQUEUED'
      AND status IN ('ENQUEUED', 'PENDING')
)
""")  # noqa: S608 - our own words; the last condition is that of the index
_KEPT: Final = 1.0
"""Seconds after which a queue's limits are read again."""
_SHARE: Final = 0.5
"""Of the time between two looks at a queue: so long one look at all of them tells."""


class Polling:
    """Stands between DBOS's queue threads and its tables.

    DBOS has no call for that: it can only stop for good. What it took while the worker may make
    nothing would count as an attempt, and wait for nobody.
    """

    def __init__(self, held: Callable[[], bool]) -> None:
        """Make one; nothing is taken from the queues while `held` says so."""
        self._held = held
        self._looking = Lock()
        self._looked = -_KEPT
        self._filled: frozenset[str] = frozenset()
        self._known: dict[str, tuple[float, Any]] = {}
        self._tables: Any = None

    def begin(self) -> None:
        """Be in between from now on, in the DBOS that was launched last."""
        tables: Any = _get_dbos_instance()._sys_db  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        take = tables.start_queued_workflows
        take_of_each = tables.start_queued_partitioned_workflows
        tenants = tables.get_queue_partitions
        running = tables.count_pending_queue_workflows
        named = tables.get_queue

        def taken(queue: Any, *given: Any, **more: Any) -> Any:  # noqa: ANN401 - whatever DBOS says
            if self._is_in_vain(queue.name):
                return [], "concurrency"
            return take(queue, *given, **more)

        def taken_of_each(queue: Any, *given: Any, **more: Any) -> Any:  # noqa: ANN401 - as above
            return [] if self._is_in_vain(queue.name) else take_of_each(queue, *given, **more)

        def tenants_in(queue: str) -> Any:  # noqa: ANN401 - as above
            return [] if self._is_in_vain(queue) else tenants(queue)

        def running_of(queue: str) -> int:
            return 0 if self._is_in_vain(queue) else running(queue)

        def queue_named(name: str, **more: Any) -> Any:  # noqa: ANN401 - as above
            return named(name, **more) if more else self._queue(name, named)

        self._tables = tables
        tables.start_queued_workflows = taken
        tables.start_queued_partitioned_workflows = taken_of_each
        tables.get_queue_partitions = tenants_in
        tables.count_pending_queue_workflows = running_of
        tables.get_queue = queue_named

    def _queue(self, name: str, read: Callable[[str], Any]) -> Any:  # noqa: ANN401 - as above
        """A queue and its limits, as they were a moment ago."""
        at, queue = self._known.get(name, (0.0, None))
        if queue is None or monotonic() - at > _KEPT:
            queue = read(name)
            self._known[name] = monotonic(), queue
        return queue

    def _is_in_vain(self, queue: str) -> bool:
        """Whether there is nothing to take from a queue, or nothing may be taken."""
        if self._held():
            return True
        known = self._known.get(queue)
        if known is None or known[1] is None:
            return False  # DBOS's own, which nobody can see among the others
        with self._looking:
            now = monotonic()
            if now - self._looked > _SHARE * known[1]._polling_interval_sec:  # noqa: SLF001
                self._filled = self._look()
                self._looked = now
            return queue not in self._filled

    def _look(self) -> frozenset[str]:
        with self._tables.engine.begin() as db:
            return frozenset(name for (name,) in db.execute(_FILLED))
