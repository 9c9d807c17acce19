"""Puts folds into DBOS's queues, from any process."""

import asyncio
from typing import Final

from dbos import DBOSClient
from sqlalchemy.exc import SQLAlchemyError

from refold.engine.dbos.limits import Limits, model_of
from refold.engine.dbos.link import Links, checked, refused
from refold.engine.dbos.names import (
    SCHEMA,
    WORKFLOW,
    Lane,
    application,
    queue_of,
    version_of,
    workflow_id,
)
from refold.engine.surely import surely
from refold.fold.job import Job

_CONNECTIONS: Final = 4
_PUT: Final = f"""
SELECT {SCHEMA}.enqueue_workflow(
    workflow_name => '{WORKFLOW}', queue_name => %(queue)s, workflow_id => %(id)s,
    positional_args => ARRAY[
        to_json(%(tenant)s::text), to_json(%(session)s::text), to_json(%(fold)s::text)
    ],
    app_version => %(version)s, queue_partition_key => %(tenant)s,
    application_name => %(application)s
)
WHERE NOT EXISTS (SELECT FROM {SCHEMA}.workflow_status WHERE workflow_uuid = %(id)s)
"""  # noqa: S608 - our own words


class Queueing:
    """The queues of one pool of workers."""

    def __init__(self, address: str, limits: Limits, pool: str, version: str) -> None:
        self.application = application(pool)
        self.version = version_of(pool, version)
        self.pool = pool
        self._limits = limits
        self._known: set[str] = set()
        # By DBOS's own function on the server: its client takes a thread and several ways there.
        self._links = Links(address, "refold queue", _CONNECTIONS)
        self._client = DBOSClient(
            system_database_url=checked(address),
            dbos_system_schema=SCHEMA,
            application_name=self.application,
            system_database_pool_size=1,
            lazy=True,
            retry_connection_errors=False,  # it would keep a thread, and say nothing, for ever
        )

    async def register(self, model: str, *, anew: bool = False) -> None:
        """Make the queues of a model, where they are not there; `anew` with our limits."""
        if model not in self._known:
            await surely(lambda: self._register(model, anew=anew))
            self._known.add(model)

    async def queue(self, job: Job, lane: Lane) -> str:
        """The queue of a job, which is there."""
        model = model_of(job)
        await self.register(model)
        return queue_of(self.pool, lane, model)

    async def put(self, tenant: str, job: Job, lane: Lane) -> bool:
        """Put a fold into its queue; False when it is there already, waiting, at work or ended."""
        queue = await self.queue(job, lane)
        return await surely(lambda: self._put(tenant, job, queue))

    async def close(self) -> None:
        """Close the connections."""
        await self._links.close()
        await asyncio.to_thread(self._client.destroy)

    async def _register(self, model: str, *, anew: bool) -> None:
        try:
            for name, options in self._limits.queues(self.pool, model):
                await self._client.register_queue_async(
                    name, on_conflict="always_update" if anew else "never_update", **options
                )
        except SQLAlchemyError as error:
            raise refused(error) from error

    async def _put(self, tenant: str, job: Job, queue: str) -> bool:
        """Put it there, if it is not.

        Of two that do so in the same moment both are told that they have: it is there once.
        """
        values = {
            "queue": queue,
            "id": workflow_id(tenant, job.session, job.fold),
            "tenant": tenant,
            "session": job.session,
            "fold": str(job.fold),
            "version": self.version,
            "application": self.application,
        }
        return bool(await self._links.run(_PUT, values))
