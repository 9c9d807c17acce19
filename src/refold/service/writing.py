"""Models write the summaries of tenants, as far as these may spend it."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from pydantic_ai.models import Model

from refold.fold.compactor import Write
from refold.fold.job import Job
from refold.models.summarizer import by_model
from refold.service.spending import Spending, counted
from refold.settings import Settings

_TENANTS: Final = 256

ResolveFor = Callable[[str, str, Job], Model]
"""The model that a tenant has by a name, for a fold."""


def writing_by(
    resolve: ResolveFor, settings: Settings, spending: Spending
) -> Callable[[str], Write]:
    """What writes a tenant's summaries."""

    @lru_cache(_TENANTS)  # so that what is learned of models is not lost from fold to fold
    def write_of(tenant: str) -> Write:
        def checked(name: str, job: Job) -> Model:
            spending.check(tenant)
            return resolve(tenant, name, job)

        return counted(by_model(checked, settings.models), tenant, settings.models, spending)

    return write_of
