"""Puts a chat together from what the command line says."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset

from refold.cli.chat.commands.sessions import answers_here
from refold.cli.chat.conversation import Parts
from refold.cli.chat.endpoint import Endpoint, endpoint_of, stored_endpoint
from refold.cli.chat.models.agents import agent_at, has_refold, plain_agent
from refold.cli.chat.models.known_servers import is_known, remember
from refold.cli.chat.models.providers import LOCAL, Choice, chosen_model, model_of
from refold.cli.chat.tools.file_tools import file_tools
from refold.cli.chat.wanted import Wanted
from refold.cli.left_out import left_out_notice
from refold.cli.options import store_at
from refold.errors import InvalidInput, NoModel, RefoldError
from refold.log import Log
from refold.memory import branch_of
from refold.models import ModelSettings
from refold.settings import Settings, Source, load_settings


@dataclass(frozen=True, slots=True)
class Assembled:
    """The parts, the session to resume, and why this model."""

    parts: Parts
    choice: Choice
    session: str | None
    """None: a new one."""
    change: str = ""
    """In one line, that another model answers than did before."""


@asynccontextmanager
async def assembled(
    wanted: Wanted,
    told: Callable[[str], None],
    session: Callable[[Log], Awaitable[str | None]],
) -> AsyncGenerator[Assembled]:
    """The parts of a conversation, for as long as it lasts.

    Args:
        wanted: What the command line says.
        told: Is told what did not start.
        session: Finds the session to resume. It comes first, because a session brings its model.
    """
    settings = load_settings(wanted.profile)
    if settings.left_out:
        told(left_out_notice(settings.left_out))
    agent = agent_at(wanted.agent) if wanted.agent else None
    own = has_refold(agent) if agent else None
    toolsets = [file_tools(_folder(wanted.files))] if wanted.files else []
    async with store_at(wanted.store, create=True) as store, _served(wanted.mcp, told) as started:
        if own is not None:
            await own.open()
        log = own.log if own is not None else store.log(wanted.tenant)
        name = await session(log)
        stored = await stored_endpoint(log, name) if name else None
        choice, model = _model(wanted, settings, agent.model if agent else None, name, stored)
        parts = Parts(
            store=store,
            agent=agent or plain_agent(model),
            model=model,
            settings=partial(_settings, wanted.profile, choice, model),
            model_named=partial(_named, settings, wanted.base_url, choice),
            model_at=lambda there: model_of(_resumed(there, settings), os.environ),
            toolsets=[*toolsets, *started],
            own=own,
            tenant=wanted.tenant,
            branch=await asyncio.to_thread(branch_of, Path.cwd()) if wanted.board else None,
        )
        now, change = endpoint_of(model), ""
        if now.is_server and now.address:
            remember(now.address)
        if stored is not None and not now.same(stored):
            change = answers_here(now, stored)
        yield Assembled(parts, choice, name, change)


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


def _model(
    wanted: Wanted,
    settings: Settings,
    own: Model | str | None,
    session: str | None,
    stored: Endpoint | None,
) -> tuple[Choice, Model]:
    """The model asked for; else the agent's own; else the session's; else whichever can be had."""
    if wanted.model is None and wanted.base_url is None:
        if isinstance(own, Model):
            return Choice(own.model_id, "the agent's own"), own
        if own is not None:
            wanted = replace(wanted, model=own)
        elif stored is not None and session is not None:
            try:
                choice = _resumed(stored, settings)
                return choice, model_of(choice, os.environ)
            except RefoldError as error:
                # What was said to a server of one's own goes to nobody else unasked. Of a session
                # that no chat wrote, only a name is known, which may be no model's.
                if stored.noted or stored.model.startswith(f"{LOCAL}:"):
                    raise _not_resumed(session, stored, error) from error
    choice = chosen_model(wanted.model, settings, os.environ, base_url=wanted.base_url)
    return choice, model_of(choice, os.environ)


def _resumed(stored: Endpoint, settings: Settings) -> Choice:
    """The model that a session is resumed with."""
    if stored.base_url and not is_known(stored.base_url, os.environ):
        raise NoModel(
            f"No chat of yours has used {stored.base_url} before, so it may be somebody else's.",
            f"If you trust it, name it yourself: --base-url {stored.base_url}.",
        )
    found = chosen_model(stored.model, settings, os.environ, base_url=stored.base_url)
    where = f", at {stored.base_url}" if stored.base_url else ""
    return replace(found, why=f"as before{where}")


def _not_resumed(session: str, stored: Endpoint, error: RefoldError) -> NoModel:
    resume = f"refold chat --resume {quote(session)}"
    moved = f" If it moved: {resume} --base-url URL." if stored.base_url else ""
    return NoModel(
        f"Session {session!r} was answered by {stored}, which cannot be used now. {error.what}",
        f"{error.fix}{moved} To let another model answer: {resume} -m PROVIDER:MODEL",
    )


def _named(settings: Settings, base_url: str | None, begun_with: Choice, name: str) -> Model:
    """Another model; the server that was named is asked for those of its own provider."""
    served = name.partition(":")[0] == begun_with.name.partition(":")[0]
    server = base_url or begun_with.base_url
    choice = chosen_model(name, settings, os.environ, base_url=server if served else None)
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
