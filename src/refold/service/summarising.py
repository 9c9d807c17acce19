"""Who writes the summaries of what went through the gateway: the upstreams' own models.

A key that a client passed with its requests is used for these alone. So where an upstream has no
key of its own, stored or from a variable, nobody can be asked, and the log's own summary stands.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Final

from pydantic_ai.models import Model

from refold.errors import InvalidInput, NoModel
from refold.fold.compactor import Write, is_extractive, read_context
from refold.fold.job import Job, Steps
from refold.fold.material import Material
from refold.fold.summary import Summary
from refold.gateway.upstream import Upstream, Upstreams
from refold.models.summarizer import by_name
from refold.service.spending import FREE, Spending
from refold.service.writing import writing_by
from refold.settings import Settings

_CHAT: Final = "openai-chat"
_MESSAGES: Final = "anthropic-messages"
_KNOWN: Final = 256
_CLIENTS: Final = ("pydantic_ai.models.openai", "pydantic_ai.models.anthropic")


def writing_with(
    upstreams: Upstreams, settings: Settings, spending: Spending = FREE
) -> Callable[[str], Write]:
    """What writes a tenant's summaries."""

    def resolve(tenant: str, name: str, job: Job) -> Model:
        return _resolved(upstreams, tenant, name, job)

    write_of = writing_by(resolve, settings, spending)

    def write_for(tenant: str) -> Write:
        write = write_of(tenant)

        async def with_clients(material: Material, job: Job, steps: Steps) -> Summary:
            # The first import takes seconds on a busy machine: requests are answered meanwhile.
            if not is_extractive(job):
                await asyncio.to_thread(_import_clients)
            return await write(material, job, steps)

        return with_clients

    return write_for


def _import_clients() -> None:
    for name in _CLIENTS:
        with suppress(ImportError):  # an extra that is not installed
            import_module(name)


def _resolved(upstreams: Upstreams, tenant: str, name: str, job: Job) -> Model:
    """The model of a name.

    Who runs the service may name one to summarize, of any provider. The name of a session's model
    is the client's word: it must not choose whose key of this process is used.
    """
    trusted = name == read_context(job.context).summarizer
    if trusted and ":" in name:
        return by_name(name, job)
    served = _served(upstreams, tenant, name)
    if served is None and trusted:
        return by_name(name, job)
    if served is None:
        raise NoModel(f"No upstream serves the model {name[:100]!r}.")
    return served


def _served(upstreams: Upstreams, tenant: str, name: str) -> Model | None:
    """The model as an upstream has it."""
    for dialect in (_CHAT, _MESSAGES):
        try:
            upstream = upstreams.choose(name, dialect)
        except InvalidInput:
            continue
        key = upstreams.key(upstream, tenant, {})
        if key is None:
            raise NoModel(f"No key of the upstream {upstream.name!r} is known for summaries.")
        return _model(dialect, name, upstream, key)
    return None


@lru_cache(_KNOWN)
def _model(dialect: str, name: str, upstream: Upstream, key: str) -> Model:
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
