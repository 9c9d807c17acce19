"""Puts a chat together from what the command line says."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset

from refold.cli.chat.conversation import Parts
from refold.cli.chat.models.agents import agent_at, has_refold, plain_agent
from refold.cli.chat.models.providers import Choice, chosen_model, model_of
from refold.cli.chat.tools.file_tools import file_tools
from refold.cli.chat.wanted import Wanted
from refold.cli.options import store_at
from refold.errors import InvalidInput
from refold.memory import branch_of
from refold.models import ModelSettings
from refold.settings import Settings, Source, load_settings


@dataclass(frozen=True, slots=True)
class Assembled:
    """The parts, and why this model."""

    parts: Parts
    choice: Choice


@asynccontextmanager
async def assembled(wanted: Wanted, told: Callable[[str], None]) -> AsyncGenerator[Assembled]:
    """The parts of a conversation, for as long as it lasts; `told` hears what did not start."""
    settings = load_settings(wanted.profile)
    agent = agent_at(wanted.agent) if wanted.agent else None
    choice, model = _model(wanted, settings, agent.model if agent else None)
    toolsets = [file_tools(_folder(wanted.files))] if wanted.files else []
    async with store_at(wanted.store, create=True) as store, _served(wanted.mcp, told) as started:
        parts = Parts(
            store=store,
            agent=agent or plain_agent(model),
            model=model,
            settings=partial(_settings, wanted.profile, choice, model),
            model_named=partial(_named, settings, wanted.base_url, choice.name),
            toolsets=[*toolsets, *started],
            own=has_refold(agent) if agent else None,
            tenant=wanted.tenant,
            branch=await asyncio.to_thread(branch_of, Path.cwd()) if wanted.board else None,
        )
        yield Assembled(parts, choice)


@asynccontextmanager
async def _served(
    file: Path | None, told: Callable[[str], None]
) -> AsyncGenerator[Sequence[AbstractToolset[Any]]]:
    """The tools of the MCP servers that started."""
    if file is None:
        yield ()
        return
    from refold.cli.chat.tools.mcp_servers import mcp_toolsets, serving  # noqa: PLC0415 - slow

    async with serving(mcp_toolsets(file), told) as started:
        yield started


def _model(wanted: Wanted, settings: Settings, own: Model | str | None) -> tuple[Choice, Model]:
    """The model asked for; else the agent's own; else whichever can be had."""
    if wanted.model is None and wanted.base_url is None and own is not None:
        if isinstance(own, Model):
            return Choice(own.model_id, "the agent's own"), own
        wanted = replace(wanted, model=own)
    choice = chosen_model(wanted.model, settings, os.environ, base_url=wanted.base_url)
    return choice, model_of(choice, os.environ)


def _named(settings: Settings, base_url: str | None, begun_with: str, name: str) -> Model:
    """Another model; the server that was named is asked for those of its own provider."""
    served = name.partition(":")[0] == begun_with.partition(":")[0]
    choice = chosen_model(name, settings, os.environ, base_url=base_url if served else None)
    return model_of(choice, os.environ)


def _settings(profile: str | None, choice: Choice, model: Model) -> Settings:
    """The settings that apply, with what a local server says of its model's window."""
    found = load_settings(profile)
    known = found.models.get(model.model_id) or ModelSettings()
    if choice.window is None or known.window is not None:
        return found
    known = known.model_copy(update={"window": choice.window})
    told = {f'models."{model.model_id}".window': Source("argument", "what the server says")}
    return replace(
        found,
        models={**found.models, model.model_id: known},
        sources={**found.sources, **told},
    )


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise InvalidInput(f"There is no folder {str(path)!r}.", "Name the folder to read in.")
    return path
