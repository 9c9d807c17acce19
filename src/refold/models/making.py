"""Making the summaries of any model's sessions, for an engine that serves them all."""

from pydantic import JsonValue

from refold.fold.compactor import Compactor, Remember, Write, read_context
from refold.fold.job import Job, Make, Steps
from refold.log import Log
from refold.models.catalog import counter_for


def makes(log: Log, write: Write, remember: Remember | None = None) -> Make:
    """What makes a log's folds, each counted as the model that its session is for counts."""

    async def make(job: Job, steps: Steps) -> JsonValue:
        counter = counter_for(read_context(job.context).model)
        return await Compactor(log, counter, write, remember)(job, steps)

    return make
