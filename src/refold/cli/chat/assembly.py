"""Puts a chat together from what the command line says."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Final, cast

from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset

from refold.cli.chat.commands.sessions import (
    answers_here,
    is_own,
    own_sessions,
    picked_session,
    refusal,
)
from refold.cli.chat.conversation import Conversation, Parts
from refold.cli.chat.endpoint import Endpoint, endpoint_of, server_of, stored_endpoint
from refold.cli.chat.models.agents import agent_at, has_refold, plain_agent
from refold.cli.chat.models.providers import LOCAL, Choice, chosen_model, model_of
from refold.cli.chat.run import Wanted
from refold.cli.chat.surface import Surface
from refold.cli.chat.tools.files import file_tools
from refold.cli.left_out import left_out_notice
from refold.cli.options import store_at, where_is
from refold.errors import InvalidInput, NoModel, RefoldError, SessionNotFound
from refold.log import DEFAULT_TENANT, Log, SessionInfo
from refold.memory import branch_of
from refold.memory.consolidation import is_worth_reading
from refold.models import ModelSettings
from refold.settings import Settings, Source, load_settings
from refold.user_files import state_folder, write_whole

# The servers that the user's own chats have talked with, on this machine.
#
# A session says which server answered in it, so that it can be resumed there. But a session may be
# imported from somebody else's file, or be in a store that others write to. So an address out of a
# session is used only if the user has named it before, or names it now.

_MAX_SERVERS: Final = 200
_FOR_THE_USER: Final = 0o600
_VARIABLES: Final = ("OPENAI_BASE_URL", "OLLAMA_BASE_URL")


def is_known(address: str, environ: Mapping[str, str]) -> bool:
    """Whether a chat of the user's has used this address, or the environment names it."""
    named = [environ.get(name, "").rstrip("/") for name in _VARIABLES]
    bare = address.rstrip("/")
    return bare in _load() or any(bare in (one, f"{one}/v1") for one in named if one)


def remember(address: str) -> None:
    """Note that the user's own chat uses this address."""
    known = _load()
    bare = address.rstrip("/")
    if known and known[-1] == bare:
        return
    servers = [*(one for one in known if one != bare), bare][-_MAX_SERVERS:]
    path = _record()
    # A chat works without it; then an address has to be named again when a session is resumed.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):  # the file that takes its place has its mode
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FOR_THE_USER))
        write_whole(path, json.dumps({"servers": servers}, indent=2).encode())


def _load() -> list[str]:
    try:
        stored: object = json.loads(_record().read_bytes())
    except (OSError, ValueError):
        return []
    rows = cast("dict[str, object]", stored).get("servers") if isinstance(stored, dict) else None
    listed = cast("list[object]", rows) if isinstance(rows, list) else []
    return [row for row in listed if isinstance(row, str)]


def _record() -> Path:
    return state_folder() / "servers.json"


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


# Going on with an earlier session.

_SHOWN = 5


async def session_to_resume(log: Log, wanted: Wanted, surface: Surface) -> str | None:
    """The session that the command line asks for: one named, one to pick, or None for a new one."""
    if wanted.session is None and wanted.resume:
        return await picked_session(log, surface)
    return await session_wanted(log, wanted)


async def session_wanted(log: Log, wanted: Wanted) -> str | None:
    """The session that the command line names; the newest where it only says to resume.

    A name may be shortened as long as it is clear. Without `--resume` it may be new. A session
    that another program keeps is refused here, rather than at every message.
    """
    if wanted.session is None:
        if not wanted.resume:
            return None
        newest, _ = await own_sessions(log, "", 1)
        if not newest:
            raise SessionNotFound("There is no session to go on with yet.", "Begin: refold chat.")
        return newest[0].session
    found = await _named_resuming(log, wanted.session, new=not wanted.resume)
    if found is None:
        return wanted.session
    if not is_own(found):
        raise refusal(found, _where(wanted))
    return found.session


async def _named_resuming(log: Log, name: str, *, new: bool) -> SessionInfo | None:
    """The session of that name; None where it may be new."""
    try:
        return await log.info(name)
    except SessionNotFound:
        if new:
            return None
        alike = [one for one in await _alike(log, name) if one.session.startswith(name)]
    found = [one for one in alike if is_own(one)] or alike
    if len(found) == 1:
        return found[0]
    names = ", ".join(one.session for one in found[:_SHOWN])
    hint = f"These begin so: {names}." if found else "`refold sessions` lists them."
    raise SessionNotFound(f"There is no session {name!r}.", hint)


def come_back(name: str, wanted: Wanted) -> str:
    """The command that resumes a session as it was left; its model is kept with the session."""
    options = [
        *(("--agent", wanted.agent) if wanted.agent else ()),
        *(("--mcp", str(wanted.mcp)) if wanted.mcp else ()),
        *(("--files", str(wanted.files)) if wanted.files else ()),
        *(("--profile", wanted.profile) if wanted.profile else ()),
        *(() if wanted.board else ("--no-board",)),
    ]
    given = _where(wanted) + "".join(f" {quote(one)}" for one in options)
    if name.startswith("-"):  # it would be read as an option
        return f"refold chat --resume{given} -- {quote(name)}"
    return f"refold chat --resume {quote(name)}{given}"


def _where(wanted: Wanted) -> str:
    """The options that lead another command to the same sessions."""
    store = "" if wanted.store == where_is("") else f" --store {quote(wanted.store)}"
    return store + ("" if wanted.tenant == DEFAULT_TENANT else f" --tenant {quote(wanted.tenant)}")


async def _alike(log: Log, name: str) -> tuple[SessionInfo, ...]:
    return (await log.sessions(search=name, limit=_SHOWN + 1)).sessions


# What goes on when the person has left: the session is read for the board, by some profiles.


async def consolidates_later(conversation: Conversation, wanted: Wanted) -> bool:
    """Start reading the session in a process of its own, if it is worth it; whether it was."""
    board, name = conversation.board, conversation.name
    if board is None or not name or wanted.agent or conversation.profile.consolidate != "leaving":
        return False
    if await conversation.session() is None:
        return False
    if not await is_worth_reading(conversation.log, name, board):
        return False
    _start(_command(conversation, wanted))
    return True


def _start(command: list[str]) -> None:
    """Start it, and do not wait: it outlives this program and its terminal."""
    subprocess.Popen(  # noqa: S603 - this program itself
        command,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _command(conversation: Conversation, wanted: Wanted) -> list[str]:
    server = server_of(conversation.model)
    return [
        # -P: else modules of the folder that the chat was started in would be imported.
        *(sys.executable, "-P", "-m", "refold.cli", "board", "run", conversation.name),
        *("--store", wanted.store, "--tenant", wanted.tenant),
        *("--model", conversation.model.model_id),
        *(("--base-url", server) if server else ()),
    ]
