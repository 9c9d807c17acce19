"""`refold mcp`: recall for any client of MCP."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from refold.cli.hooks.run import WRAPPED
from refold.cli.options import (
    STORE,
    StoreOption,
    TenantOption,
    log_to_read,
    session_names,
    store_at,
)
from refold.cli.outcome import exit_on_error, require_extra
from refold.errors import InvalidInput, SessionNotFound
from refold.log import DEFAULT_TENANT, Log, SessionInfo

if TYPE_CHECKING:  # optional
    from mcp.server import Server

_MAX_RECENT: Final = 16
_MAX_SEARCHED: Final = 200
"""Conversations, the newest, of which those of a folder are taken."""
_MAX_PORT: Final = 65_535
_GLANCE: Final = 0.01


def mcp(
    *,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="NAME",
            help="The conversation to read; default: the caller's own.",
            show_default="found",
            autocompletion=session_names,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=_MAX_PORT,
            help="Answer at http://127.0.0.1:N/mcp, for programs on this machine; 0 is any free "
            "port.",
            show_default="standard input and output",
        ),
    ] = None,
    cwd: Annotated[
        Path | None,
        typer.Option(
            "--cwd",
            metavar="DIR",
            help="Only conversations that worked in or below this folder; there may be none yet. "
            "So refold hooks install starts it.",
        ),
    ] = None,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Let a model search and reread its conversation, as an MCP server.

    It has three tools: recall_search, recall_read and recall_history. They read a conversation in
    this store, compacted parts included, and change nothing. Without --port, it speaks MCP on
    standard input and output, for agents that start their own servers. `refold wrap` gives its
    agent these tools automatically.

    Example: refold mcp --session parcels
    """
    with exit_on_error(), require_extra("mcp"):
        asyncio.run(_serve(store, tenant, session, port, cwd and cwd.resolve()))


async def _serve(
    store: str, tenant: str, session: str | None, port: int | None, folder: Path | None
) -> None:
    from refold.service.recall_mcp import (  # noqa: PLC0415 - optional
        Conversations,
        ToolCall,
        no_tools,
        recall_server,
    )

    if folder and os.environ.get(WRAPPED):  # there is another one, of `refold wrap`
        await _answer(no_tools(), port)
        return
    async with _log(store, tenant, folder) as log:
        if session is not None:
            await log.info(session)
        recent = partial(_recent, log, folder)
        # The hooks bring a turn into the log when it has ended: its calls are not there yet.
        conversations = (
            Conversations(log, recent, tries=1) if folder else Conversations(log, recent)
        )

        async def session_of(call: ToolCall) -> str | None:
            return session or await conversations.calling(call)

        await _answer(recall_server(log, session_of), port)


def _log(store: str, tenant: str, folder: Path | None) -> AbstractAsyncContextManager[Log]:
    if folder is None:
        return log_to_read(store, tenant, gone="It is gone for good.")
    return _log_of_hooks(store, tenant)


@asynccontextmanager
async def _log_of_hooks(address: str, tenant: str) -> AsyncGenerator[Log]:
    async with store_at(address, create=True, quiet=True) as store:
        yield store.log(tenant)


async def _answer(server: "Server", port: int | None) -> None:
    """Answer on standard input and output, or at a port."""
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - optional

    if port is None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return
    import uvicorn  # noqa: PLC0415 - optional

    app = server.streamable_http_app(stateless_http=True, json_response=True)
    config = uvicorn.Config(app, log_level="error", access_log=False, ws="none")
    with _listening(port) as sock:
        where = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
        http = uvicorn.Server(config)
        serving = asyncio.create_task(http.serve(sockets=[sock]))
        # Whoever reads the address can connect: what is imported late is imported before.
        while not (http.started or serving.done()):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(_GLANCE)
        if http.started:
            typer.echo(json.dumps({"address": where}))
        await serving


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise InvalidInput(
            f"Port {port} cannot be used: {os.strerror(error.errno or 0)}.",
            "Choose another with --port.",
        ) from error


async def _recent(log: Log, folder: Path | None) -> Sequence[str]:
    """The conversations used last; of a folder, those that worked in or below it."""
    with suppress(SessionNotFound):
        page = await log.sessions(limit=_MAX_SEARCHED if folder else _MAX_RECENT)
        found = [info for info in page.sessions if folder is None or _worked_in(info, folder)]
        return [info.session for info in found[:_MAX_RECENT]]
    return ()


def _worked_in(info: SessionInfo, folder: Path) -> bool:
    worked = Path((info.origin and info.origin.folder) or ".")
    return worked.is_absolute() and worked.resolve().is_relative_to(folder)
