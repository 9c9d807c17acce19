"""What `refold worker` writes summaries with, beside a service on the same store.

Where the settings name upstreams, it asks them, with their keys, as a process that serves does.
Else it asks models by their names, as workers of programs do. Either way tenants' quotas hold.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec

from refold.fold.compactor import Write, from_the_log
from refold.fold.job import Make
from refold.log import Log, Store
from refold.models.making import makes
from refold.service.keys import Keyring, keyring_of
from refold.service.quotas import quotas_of
from refold.service.spending import Spending
from refold.settings import Serve, Settings

WriteOf = Callable[[str], Write]
"""What writes a tenant's summaries."""


@asynccontextmanager
async def making_beside(store: Store, settings: Settings) -> AsyncGenerator[Callable[[Log], Make]]:
    """What makes a log's folds, counted against the quota of its tenant."""
    keyring = keyring_of(store)
    await keyring.look()
    quotas = quotas_of(store, keyring, settings.serve.limits)
    spending = Spending(quotas.check, quotas.spent, keyring.current)
    await quotas.open()
    try:
        async with _writing(keyring, settings, spending) as write_of:
            yield lambda log: makes(log, write_of(log.tenant))
    finally:
        await quotas.close()


@asynccontextmanager
async def _writing(
    keyring: Keyring, settings: Settings, spending: Spending
) -> AsyncGenerator[WriteOf]:
    if settings.serve.upstreams == Serve().upstreams:  # those take the clients' keys only
        yield _by_name(settings, spending)
        return
    import httpx2  # noqa: PLC0415 - optional

    from refold.gateway.upstream import Upstreams  # noqa: PLC0415 - optional
    from refold.service.service import upstreams  # noqa: PLC0415 - optional
    from refold.service.summarising import writing_with  # noqa: PLC0415 - optional
    from refold.service.vault import Vault  # noqa: PLC0415 - optional

    async with httpx2.AsyncClient() as client:
        servers = Upstreams(upstreams(settings.serve.upstreams), client, Vault(keyring).key_of)
        yield writing_with(servers, settings, spending)


def _by_name(settings: Settings, spending: Spending) -> WriteOf:
    if find_spec("pydantic_ai") is None:
        return lambda _tenant: from_the_log
    from refold.models.summarizer import by_name  # noqa: PLC0415 - optional
    from refold.service.writing import writing_by  # noqa: PLC0415 - optional

    return writing_by(lambda _tenant, name, job: by_name(name, job), settings, spending)
