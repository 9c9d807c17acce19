"""Keeps what a `make` raises from ending the worker."""

from pydantic import JsonValue

from refold.engine.reason import reason_of
from refold.fold.job import Job, Make, Steps


def contained(make: Make) -> Make:
    """The same, but for what would end the loop, and with it all other folds of the worker."""

    async def made(job: Job, steps: Steps) -> JsonValue:
        try:
            return await make(job, steps)
        except (KeyboardInterrupt, SystemExit) as error:
            raise RuntimeError(f"it would end the worker: {reason_of(error)}") from error

    return made
