"""Puts a chat together from the options of the command line: session, model, tools, memory."""

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

from refold.cli.chat.conversation import Conversation, Parts
from refold.cli.chat.endpoint import (
    Endpoint,
    answers_here,
    endpoint_of,
    is_own,
    own_sessions,
    refusal,
    server_of,
    stored_endpoint,
)
from refold.cli.chat.models.agents import agent_at, has_refold, plain_agent
from refold.cli.chat.models.providers import (
    LOCAL,
    Choice,
    chosen_model,
    model_of,
    names_provider,
)
from refold.cli.chat.surface import ChatOptions, Surface
from refold.cli.chat.tools.files import file_tools
from refold.cli.left_out import left_out_notice
from refold.cli.options import store_at, where_is
from refold.errors import InvalidInput, NoModel, RefoldError, SessionNotFound
from refold.log import DEFAULT_TENANT, Log, Origin, SessionInfo
from refold.memory import branch_of, checked_out
from refold.memory.consolidation import is_worth_reading
from refold.models import ModelSettings
from refold.models.catalog import settings_of
from refold.settings import Settings, Source, load_settings
from refold.user_files import state_folder, write_whole

_MAX_SERVERS: Final = 200
_FOR_THE_USER: Final = 0o600
_VARIABLES: Final = ("OPENAI_BASE_URL", "OLLAMA_BASE_URL")
_MAX_NAMES: Final = 5  # sessions in a hint
_MAX_SEARCHED: Final = 100  # sessions, to find one to continue


@dataclass(frozen=True, slots=True)
class ChatSetup:
    parts: Parts
    choice: Choice
    session: str | None  # None: a new one
    change: str = ""  # in one line, that another model answers than before


@asynccontextmanager
async def chat_setup(
    options: ChatOptions,
    notify: Callable[[str], None],
    session: Callable[[Log], Awaitable[str | None]],
) -> AsyncGenerator[ChatSetup]:
    """The parts of a conversation, for as long as it lasts.

    Args:
        options: From the command line.
        notify: Called with a sentence for each thing that did not start.
        session: Finds the session to resume. It comes first, because a session brings its model.
    """
    settings = load_settings(options.profile)
    if settings.left_out:
        notify(left_out_notice(settings.left_out))
    agent = agent_at(options.agent) if options.agent else None
    own = has_refold(agent) if agent else None
    toolsets: list[AbstractToolset[Any]] = []
    if options.files:
        if not options.files.is_dir():
            folder = str(options.files)
            raise InvalidInput(f"There is no folder {folder!r}.", "Name the folder to read in.")
        toolsets.append(file_tools(options.files))
    async with (
        store_at(options.store, create=True) as store,
        _mcp_tools(options.mcp, notify) as mcp_tools,
    ):
        if own is not None:
            await own.open()
        log = own.log if own is not None else store.log(options.tenant)
        name = await session(log)
        if name is None and settings.profile.auto_restore:
            name = await _newest_of(log, settings.profile.name)
            if name is not None:
                notify(
                    f"Session {name} goes on (auto_restore). `refold chat NAME` begins another one."
                )
        stored = await stored_endpoint(log, name) if name else None
        choice, model = _choose_model(
            options, settings, agent.model if agent else None, name, stored
        )
        parts = Parts(
            store=store,
            agent=agent or plain_agent(model),
            model=model,
            settings=partial(_settings, options.profile, choice, model),
            model_named=partial(_model_named, settings, options.base_url, choice),
            model_at=lambda endpoint: model_of(_resumed_choice(endpoint, settings), os.environ),
            toolsets=[*toolsets, *mcp_tools],
            own=own,
            tenant=options.tenant,
            origin=await asyncio.to_thread(_origin),
            branch=await asyncio.to_thread(branch_of, Path.cwd()) if options.board else None,
            notify=notify,
        )
        now, change = endpoint_of(model), ""
        if now.is_server and now.address:
            remember_server(now.address)
        if stored is not None and not now.same(stored):
            change = answers_here(now, stored)
        yield ChatSetup(parts, choice, name, change)


def _origin() -> Origin:
    """Where a new session is begun, for `refold sessions --cwd`."""
    folder = Path.cwd()
    return Origin("refold", folder=str(folder), branch=checked_out(folder) or None)


