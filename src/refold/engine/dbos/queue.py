"""The queue of folds: our row says what to make, a DBOS workflow says when and by which worker.

DBOS delivers a workflow to one of the workers, within the limits of its queue. The workflow has no
inputs: its id is that of a row in `refold_engine.folds`. The worker that claims the row makes the
fold. A fold that is handed over gets a new workflow, and its row the new id, in one transaction. So
a late delivery finds no row, and no two workers make one fold, whatever DBOS repeats.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID, uuid4

from dbos import DBOSClient
from dbos import error as dbos_error
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from refold.engine.dbos.database import (
    POOL,
    SCHEMA,
    VERSION,
    WORKFLOW,
    Priority,
    application,
    connection_pool,
    database_error,
    model_in,
    partition_of,
    queue_of,
    queue_prefix,
    version_of,
)
from refold.engine.dbos.limits import Limits, model_of
from refold.engine.dbos.metrics import Queued
from refold.engine.locks import retry_shielded
from refold.engine.protocol import engine_closed
from refold.fold.job import Job

T = TypeVar("T")

LOCK: Final = "hashtextextended('refold executor ' || {executor}, 0)"
"""The key of the lock that a worker holds while it is connected."""
STOPS: Final = "refold_stops"
"""The channel that tells workers which folds were canceled."""
_CONNECTIONS: Final = 4
_CLOSE_TIMEOUT: Final = 5.0
_PAGE: Final = 1_000
_ACTIVE: Final = ("ENQUEUED", "DELAYED", "PENDING")
_ENDED: Final = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")

_HELD: Final = """EXISTS (
    SELECT FROM pg_locks, {key} AS key
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid = ((key >> 32) & 4294967295)::oid AND objid = (key & 4294967295)::oid
)"""
_LIVES: Final = _HELD.format(key=LOCK.format(executor="executor"))
_WORKERS: Final = f"""
SELECT executor, beat, {_LIVES} FROM refold_engine.workers
UNION ALL
SELECT executor, 0, {_LIVES} FROM (
    SELECT DISTINCT worker AS executor FROM refold_engine.folds WHERE worker IS NOT NULL
    EXCEPT SELECT executor FROM refold_engine.workers
) AS unknown
"""  # noqa: S608 - our own words
_COLUMNS: Final = "id, tenant, session, fold, pool, version, queue, worker, attempts"
_SELECT: Final = f"SELECT {_COLUMNS} FROM refold_engine.folds"  # noqa: S608 - our own words
_BY_KEY: Final = "tenant = :tenant AND session = :session AND fold = :fold"
_FIND: Final = f"""
SELECT {_COLUMNS}, {_HELD.format(key=LOCK.format(executor="worker"))}
FROM refold_engine.folds WHERE {_BY_KEY}
"""  # noqa: S608 - our own words
_PUT: Final = text("""
INSERT INTO refold_engine.folds (id, tenant, session, fold, pool, version, queue)
VALUES (:id, :tenant, :session, :fold, :pool, :version, :queue) ON CONFLICT DO NOTHING
""")
_MOVE: Final = text("""
UPDATE refold_engine.folds
SET id = :id, worker = NULL, attempts = :attempts, pool = :pool, queue = :queue WHERE id = :before
""")
# A worker whose claim was committed, though it did not hear of that, claims again.
_CLAIM: Final = f"""
UPDATE refold_engine.folds SET worker = :worker, attempts = attempts + 1
WHERE id = :id AND (worker IS NULL OR worker = :worker) RETURNING {_COLUMNS}
"""  # noqa: S608 - our own words
_UNCHANGED: Final = "id = :id AND worker IS NOT DISTINCT FROM :worker"
_FINISH: Final = f"DELETE FROM refold_engine.folds WHERE {_UNCHANGED} RETURNING id"  # noqa: S608 - our own words
_QUEUES: Final = """
SELECT queue, count(*) FILTER (WHERE worker IS NULL), count(*) FILTER (WHERE worker IS NOT NULL),
       coalesce(extract(epoch FROM clock_timestamp()
                        - min(queued_at) FILTER (WHERE worker IS NULL)), 0)::float8
FROM refold_engine.folds GROUP BY queue
"""


class QueuedFold(NamedTuple):
    id: str
    """The workflow that may make the fold."""
    tenant: str
    session: str
    fold: UUID
    pool: str
    version: str
    queue: str
    worker: str | None = None
    attempts: int = 0
    held: bool = False
    """Whether its worker's lock is held, where `find` looked: then the worker is connected."""

    @property
    def key(self) -> tuple[str, str, UUID]:
        return self.tenant, self.session, self.fold


class WorkerState(NamedTuple):
    """A worker as it was seen. With a new beat it is another value, and counts as just seen."""

    executor: str
    beat: int
    held: bool
    """Whether its lock is held: then its process is connected."""


