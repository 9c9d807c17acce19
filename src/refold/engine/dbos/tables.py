"""What we do to DBOS's tables ourselves, because it has no call for it. All of it is here.

It was written for DBOS 3.3. Each statement names what it relies on:

* `workflow_status` has one row a workflow; a row that is `PENDING` belongs to the process that its
  `executor_id` names, one that is `ENQUEUED` to whoever dequeues it first;
* who dequeues a row sets `executor_id` and a new `owner_xid`, and writes the outcome only while
  `owner_xid` is still his. So a row that was handed over cannot be ended by who had it before.

DBOS's own recovery re-enqueues in the same way, but only from a process that runs workflows, and
only to the queue that it came from. Its `resume_workflow` looks neither at the status nor at the
executor: two who find the same dead worker would run its fold twice.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from refold.engine.dbos.link import Link
from refold.engine.dbos.measuring import Measuring, Queued
from refold.engine.dbos.names import SCHEMA, STOPS, WORKFLOW, Lane, lane_of, model_in

LOCK: Final = "hashtextextended('refold executor ' || {executor}, 0)"
"""The key of the lock that an executor holds as long as it lives."""
_WORKER: Final = "refold worker "
_LONGEST_NAME: Final = 63  # of a connection
_KEY: Final = LOCK.format(executor="executor_id")
_HELD: Final = f"""EXISTS (
    SELECT FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid = (({_KEY} >> 32) & 4294967295)::oid AND objid = ({_KEY} & 4294967295)::oid
)"""  # noqa: S608 - our own words
_UP: Final = "extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::float8"
_NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_AGAIN: Final = f"""status = 'ENQUEUED', owner_xid = NULL, started_at_epoch_ms = NULL,
    updated_at = {_NOW}"""

_FOLD: Final = f"""
SELECT status, executor_id, application_version,
       status = 'PENDING' AND executor_id IS NOT NULL AND {_HELD}, {_UP}
FROM {SCHEMA}.workflow_status WHERE workflow_uuid = %(id)s
"""  # noqa: S608 - our own words
_HAND_OVER: Final = f"""
UPDATE {SCHEMA}.workflow_status SET {_AGAIN}, queue_name = %(queue)s,
    application_name = %(application)s, application_version = %(version)s
WHERE workflow_uuid = %(id)s AND status = 'PENDING' AND executor_id = %(executor)s
  AND pg_try_advisory_xact_lock({LOCK.format(executor="%(executor)s::text")})
RETURNING 1
"""  # noqa: S608 - our own words
_LIFT: Final = f"""
UPDATE {SCHEMA}.workflow_status
SET queue_name = %(to)s || substr(queue_name, length(%(lane)s::text) + 1), updated_at = {_NOW}
WHERE workflow_uuid = %(id)s AND status = 'ENQUEUED' AND starts_with(queue_name, %(lane)s)
"""  # noqa: S608 - our own words
_EXECUTORS: Final = f"""
SELECT executor_id, {_HELD}, {_UP}
FROM (
    SELECT DISTINCT executor_id FROM {SCHEMA}.workflow_status
    WHERE status = 'PENDING' AND name = '{WORKFLOW}' AND executor_id <> %(mine)s
) AS others
"""  # noqa: S608 - our own words
_END_SILENT: Final = f"""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND state = 'idle'
  AND starts_with(application_name, '{_WORKER}') AND application_name <> %(mine)s
  AND state_change < clock_timestamp() - make_interval(secs => %(silent)s)
"""  # noqa: S608 - our own words
_TAKE_OVER: Final = f"""
WITH dead AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock({LOCK.format(executor="%(executor)s::text")}) AS taken
)
UPDATE {SCHEMA}.workflow_status SET {_AGAIN}
FROM dead
WHERE dead.taken AND status = 'PENDING' AND name = '{WORKFLOW}' AND executor_id = %(executor)s
RETURNING 1
"""  # noqa: S608 - our own words
_LET_GO: Final = f"""
UPDATE {SCHEMA}.workflow_status SET {_AGAIN},
    recovery_attempts = greatest(recovery_attempts - 1, 0)
WHERE status = 'PENDING' AND name = '{WORKFLOW}' AND executor_id = %(mine)s
  AND started_at_epoch_ms <= {_NOW} - %(since)s AND NOT workflow_uuid = ANY(%(but)s)
RETURNING 1
"""  # noqa: S608 - our own words
_REMOVE: Final = f"""
WITH gone AS (
    DELETE FROM {SCHEMA}.workflow_status
    WHERE workflow_uuid IN (
        SELECT workflow_uuid FROM {SCHEMA}.workflow_status
        WHERE {{which}} AND name = '{WORKFLOW}'
        LIMIT 1000
    ) AND status NOT IN ('ENQUEUED', 'PENDING', 'DELAYED')
    RETURNING workflow_uuid
), inputs AS (
    DELETE FROM {SCHEMA}.workflow_input USING gone
    WHERE workflow_input.workflow_uuid = gone.workflow_uuid
), outputs AS (
    DELETE FROM {SCHEMA}.workflow_output USING gone
    WHERE workflow_output.workflow_uuid = gone.workflow_uuid
)
SELECT count(*) FROM gone
"""  # noqa: S608 - our own words
_REMOVE_ONE: Final = _REMOVE.format(which="workflow_uuid = %(id)s")
_REMOVE_OLD: Final = _REMOVE.format(
    which=f"status IN ('SUCCESS', 'ERROR', 'CANCELLED') AND completed_at < {_NOW} - %(age)s"
)
_WORKERS: Final = f"""
SELECT 1 FROM pg_stat_activity
WHERE datname = current_database()
  AND (application_name IS NULL OR starts_with(application_name, '{_WORKER}'))