@asynccontextmanager
async def _mcp_tools(
    file: Path | None, notify: Callable[[str], None]
) -> AsyncGenerator[Sequence[AbstractToolset[Any]]]:
    if file is None:
        yield ()
        return
    from refold.cli.chat.tools.mcp_servers import mcp_toolsets, run_servers  # noqa: PLC0415 - slow

    async with run_servers(mcp_toolsets(file), notify) as started:
        yield started


def _choose_model(
    options: ChatOptions,
    settings: Settings,
    agent_model: Model | str | None,
    session: str | None,
    stored: Endpoint | None,
) -> tuple[Choice, Model]:
    """The requested model; else the agent's own; else the session's; else any available one."""
    if options.model is None and options.base_url is None:
        if isinstance(agent_model, Model):
            return Choice(agent_model.model_id, "the agent's own"), agent_model
        if agent_model is not None:
            options = replace(options, model=agent_model)
        elif stored is not None and session is not None:
            try:
                choice = _resumed_choice(stored, settings)
                return choice, model_of(choice, os.environ)
            except RefoldError as error:
                # A conversation with a private server goes to no other one unless the user says
                # so. Of a session that no chat wrote, only a name is known, which may be no
                # model's.
                if stored.noted or stored.model.startswith(f"{LOCAL}:"):
                    raise _not_resumed(session, stored, error) from error
    choice = chosen_model(options.model, settings, os.environ, base_url=options.base_url)
    return choice, model_of(choice, os.environ)


def _resumed_choice(stored: Endpoint, settings: Settings) -> Choice:
    if stored.base_url and not is_trusted(stored.base_url, os.environ):
        raise NoModel(
            f"None of your chats has used {stored.base_url} before, so it may not be yours.",
            f"If you trust it, name it yourself: --base-url {stored.base_url}.",
        )
    choice = chosen_model(stored.model, settings, os.environ, base_url=stored.base_url)
    where = f", at {stored.base_url}" if stored.base_url else ""
    return replace(choice, why=f"as before{where}")


def _not_resumed(session: str, stored: Endpoint, error: RefoldError) -> NoModel:
    resume = f"refold chat --resume {quote(session)}"
    moved = f" If it moved: {resume} --base-url URL." if stored.base_url else ""
    return NoModel(
        f"Session {session!r} was answered by {stored}, which cannot be used now. {error.what}",
        f"{error.fix}{moved} To let another model answer: {resume} -m PROVIDER:MODEL",
    )


def _model_named(settings: Settings, base_url: str | None, first: Choice, name: str) -> Model:
    """Another model; those of the first one's provider, or of none, are on the same server."""
    same_provider = name.partition(":")[0] == first.name.partition(":")[0]
    here = same_provider or not names_provider(name)
    server = (base_url or first.base_url) if here else None
    return model_of(chosen_model(name, settings, os.environ, base_url=server), os.environ)


def _settings(profile: str | None, choice: Choice, model: Model) -> Settings:
    """The current settings, with the window that a local server reports for its model."""
    settings = load_settings(profile)
    if choice.window is None or settings_of(model.model_id, settings.models).window is not None:
        return settings
    own = settings.models.get(model.model_id, ModelSettings())
    own = own.model_copy(update={"window": choice.window})
    source = {f'models."{model.model_id}".window': Source("argument", "what the server says")}
    return replace(
        settings,
        models={**settings.models, model.model_id: own},
        sources={**settings.sources, **source},
    )


# The servers that the user's own chats have used, on this machine.
#
# A session records which server answered in it, so that it can be resumed there. But a session may
# be imported from somebody else's file, or be in a store that others write to. So an address from
# a session is used only if the user has named it before, or names it now.


def is_trusted(address: str, environ: Mapping[str, str]) -> bool:
    """Whether a chat of the user's has used this address, or the environment names it."""
    named = [environ.get(name, "").rstrip("/") for name in _VARIABLES]
    bare = address.rstrip("/")
    return bare in _load_servers() or any(bare in (url, f"{url}/v1") for url in named if url)


def remember_server(address: str) -> None:
    known = _load_servers()
    bare = address.rstrip("/")
    if known and known[-1] == bare:
        return
    servers = [*(server for server in known if server != bare), bare][-_MAX_SERVERS:]
    path = _servers_file()
    # A chat works without it; then an address has to be named again when a session is resumed.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):  # the file that takes its place has its mode
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FOR_THE_USER))
        write_whole(path, json.dumps({"servers": servers}, indent=2).encode())


