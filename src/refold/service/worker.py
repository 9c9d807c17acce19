"""How `refold worker` makes folds, next to a service on the same store.

Imports nothing that a worker without the `serve` extra lacks.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec

from refold.fold.compactor import Write, from_the_log
from refold.fold.job import Make
from refold.log import Log, Store
from refold.memory import daily_notes
from refold.models.making import makes
from refold.service.keys import keyring_of
from refold.service.quotas import Spending, quotas_of
from refold.settings import Serve, Settings


@asynccontextmanager
async def worker_fold_maker(
    store: Store, settings: Settings
) -> AsyncGenerator[Callable[[Log], Make]]:
    """Makes folds for `refold worker`, counted against the quota of each tenant.

    If the settings name upstreams, it asks those with their keys, as a serving process does. Else
    it asks models by name, as workers of programs do.
    """
    keyring = keyring_of(store)
    await keyring.refresh()
    quotas = quotas_of(store, keyring, settings.serve.limits)
    spending = Spending(quotas.check, quotas.spent, keyring.refresh_if_stale)
    await quotas.open()
    try:
        if settings.serve.upstreams == Serve().upstreams:  # those use the clients' keys only
            write_for = _summarizers_by_name(settings, spending)
            yield lambda log: makes(
                log, write_for(log.tenant), daily_notes(settings.profile, log.tenant)
            )
            return
        import httpx2  # noqa: PLC0415 - optional

        from refold.gateway.upstream import Upstreams  # noqa: PLC0415 - optional
        from refold.service.service import upstreams  # noqa: PLC0415 - optional
        from refold.service.summarizers import upstream_summarizers  # noqa: PLC0415 - optional
        from refold.service.vault import Vault  # noqa: PLC0415 - optional

        async with httpx2.AsyncClient() as client:
            servers = Upstreams(upstreams(settings.serve.upstreams), client, Vault(keyring).key_of)
            write_from = upstream_summarizers(servers, settings, spending)
            yield lambda log: makes(
                log, write_from(log.tenant), daily_notes(settings.profile, log.tenant)
            )
    finally:
        await quotas.close()


def _summarizers_by_name(settings: Settings, spending: Spending) -> Callable[[str], Write]:
    if find_spec("pydantic_ai") is None:
        return lambda _tenant: from_the_log
    from refold.models.summarizer import by_name  # noqa: PLC0415 - optional
    from refold.service.summarizers import tenant_summarizers  # noqa: PLC0415 - optional

    return tenant_summarizers(lambda _tenant, name, job: by_name(name, job), settings, spending)