LIMIT 1
"""  # noqa: S608 - our own words
_OWNS: Final = f"""
SELECT 1 FROM {SCHEMA}.workflow_status
WHERE workflow_uuid = %(id)s AND status = 'PENDING' AND owner_xid = %(claim)s
"""  # noqa: S608 - our own words
_NAMES: Final = f"SELECT name FROM {SCHEMA}.queues"  # noqa: S608 - our own words
_GIVEN_UP: Final = f"""
SELECT workflow_uuid, workflow_input.inputs FROM {SCHEMA}.workflow_status
JOIN {SCHEMA}.workflow_input USING (workflow_uuid)
WHERE status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' AND name = '{WORKFLOW}' LIMIT 100
"""  # noqa: S608 - our own words
_QUEUES: Final = f"""
SELECT queue_name, count(*) FILTER (WHERE status <> 'PENDING'),
       count(*) FILTER (WHERE status = 'PENDING'),
       coalesce({_NOW} - min(created_at) FILTER (WHERE status <> 'PENDING'), 0) / 1000.0::float8
FROM {SCHEMA}.workflow_status
WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND name = '{WORKFLOW}' GROUP BY queue_name
"""  # noqa: S608 - our own words


def worker_name(executor: str) -> str:
    """What the server calls the connection that holds a worker's lock."""
    return f"{_WORKER}{executor}"[:_LONGEST_NAME]


class Standing(NamedTuple):
    """How a fold's workflow stands."""

    status: str
    executor: str | None
    version: str | None
    held: bool
    """Whether its executor's lock is held: then it lives."""
    up: float
    """Seconds that the server has been up: before, no lock could be held."""


class Tables:
    """Looks at DBOS's tables, and moves folds from one process to another."""

    def __init__(self, link: Link, measuring: Measuring | None = None) -> None:
        self._link = link
        self._measuring = measuring or Measuring()

    async def standing(self, workflow: str) -> Standing | None:
        """How a fold's workflow stands; None where there is none."""
        for row in await self._link.run(_FOLD, {"id": workflow}):
            return Standing(*row)
        return None

    async def hand_over(
        self, workflow: str, executor: str, *, queue: str, application: str, version: str
    ) -> bool:
        """Give a dead executor's fold to a queue; False when somebody else has, or it lives."""
        values = {
            "id": workflow,
            "executor": executor,
            "queue": queue,
            "application": application,
            "version": version,
        }
        moved = await self._link.run(_HAND_OVER, values)
        self._measuring.taken_over(len(moved))
        return bool(moved)

    async def lift(self, workflow: str, pool: str) -> None:
        """Somebody waits for a fold: if it is still in a queue, it goes to the other lane."""
        lanes: tuple[Lane, Lane] = ("background", "waiting")
        lane, to = (lane_of(pool, one) for one in lanes)
        await self._link.run(_LIFT, {"id": workflow, "lane": lane, "to": to})

    async def stop(self, workflow: str) -> None:
        """Tell the workers that a fold was given up."""
        await self._link.run(
            "SELECT pg_notify(%(channel)s, %(id)s)", {"channel": STOPS, "id": workflow}
        )

    async def executors(self, mine: str) -> Sequence[tuple[str, bool, float]]:
        """The other executors that have folds: whether each lives, and how long the server does."""
        return [
            (one, held, up) for one, held, up in await self._link.run(_EXECUTORS, {"mine": mine})
        ]

    async def end_silent(self, mine: str, silent: float) -> int:
        """End the other workers' connections that said nothing for so many seconds: how many.

        A process that hangs keeps its connection, and so its lock. One that was only slow takes its
        lock again.
        """
        values = {"mine": worker_name(mine), "silent": silent}
        return len(await self._link.run(_END_SILENT, values))

    async def take_over(self, executor: str) -> int:
        """Put a dead executor's folds back into their queues: how many there were."""
        moved = await self._link.run(_TAKE_OVER, {"executor": executor})
        self._measuring.taken_over(len(moved))
        return len(moved)

    async def measure(self) -> None:
        """Tell how the queues stand."""
        self._measuring.queues([Queued(*row) for row in await self._link.run(_QUEUES)])

    async def let_go(self, mine: str, *, but: Sequence[str] = (), since: float = 0.0) -> int:
        """Put our own folds back into their queues, but for some, and for those begun just now.

        That is no attempt that failed, and is not counted as one.
        """
        values = {"mine": mine, "but": list(but), "since": int(1_000 * since)}
        return len(await self._link.run(_LET_GO, values))

    async def owns(self, workflow: str, claim: str) -> bool:
        """Whether a workflow still belongs to who took it from its queue with this claim."""
        return bool(await self._link.run(_OWNS, {"id": workflow, "claim": claim}))

    async def are_there_workers(self) -> bool:
        """Whether any worker is connected, or may be: other roles' connections tell us nothing."""
        return bool(await self._link.run(_WORKERS))

    async def models(self, pool: str) -> Sequence[str]:
        """The models that the pool has queues for; empty is the name of none."""
        names = [name for (name,) in await self._link.run(_NAMES)]
        found = (model_in(pool, name) for name in names)
        return sorted({one for one in found if one is not None})

    async def remove(self, workflow: str) -> bool:
        """Remove a workflow that has ended."""
        ((count,),) = await self._link.run(_REMOVE_ONE, {"id": workflow})
        return bool(count)

    async def remove_old(self, age: float) -> int:
        """Remove workflows that ended so many seconds ago: how many."""
        ((count,),) = await self._link.run(_REMOVE_OLD, {"age": int(1_000 * age)})
        return int(count)

    async def given_up(self) -> Sequence[tuple[str, str]]:
        """The workflows that were begun too often, and what they were given."""
        return [(one, given) for one, given in await self._link.run(_GIVEN_UP)]