class FoldQueue:
    """The folds of all tenants, as one pool's engines and workers see them."""

    def __init__(self, address: str, limits: Limits, pool: str, version: str) -> None:
        self.pool = pool
        self.version = version
        self._limits = limits
        self._registered: set[str] = set()
        self._database = connection_pool(address, "refold queue", _CONNECTIONS)
        self._autocommit = self._database.execution_options(isolation_level="AUTOCOMMIT")
        # Without an application of its own: it must see the folds of all pools.
        self._client = DBOSClient(
            system_database_engine=self._database,
            dbos_system_schema=SCHEMA,
            lazy=True,
            retry_connection_errors=False,  # retries would block a thread silently, forever
        )
        self._running: set[asyncio.Task[Any]] = set()
        """Work in threads; its caller may have been canceled."""
        self._closed = False

    async def register(self, model: str, *, update: bool = False) -> None:
        """Create a model's queues if they do not exist; `update` sets our limits if they do."""
        if model in self._registered:
            return

        def register() -> None:
            for name, options in self._limits.queues(self.pool, model):
                self._client.register_queue(
                    name,
                    on_conflict="always_update" if update else "never_update",
                    application_name=application(self.pool),
                    **options,
                )

        await retry_shielded(lambda: self._run(register))
        self._registered.add(model)

    async def models(self) -> Sequence[str]:
        """The models that the pool has queues for; the empty name is for folds without a model."""
        queues = await self._run(self._client.list_queues)
        models = (model_in(self.pool, queue.name) for queue in queues)
        return sorted({model for model in models if model is not None})

    async def put(self, tenant: str, job: Job, priority: Priority) -> bool:
        """Queue a fold; False when it is queued or being made already."""
        model = model_of(job)
        await self.register(model)
        queue = queue_of(self.pool, priority, model)

        def put() -> bool:
            row = QueuedFold(
                str(uuid4()), tenant, job.session, job.fold, self.pool, self.version, queue
            )
            with self._database.begin() as db:
                if not db.execute(_PUT, row._asdict()).rowcount:
                    return False
                self._enqueue(db, row)
            return True

        return await retry_shielded(lambda: self._run(put))

    async def find(self, tenant: str, session: str, fold: UUID) -> QueuedFold | None:
        """The row of a fold; None when it is neither queued nor being made."""
        key = {"tenant": tenant, "session": session, "fold": fold}
        rows = await self._execute(_FIND, key)
        return QueuedFold(*rows[0]) if rows else None

    async def claim(self, id_: str, worker: str) -> QueuedFold | None:
        """Take a workflow's fold; None when it has another workflow by now, or was forgotten."""
        rows = await self._execute(_CLAIM, {"id": id_, "worker": worker})
        return QueuedFold(*rows[0]) if rows else None

    async def finish(self, row: QueuedFold) -> bool:
        """Remove a fold that has ended; False when it was handed over or forgotten."""
        return bool(await self._execute(_FINISH, {"id": row.id, "worker": row.worker}))

    async def prioritize(self, tenant: str, session: str, fold: UUID) -> int:
        """Move a fold that is not being made yet to the queue of folds that are waited for."""
        old, new = queue_prefix(self.pool, "background"), queue_prefix(self.pool, "waiting")
        key = {"tenant": tenant, "session": session, "fold": fold, "prefix": old}
        where = f"{_BY_KEY} AND worker IS NULL AND starts_with(queue, :prefix)"
        return await self._hand_over(
            where, key, lambda row: row._replace(queue=new + row.queue.removeprefix(old))
        )

    async def requeue(self, row: QueuedFold, to: str | None = None, *, back: int = 0) -> bool:
        """Hand a fold over to any free worker; False when its row has changed or is gone.

        `to` is a queue of our own pool. `back` is how many attempts do not count.
        """
        moved = {} if to is None else {"queue": to, "pool": self.pool}
        same = {"id": row.id, "worker": row.worker}
        return bool(
            await self._hand_over(
                _UNCHANGED, same, lambda row: row._replace(attempts=row.attempts - back, **moved)
            )
        )

    async def requeue_all(self, worker: str) -> int:
        """Hand all folds of a worker over; returns how many there were."""
        return await self._hand_over("worker = :worker", {"worker": worker}, lambda row: row)

    async def discard(self, ids: Iterable[str]) -> None:
        remaining = sorted(ids)
        while remaining:
            page, remaining = remaining[:_PAGE], remaining[_PAGE:]
            await self._run(lambda page=page: self._client.delete_workflows(page))

    async def workers(self) -> Sequence[WorkerState]:
        """All workers that are registered, or have folds."""
        return [WorkerState(*row) for row in await self._execute(_WORKERS)]

    async def unregister(self, worker: WorkerState) -> None:
        """Remove a worker that has not been heard of since."""
        statement = "DELETE FROM refold_engine.workers WHERE executor = :executor AND beat = :beat"
        await self._execute(statement, worker._asdict())

    async def stop(self, id_: str) -> None:
        """Tell the workers that a fold was given up."""
        await self._execute(f"SELECT pg_notify('{STOPS}', :id)", {"id": id_})

    async def lengths(self) -> Sequence[Queued]:
        return [Queued(*row) for row in await self._execute(_QUEUES)]

    async def is_lost(self, id_: str) -> bool:
        return not await self._workflows(workflow_ids=[id_], status=_ACTIVE)

    async def undelivered(self) -> tuple[list[QueuedFold], set[str]]:
        """Folds that wait though DBOS has delivered or lost them, and workflows without a fold.

        For a moment, both are normal.
        """
        pending = await self._workflows(status=["PENDING"])
        rows = await self._rows("id = ANY(:ids)", {"ids": pending})
        waiting = await self._rows(f"worker IS NULL ORDER BY queued_at LIMIT {_PAGE}")
        ids = [row.id for row in waiting]
        active = set(await self._workflows(workflow_ids=ids, status=_ACTIVE) if ids else ())
        folds = [row for row in rows if row.worker is None]
        folds += [row for row in waiting if row.id not in active]
        return folds, set(pending) - {row.id for row in rows}

    async def ended(self) -> set[str]:
        """The workflows that have ended and were not discarded."""
        found: set[str] = set()
        while True:
            page = await self._workflows(status=_ENDED, limit=_PAGE, offset=len(found))
            found.update(page)
            if len(page) < _PAGE:
                return found

    async def close(self) -> None:
        self._closed = True
        if self._running:  # the pool would never close a connection that comes back to it later
            await asyncio.wait(self._running, timeout=_CLOSE_TIMEOUT)
        await asyncio.to_thread(self._client.destroy)
        await asyncio.to_thread(self._database.dispose)

    async def _hand_over(
        self, where: str, values: dict[str, Any], change: Callable[[QueuedFold], QueuedFold]
    ) -> int:
        """Give the rows new workflows; rows that another process has locked are left to it."""
        select = text(f"{_SELECT} WHERE {where} FOR UPDATE SKIP LOCKED")

        def hand_over() -> int:
            with self._database.begin() as db:
                rows = [QueuedFold(*row) for row in db.execute(select, values)]
                for row in rows:
                    new = change(row)._replace(id=str(uuid4()))
                    db.execute(_MOVE, {**new._asdict(), "before": row.id})
                    self._enqueue(db, new)
            if rows:
                self._client.delete_workflows([row.id for row in rows])
            return len(rows)

        return await self._run(hand_over)

    def _enqueue(self, db: Connection, row: QueuedFold) -> None:
        self._client.enqueue_in_transaction(
            db,
            {
                "workflow_name": WORKFLOW,
                "workflow_id": row.id,
                "queue_name": row.queue,
                "queue_partition_key": partition_of(row.tenant),
                "app_version": version_of(row.pool, row.version),
                "application_name": application(row.pool),
            },
        )

    async def _workflows(self, **which: Any) -> list[str]:  # noqa: ANN401 - as DBOS takes them
        status = list(which.pop("status"))
        found = await self._run(
            lambda: self._client.list_workflows(
                name=WORKFLOW, status=status, load_input=False, load_output=False, **which
            )
        )
        return [workflow.workflow_id for workflow in found]

    async def _rows(self, where: str, values: dict[str, Any] | None = None) -> list[QueuedFold]:
        return [QueuedFold(*row) for row in await self._execute(f"{_SELECT} WHERE {where}", values)]

    async def _execute(self, statement: str, values: dict[str, Any] | None = None) -> list[Any]:
        def execute() -> list[Any]:
            with self._autocommit.connect() as db:
                result = db.execute(text(statement), values or {})
                return list(result) if result.returns_rows else []

        return await self._run(execute)

    async def _run(self, work: Callable[[], T]) -> T:
        """Run it in a thread, again if the connection was lost: all our work is idempotent."""
        if self._closed:
            raise engine_closed()
        try:
            try:
                return await self._in_thread(work)
            except OperationalError:
                return await self._in_thread(work)
        except (SQLAlchemyError, dbos_error.DBOSException) as error:
            raise database_error(error) from error

    async def _in_thread(self, work: Callable[[], T]) -> T:
        running = asyncio.create_task(asyncio.to_thread(work))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await asyncio.shield(running)


@asynccontextmanager
async def waiting_folds(
    address: str, pool: str = POOL
) -> AsyncGenerator[Callable[[], Awaitable[tuple[int, bool]]]]:
    """A look at the folds of all tenants: how many wait, and whether a worker is connected."""
    queue = FoldQueue(address, Limits(), pool, VERSION)

    async def look() -> tuple[int, bool]:
        waiting = sum(each.waiting for each in await queue.lengths())
        return waiting, any(worker.held for worker in await queue.workers())

    try:
        yield look
    finally:
        await queue.close()
