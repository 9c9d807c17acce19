"""Puts folds into DBOS's queues, from any process."""

from typing import Final

from dbos import DBOSClient, WorkflowSerializationFormat
from dbos._error import DBOSWorkflowIDInUseError  # it is raised to callers, but not exported
from sqlalchemy.exc import SQLAlchemyError

from refold.engine.dbos.limits import Limits, model_of
from refold.engine.dbos.link import checked, refused
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


class Queueing:
    """The queues of one pool of workers."""

    def __init__(self, address: str, limits: Limits, pool: str, version: str) -> None:
        self.application = application(pool)
        self.version = version_of(pool, version)
        self.pool = pool
        self._limits = limits
        self._known: set[str] = set()
        self._client = DBOSClient(
            system_database_url=checked(address),
            dbos_system_schema=SCHEMA,
            application_name=self.application,
            system_database_pool_size=_CONNECTIONS,
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

    def close(self) -> None:
        """Close the connections."""
        self._client.destroy()

    async def _register(self, model: str, *, anew: bool) -> None:
        try:
            for name, options in self._limits.queues(self.pool, model):
                await self._client.register_queue_async(
                    name, on_conflict="always_update" if anew else "never_update", **options
                )
        except SQLAlchemyError as error:
            raise refused(error) from error

    async def _put(self, tenant: str, job: Job, queue: str) -> bool:
        try:
            await self._client.enqueue_async(
                {
                    "workflow_name": WORKFLOW,
                    "queue_name": queue,
                    "workflow_id": workflow_id(tenant, job.session, job.fold),
                    "workflow_id_reuse_policy": "reject",
                    "app_version": self.version,
                    "queue_partition_key": tenant,
                    "serialization_type": WorkflowSerializationFormat.PORTABLE,
                },
                tenant,
                job.session,
                str(job.fold),
            )
        except DBOSWorkflowIDInUseError:
            return False
        except SQLAlchemyError as error:
            raise refused(error) from error
        return True
