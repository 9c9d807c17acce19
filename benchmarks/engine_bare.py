"""Bare DBOS: a worker whose workflows do nothing, and who asks for them."""

from multiprocessing.synchronize import Event
from time import sleep
from typing import Any

from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions, WorkflowSerializationFormat

from refold.engine.dbos.database import SCHEMA

VERSION = "bare-1"
WORKFLOW = "bare.nothing"

Queues = dict[str, dict[str, Any]]
"""The queues that a worker looks at, and their limits."""


@DBOS.workflow(name=WORKFLOW)
async def nothing(tenant: str, session: str, fold: str) -> str:  # noqa: ARG001 - as folds
    return "done"


def work(address: str, executor: str, queues: Queues, ready: Event) -> None:
    """A worker's whole life; it is killed in the end."""
    config: DBOSConfig = {
        "name": "bare",
        "system_database_url": address,
        "dbos_system_schema": SCHEMA,
        "executor_id": executor,
        "application_version": VERSION,
        "use_listen_notify": False,
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()
    for name, options in queues.items():
        DBOS.register_queue(name, **options)
    ready.set()
    while True:
        sleep(60)


class Asking:
    """Enqueues workflows that do nothing."""

    def __init__(self, address: str, queue: str) -> None:
        self._queue = queue
        self._client = DBOSClient(system_database_url=address, dbos_system_schema=SCHEMA)

    async def ask(self, tenant: str, session: str, fold: str) -> None:
        options: EnqueueOptions = {
            "workflow_name": WORKFLOW,
            "queue_name": self._queue,
            "workflow_id": f"{tenant}/{session}/{fold}",
            "app_version": VERSION,
            "workflow_id_reuse_policy": "reject",
            "queue_partition_key": tenant,
            "serialization_type": WorkflowSerializationFormat.PORTABLE,
        }
        await self._client.enqueue_async(options, tenant, session, fold)

    def close(self) -> None:
        self._client.destroy()
