"""Models that write the summaries of tenants, within their quotas.

What went through the gateway is summarized by the upstreams' own models. A key that a client passed
with its requests is used for these alone, unless `serve.summarize_with_client_key` lends it to the
folds that they start. So without a key of the upstream's own, stored or from a variable, no model
can be asked: then nothing summarizes, and the profile's fixed limits apply.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pydantic_ai.models import Model

from refold.errors import NoModel
from refold.fold.compactor import Write, is_extractive, read_context
from refold.fold.job import Job, Steps
from refold.fold.material import Material
from refold.fold.summary import Summary
from refold.models.summarizer import by_model, by_name
from refold.models.summarizer_choice import FindLast
from refold.service.quotas import FREE, Spending, metered
from refold.settings import Settings

if TYPE_CHECKING:
    from refold.gateway.upstream import Upstream, Upstreams

_MAX_MODELS: Final = 256
_MAX_TENANTS: Final = 256
_NO_KEY_FIX: Final = (
    "Give the upstream a `key` of its own in serve.upstreams, or `none` if it needs none; or set "
    "serve.summarize_with_client_key."
)
_CLIENTS: Final = ("pydantic_ai.models.openai", "pydantic_ai.models.anthropic")

WriteFor = Callable[[str], Write]
"""What writes a tenant's summaries."""
ResolveFor = Callable[[str, str, Job], Model]
"""The model that a tenant has by a name, for a fold."""


def tenant_summarizers(
    resolve: ResolveFor,
    settings: Settings,
    spending: Spending,
    last: FindLast = lambda _: None,
) -> WriteFor:
    """What writes a tenant's summaries, with models by their names."""

    @lru_cache(_MAX_TENANTS)  # keeps what was learned about models from fold to fold
    def write_for(tenant: str) -> Write:
        def resolve_checked(name: str, job: Job) -> Model:
            spending.check(tenant)
            return resolve(tenant, name, job)

        write = by_model(resolve_checked, settings.models, last)
        return metered(write, tenant, settings.models, spending)

    return write_for


def upstream_summarizers(
    upstreams: "Upstreams", settings: Settings, spending: Spending = FREE
) -> WriteFor:
    """What writes a tenant's summaries, with the upstreams' models."""
    from refold.gateway.warm_summary import last_request  # noqa: PLC0415 - optional

    models = _UpstreamModels(upstreams)
    write_for = tenant_summarizers(models.resolve, settings, spending, last_request)

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


class _UpstreamModels:
    """Models of the upstreams, called through the connections of the service."""

    def __init__(self, upstreams: "Upstreams") -> None:
        self._upstreams = upstreams
        self._model = lru_cache(_MAX_MODELS)(self._new_model)

    def resolve(self, tenant: str, name: str, job: Job) -> Model:
        """The model of a name.

        The operator may name a summarizer of any provider. The name of a session's model comes from
        the client: it must not choose which key of this process is used.
        """
        from refold.gateway.client_keys import is_lent, server_of  # noqa: PLC0415 - optional

        trusted = name == read_context(job.context).summarizer
        if trusted and ":" in name:
            return by_name(name, job)
        server = server_of(self._upstreams, name)
        if server is not None:
            dialect, upstream = server
            key = self._upstreams.key(upstream, tenant, {})
            if key is None and not is_lent(upstream):
                raise NoModel(
                    f"No key of the upstream {upstream.name!r} is known for summaries.",
                    _NO_KEY_FIX,
                )
            return self._model(dialect, name, upstream, key)
        if trusted:
            return by_name(name, job)
        raise NoModel(f"No upstream serves the model {name[:100]!r}.")

    def _new_model(self, dialect: str, name: str, upstream: "Upstream", key: str | None) -> Model:
        """The model; without a key, each call uses the key that is lent in its context."""
        from refold.gateway.client_keys import (  # noqa: PLC0415 - optional
            MESSAGES,
            RESPONSES,
            client_with_lent_key,
        )
        from refold.gateway.upstream import NO_KEY  # noqa: PLC0415 - optional

        base = upstream.v1_url
        client = self._upstreams.client
        if key is None:
            client = client_with_lent_key(upstream, client)
        if dialect == MESSAGES:
            from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - slow
            from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - slow

            provider = AnthropicProvider(
                base_url=base.removesuffix("/v1"), api_key=key or NO_KEY, http_client=client
            )
            return AnthropicModel(name, provider=provider)
        from pydantic_ai.models.openai import (  # noqa: PLC0415 - slow
            OpenAIChatModel,
            OpenAIResponsesModel,
        )
        from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - slow

        provider = OpenAIProvider(base_url=base, api_key=key or NO_KEY, http_client=client)
        kind = OpenAIResponsesModel if dialect == RESPONSES else OpenAIChatModel
        return kind(name, provider=provider)