def _load_servers() -> list[str]:
    try:
        stored: object = json.loads(_servers_file().read_bytes())
    except (OSError, ValueError):
        return []
    rows = cast("dict[str, object]", stored).get("servers") if isinstance(stored, dict) else None
    servers = cast("list[object]", rows) if isinstance(rows, list) else []
    return [server for server in servers if isinstance(server, str)]


def _servers_file() -> Path:
    return state_folder() / "servers.json"


async def session_to_resume(log: Log, options: ChatOptions, surface: Surface) -> str | None:
    """The session that the options name, or one that the person picks; None for a new one."""
    if options.session is None and options.resume:
        from refold.cli.chat.commands.sessions import pick_session  # noqa: PLC0415 - not for -p

        return await pick_session(log, surface)
    return await session_from_options(log, options)


async def _newest_of(log: Log, profile: str) -> str | None:
    """The newest session that was started with this profile, if it is recent enough to be found."""
    newest, _ = await own_sessions(log, "", _MAX_SEARCHED)
    return next((info.session for info in newest if info.profile == profile), None)


async def session_from_options(log: Log, options: ChatOptions) -> str | None:
    """The session that the options name; the newest for a bare `--resume`.

    A name may be shortened to a unique prefix. Without `--resume` it may be new. A session of
    another program is refused here, rather than at every message.
    """
    if options.session is None:
        if not options.resume:
            return None
        newest, _ = await own_sessions(log, "", 1)
        if not newest:
            raise SessionNotFound("There is no session to continue yet.", "Start one: refold chat.")
        return newest[0].session
    info = await _find_session(log, options.session, may_be_new=not options.resume)
    if info is None:
        return options.session
    if not is_own(info):
        raise refusal(info, _store_options(options))
    return info.session


async def _find_session(log: Log, name: str, *, may_be_new: bool) -> SessionInfo | None:
    try:
        return await log.info(name)
    except SessionNotFound:
        if may_be_new:
            return None
    page = await log.sessions(search=name, limit=_MAX_NAMES + 1)
    matches = [info for info in page.sessions if info.session.startswith(name)]
    matches = [info for info in matches if is_own(info)] or matches
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(info.session for info in matches[:_MAX_NAMES])
    hint = f"These begin so: {names}." if matches else "`refold sessions` lists them."
    raise SessionNotFound(f"There is no session {name!r}.", hint)


def resume_command(name: str, options: ChatOptions) -> str:
    """The command that resumes a session as it was left; the session itself records its model."""
    words = [
        *(("--agent", options.agent) if options.agent else ()),
        *(("--mcp", str(options.mcp)) if options.mcp else ()),
        *(("--files", str(options.files)) if options.files else ()),
        *(("--profile", options.profile) if options.profile else ()),
        *(() if options.board else ("--no-board",)),
    ]
    rest = _store_options(options) + "".join(f" {quote(word)}" for word in words)
    if name.startswith("-"):  # it would be read as an option
        return f"refold chat --resume{rest} -- {quote(name)}"
    return f"refold chat --resume {quote(name)}{rest}"


def show_command(name: str, options: ChatOptions) -> str:
    """The command that reads the whole session."""
    rest = _store_options(options)
    if name.startswith("-"):  # it would be read as an option
        return f"refold show --all{rest} -- {quote(name)}"
    return f"refold show {quote(name)} --all{rest}"


def _store_options(options: ChatOptions) -> str:
    store = "" if options.store == where_is("") else f" --store {quote(options.store)}"
    return store + (
        "" if options.tenant == DEFAULT_TENANT else f" --tenant {quote(options.tenant)}"
    )


async def consolidate_in_background(conversation: Conversation, options: ChatOptions) -> bool:
    """Start reading the session for the board in another process; whether it was worth it.

    Only profiles that consolidate when the person leaves do this.
    """
    board, name = conversation.board, conversation.name
    if board is None or not name or options.agent or conversation.profile.consolidate != "leaving":
        return False
    if await conversation.session() is None:
        return False
    if not await is_worth_reading(conversation.log, name, board):
        return False
    server = server_of(conversation.model)
    _start(
        [
            # -P: else modules of the folder that the chat was started in would be imported.
            *(sys.executable, "-P", "-m", "refold.cli", "board", "run", name),
            *("--store", options.store, "--tenant", options.tenant),
            *("--model", conversation.model.model_id),
            *(("--base-url", server) if server else ()),
        ]
    )
    return True


def _start(command: list[str]) -> None:
    """Start a process that outlives this program and its terminal."""
    subprocess.Popen(  # noqa: S603 - this program itself
        command,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
