"""Models that write the summaries of tenants, within their quotas.

What went through the gateway is summarized by the upstreams' own models. A key that a client passed
with its requests is used for these alone. So without a key of the upstream's own, stored or from a
variable, no model can be asked, and the summary is extractive.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pydantic_ai.models import Model

from refold.errors import InvalidInput, NoModel
from refold.fold.compactor import Write, is_extractive, read_context
from refold.fold.job import Job, Steps
from refold.fold.material import Material
from refold.fold.summary import Summary
from refold.models.summarizer import by_model, by_name
from refold.service.quotas import FREE, Spending, metered
from refold.settings import Settings

if TYPE_CHECKING:
    from refold.gateway.upstream import Upstream, Upstreams

_CHAT: Final = "openai-chat"
_MESSAGES: Final = "anthropic-messages"
_MAX_MODELS: Final = 256
_MAX_TENANTS: Final = 256
_CLIENTS: Final = ("pydantic_ai.models.openai", "pydantic_ai.models.anthropic")

WriteFor = Callable[[str], Write]
"""What writes a tenant's summaries."""
ResolveFor = Callable[[str, str, Job], Model]
"""The model that a tenant has by a name, for a fold."""


def tenant_summarizers(resolve: ResolveFor, settings: Settings, spending: Spending) -> WriteFor:
    """What writes a tenant's summaries, with models by their names."""

    @lru_cache(_MAX_TENANTS)  # keeps what was learned about models from fold to fold
    def write_for(tenant: str) -> Write:
        def resolve_checked(name: str, job: Job) -> Model:
            spending.check(tenant)
            return resolve(tenant, name, job)

        write = by_model(resolve_checked, settings.models)
        return metered(write, tenant, settings.models, spending)

    return write_for


def upstream_summarizers(
    upstreams: "Upstreams", settings: Settings, spending: Spending = FREE
) -> WriteFor:
    """What writes a tenant's summaries, with the upstreams' models."""
    write_for = tenant_summarizers(
        lambda tenant, name, job: _resolve(upstreams, tenant, name, job), settings, spending
    )

    def write_with_clients(tenant: str) -> Write:
        write = write_for(tenant)

        async def write_summary(material: Material, job: Job, steps: Steps) -> Summary:
            # The first import takes seconds on a busy machine: requests are answered meanwhile.
            if not is_extractive(job):
                await asyncio.to_thread(_import_clients)
            return await write(material, job, steps)

        return write_summary

    return write_with_clients


def _import_clients() -> None:
    for name in _CLIENTS:
        with suppress(ImportError):  # an extra that is not installed
            import_module(name)


def _resolve(upstreams: "Upstreams", tenant: str, name: str, job: Job) -> Model:
    """The model of a name.

    The operator may name a summarizer of any provider. The name of a session's model comes from the
    client: it must not choose which key of this process is used.
    """
    trusted = name == read_context(job.context).summarizer
    if trusted and ":" in name:
        return by_name(name, job)
    for dialect in (_CHAT, _MESSAGES):
        try:
            upstream = upstreams.choose(name, dialect)
        except InvalidInput:
            continue
        key = upstreams.key(upstream, tenant, {})
        if key is None:
            raise NoModel(f"No key of the upstream {upstream.name!r} is known for summaries.")
        return _model(dialect, name, upstream, key)
    if trusted:
        return by_name(name, job)
    raise NoModel(f"No upstream serves the model {name[:100]!r}.")


@lru_cache(_MAX_MODELS)
def _model(dialect: str, name: str, upstream: "Upstream", key: str) -> Model:
    base = upstream.v1_url
    if dialect == _MESSAGES:
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - slow
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - slow

        return AnthropicModel(
            name, provider=AnthropicProvider(base_url=base.removesuffix("/v1"), api_key=key)
        )
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - slow
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - slow

    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=base, api_key=key))
